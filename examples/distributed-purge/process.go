package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// Environment variables of the processes, besides those of the service.
const (
	envNumber = "DISTRIBUTED_PURGE_NUMBER" // number of the process; unset in the one that starts the others
	envRedis  = "DISTRIBUTED_PURGE_REDIS"
	envBegan  = "DISTRIBUTED_PURGE_BEGAN"
)

// waitedMark begins the last line of a process. Its longest wait follows, for the process that has started it.
const waitedMark = "longest wait: "

// purge runs one of the processes.
func purge(ctx context.Context, out io.Writer, number string, purges int, queued bool) error {
	began, err := strconv.ParseInt(os.Getenv(envBegan), 10, 64)
	if err != nil {
		return err
	}
	rdb := redis.NewUniversalClient(redislimit.ClientOptions(os.Getenv(envRedis)))
	defer func() { _ = rdb.Close() }()
	limiter, err := redislimit.New(rdb)
	if err != nil {
		return err
	}
	budget := &reported{Limiter: limiter, report: func(what string) {
		fmt.Fprintf(out, "%6.2f s  process %s %s\n", time.Since(time.Unix(0, began)).Seconds(), number, what)
	}}
	client, err := webdelivery.NewClientFromEnv(webdelivery.WithPurgeLimiter(budget))
	if err != nil {
		return err
	}
	uris := make([]webdelivery.PurgeURI, purges)
	for i := range uris {
		uris[i] = webdelivery.Exact(fmt.Sprintf("https://www.example.com/%s/%d", number, i))
	}
	var waits []time.Duration
	if queued {
		waits, err = together(ctx, rdb, client, uris)
	} else {
		waits, err = oneByOne(ctx, client, uris)
	}
	if err != nil {
		return advised(ctx, err)
	}
	_, err = fmt.Fprintf(out, "%s%v\n", waitedMark, slices.Max(waits))
	return err
}

// oneByOne sends a request for each URI, and returns how long each took.
func oneByOne(ctx context.Context, client *webdelivery.Client, uris []webdelivery.PurgeURI) (waits []time.Duration, err error) {
	for _, uri := range uris {
		began := time.Now()
		request := webdelivery.PurgeRequest{Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{uri}}
		if _, err := client.Purge.Submit(ctx, request); err != nil {
			return nil, err
		}
		waits = append(waits, time.Since(began))
	}
	return waits, nil
}

// together purges each URI from a goroutine of its own, through the queue of all processes. It returns how long each took.
func together(ctx context.Context, rdb redis.UniversalClient, client *webdelivery.Client, uris []webdelivery.PurgeURI) (waits []time.Duration, err error) {
	queue, err := redisqueue.New(rdb, client, redisqueue.Options{}) //nolint:contextcheck // the queue ends with Close
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, queue.Close(ctx))
	}()
	waits, errs := make([]time.Duration, len(uris)), make([]error, len(uris))
	var callers sync.WaitGroup
	for i, uri := range uris {
		callers.Go(func() {
			began := time.Now()
			_, errs[i] = queue.Purge(ctx, uri)
			waits[i] = time.Since(began)
		})
	}
	callers.Wait()
	return waits, errors.Join(errs...)
}

// advised adds the next step to an error if Redis is unavailable: the service has no part in it.
func advised(ctx context.Context, err error) error {
	var limiter *redislimit.UnavailableError
	if ctx.Err() == nil && (errors.As(err, &limiter) || errors.Is(err, redisqueue.ErrRedis)) {
		return program.Advise(err, "check that Redis or Valkey is running at "+os.Getenv(envRedis)+"; -redis names another address")
	}
	return err
}

// reported is a limiter that reports each permit, and the first wait for one that is long.
type reported struct {
	*redislimit.Limiter

	report func(what string)
	once   sync.Once
}

// longWait is the longest wait that is not reported while it lasts.
const longWait = 2 * time.Second

// ForCustomer returns the limiter of the client's customer, which reports as well.
func (r *reported) ForCustomer(key string) webdelivery.Limiter {
	return &reported{Limiter: r.Limiter.ForCustomer(key).(*redislimit.Limiter), report: r.report}
}

// Acquire waits for a permit.
func (r *reported) Acquire(ctx context.Context) (webdelivery.Permit, error) {
	began := time.Now()
	long := time.AfterFunc(longWait, func() { r.once.Do(func() { r.report("has waited 2 s for a permit, and waits on") }) })
	defer long.Stop()
	permit, err := r.Limiter.Acquire(ctx)
	if err == nil {
		r.report(fmt.Sprintf("has a permit, after %.1f s", time.Since(began).Seconds()))
	}
	return permit, err
}
