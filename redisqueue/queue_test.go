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

// Many processes react to the same change: few requests carry all, on an idle machine one to three, and each caller gets the
// receipt of its own. Nothing is left in Redis.
func TestOneChange(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const processes = 40
		var all sync.WaitGroup
		var receipts [processes][]*webdelivery.PurgeReceipt
		w.pause() // until all have called, also on a busy machine
		for p := range processes {
			q := w.process()
			all.Go(func() { receipts[p], _ = q.Purge(w.Soon(), object(p), object(p/2)) })
		}
		w.queued(w.process(), processes)
		w.goOn()
		all.Wait()
		requests := w.Service.Purged()
		assert.Less(w, len(requests), processes/2)
		for p, r := range receipts {
			require.Len(w, r, 1)
			assert.True(w, slices.ContainsFunc(requests, func(sent webdeliverytest.Purge) bool {
				return sent.TransactionID == r[0].TransactionID && slices.Contains(sent.URIs, object(p))
			}))
		}
		for _, key := range strings.Fields(w.Do("KEYS *")) {
			assert.NotEqual(w, "-1", w.Do("PTTL "+key), "%s has no time to live", key)
		}
		assert.Zero(w, w.pending(w.process()))
	})
}

// Only the callers of refused URIs fail, in every process, and learn the outcome of each URI.
func TestRefusedURIs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause()
		var all sync.WaitGroup
		one, other, refused := w.process(), w.process(), webdelivery.Exact("https://www.example.org/not-ours")
		for i, q := range []*redisqueue.Queue{one, other} {
			for _, uris := range [][]webdelivery.PurgeURI{{object(i)}, {refused}, {object(10 + i), refused}} {
				all.Go(func() {
					receipts, err := q.Purge(w.Soon(), uris...)
					good := len(uris)
					if failure, ok := errors.AsType[*webdelivery.QueueError](err); ok && assert.Len(w, failure.Failures, 1) {
						good--
						assert.Equal(w, refused, failure.Failures[0].URI)
						assert.Equal(w, webdelivery.OutcomeNotApplied, failure.Failures[0].Outcome)
						assert.ErrorIs(w, failure.Failures[0].Err, webdelivery.ErrBadRequest)
					}
					assert.Len(w, receipts, good)
					notApplied := uris[0] == refused // unknown if a part was purged
					assert.Equal(w, notApplied, webdelivery.OutcomeOf(err) == webdelivery.OutcomeNotApplied)
				})
			}
		}
		w.queued(one, 6)
		w.goOn()
		all.Wait()
	}, webdeliverytest.WithUnlimitedPurges())
}

// A caller that leaves takes back what nobody has read, and learns what it was waiting for.
func TestLeaving(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause()
		q, other := w.process(), w.process()
		leaving := func(q *redisqueue.Queue, why string) {
			var err error
			for within := 2 * time.Second; within < time.Minute; within *= 2 { // a busy machine may learn it later
				_, err = q.Purge(w.Within(within), object(0))
				require.ErrorIs(w, err, context.DeadlineExceeded)
				if strings.Contains(err.Error(), why) {
					break
				}
			}
			assert.ErrorContains(w, err, "before the purge had a result: ")
			assert.ErrorContains(w, err, why)
			assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
			w.Until("nobody sends", func() bool { return strings.Contains(w.beat(), `"Sender":""`) })
		}
		leaving(q, "the next permit comes in 1h")
		w.goOn()
		w.purge(other, object(2))
		assert.Equal(w, map[string]int{pattern(2): 1}, w.purged())
		require.NoError(w, q.Close(w.Soon()))
		require.NoError(w, other.Close(w.Soon()))
		leaving(w.queue(w.rdb(), w.brokenClients()["no limiter"]), "connection refused")

		_, err := w.process().Purge(w.Within(0), object(3))
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err), "it was not added")
	})
}

