package redisqueue_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func TestMain(m *testing.M) {
	logging.Disable()                  // tests stop servers on purpose
	_ = flag.Set("test.parallel", "8") // tests mostly wait for permits
	m.Run()
}

// world has processes of a fleet, for which it is the shared limiter, one that needs no Redis and that a test can stop.
type world struct {
	*redistest.World

	permit chan struct{} // the next one
	every  time.Duration // how soon it comes after the last one
}

func inWorld(t *testing.T, test func(w *world), options ...webdeliverytest.Option) {
	redistest.InWorld(t, func(shared *redistest.World) {
		w := &world{shared, make(chan struct{}, 1), 525 * time.Millisecond}
		w.goOn()
		test(w)
	}, options...)
}

// parallel is the world of a subtest.
func (w *world) parallel(t *testing.T) *world {
	t.Parallel()
	return &world{&redistest.World{T: t, Redis: w.Redis, Service: w.Service}, w.permit, w.every}
}

// pause makes all permits wait, until goOn.
func (w *world) pause() { <-w.permit }

func (w *world) goOn() { w.permit <- struct{}{} }

func (w *world) Acquire(ctx context.Context, _ string) (none webdelivery.Permit, err error) {
	select {
	case <-w.permit:
		time.AfterFunc(w.every, w.goOn)
		return none, nil
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (w *world) Pause(context.Context, string, time.Duration) error { return nil }

func (w *world) Waiting(string) error { return errors.New("the next permit comes in 1h") }

// client is the client of one process.
func (w *world) client(options ...webdelivery.Option) *webdelivery.Client {
	return w.Service.Client(w, append([]webdelivery.Option{webdelivery.WithSharedLimiter(w)}, options...)...)
}

// rdb is the client of one process for Redis.
func (w *world) rdb(change ...func(*redis.UniversalOptions)) redis.UniversalClient {
	o := redislimit.ClientOptions(w.Redis.Addr)
	o.Username, o.Password = redistest.User, redistest.User
	for _, c := range change {
		c(o)
	}
	rdb := redis.NewUniversalClient(o)
	w.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// brief is for tests in which a lease must end. On a busy machine, one may end too early.
func brief(o *redisqueue.Options) { o.Lease = time.Second }

func waits(o *redisqueue.Options) { o.Wait = true }

// process is a queue that shares nothing with the others but Redis and the limiter, as that of another process does.
func (w *world) process(change ...func(*redisqueue.Options)) *redisqueue.Queue {
	return w.queue(w.rdb(), w.client(), change...)
}

func (w *world) queue(rdb redis.UniversalClient, c *webdelivery.Client, change ...func(*redisqueue.Options)) *redisqueue.Queue {
	var o redisqueue.Options
	for _, set := range change {
		set(&o)
	}
	q, err := redisqueue.New(rdb, c, o)
	require.NoError(w, err)
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = q.Close(ctx) // the test may have closed it, or stopped Redis
	})
	return q
}

// purging calls Purge of several queues with one URI each, and returns a function that waits for their errors.
func (w *world) purging(ctx context.Context, queues ...*redisqueue.Queue) (wait func() []error) {
	var all sync.WaitGroup
	errs := make([]error, len(queues))
	for i, q := range queues {
		all.Go(func() { _, errs[i] = q.Purge(ctx, object(i)) })
	}
	return func() []error {
		all.Wait()
		return errs
	}
}

func (w *world) allGood(errs []error) {
	w.Helper()
	purged := w.purged()
	for i, err := range errs {
		assert.NoError(w, err)
		assert.NotZero(w, purged[pattern(i)])
	}
}

// purge purges what no fault prevents.
func (w *world) purge(q *redisqueue.Queue, uris ...webdelivery.PurgeURI) {
	w.Helper()
	_, err := q.Purge(w.Soon(), uris...)
	require.NoError(w, err)
}

func (w *world) enqueue(q *redisqueue.Queue, uris ...webdelivery.PurgeURI) (id string) {
	w.Helper()
	id, err := q.Enqueue(w.Soon(), uris...)
	require.NoError(w, err)
	return id
}

// result waits for the result of a call of Enqueue.
func (w *world) result(q *redisqueue.Queue, id string) (receipts []*webdelivery.PurgeReceipt, err error) {
	w.Until("the purge has ended", func() bool {
		receipts, err = q.Result(w.Soon(), id)
		return !errors.Is(err, redisqueue.ErrPending)
	})
	return receipts, err
}

func (w *world) pending(q *redisqueue.Queue) int {
	s, err := q.Stats(w.Context())
	require.NoError(w, err)
	return s.Pending
}

// queued waits until so many calls are in Redis.
func (w *world) queued(q *redisqueue.Queue, calls int) {
	w.Helper()
	w.Until(fmt.Sprint(calls, " calls are in Redis"), func() bool { return w.pending(q) == calls })
}

// beat returns what the last sender has written.
func (w *world) beat() string { return w.Do("GET " + w.Do("KEYS *:lease")) }

// exchanged waits until the sender knows what is in Redis.
func (w *world) exchanged() {
	for range 2 {
		before := w.beat()
		w.Until("the sender reads", func() bool { return w.beat() != before })
	}
}

// purged returns how often the service accepted each pattern.
func (w *world) purged() map[string]int {
	all := map[string]int{}
	for _, p := range w.Service.Purged() {
		for _, u := range p.URIs {
			all[u.URIPattern]++
		}
	}
	return all
}

// pattern returns the i-th of many URIs.
func pattern(i int) string { return fmt.Sprintf("https://www.example.com/%d", i) }

func object(i int) webdelivery.PurgeURI { return webdelivery.Exact(pattern(i)) }
