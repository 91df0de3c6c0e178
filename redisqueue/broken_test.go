package redisqueue_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// cut is a network on which each connection is reset.
type cut struct{}

func (cut) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection reset by peer")
}

// brokenClients returns clients that cannot purge, each for another reason.
func (w *world) brokenClients() map[string]*webdelivery.Client {
	limiter := interval{w.rdb()}
	return map[string]*webdelivery.Client{
		"old password": w.clientWith("yesterday", webdelivery.WithPurgeLimiter(limiter)),
		"no network": w.client(limiter, webdelivery.WithHTTPClient(&http.Client{Transport: cut{}}),
			webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1000})), // its first failure tells enough
		"no limiter": w.client(limiter, webdelivery.WithPurgeLimiter(down{})),
	}
}

// A process that cannot purge costs the others its first try: calls of both kinds, which do not fit into one request, all
// end well, whoever sends first, with Wait and without.
func TestOneProcessIsBroken(t *testing.T) {
	t.Parallel()
	for _, healthyFirst := range []bool{true, false} {
		inWorld(t, func(w *world) {
			for name, client := range w.brokenClients() {
				w.Run(name, func(t *testing.T) {
					t.Parallel()
					narrow := func(o *redisqueue.Options) {
						o.MaxURIs, o.Wait, o.Prefix = 2, healthyFirst, "webdelivery:queue:"+name
					}
					w := &world{T: t, redis: w.redis, service: w.service}
					queues := []*redisqueue.Queue{w.queue(w.rdb(), client, narrow), w.process(narrow)}
					if healthyFirst {
						w.purge(queues[1], object(100))
					}
					var calls sync.WaitGroup
					for i := range 8 {
						calls.Go(func() {
							_, err := queues[i/4].Purge(w.soon(), object(2*i), object(2*i+1))
							assert.NoError(w, err)
						})
						if i == 3 {
							time.Sleep(200 * time.Millisecond) // the broken process sends, unless the other one does
						}
					}
					calls.Wait()
				})
			}
		}, webdeliverytest.WithPurgeDuration(0))
	}
}

// If no process can purge, the caller gets the error after three terms and a lease, in the same words as in a PurgeQueue.
func TestAllProcessesAreBroken(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		_, err := w.queue(w.rdb(), w.brokenClients()["old password"], brief).Purge(w.soon(), object(1))
		require.ErrorIs(w, err, webdelivery.ErrUnauthorized)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		assert.Equal(w, 3, w.service.Count(http.MethodPost, "/cache/purge"))
	})
}

// unlimited is a limiter that needs no memory of Redis.
type unlimited struct{}

func (unlimited) Wait(ctx context.Context) error { return ctx.Err() }

// If Redis is full while a process cannot purge, no call is lost: its result is stored, or it stays. New calls fail.
func TestAFullRedis(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		broken := w.queue(w.rdb(), w.brokenClients()["old password"], brief)
		w.pause(time.Hour)
		id := w.enqueue(broken, object(1))
		require.NoError(w, w.admin().ConfigSet(w.Context(), "maxmemory", "1").Err())
		w.goOn()
		_, err := broken.Enqueue(w.soon(), object(2))
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		require.ErrorContains(w, err, "OOM")
		_, err = w.result(w.queue(w.rdb(), w.client(nil, webdelivery.WithPurgeLimiter(unlimited{}))), id)
		require.NoError(w, err, "while Redis is full")
		assert.Equal(w, map[string]int{pattern(1): 1}, w.purged())
	})
}

// What the service has accepted is not sent again, whatever happens to its transaction: the sender closes, the next one
// cannot read the transaction, and the result has the receipt.
func TestAcceptedOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		waits := func(o *redisqueue.Options) { o.Wait = true }
		one := w.process(brief, waits)
		id := w.enqueue(one, object(1))
		w.until("the service has accepted it", func() bool { return len(w.service.Purged()) == 1 })
		ctx, cancel := context.WithCancel(w.Context())
		ended := w.purging(ctx, one)
		w.until("and another one", func() bool { return len(w.service.Purged()) == 2 })
		rdb := w.admin()
		w.until("the receipts are stored", func() bool {
			stored := 0
			for _, key := range rdb.Keys(w.Context(), "webdelivery:queue:*:result:*").Val() {
				if strings.Contains(rdb.Get(w.Context(), key).Val(), " {") {
					stored++
				}
			}
			return stored == 2
		})
		reads := func() (n int) {
			_, stats, _ := strings.Cut(rdb.Info(w.Context(), "commandstats").Val(), "cmdstat_mget:calls=")
			_, _ = fmt.Sscan(strings.Split(stats, ",")[0], &n)
			return n
		}
		before := reads()
		w.until("the process has read them", func() bool { return reads() > before+1 })
		cancel()
		err := ended()[0]
		require.ErrorContains(w, err, "the service has accepted transaction")
		require.NoError(w, one.Close(w.soon()))
		_, err = one.Result(w.soon(), id)
		require.ErrorIs(w, err, redisqueue.ErrPending)
		w.service.Fail(webdeliverytest.FaultRule{Path: "/transactions/*", Status: http.StatusNotFound})
		receipts, err := w.result(w.process(brief, waits), id)
		require.ErrorIs(w, err, webdelivery.ErrNotFound)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		assert.Len(w, receipts, 1)
		assert.Equal(w, map[string]int{pattern(0): 1, pattern(1): 1}, w.purged())
	}, webdeliverytest.WithPurgeDuration(time.Hour))
}

// A transaction for which nobody waits is not polled.
func TestNobodyWaitsForATransaction(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		waits := func(o *redisqueue.Options) { o.Wait = true }
		sender, other := w.process(waits), w.process(waits)
		w.pause(time.Hour)
		ctx, cancel := context.WithCancel(w.Context())
		wait := w.purging(ctx, sender, other)
		w.queued(2)
		w.goOn()
		polls := func() int { return w.service.Count(http.MethodGet, "/transactions/*") }
		w.until("the transaction is polled", func() bool { return polls() > 1 })
		cancel()
		wait()
		w.until("the calls are gone", func() bool { return w.pending(sender) == 0 })
		w.until("it is not polled any more", func() bool {
			before := polls()
			time.Sleep(3 * time.Second)
			return polls() == before
		})
		assert.NoError(w, sender.Close(w.soon()))
	}, webdeliverytest.WithPurgeDuration(time.Hour))
}

// A sender whose own calls have ended hands over at Close, however much others add.
func TestCloseHandsOver(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		narrow := func(o *redisqueue.Options) { o.MaxURIs, o.Lease = 1, time.Hour }
		sender, other := w.process(narrow), w.process(narrow)
		w.purge(sender, object(0))
		wait := w.purging(w.soon(), slices.Repeat([]*redisqueue.Queue{other}, 20)...)
		w.until("they are added", func() bool { return w.pending(sender) > 10 })
		require.NoError(w, sender.Close(w.soon()))
		assert.Positive(w, w.pending(other), "others are left")
		w.allGood(wait()) // long before the lease ends
	})
}

// Close does not wait for a Redis that hangs.
func TestCloseWhileRedisHangs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		rdb := redis.NewClient(&redis.Options{Addr: w.redis.Addr})
		q := w.queue(rdb, w.client(rdb))
		w.pause(time.Hour)
		ended := w.purging(w.soon(), q)
		w.queued(1)
		w.redis.Hang(w.T)
		defer w.redis.Wake(w.T)
		began := time.Now()
		require.ErrorIs(w, q.Close(w.within(100*time.Millisecond)), context.DeadlineExceeded)
		assert.Less(w, time.Since(began), 20*time.Second, "with go-redis's defaults, a command takes up to 40 s")
		require.ErrorIs(w, ended()[0], webdelivery.ErrQueueClosed)
		require.NoError(w, rdb.Close())
	})
}

// Thousands of callers share one connection.
func TestConnections(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		o := redisOptions(w.redis.Addr)
		o.PoolSize, o.PoolTimeout = 1, time.Millisecond
		rdb := redis.NewClient(o)
		defer rdb.Close()
		q := w.queue(rdb, w.client(w.rdb()))
		w.allGood(w.purging(w.soon(), slices.Repeat([]*redisqueue.Queue{q}, 3000)...)())
		require.NoError(w, q.Close(w.soon()))
	})
}
