package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// These tests start themselves again. One process is the server, whose allocations and CPU time are not those of the
// client. Others measure peak memory, which is that of a whole process.
const childRole = "WEBDELIVERY_BENCH_CHILD"

func TestMain(m *testing.M) {
	role, argument, _ := strings.Cut(os.Getenv(childRole), " ")
	switch read := readers[role]; {
	case read != nil:
		rows, err := read(argument)
		_, peak, _ := strings.Cut(string(must(os.ReadFile("/proc/self/status"))), "VmHWM:")
		fmt.Println(rows, strings.Fields(peak)[0], err)
	case role == "serve":
		serve()
	default:
		os.Exit(m.Run())
	}
}

func child(role string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), must(os.Executable()))
	cmd.Env, cmd.Stderr = append(os.Environ(), childRole+"="+role), os.Stderr
	return cmd
}

// startServer starts a server in a process of its own, which ends with the test.
func startServer(b *testing.B) (url string) {
	b.Helper()
	cmd := child("serve")
	in, out := must(cmd.StdinPipe()), must(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return strings.TrimSpace(must(bufio.NewReader(out).ReadString('\n')))
}

// serve serves rows at /rows/, and small responses.
func serve() {
	mux := http.NewServeMux()
	mux.HandleFunc("/rows/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(shapes[0].body(manyRows)) })
	for _, p := range peers {
		mux.HandleFunc(p.path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, p.response)
		})
	}
	listener := must(new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0"))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	fmt.Printf("http://%s\n", listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the other process
		_ = srv.Close()
	}()
	_ = srv.Serve(listener)
}

const manyRows = 1_000_000

// readers read these rows over HTTP.
var readers = map[string]func(url string) (rows int, err error){
	"Scan": func(url string) (int, error) { return scanRows[event](must(newClient(url + "/rows"))) },
	"Query": func(url string) (int, error) {
		return queryAll(must(newClient(url+"/rows", webdelivery.WithMaxResponseBytes(1<<40))))
	},
	"Unmarshal": func(url string) (int, error) { return unmarshalAll(must(fetch(url + "/rows/"))) },
}

func fetch(url string) ([]byte, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.ReadAll(resp.Body)
}

// BenchmarkPeakMemory measures the peak memory of a process that reads a million rows over HTTP.
func BenchmarkPeakMemory(b *testing.B) {
	url := startServer(b)
	for _, by := range []string{"Unmarshal", "Scan", "Query"} {
		b.Run("by="+by, func(b *testing.B) {
			var sum float64
			for b.Loop() {
				var rows, peak int
				if _, err := fmt.Sscan(string(must(child(by+" "+url).Output())), &rows, &peak); err != nil || rows != manyRows {
					b.Fatal(rows, err)
				}
				sum += float64(peak) / 1024
			}
			b.ReportMetric(sum/float64(b.N), "MiB-peak")
		})
	}
}
