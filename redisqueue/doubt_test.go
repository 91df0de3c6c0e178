package redisqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
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

// go-redis never runs a script again whose answer is lost, whatever its options are. So there is one entry at most.
func TestRetriesOfGoRedis(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		o := redisOptions(w.redis.Addr)
		o.MaxRetries, o.ReadTimeout = 3, 200*time.Millisecond
		rdb := redis.NewClient(o)
		w.Cleanup(func() { _ = rdb.Close() })
		q := w.queue(rdb, w.client(rdb))
		_, err := q.Stats(w.Context()) // it has a connection, and Redis has the scripts
		require.NoError(w, err)
		_, err = q.Enqueue(w.Context(), object(1))
		require.NoError(w, err)
		connections := rdb.PoolStats().Misses
		w.redis.Hang(t)
		ended := make(chan error, 1)
		go func() {
			_, err := q.Enqueue(w.Context(), object(2))
			ended <- err
		}()
		require.Eventually(w, func() bool { // a second try needs a new connection
			return len(ended) == 1 || rdb.PoolStats().Misses > connections
		}, 20*time.Second, time.Millisecond)
		w.redis.Wake(t)
		down := (*redisqueue.UnavailableError)(nil)
		err = <-ended
		require.ErrorAs(w, err, &down)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		stats, err := w.process().Stats(w.Context())
		require.NoError(w, err)
		assert.LessOrEqual(w, stats.Pending, 2)
	})
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
