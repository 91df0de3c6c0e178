package redisqueue_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// One caller alone waits for the linger, the permit and the request, and leaves nothing in Redis.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		one, other := w.process(), w.process()
		w.purge(one, object(1))
		w.purge(other, object(2))
		require.NoError(w, one.Close(w.soon()))
		require.NoError(w, other.Close(w.soon()))
		keys, err := w.admin().Keys(w.Context(), "*").Result()
		require.NoError(w, err)
		for _, key := range keys {
			life, err := w.admin().PTTL(w.Context(), key).Result()
			require.NoError(w, err)
			assert.NotEqual(w, time.Duration(-1), life, "%s has no time to live", key)
		}
		length, err := w.admin().XLen(w.Context(), w.stream()).Result()
		require.NoError(w, err)
		assert.Zero(w, length)
	})
}

// Only the callers of refused URIs fail, in every process, and learn the outcome of each URI.
func TestRefusedURIs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		var all sync.WaitGroup
		for i, q := range []*redisqueue.Queue{w.process(), w.process()} {
			for _, uris := range [][]webdelivery.PurgeURI{{object(i)}, {refused}, {object(10 + i), refused}} {
				all.Go(func() {
					receipts, err := q.Purge(w.soon(), uris...)
					good := len(uris)
					if failure, ok := errors.AsType[*webdelivery.QueueError](err); ok && assert.Len(w, failure.Failures, 1) {
						good--
						assert.Equal(w, refused, failure.Failures[0].URI)
						assert.Equal(w, webdelivery.OutcomeNotApplied, failure.Failures[0].Outcome)
						assert.ErrorIs(w, failure.Failures[0].Err, webdelivery.ErrBadRequest)
					}
					assert.Len(w, receipts, good)
					assert.Equal(w, uris[0] == refused, webdelivery.OutcomeOf(err) == webdelivery.OutcomeNotApplied, "unknown if a part was purged")
				})
			}
		}
		all.Wait()
	}, webdeliverytest.WithUnlimitedPurges())
}

func (w *world) pending(q *redisqueue.Queue) int {
	s, err := q.Stats(w.Context())
	require.NoError(w, err)
	return s.Pending
}

// A caller that leaves takes back what nobody has read, and learns what it was waiting for.
func TestLeaving(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		q, other := w.process(), w.process()
		ctx, cancel := context.WithCancel(w.Context())
		wait := w.purging(ctx, q)
		w.until("the call is in Redis", func() bool { return w.pending(other) == 1 })
		cancel()
		err := wait()[0]
		require.ErrorIs(w, err, context.Canceled)
		assert.ErrorContains(w, err, "permit")
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		w.until("the call has left", func() bool { return w.pending(other) == 0 })
		w.goOn()
		w.purge(other, object(2))
		assert.Equal(w, map[string]int{pattern(2): 1}, w.purged())

		over, end := context.WithCancel(w.Context())
		end()
		_, err = q.Purge(over, object(3))
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err), "it was not added")
	})
}

// late is a limiter that knows when the next permit comes, and down one that has none.
type (
	late struct{}
	down struct{}
)

func (late) Waiting(string) error { return errors.New("the next permit comes in 1h") }

func (late) Pause(context.Context, string, time.Duration) error { return nil }

func (late) Acquire(ctx context.Context, _ string) (webdelivery.Permit, error) {
	<-ctx.Done()
	return webdelivery.Permit{}, ctx.Err()
}

func (down) Wait(context.Context) error { return errors.New("connection refused") }

// The error of a caller whose time is over says why there was no permit.
func TestReasons(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		for reason, limiter := range map[string]webdelivery.Option{
			"the next permit comes in 1h": webdelivery.WithSharedLimiter(late{}), "connection refused": webdelivery.WithPurgeLimiter(down{}),
		} {
			q := w.queue(w.rdb(), w.client(nil, limiter))
			_, err := q.Purge(w.within(2*time.Second), object(1))
			require.ErrorIs(w, err, context.DeadlineExceeded)
			require.ErrorContains(w, err, "before the purge had a result: ")
			require.ErrorContains(w, err, reason)
			require.NoError(w, q.Close(w.soon()))
		}
	})
}

// Enqueue returns before the purge has ended. Any process has its result, as Purge would have returned it.
func TestEnqueue(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		q, other := w.process(), w.process()
		good := w.enqueue(q, object(1))
		bad := w.enqueue(q, refused)
		w.until("the oldest call gets older", func() bool {
			s, err := other.Stats(w.Context())
			return err == nil && s.Pending == 2 && s.OldestAge > 0
		})
		_, err := other.Result(w.soon(), good)
		require.ErrorIs(w, err, redisqueue.ErrPending)
		over, end := context.WithCancel(w.Context())
		end()
		_, err = other.Result(over, good)
		require.ErrorIs(w, err, context.Canceled)
		_, err = other.Result(w.soon(), "unknown")
		require.ErrorIs(w, err, redisqueue.ErrUnknownID)
		w.goOn()
		receipts, err := w.result(other, good)
		require.NoError(w, err)
		assert.Contains(w, receipts[0].StatusURI, fmt.Sprint(receipts[0].TransactionID))
		_, err = w.result(other, bad)
		remote, ok := errors.AsType[*redisqueue.RemoteError](err)
		require.True(w, ok, "%v", err)
		require.ErrorIs(w, err, webdelivery.ErrBadRequest)
		assert.Equal(w, http.StatusBadRequest, remote.Response.StatusCode)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	}, webdeliverytest.WithUnlimitedPurges())
}

