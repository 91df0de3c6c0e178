package redisqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// checkTrue checks the outcome of a call that failed.
func (w *world) checkTrue(err error, uri webdelivery.PurgeURI) {
	require.Error(w, err)
	if w.purgedURIs()[uri.URIPattern] > 0 {
		assert.NotEqual(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err), "it was purged: %v", err)
	}
}

// A process is killed after its request has arrived. The process that takes over cannot purge. It does not know whether
// the first one has sent the URIs.
func TestOutcomeIfTheNextProcessCannotPurge(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		f := w.startFleet(1, func(s *setUp) { s.HoldAfter, s.Hold, s.Lease = true, time.Minute, 2*time.Second })
		sender := f.children[0]
		rdb := w.rdb()
		q := w.queue(rdb, w.impostor(rdb, webdelivery.BasicAuth))

		w.pause(time.Second)
		sender.give(order{URIs: []string{page(0)}, Within: time.Minute, Enqueue: true})
		f.waitFor(20*time.Second, []string{page(0)})
		end := w.purges(w.Context(), q, object(1))
		w.stored(2)
		f.wait(20*time.Second, "no request", func() bool { return sender.sends < 0 })
		sender.kill()
		err := (<-end).err
		w.checkTrue(err, object(1))
		assert.ErrorIs(w, err, webdelivery.ErrForbidden)
		assert.Equal(w, 1, w.purgedURIs()[page(1)])
	})
}

// Redis loses its data after the request has arrived and before the result is stored. The process of the caller adds the
// call again. Then the caller leaves.
func TestOutcomeAfterRedisHasLostACall(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Stall: 2 * time.Second})
		sender, q := w.process(), w.process()
		w.pause(time.Second)
		_, err := sender.Enqueue(w.Context(), object(0))
		require.NoError(w, err)
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		end := w.purges(ctx, q, object(1))
		w.stored(2)
		require.Eventually(w, func() bool { return w.purgedURIs()[page(1)] == 1 }, 20*time.Second, 10*time.Millisecond)
		require.NoError(w, w.rdb().FlushAll(w.Context()).Err())
		w.pause(time.Minute)
		w.stored(1)
		cancel()
		w.checkTrue((<-end).err, object(1))
		require.NoError(w, w.rdb().FlushAll(w.Context()).Err()) // the end of the pause
	})
}

// A process is cut off from Redis before the service rejects its request. So its call stays in Redis, and another process
// sends it.
func TestOutcomeIfRedisDoesNotTakeTheResult(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 1, Delay: time.Second, Status: 403})
		rdb := w.rdb()
		cut := w.queue(rdb, w.client(rdb), short)
		w.process(short)
		end := w.purges(w.Context(), cut, object(1))
		w.purgeBegun()
		require.NoError(w, rdb.Close())
		err := (<-end).err
		require.Eventually(w, func() bool { return w.purgedURIs()[page(1)] == 1 }, 40*time.Second, 10*time.Millisecond)
		w.checkTrue(err, object(1))
	})
}