// Enqueue returns before the purge has ended. Any process has its result, as Purge would have returned it.
func TestEnqueue(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause()
		q, other := w.process(), w.process()
		id := w.enqueue(q, object(1))
		w.Until("the oldest call gets older", func() bool {
			s, err := other.Stats(w.Context())
			return err == nil && s.Pending == 1 && s.OldestAge > 0
		})
		_, err := other.Result(w.Soon(), id)
		require.ErrorIs(w, err, redisqueue.ErrPending)
		_, err = other.Result(w.Within(0), id)
		require.ErrorIs(w, err, context.DeadlineExceeded)
		_, err = other.Result(w.Soon(), "unknown")
		require.ErrorIs(w, err, redisqueue.ErrUnknownID)
		w.goOn()
		receipts, err := w.result(other, id)
		require.NoError(w, err)
		assert.Contains(w, receipts[0].StatusURI, fmt.Sprint(receipts[0].TransactionID))
		left, err := time.ParseDuration(w.Do("PTTL "+w.Do("KEYS *:result:"+id)) + "ms")
		require.NoError(w, err)
		assert.Greater(w, left, 50*time.Minute, "Options.Keep is an hour")
	})
}

// With Wait a purge ends with its transaction, whose bad end is a result.
func TestWait(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause()
		w.Service.FailTransactions(1, "FAILED", "2 caches are silent", 504)
		q := w.process(waits)
		wait := w.purging(w.Soon(), q, w.process(waits), w.process(waits))
		w.queued(q, 3)
		w.exchanged()
		w.goOn()
		for _, err := range wait() {
			bad, ok := errors.AsType[*webdelivery.TransactionError](err)
			if assert.True(w, ok, "%v", err) {
				assert.Equal(w, "FAILED", bad.Transaction.Status)
			}
		}
		assert.Len(w, w.Service.Purged(), 1)

		w.Service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 1, Status: http.StatusRequestEntityTooLarge})
		receipts, err := q.Purge(w.Soon(), object(1), object(2)) // in two requests
		require.NoError(w, err)
		require.Len(w, receipts, 2)
		for _, r := range receipts {
			assert.Positive(w, w.Service.Count(http.MethodGet, fmt.Sprint("/transactions/", r.TransactionID)))
		}

		w.Service.FailTransactions(1, "FAILED", "2 caches are silent", 504)
		_, err = q.Purge(w.Soon(), object(1), webdelivery.Exact("https://www.example.org/"))
		both, _ := errors.AsType[*webdelivery.QueueError](err)
		require.Len(w, both.Failures, 2)
		require.ErrorAs(w, both.Failures[0].Err, new(*webdelivery.TransactionError))
		require.ErrorIs(w, both.Failures[1].Err, webdelivery.ErrBadRequest)
		assert.Equal(w, webdelivery.OutcomeNotApplied, both.Failures[1].Outcome)
	}, webdeliverytest.WithPurgeDuration(0))
}

// MaxURIs bounds each request, and no call is split. A call that does not fit is refused, and one more than MaxPending, until
// there is room.
func TestLimits(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause()
		q := w.process(func(o *redisqueue.Options) { o.MaxURIs, o.MaxPending = 3, 5 })
		_, err := q.Purge(w.Soon(), object(1), object(2), object(3), object(4))
		require.ErrorIs(w, err, webdelivery.ErrInvalid)
		for i := range 5 {
			w.enqueue(q, object(2*i), object(2*i+1))
		}
		_, err = q.Enqueue(w.Soon(), object(2))
		require.ErrorIs(w, err, redisqueue.ErrFull)
		_, err = q.Purge(w.Soon(), object(2))
		require.ErrorIs(w, err, redisqueue.ErrFull)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		w.goOn()
		w.queued(q, 0)
		assert.Len(w, w.Service.Purged(), 5)
		for _, p := range w.Service.Purged() {
			assert.Len(w, p.URIs, 2)
		}
		w.purge(q, object(2))
	})
}

