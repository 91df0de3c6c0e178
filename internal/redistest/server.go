// Package redistest starts real Redis and Valkey servers for tests. It must not depend on go-redis or the SDK. Its
// entry points are [OnServers], [NewProxy], [Clock] and [Rights].
package redistest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// OnServers runs a test against each kind of server that is installed, started with args. If there is none, it skips
// the test. If REQUIRE_REDIS is 1, a missing redis-server fails the test.
func OnServers(t *testing.T, test func(t *testing.T, s *Server), args ...string) {
	t.Helper()
	found := false
	for _, program := range []string{"redis-server", "valkey-server"} {
		path, err := exec.LookPath(program)
		if err != nil {
			if program == "redis-server" && os.Getenv("REQUIRE_REDIS") == "1" {
				t.Fatalf("REQUIRE_REDIS=1, but %v", err)
			}
			continue
		}
		found = true
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			test(t, (&Server{path: path}).Another(t, args...))
		})
	}
	if !found {
		t.Skip("neither redis-server nor valkey-server is on PATH")
	}
}

// Server is a real server on a loopback port. It stores nothing on disk unless Args say so.
type Server struct {
	Addr string   // host:port
	Args []string // additional arguments for the next Start
	Env  []string // additional environment for the next Start, see Clock

	path, dir string
	process   *exec.Cmd // nil while it is down
}

// Start starts the server on a free port, or on its earlier one. If that port is taken, Start retries.
func (s *Server) Start() error {
	for range 20 {
		addr := s.Addr
		if addr == "" {
			free, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			addr = free.Addr().String()
			_ = free.Close()
		}
		if s.launch(addr) {
			s.Addr = addr
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("redistest: the server does not start")
}

// Another starts one more server of the same kind, with its own port and directory.
func (s *Server) Another(t *testing.T, args ...string) *Server {
	t.Helper()
	other := &Server{Args: args, path: s.path, dir: t.TempDir()}
	t.Cleanup(other.Kill)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	return other
}

// launch starts the server on addr, and reports whether it responds and is the one that was started.
func (s *Server) launch(addr string) bool {
	host, port, _ := net.SplitHostPort(addr)
	args := append([]string{"--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no"}, s.Args...)
	s.process = exec.CommandContext(context.Background(), s.path, args...)
	s.process.Env = append(os.Environ(), s.Env...)
	if err := s.process.Start(); err != nil {
		return false
	}
	for range 200 {
		pid, err := processID(addr)
		if err == nil {
			if pid == strconv.Itoa(s.process.Process.Pid) {
				return true
			}
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	s.Kill()
	return false
}

// processID returns the process ID of the server at addr. It returns an error while the server is loading its data.
func processID(addr string) (string, error) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, "PING\r\nINFO server\r\nQUIT\r\n"); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+PONG" {
		return "", errors.New("redistest: not ready")
	}
	for lines.Scan() {
		if pid, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			return pid, nil
		}
	}
	return "", errors.New("redistest: no process id")
}

// Kill ends the server at once, as kill -9 does.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	s.process = nil
}
