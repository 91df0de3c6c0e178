package redislimit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// TestMain runs the tests, or is one of the processes that a test starts.
func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // servers that do not answer are what tests are about
	if os.Getenv(childName) != "" {
		if err := runChild(os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(m.Run())
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// onServers runs a test on each kind of server that is installed. Without redis-server it is skipped, or fails when
// REQUIRE_REDIS is 1.
func onServers(t *testing.T, test func(t *testing.T, s *server)) {
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
			s := &server{path: path, dir: t.TempDir()}
			t.Cleanup(s.kill)
			require.NoError(t, s.start())
			test(t, s)
		})
	}
	if !found {
		t.Skip("neither redis-server nor valkey-server is on PATH")
	}
}

// server is a real server of its own on a loopback port.
type server struct {
	path, dir, addr string
	process         *exec.Cmd // nil when it is down
}

// start starts it on a free port, or on the one it had; a port that somebody else took meanwhile is tried again.
func (s *server) start() error {
	for range 20 {
		addr := s.addr
		if addr == "" {
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			addr = free.Addr().String()
			_ = free.Close()
		}
		if s.launch(addr) {
			s.addr = addr
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the server does not start")
}

// launch returns whether the server answers on addr and is the one that was started.
func (s *server) launch(addr string) bool {
	host, port, _ := net.SplitHostPort(addr)
	s.process = exec.Command(s.path, "--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "no")
	if err := s.process.Start(); err != nil {
		return false
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer rdb.Close()
	for range 200 {
		info, err := rdb.InfoMap(context.Background(), "server").Result()
		if err == nil {
			if info["Server"]["process_id"] == fmt.Sprint(s.process.Process.Pid) {
				return true
			}
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	s.kill()
	return false
}

func (s *server) kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	s.process = nil
}

// hang makes it accept connections and answer nothing.
func (s *server) hang(t *testing.T) { require.NoError(t, s.process.Process.Signal(syscall.SIGSTOP)) }

func (s *server) wake(t *testing.T) { require.NoError(t, s.process.Process.Signal(syscall.SIGCONT)) }

// options are those that the package asks for, with more time for a busy machine.
func (s *server) options() *redis.Options {
	return &redis.Options{
		Addr: s.addr, MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1,
		DialTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
	}
}

// client stands for a process: it has connections of its own.
func (s *server) client(t *testing.T, change ...func(*redis.Options)) *redis.Client {
	options := s.options()
	for _, c := range change {
		c(options)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// limiter has an interval of an hour unless told otherwise: nothing ends by itself during a test.
func (s *server) limiter(t *testing.T, opts ...Option) *Limiter {
	return New(s.client(t), "acme", append([]Option{WithInterval(time.Hour)}, opts...)...)
}

// state is what the server holds of the customer acme.
func (s *server) state(t *testing.T) map[string]string {
	state, err := s.client(t).HGetAll(context.Background(), defaultPrefix+":acme").Result()
	require.NoError(t, err)
	return state
}

// liar is a server that knows no command but evalsha, to which it answers always the same.
func liar(t *testing.T, answer string) (addr string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf := make([]byte, 1<<16)
				for {
					n, err := conn.Read(buf)
					if err != nil {
						return
					}
					reply := answer
					if !bytes.Contains(buf[:n], []byte("evalsha")) { // the handshake: several commands may come at once
						reply = strings.Repeat("-ERR unknown command\r\n", bytes.Count(buf[:n], []byte("*")))
					}
					if _, err := io.WriteString(conn, reply); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}