// Close waits for the calls of its process. If its context ends first, they get the error of a closed queue, and others
// purge what was taken.
func TestClose(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause()
		q := w.process()
		wait := w.purging(w.Soon(), q)
		w.queued(q, 1)
		time.AfterFunc(time.Second, w.goOn)
		require.NoError(w, q.Close(w.Soon()))
		w.allGood(wait())
		_, err := q.Enqueue(w.Soon(), object(2))
		require.ErrorIs(w, err, webdelivery.ErrQueueClosed)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))

		q = w.process()
		remove := w.Service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Delay: time.Hour})
		wait = w.purging(w.Soon(), q)
		w.Until("the request is under way", func() bool { return w.Service.Count(http.MethodPost, "/cache/purge") == 2 })
		require.ErrorIs(w, q.Close(w.Within(time.Millisecond)), context.DeadlineExceeded)
		err = wait()[0]
		require.ErrorIs(w, err, webdelivery.ErrQueueClosed)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		remove()
		w.process(brief)
		w.Until("another process has purged it", func() bool { return w.purged()[pattern(0)] > 1 })
	})
}

// A sender whose own calls have ended hands over at Close, however much others add.
func TestCloseHandsOver(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		narrow := func(o *redisqueue.Options) { o.MaxURIs, o.Lease = 1, time.Hour }
		sender, other := w.process(narrow), w.process(narrow)
		w.purge(sender, object(0))
		wait := w.purging(w.Soon(), slices.Repeat([]*redisqueue.Queue{other}, 20)...)
		w.Until("they are added", func() bool { return w.pending(sender) > 10 })
		require.NoError(w, sender.Close(w.Soon()))
		assert.Positive(w, w.pending(other), "others are left")
		w.allGood(wait()) // long before the lease ends
	})
}

// A transaction for which nobody waits is not polled.
func TestNobodyWaitsForATransaction(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		sender, other := w.process(waits), w.process(waits)
		w.pause()
		ctx, cancel := context.WithCancel(w.Context())
		wait := w.purging(ctx, sender, other)
		w.queued(sender, 2)
		w.goOn()
		polls := func() int { return w.Service.Count(http.MethodGet, "/transactions/*") }
		w.Until("the transaction is polled", func() bool { return polls() > 1 })
		cancel()
		wait()
		w.queued(sender, 0)
		w.Until("it is not polled any more", func() bool {
			before := polls()
			time.Sleep(3 * time.Second)
			return polls() == before
		})
		assert.NoError(w, sender.Close(w.Soon()))
	}, webdeliverytest.WithPurgeDuration(time.Hour))
}

// Thousands of callers share one connection.
func TestConnections(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		rdb := w.rdb(func(o *redis.UniversalOptions) { o.PoolSize, o.PoolTimeout = 1, time.Millisecond })
		q := w.queue(rdb, w.client())
		w.allGood(w.purging(w.Soon(), slices.Repeat([]*redisqueue.Queue{q}, 3000)...)())
		require.NoError(w, q.Close(w.Soon()))
	})
}

func TestEachInvalidArgumentIsNamed(t *testing.T) {
	t.Parallel()
	_, err := redisqueue.New(nil, nil, redisqueue.Options{MaxPending: -1, Lease: time.Millisecond, Keep: time.Second})
	require.ErrorIs(t, err, webdelivery.ErrInvalid)
	require.Regexp(t, "rdb.*; .*client.*; .*Options.MaxPending.*; .*Options.Lease.*; .*Options.Keep", err.Error())
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	q, err := redisqueue.New(rdb, webdeliverytest.NewServer(t).Client(t), redisqueue.Options{})
	require.NoError(t, err)
	_, err = q.Enqueue(t.Context(), webdelivery.Exact(""))
	require.ErrorIs(t, err, webdelivery.ErrInvalid)
	require.NoError(t, q.Close(t.Context()))
}
