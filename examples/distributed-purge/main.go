// Distributed-purge shows several processes that purge for one customer. It starts a fake service, a redis-server (unless
// -redis names one) and some processes. They share the service's 2 purge requests per second through Redis. It prints each
// permit, and the first wait of each process for a permit that is longer than 2 s.
//
//	distributed-purge [-processes 4] [-purges 4] [-queue] [-redis HOST:PORT]
//
// Without -queue the processes share the permits, with redislimit. Each purge is a request of its own, and a process sends
// its purges one after another. With -queue the processes share one queue, with redisqueue. Each process purges from as
// many goroutines as it has purges. Whichever process has the next permit sends the purges of all.
//
// The last line has the number of requests and the longest wait of a purge. Compare them:
//
//	distributed-purge -processes 40 -purges 1
//	distributed-purge -processes 40 -purges 1 -queue
//
// It always uses its own fake service, and ignores the service of the environment: nothing real happens.
//
// Exit codes: 0 done, 1 failed or interrupted, 2 wrong usage.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

//go:embed main.go
var source string // begins with the help

func main() { program.Main("distributed-purge", nil, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	set := program.FlagsAlone("distributed-purge", source, s)
	processes := set.Int("processes", 4, "`number` of processes")
	purges := set.Int("purges", 4, "`number` of purges per process")
	queue := set.Bool("queue", false, "share one queue instead of the permits alone")
	address := set.String("redis", "", "`host:port` of a Redis or Valkey server; if empty, starts a redis-server")
	if err := program.ParseAlone(set, args); err != nil {
		return err
	}
	switch number := os.Getenv(envNumber); {
	case *processes < 1 || *purges < 1:
		return program.Misused("-processes and -purges must be at least 1")
	case number != "":
		return purge(ctx, s.Out, number, *purges, *queue)
	default:
		return start(ctx, s, fleet{processes: *processes, purges: *purges, queue: *queue, redis: *address})
	}
}

// fleet is the processes to start.
type fleet struct {
	processes, purges int
	queue             bool
	redis             string // address
}

// start starts everything, and prints at the end how the purges arrived at the service.
func start(ctx context.Context, s program.Streams, f fleet) error {
	service, err := webdeliverytest.Start()
	if err != nil {
		return err
	}
	defer service.Close()
	fmt.Fprintln(s.Err, "Using a fake service; nothing real happens.")
	if f.redis == "" {
		var stop func()
		if f.redis, stop, err = startRedis(ctx); err != nil {
			return err
		}
		defer stop()
	}
	longest, err := f.run(ctx, s.Out, service)
	if err != nil {
		return err
	}
	return summarize(s.Out, service, f.processes*f.purges, longest)
}

// run runs the processes, and returns the longest wait of a purge.
func (f fleet) run(ctx context.Context, out io.Writer, service *webdeliverytest.Server) (longest time.Duration, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	lines := &lineWriter{out: out}
	errs := make([]error, f.processes)
	var running sync.WaitGroup
	for i := range f.processes {
		child := exec.CommandContext(ctx, self, "-purges", strconv.Itoa(f.purges), "-queue="+strconv.FormatBool(f.queue)) //nolint:gosec // this very program
		child.Env = append(os.Environ(), envNumber+"="+strconv.Itoa(i+1), envRedis+"="+f.redis,
			envBegan+"="+strconv.FormatInt(time.Now().UnixNano(), 10),
			"WEBDELIVERY_BASE_URL="+service.URL, "WEBDELIVERY_CUSTOMER="+service.Customer, "WEBDELIVERY_AUTH=basic",
			"WEBDELIVERY_USERNAME="+service.Username, "WEBDELIVERY_PASSWORD="+service.Password)
		child.Stdout, child.Stderr = lines, os.Stderr
		running.Go(func() { errs[i] = child.Run() })
	}
	running.Wait()
	return lines.longest, errors.Join(errs...)
}

// summarize prints in how many requests the purges arrived, how close together, and how many the service refused. It
// returns an error if a purge is missing or was refused.
func summarize(out io.Writer, service *webdeliverytest.Server, want int, longest time.Duration) error {
	purged := map[webdelivery.PurgeURI]bool{}
	for _, p := range service.Purged() {
		for _, uri := range p.URIs {
			purged[uri] = true
		}
	}
	requests := service.Requests()
	refused, most := 0, 0
	for i, r := range requests {
		if r.Status != 201 {
			refused++
		}
		within := 0
		for _, later := range requests[i:] {
			if later.Time.Sub(r.Time) < time.Second {
				within++
			}
		}
		most = max(most, within)
	}
	took := requests[len(requests)-1].Time.Sub(requests[0].Time)
	fmt.Fprintf(out, "%s in %s and %.1f s, at most %d within a second, %d refused; the longest wait was %.1f s\n",
		number(len(purged), "purge"), number(len(requests), "request"), took.Seconds(), most, refused, longest.Seconds())
	switch {
	case refused > 0:
		return errors.New("the service refused purges as too fast; this must not happen with redislimit: please report it")
	case len(purged) != want:
		return fmt.Errorf("the service has %s instead of %d; this must not happen: please report it", number(len(purged), "purge"), want)
	default:
		return nil
	}
}

// number returns the number of things, such as "2 requests".
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprint(n, " ", thing, "s")
}

// lineWriter writes the lines of several processes, one at a time. It does not write their waits, but keeps the longest.
type lineWriter struct {
	mu      sync.Mutex
	out     io.Writer
	longest time.Duration
}

// Write writes whole lines: a process writes each line at once.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(string(p)) {
		if waited, ok := strings.CutPrefix(strings.TrimSpace(line), waitedMark); ok {
			longest, err := time.ParseDuration(waited)
			if err != nil {
				return 0, err
			}
			w.longest = max(w.longest, longest)
			continue
		}
		if _, err := io.WriteString(w.out, line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
