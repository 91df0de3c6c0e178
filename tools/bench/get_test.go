package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// peer is a way to read a small object, with the path and the response of its service.
type peer struct {
	by, path, response string
	get                func(url string) (func() error, error)
}

// peers are net/http and this SDK, and with the tag peers other SDKs.
var peers = []peer{
	{"net-http", "/acme/v1/tasks/task-1", taskBody, func(url string) (func() error, error) { return plainGet(netHTTP(), url), nil }},
	{"webdelivery", "/unused", "", sdkGet},
}

// plainTask is the type that a user of net/http writes.
type plainTask struct {
	ID          string    `json:"id"`
	URI         string    `json:"uri"`
	Operation   string    `json:"operation"`
	Status      string    `json:"status"`
	Complete    bool      `json:"complete"`
	Progress    int       `json:"progress"`
	BeginTime   time.Time `json:"begin_time"`
	EndTime     time.Time `json:"end_time"`
	LastUpdated time.Time `json:"last_updated"`
	User        plainLink `json:"user"`
	Target      plainLink `json:"target"`
}

type plainLink struct {
	ID  string `json:"id"`
	URI string `json:"uri"`
}

var errWrong = errors.New("not what was asked for")

// plainGet sends what the SDK sends, with net/http and encoding/json.
func plainGet(client *http.Client, url string) func() error {
	return func() error {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url+"/acme/v1/tasks/task-1", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "application/json")
		req.Header.Set("User-Agent", "webdelivery-go/"+webdelivery.Version)
		req.SetBasicAuth(username, password)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		var task plainTask
		return found(json.Unmarshal(body, &task), task.ID == "task-1")
	}
}

func sdkGet(url string) (func() error, error) {
	client, err := newClient(url)
	return func() error { return getTask(client) }, err
}

func getTask(client *webdelivery.Client) error {
	task, err := client.Tasks.Get(context.Background(), "task-1")
	return found(err, err == nil && task.ID == "task-1")
}

func found(err error, right bool) error {
	if err == nil && !right {
		return errWrong
	}
	return err
}

// netHTTP returns a client with the defaults of net/http.
func netHTTP() *http.Client {
	transport, _ := http.DefaultTransport.(*http.Transport)
	return &http.Client{Transport: transport.Clone()}
}

// repeat does for as long as the benchmark takes.
func repeat(b *testing.B, do func() error) {
	for b.Loop() {
		if err := do(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGet reads a task over loopback. The server has a process of its own, so CPU time and allocations are the
// client's.
func BenchmarkGet(b *testing.B) {
	url := startServer(b)
	for _, p := range peers {
		get := must(p.get(url))
		b.Run("by="+p.by, func(b *testing.B) {
			b.ReportAllocs()
			before := cpuTime()
			repeat(b, get)
			b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkGetInMemory reads a task without a network, which costs more than both clients and varies by more than they
// differ. Noise only makes a call longer, so the shortest of many rounds counts.
func BenchmarkGetInMemory(b *testing.B) {
	service := inMemory(func(*http.Request) (*http.Response, error) { return response(http.StatusOK, []byte(taskBody)) })
	sdk := must(inMemoryClient(service))
	for by, get := range map[string]func() error{
		"net-http":    plainGet(&http.Client{Transport: service}, "https://api.example.com"),
		"webdelivery": func() error { return getTask(sdk) },
	} {
		b.Run("by="+by, func(b *testing.B) {
			const calls = 200
			shortest := time.Hour
			for b.Loop() {
				began := time.Now()
				for range calls {
					if err := get(); err != nil {
						b.Fatal(err)
					}
				}
				shortest = min(shortest, time.Since(began))
			}
			b.ReportMetric(float64(shortest.Nanoseconds())/calls, "min-ns/call")
		})
	}
}

// cpuTime is the time that this process has worked.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
