package redisqueue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// clock gives the server a wall clock that set shifts.
func (w *world) clock() (set func(time.Duration)) {
	w.redis.Kill()
	w.redis.Env, set = redistest.Clock(w.T)
	require.NoError(w, w.redis.Start())
	return set
}

// A call older than Keep is not sent, and its result says so. A younger one is.
func TestOldCalls(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		set := w.clock()
		purgedAfter := func(i int, ahead time.Duration) error {
			w.pause(time.Hour)
			q := w.process()
			id := w.enqueue(q, object(i))
			require.NoError(w, q.Close(w.soon()))
			set(ahead)
			w.goOn()
			q = w.process()
			_, err := w.result(q, id)
			require.NoError(w, q.Close(w.soon()))
			return err
		}
		require.NoError(w, purgedAfter(1, 59*time.Minute))
		err := purgedAfter(2, 2*time.Hour)
		require.ErrorContains(w, err, "redisqueue: not sent any more after waiting for longer than Options.Keep, 1h0m0s; purge again")
		_, remote := errors.AsType[*redisqueue.RemoteError](err)
		assert.True(w, remote)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		assert.Equal(w, map[string]int{pattern(1): 1}, w.purged())
	})
}

// A clock that jumps while calls wait stops nobody, and ends no call, even if Redis loses its data at the same time.
func TestTheClockJumps(t *testing.T) {
	t.Parallel()
	for ahead, restart := range map[time.Duration]bool{2 * time.Hour: false, -2 * time.Hour: false, -5 * time.Second: true} {
		inWorld(t, func(w *world) {
			set := w.clock()
			one, other := w.process(brief), w.process(brief)
			w.purge(one, object(9))
			w.pause(time.Hour)
			wait := w.purging(w.soon(), one, other)
			w.queued(2)
			set(ahead)
			if restart {
				w.redis.Kill()
				require.NoError(w, w.redis.Start())
			}
			w.goOn()
			w.allGood(wait())
			w.goOn() // the limiter of these tests believes the clock
			w.allGood(w.purging(w.within(10*time.Second), one, other)())
		})
	}
}