// result waits for the result of a call of Enqueue.
func (w *world) result(q *redisqueue.Queue, id string) (receipts []*webdelivery.PurgeReceipt, err error) {
	w.until("the purge has ended", func() bool {
		receipts, err = q.Result(w.soon(), id)
		return !errors.Is(err, redisqueue.ErrPending)
	})
	return receipts, err
}

// With Wait a purge ends with its transaction, whose bad end is a result.
func TestWait(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		w.service.FailTransactions(1, "FAILED", "2 caches are silent", 504)
		waits := func(o *redisqueue.Options) { o.Wait = true }
		for _, err := range w.purging(w.soon(), w.process(waits), w.process(waits), w.process(waits))() {
			bad, ok := errors.AsType[*webdelivery.TransactionError](err)
			if assert.True(w, ok, "%v", err) {
				assert.Equal(w, "FAILED", bad.Transaction.Status)
			}
		}
		assert.Len(w, w.service.Purged(), 1)
	}, webdeliverytest.WithPurgeDuration(0))
}

// MaxURIs bounds each request, and no call is split. A call that does not fit is refused.
func TestLimits(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		q := w.process(func(o *redisqueue.Options) { o.MaxURIs = 3 })
		_, err := q.Purge(w.soon(), object(1), object(2), object(3), object(4))
		require.ErrorIs(w, err, webdelivery.ErrInvalid)
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				_, err := q.Purge(w.soon(), object(2*i), object(2*i+1))
				assert.NoError(w, err)
			})
		}
		all.Wait()
		assert.Len(w, w.service.Purged(), 5)
		for _, p := range w.service.Purged() {
			assert.Len(w, p.URIs, 2)
		}
	})
}

// If the fleet has MaxPending calls, further ones are refused, until there is room.
func TestAFullQueue(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		q := w.process(func(o *redisqueue.Options) { o.MaxPending = 2 })
		for i := range 2 {
			w.enqueue(q, object(i))
		}
		_, err := q.Enqueue(w.soon(), object(2))
		require.ErrorIs(w, err, redisqueue.ErrFull)
		_, err = q.Purge(w.soon(), object(2))
		require.ErrorIs(w, err, redisqueue.ErrFull)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		w.goOn()
		w.until("there is room", func() bool { return w.pending(q) == 0 })
		w.purge(q, object(2))
	})
}

// Close waits for the calls of its process. If its context ends first, they get the error of a closed queue, and others
// purge what was taken.
func TestClose(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		q := w.process()
		wait := w.purging(w.soon(), q)
		w.until("the call is in Redis", func() bool { return w.pending(q) == 1 })
		closed := make(chan error)
		go func() { closed <- q.Close(w.soon()) }()
		w.allGood(wait())
		require.NoError(w, <-closed)
		_, err := q.Enqueue(w.soon(), object(2))
		require.ErrorIs(w, err, webdelivery.ErrQueueClosed)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))

		q = w.process()
		remove := w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Delay: time.Hour})
		wait = w.purging(w.soon(), q)
		w.until("the request is under way", func() bool { return w.service.Count(http.MethodPost, "/cache/purge") == 2 })
		require.ErrorIs(w, q.Close(w.within(time.Millisecond)), context.DeadlineExceeded)
		err = wait()[0]
		require.ErrorIs(w, err, webdelivery.ErrQueueClosed)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		remove()
		w.process(brief)
		w.until("another process has purged it", func() bool { return w.purged()[pattern(0)] > 1 })
	})
}

// Each invalid argument is named.
func TestInvalidArguments(t *testing.T) {
	t.Parallel()
	service := webdeliverytest.NewServer(t)
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	auth := webdelivery.BasicAuth(service.Username, service.Password)
	client, err := service.NewClient(auth, webdelivery.WithSharedLimiter(late{}))
	require.NoError(t, err)
	for _, tt := range []struct {
		rdb     redis.UniversalClient
		client  *webdelivery.Client
		options redisqueue.Options
		field   string
	}{
		{nil, client, redisqueue.Options{}, "rdb"},
		{rdb, nil, redisqueue.Options{}, "client"},
		{rdb, client, redisqueue.Options{MaxPending: -1}, "Options.MaxPending"},
		{rdb, client, redisqueue.Options{Lease: time.Millisecond}, "Options.Lease"},
		{rdb, client, redisqueue.Options{Keep: time.Second}, "Options.Keep"},
	} {
		_, err := redisqueue.New(tt.rdb, tt.client, tt.options)
		var invalid *webdelivery.ValidationError
		require.ErrorAs(t, err, &invalid)
		assert.Equal(t, tt.field, invalid.Field)
	}
	q, err := redisqueue.New(rdb, client, redisqueue.Options{})
	require.NoError(t, err)
	_, err = q.Purge(t.Context())
	require.ErrorIs(t, err, webdelivery.ErrInvalid)
	_, err = q.Enqueue(t.Context(), webdelivery.Exact(""))
	require.ErrorIs(t, err, webdelivery.ErrInvalid)
	require.NoError(t, q.Close(t.Context()))
}
