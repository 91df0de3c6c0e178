package redisqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func alone(o *redisqueue.Options) { o.FallbackLocal = true }

// Without Redis, nothing is sent, unless the process may purge alone.
func TestRedisIsDown(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.redis.Kill()
		closed, local := w.process(), w.process(alone)
		isDown := func(err error) {
			t.Helper()
			down := (*redisqueue.UnavailableError)(nil)
			require.ErrorAs(w, err, &down)
			assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		}
		_, err := closed.Purge(w.Context(), object(1))
		isDown(err)
		_, err = closed.Enqueue(w.Context(), object(1))
		isDown(err)
		_, err = closed.Result(w.Context(), "1-1")
		down := (*redisqueue.UnavailableError)(nil)
		require.ErrorAs(w, err, &down)
		_, err = closed.Stats(w.Context())
		require.ErrorAs(w, err, &down)
		_, err = local.Purge(w.Context(), object(1)) // its limiter fails closed, too
		limit := (*redislimit.UnavailableError)(nil)
		require.ErrorAs(w, err, &limit)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		assert.Empty(w, w.service.Requests())

		rdb := w.rdb()
		share := w.queue(rdb, w.client(rdb, redislimit.FallbackLocal(1)), alone)
		_, err = share.Purge(w.Context(), object(2))
		require.NoError(w, err)
		id, err := share.Enqueue(w.Context(), object(3))
		require.NoError(w, err)
		bad, err := share.Enqueue(w.Context(), foreign)
		require.NoError(w, err)
		require.Eventually(w, func() bool {
			_, one := share.Result(w.Context(), id)
			_, two := share.Result(w.Context(), bad)
			return one == nil && two != redisqueue.ErrPending //nolint:errorlint // this very error
		}, 20*time.Second, 5*time.Millisecond)
		_, err = share.Result(w.Context(), bad)
		require.ErrorIs(w, err, webdelivery.ErrBadRequest)
		assert.Len(w, w.purgedURIs(), 2)

		require.NoError(w, w.redis.Start())
		w.ranForLong()
		_, err = closed.Result(w.Context(), id)
		require.ErrorIs(w, err, redisqueue.ErrUnknownID, "only the process that purged alone knows it")
		_, err = closed.Purge(w.Context(), object(4))
		require.NoError(w, err)
	})
}

// Callers whose URIs Redis has got wait for the time of a lease. Then they fail, or the process purges alone.
func TestRedisHangs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		closed := w.process()
		rdb := w.rdb()
		share := w.queue(rdb, w.client(rdb, redislimit.FallbackLocal(1)), alone)
		waits, purges := w.purges(w.Context(), closed, object(1)), w.purges(w.Context(), share, object(2))
		ctx, cancel := context.WithCancel(w.Context())
		leaves := w.purges(ctx, closed, object(3))
		w.stored(3)
		w.redis.Hang(t)
		cancel()
		e := <-leaves
		require.ErrorIs(w, e.err, context.Canceled)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(e.err))
		e = <-waits
		down := (*redisqueue.UnavailableError)(nil)
		require.ErrorAs(w, e.err, &down)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(e.err))
		assert.Greater(w, e.after, 2*time.Second)
		require.NoError(w, (<-purges).err)
		assert.Equal(w, map[string]int{object(2).URIPattern: 1}, w.purgedURIs())
		w.redis.Wake(t)
	})
}

// A Redis that has lost its data gets the URIs of waiting callers again.
func TestRedisLosesItsData(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		a, b := w.process(), w.process()
		ends := []<-chan ended{w.purges(w.Context(), a, object(1)), w.purges(w.Context(), b, object(2))}
		id, err := a.Enqueue(w.Context(), object(3))
		require.NoError(w, err)
		w.stored(3)
		w.redis.Kill()
		require.NoError(w, w.redis.Start())
		w.ranForLong()
		for _, end := range ends {
			require.NoError(w, (<-end).err)
		}
		assert.Equal(w, map[string]int{object(1).URIPattern: 1, object(2).URIPattern: 1}, w.purgedURIs())
		_, err = a.Result(w.Context(), id)
		require.ErrorIs(w, err, redisqueue.ErrUnknownID)
	})
}

// At its memory limit, Redis refuses new calls. Results of requests under way arrive all the same.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 1, Delay: 3 * time.Second})
		w.pause(time.Second)
		a, b := w.process(), w.process()
		ends := []<-chan ended{w.purges(w.Context(), a, object(1)), w.purges(w.Context(), b, object(2))}
		id, err := a.Enqueue(w.Context(), object(3))
		require.NoError(w, err)
		w.stored(3)
		w.purgeBegun()
		require.NoError(w, w.rdb().ConfigSet(w.Context(), "maxmemory", "1").Err())
		_, err = a.Purge(w.Context(), object(4))
		down := (*redisqueue.UnavailableError)(nil)
		require.ErrorAs(w, err, &down)
		require.ErrorContains(w, err, "OOM")
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		for _, end := range ends {
			require.NoError(w, (<-end).err)
		}
		_, err = b.Result(w.Context(), id)
		require.NoError(w, err)
		require.NoError(w, w.rdb().ConfigSet(w.Context(), "maxmemory", "0").Err())
		_, err = a.Purge(w.Context(), object(4))
		require.NoError(w, err)
		assert.Len(w, w.purgedURIs(), 4)
	})
}
