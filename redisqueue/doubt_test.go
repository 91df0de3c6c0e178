package redisqueue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// If Redis has lost a call, an earlier copy of it may have been sent: leaving the queue no longer proves that it was not.
func TestLeavingAfterALoss(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		q := w.process(short)
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		end := w.purges(ctx, q, object(1))
		w.stored(1)
		require.NoError(w, w.rdb().FlushAll(w.Context()).Err())
		w.ranForLong()
		w.pause(time.Hour)
		w.stored(1)
		cancel()
		e := <-end
		require.ErrorIs(w, e.err, context.Canceled)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(e.err))
		assert.Empty(w, w.service.Requests())
	})
}

// go-redis never runs a script again whose answer is lost, whatever its options are: a call would be stored twice.
func TestScriptsAreNotRepeated(t *testing.T) {
	t.Parallel()
	var scripts atomic.Int64
	o := redisOptions(redistest.Fake(t, func([]byte) string {
		scripts.Add(1)
		return "" // the connection breaks
	}))
	o.MaxRetries = 3
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	q := redisqueue.New(rdb, newClient(t, webdelivery.WithPurgeLimiter(unlimited{})), redisqueue.Options{Name: "acme"})
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	_, err := q.Enqueue(t.Context(), object(1))
	down := (*redisqueue.UnavailableError)(nil)
	require.ErrorAs(t, err, &down)
	assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
	assert.Equal(t, int64(1), scripts.Load())
}

// If an earlier process may have purged the URIs, no later failure proves that they were not purged.
func TestFailureAfterADeadHolder(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 1, Stall: time.Minute})
		w.pause(time.Second)
		rdb, wrong := w.rdb(), w.rdb()
		dies, fails := w.queue(rdb, w.client(rdb), short), w.queue(wrong, w.impostor(wrong, webdelivery.BasicAuth), short)
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		lost := w.purges(ctx, dies, object(1)) // this process gets the turn
		w.stored(1)
		end := w.purges(w.Context(), fails, object(2))
		w.purgeBegun()
		require.NoError(w, rdb.Close())
		e := <-end
		require.ErrorIs(w, e.err, webdelivery.ErrUnauthorized)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(e.err))
		assert.Contains(w, w.purgedURIs(), object(2).URIPattern, "the first process has purged it")
		cancel()
		<-lost
	})
}

// If a process could certainly not send a call, the outcome of a later failure stays not applied.
func TestFailureAfterAFailure(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		wrong := w.rdb()
		fails, good := w.queue(wrong, w.impostor(wrong, webdelivery.BasicAuth)), w.process()
		first := w.purges(w.Context(), fails, object(1)) // this process gets the turn
		w.stored(1)
		end := w.purges(w.Context(), good, foreign)
		w.stored(2)
		require.ErrorIs(w, (<-first).err, webdelivery.ErrUnauthorized)
		e := <-end
		require.ErrorIs(w, e.err, webdelivery.ErrBadRequest)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(e.err))
	})
}

// A refusal says nothing of a call that another process may have sent meanwhile: Redis has lost it, or its lease has
// ended.
func TestRefusalOfACallThatOthersHave(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		wrong := w.rdb()
		q := w.queue(wrong, w.impostor(wrong, webdelivery.BasicAuth), short)
		end := w.purges(w.Context(), q, object(1))
		w.stored(1)
		require.NoError(w, w.rdb().FlushAll(w.Context()).Err())
		w.ranForLong()
		e := <-end
		require.ErrorIs(w, e.err, webdelivery.ErrUnauthorized)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(e.err))
	})
	inWorld(t, func(w *world) {
		w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 1, Delay: 10 * time.Second, Status: 400})
		w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Stall: time.Minute})
		slow := w.process(short)
		slow.HoldFor(time.Second)
		end := w.purges(w.Context(), slow, object(1))
		w.purgeBegun()
		w.process(short)
		e := <-end
		require.ErrorIs(w, e.err, webdelivery.ErrBadRequest)
		assert.Contains(w, w.purgedURIs(), object(1).URIPattern, "another process has purged it")
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(e.err))
	})
}

// If Redis rejects a later command of the script, it has the call all the same.
func TestAScriptThatFailsLate(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		q := w.process(short)
		require.NoError(w, w.rdb().Do(w.Context(), "ACL", "SETUSER", "default", "-hset").Err())
		_, err := q.Enqueue(w.Context(), object(1))
		require.NoError(w, err)
		require.NoError(w, w.rdb().Do(w.Context(), "ACL", "SETUSER", "default", "+hset").Err())
		w.stored(0)
		assert.Len(w, w.purgedURIs(), 1)
	})
}
