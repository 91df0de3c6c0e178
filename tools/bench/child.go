package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// This program starts itself again as child processes, so that some work does not disturb the figures. One is the
// server, whose allocations and CPU time are not those of the client. Others measure peak memory and CPU time, which are
// those of a whole process.

// childRole is the environment variable with the role of a child process. The role is serve, get with the arguments of
// measureGets, or wait with those of measureWaiting. Or it is one of readers with a shape and the address to read.
const childRole = "WEBDELIVERY_BENCH_CHILD"

func beChild(role string, in io.Reader, out io.Writer) error {
	name, arguments, _ := strings.Cut(role, " ")
	switch name {
	case "serve":
		return serve(in, out)
	case "get":
		return measureGets(arguments, out)
	case "wait":
		return measureWaiting(arguments, out)
	}
	shapeName, url, _ := strings.Cut(arguments, " ")
	read, ok := readers[name]
	if !ok {
		return fmt.Errorf("no child process does %q", role)
	}
	s, err := shapeNamed(shapeName)
	if err != nil {
		return err
	}
	rows, err := read(s, url)
	if err != nil {
		return err
	}
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, rows, peak)
	return err
}

// child returns this program in another role. The process ends with ctx; a server also ends when its standard input is
// closed.
func child(ctx context.Context, role string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self) //nolint:gosec // itself
	cmd.Env = append(os.Environ(), childRole+"="+role)
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// runChild runs this program in another role, and reads what it prints into the results.
func runChild(role string, results ...any) error {
	cmd, err := child(context.Background(), role)
	if err != nil {
		return err
	}
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	_, err = fmt.Sscan(string(out), results...)
	return err
}

// startServer starts the server and returns its address.
func startServer() (url string, stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	cmd, err := child(ctx, "serve")
	if err != nil {
		return "", nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = in.Close()
		_ = cmd.Wait() // its result no longer matters
		cancel()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the server does not start: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}

// serve listens on loopback until its standard input ends, which happens at the latest when the parent process ends.
func serve(in io.Reader, out io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var connections atomic.Int64
	srv := &http.Server{
		Handler: handler(&connections), ReadHeaderTimeout: time.Minute,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		},
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = srv.Close()
	}()
	if _, err := fmt.Fprintf(out, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler serves rows at /rows/{shape}/{seed}/{n}/..., the number of connections so far at /connections, and the small
// response that each SDK expects.
func handler(connections *atomic.Int64) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/rows/{shape}/{seed}/{n}/", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		seed, wrongSeed := strconv.ParseUint(r.PathValue("seed"), 10, 64)
		s, unknown := shapeNamed(r.PathValue("shape"))
		if err := errors.Join(err, wrongSeed, unknown); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = s.write(w, seed, n) // the client may stop reading early
	})
	mux.HandleFunc("/connections", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, connections.Load()) })
	for _, p := range append(peers, peer{path: "/acme/v1/tasks/task-1", response: taskBody}) {
		mux.HandleFunc(p.path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, p.response)
		})
	}
	return mux
}

// readers read the rows of a response, each in its way, and return the number of rows.
var readers = map[string]func(s *shape, url string) (rows int, err error){
	"scan": func(s *shape, url string) (int, error) {
		client, err := newClient(url)
		if err != nil {
			return 0, err
		}
		return s.scan(client)
	},
	"query": func(_ *shape, url string) (int, error) {
		client, err := newClient(url, webdelivery.WithMaxResponseBytes(1<<40))
		if err != nil {
			return 0, err
		}
		return queryAll(client)
	},
	"unmarshal": func(_ *shape, url string) (int, error) {
		body, err := fetch(&http.Client{}, url)
		if err != nil {
			return 0, err
		}
		return unmarshalAll(body)
	},
}

// fetch reads a body as a user of net/http does.
func fetch(client *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil) //nolint:gosec // of the server in the other process
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req) //nolint:gosec // as above
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.ReadAll(resp.Body)
}

// unmarshalAll reads rows as a user of encoding/json does.
func unmarshalAll(body []byte) (rows int, err error) {
	var response struct {
		Rows [][]any `json:"rows"`
	}
	err = json.Unmarshal(body, &response)
	return len(response.Rows), err
}

// peakMemory returns the peak memory of this process, in bytes.
func peakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	peak, _, _ = strings.Cut(strings.TrimSpace(peak), " ")
	kib, err := strconv.ParseInt(peak, 10, 64)
	return kib << 10, err
}
