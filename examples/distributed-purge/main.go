// Distributed-purge shows several processes that share the purge budget of one customer. It starts a fake service, a
// redis-server (unless -redis names one) and some processes. They share the service's 2 purges per second through
// redislimit. It prints each permit, and the first wait of each process that is longer than 2 s.
//
//	distributed-purge [-processes 4] [-purges 4] [-redis HOST:PORT]
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
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// Environment variables of the processes, besides those of the service.
const (
	envNumber = "DISTRIBUTED_PURGE_NUMBER" // number of the process; unset in the one that starts the others
	envRedis  = "DISTRIBUTED_PURGE_REDIS"
	envBegan  = "DISTRIBUTED_PURGE_BEGAN"
)

//go:embed main.go
var source string // begins with the help

func main() { program.Main("distributed-purge", nil, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	set := program.FlagsAlone("distributed-purge", source, s)
	processes := set.Int("processes", 4, "`number` of processes")
	purges := set.Int("purges", 4, "`number` of purges per process")
	address := set.String("redis", "", "`host:port` of a Redis or Valkey server; if empty, starts a redis-server")
	if err := program.ParseAlone(set, args); err != nil {
		return err
	}
	switch number := os.Getenv(envNumber); {
	case *processes < 1 || *purges < 1:
		return program.Misused("-processes and -purges must be at least 1")
	case number != "":
		return purge(ctx, s.Out, number, *purges)
	default:
		return start(ctx, s, *processes, *purges, *address)
	}
}

// start starts everything, and prints at the end how the purges arrived at the service.
func start(ctx context.Context, s program.Streams, processes, purges int, address string) error {
	service, err := webdeliverytest.Start()
	if err != nil {
		return err
	}
	defer service.Close()
	fmt.Fprintln(s.Err, "Using a fake service; nothing real happens.")
	if address == "" {
		var stop func()
		if address, stop, err = startRedis(ctx); err != nil {
			return err
		}
		defer stop()
		fmt.Fprintln(s.Err, "Its redis-server has just started, and may have lost permits of other processes. The first permit comes in 16 s.")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	lines := &lineWriter{out: s.Out}
	errs := make([]error, processes)
	var running sync.WaitGroup
	for i := range processes {
		child := exec.CommandContext(ctx, self, "-purges", strconv.Itoa(purges)) //nolint:gosec // this very program
		child.Env = append(os.Environ(), envNumber+"="+strconv.Itoa(i+1), envRedis+"="+address,
			envBegan+"="+strconv.FormatInt(time.Now().UnixNano(), 10),
			"WEBDELIVERY_BASE_URL="+service.URL, "WEBDELIVERY_CUSTOMER="+service.Customer, "WEBDELIVERY_AUTH=basic",
			"WEBDELIVERY_USERNAME="+service.Username, "WEBDELIVERY_PASSWORD="+service.Password)
		child.Stdout, child.Stderr = lines, os.Stderr
		running.Go(func() { errs[i] = child.Run() })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return summarize(s.Out, service.Requests())
}

// purge runs one of the processes.
func purge(ctx context.Context, out io.Writer, number string, purges int) error {
	began, err := strconv.ParseInt(os.Getenv(envBegan), 10, 64)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv(envRedis), ContextTimeoutEnabled: true, MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	limiter := redislimit.New(rdb, os.Getenv("WEBDELIVERY_CUSTOMER")) //nolint:contextcheck // it starts nothing before Acquire
	budget := &reported{Limiter: limiter, redis: os.Getenv(envRedis), report: func(what string) {
		fmt.Fprintf(out, "%6.2f s  process %s %s\n", time.Since(time.Unix(0, began)).Seconds(), number, what)
	}}
	client, err := webdelivery.NewClientFromEnv(webdelivery.WithPurgeLimiter(budget))
	if err != nil {
		return err
	}
	for i := range purges {
		uri := webdelivery.Exact(fmt.Sprintf("https://www.example.com/%s/%d", number, i))
		request := webdelivery.PurgeRequest{Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{uri}}
		if _, err := client.Purge.Submit(ctx, request); err != nil {
			return err
		}
	}
	return nil
}

// reported is a limiter that reports each permit, and the first wait for one that is long.
type reported struct {
	*redislimit.Limiter

	redis  string // its address
	report func(what string)
	once   sync.Once
}

// longWait is the longest wait that is not reported while it lasts.
const longWait = 2 * time.Second

// Acquire waits for a permit.
func (r *reported) Acquire(ctx context.Context) (webdelivery.Permit, error) {
	began := time.Now()
	long := time.AfterFunc(longWait, func() { r.once.Do(func() { r.report("has waited 2 s for a permit, and waits on") }) })
	defer long.Stop()
	permit, err := r.Limiter.Acquire(ctx)
	switch {
	case err != nil && ctx.Err() == nil: // the service has no part in it
		err = program.Advise(err, "check that Redis or Valkey is running at "+r.redis+"; -redis names another address")
	case err == nil:
		r.report(fmt.Sprintf("has a permit, after %.1f s", time.Since(began).Seconds()))
	}
	return permit, err
}

// summarize prints how close together the purges arrived, and how many the service refused.
func summarize(out io.Writer, requests []webdeliverytest.Request) error {
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
	fmt.Fprintf(out, "%d purges in %.1f s, at most %d within a second, %d refused\n", len(requests), took.Seconds(), most, refused)
	if refused > 0 {
		return errors.New("the service refused purges as too fast; this must not happen with redislimit: please report it")
	}
	return nil
}

// lineWriter writes the lines of several processes, one at a time.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write writes lines.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}
