// Distributed-purge shows several processes that purge for one customer on one budget: it starts a fake service, a
// redis-server (unless -redis names one) and some processes of its own, which share the service's 2 purges a second
// through redislimit, and prints who got which permit.
//
// Exit codes: 0 done, 1 failed, 2 used wrongly.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
	"github.com/webdelivery/webdelivery-go/redislimit"
)

// What a process is told by its environment.
const (
	envNumber  = "DISTRIBUTED_PURGE_NUMBER" // its number; unset in the one that starts the others
	envService = "DISTRIBUTED_PURGE_SERVICE"
	envRedis   = "DISTRIBUTED_PURGE_REDIS"
	envBegan   = "DISTRIBUTED_PURGE_BEGAN"
)

func main() {
	processes := flag.Int("processes", 4, "how many processes purge")
	purges := flag.Int("purges", 4, "how many purges each of them makes")
	address := flag.String("redis", "", "host:port of a Redis or Valkey; starts a redis-server of its own when empty")
	flag.Parse()
	if *processes < 1 || *purges < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if number := os.Getenv(envNumber); number != "" {
		err = purge(ctx, os.Stdout, number, *purges)
	} else {
		err = run(ctx, os.Stdout, *processes, *purges, *address)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "distributed-purge:", err)
		os.Exit(1)
	}
}

// run starts everything and tells at the end how the purges arrived at the service.
func run(ctx context.Context, out io.Writer, processes, purges int, address string) error {
	service := testserver.New(testserver.Config{PurgeDuration: -1})
	url, err := service.ListenTCP()
	if err != nil {
		return err
	}
	defer func() { _ = service.Close() }()
	if address == "" {
		var stop func()
		if address, stop, err = startRedis(ctx); err != nil {
			return err
		}
		defer stop()
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	lines := &lineWriter{out: out}
	errs := make([]error, processes)
	var running sync.WaitGroup
	for i := range processes {
		child := exec.CommandContext(ctx, self, "-purges", strconv.Itoa(purges)) //nolint:gosec // this very program
		child.Env = append(os.Environ(), envNumber+"="+strconv.Itoa(i+1), envService+"="+url, envRedis+"="+address,
			envBegan+"="+strconv.FormatInt(time.Now().UnixNano(), 10))
		child.Stdout, child.Stderr = lines, os.Stderr
		running.Go(func() { errs[i] = child.Run() })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return summarize(out, service.Requests())
}

// purge is one of the processes.
func purge(ctx context.Context, out io.Writer, number string, purges int) error {
	began, err := strconv.ParseInt(os.Getenv(envBegan), 10, 64)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv(envRedis), ContextTimeoutEnabled: true, MaxRetries: -1})
	defer func() { _ = rdb.Close() }()
	budget := told{redislimit.New(rdb, "acme"), func() {
		fmt.Fprintf(out, "%6.2f s  process %s has a permit\n", time.Since(time.Unix(0, began)).Seconds(), number)
	}}
	client, err := webdelivery.NewClient(os.Getenv(envService), "acme",
		webdelivery.BasicAuth("alice", "correct-horse-battery"), webdelivery.WithPurgeLimiter(budget))
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

// told is a limiter that says when it gave a permit.
type told struct {
	*redislimit.Limiter
	permit func()
}

// Wait waits for a permit.
func (t told) Wait(ctx context.Context) error {
	err := t.Limiter.Wait(ctx)
	if err == nil {
		t.permit()
	}
	return err
}

// summarize tells how close together the purges arrived, and how many were refused.
func summarize(out io.Writer, requests []testserver.Request) error {
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
		return errors.New("the service refused purges that came too fast")
	}
	return nil
}

// lineWriter keeps the lines of several processes apart: each is written at once.
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
