package redisqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// Close waits for the callers of its process, and refuses further calls. Then no goroutine is left.
func TestClose(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		a, b := w.process(), w.process()
		first, other := w.purges(w.Context(), a, object(1)), w.purges(w.Context(), b, object(2))
		w.stored(2)
		require.NoError(w, a.Close(w.Context()))
		require.NoError(w, (<-first).err, "it has ended before Close")
		assert.Zero(w, a.Active())
		_, err := a.Purge(w.Context(), object(3))
		require.ErrorIs(w, err, webdelivery.ErrQueueClosed)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		_, err = a.Enqueue(w.Context(), object(3))
		require.ErrorIs(w, err, webdelivery.ErrQueueClosed)
		require.NoError(w, a.Close(w.Context()), "again")
		require.NoError(w, (<-other).err)
	})
}

// If the context of Close ends, URIs that were not sent are not applied, and others' URIs are sent by others.
func TestCloseGivesUp(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	inWorld(t, func(w *world) { // nothing was taken
		w.pause(3 * time.Second)
		a, b := w.process(), w.process()
		first := w.purges(w.Context(), a, object(1), object(2))
		w.stored(1)
		other := w.purges(w.Context(), b, object(3))
		w.stored(2)
		require.ErrorIs(w, a.Close(ended), context.Canceled)
		e := <-first
		require.ErrorIs(w, e.err, webdelivery.ErrQueueClosed)
		require.NotErrorIs(w, e.err, context.Canceled)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(e.err))
		require.NoError(w, (<-other).err)
		assert.Equal(w, map[string]int{object(3).URIPattern: 1}, w.purgedURIs())
		err := a.Close(w.Context())
		require.ErrorIs(w, err, webdelivery.ErrQueueClosed)
		require.ErrorContains(w, err, "2 URIs")
	}, webdeliverytest.WithPurgeDuration(0))
	inWorld(t, func(w *world) { // a request is under way
		w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 1, Delay: 10 * time.Second})
		w.pause(time.Second)
		a, b := w.process(), w.process()
		first := w.purges(w.Context(), a, object(1))
		w.stored(1)
		other := w.purges(w.Context(), b, object(2))
		w.purgeBegun()
		require.ErrorIs(w, a.Close(ended), context.Canceled)
		e := <-first
		require.ErrorIs(w, e.err, webdelivery.ErrQueueClosed)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(e.err))
		require.NoError(w, (<-other).err)
	})
}

// Close without any call, also twice at once, ends soon.
func TestCloseOfAnIdleQueue(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		q := w.process()
		second := make(chan error, 1)
		go func() { second <- q.Close(w.Context()) }()
		require.NoError(w, q.Close(w.Context()))
		require.NoError(w, <-second)
		assert.Zero(w, q.Active())
	})
	rdb := unreachable(t)
	q := redisqueue.New(rdb, newClient(t, webdelivery.WithPurgeLimiter(unlimited{})), redisqueue.Options{Name: "acme"})
	require.NoError(t, q.Close(t.Context()))
}

// unlimited gives permits at once.
type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }
