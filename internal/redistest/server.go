// Package redistest runs tests with real servers of Redis and Valkey and a fake service. It must not depend on go-redis,
// which the root module does not need.
package redistest

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// OnServers runs a test against each kind of server that is installed, started with args. A missing redis-server skips
// the test, or fails it if REQUIRE_REDIS is 1.
func OnServers(t *testing.T, test func(t *testing.T, s *Server), args ...string) {
	for _, program := range []string{"redis-server", "valkey-server"} {
		path, err := exec.LookPath(program)
		if err != nil && program == "valkey-server" {
			continue // few machines have both
		}
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			if err != nil && os.Getenv("REQUIRE_REDIS") != "1" {
				t.Skip(err)
			}
			require.NoError(t, err)
			test(t, (&Server{path: path}).another(t, args...))
		})
	}
}

// Server is a real server on a loopback port. It stores nothing on disk unless it is told to.
type Server struct {
	Addr string // host:port

	path, dir string
	args, env []string
	process   *exec.Cmd // nil while it is down
}

// another starts one more server of the same kind, with its own port and directory.
func (s *Server) another(t *testing.T, args ...string) *Server {
	t.Helper()
	other := &Server{args: args, path: s.path, dir: t.TempDir()}
	t.Cleanup(other.Kill)
	other.Start(t)
	return other
}

// Start starts the server on a free port, or on its earlier one, and waits until it responds. If another program has
// taken the port, Start retries.
func (s *Server) Start(t *testing.T) {
	t.Helper()
	for range 20 {
		addr := cmp.Or(s.Addr, Nobody(t))
		host, port, _ := net.SplitHostPort(addr)
		args := append([]string{"--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no"}, s.args...)
		s.process = exec.CommandContext(context.Background(), s.path, args...)
		s.process.Env = append(os.Environ(), s.env...)
		require.NoError(t, s.process.Start())
		own := fmt.Sprintf("process_id:%d\r\n", s.process.Process.Pid)
		for range 200 {
			reply, _ := ask(addr, "PING\r\nINFO server") // PING fails while it loads its data
			if strings.HasPrefix(reply, "PONG") && strings.Contains(reply, own) {
				s.Addr = addr
				return
			}
			time.Sleep(25 * time.Millisecond)
		}
		s.Kill()
	}
	t.Fatal("redistest: the server does not start")
}

// Kill ends the server at once, as kill -9 does.
func (s *Server) Kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// Signal sends a signal. After STOP the server accepts connections without responding, until CONT. A shell sends it,
// because package syscall does not have these on every system.
func (s *Server) Signal(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprint("kill -", name, " ", s.process.Process.Pid)).Run())
}

//go:embed clock.c.txt
var clock []byte

// Clock restarts the server with a wall clock that set shifts. It needs gcc and Linux, or skips the test.
func (s *Server) Clock(t *testing.T) (set func(ahead time.Duration)) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("LD_PRELOAD is for Linux")
	}
	source, library, file := filepath.Join(s.dir, "clock.c"), filepath.Join(s.dir, "clock.so"), filepath.Join(s.dir, "ahead")
	require.NoError(t, os.WriteFile(source, clock, 0o600))
	out, err := exec.CommandContext(t.Context(), "gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	set = func(ahead time.Duration) {
		require.NoError(t, os.WriteFile(file, []byte(fmt.Sprint(int(ahead/time.Second))), 0o600))
	}
	set(0)
	s.env = []string{"LD_PRELOAD=" + library, "CLOCK_FILE=" + file}
	s.Kill()
	s.Start(t)
	return set
}

// Nobody returns an address at which nobody listens.
func Nobody(t *testing.T) (addr string) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// marks are those of the protocol: counts and lengths, and the first byte of a text or number.
var marks = regexp.MustCompile(`(?m)^([*$].*\r\n|[+:])`)

// ask sends a command as its user would type it, and returns the reply without marks. An error begins with a minus sign.
func ask(addr, command string) (reply string, err error) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(conn, command+"\r\nQUIT\r\n") // what does not arrive gets no reply
	all, err := io.ReadAll(conn)
	return marks.ReplaceAllString(strings.TrimSuffix(string(all), "+OK\r\n"), ""), err
}
