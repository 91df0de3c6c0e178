package redislimit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// drain takes n permits of a share, and counts how often it was time to ask Redis meanwhile. Redis never answers.
func drain(t *testing.T, s *share, n int) (at []time.Duration, asked int) {
	began := time.Now()
	for len(at) < n {
		again, err := s.wait(t.Context())
		require.NoError(t, err)
		if again {
			asked++
		} else {
			at = append(at, time.Since(began))
		}
	}
	return at, asked
}

// There is a permit every interval times processes; the first one comes that time after the last permit of Redis. There
// is one question per second.
func TestTheShareOfAProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare(2200 * time.Millisecond)
		require.False(t, s.rules())
		s.granted()
		time.Sleep(500 * time.Millisecond)
		s.takeOver()
		require.True(t, s.rules())
		at, asked := drain(t, s, 4)
		assert.Equal(t, []time.Duration{1700 * time.Millisecond, 3900 * time.Millisecond, 6100 * time.Millisecond, 8300 * time.Millisecond}, at)
		assert.Equal(t, 8, asked)
	})
}

// A process that never had a permit gets one at once.
func TestTheFirstPermitOfAShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare(time.Hour)
		s.takeOver()
		at, asked := drain(t, s, 1)
		assert.Equal(t, []time.Duration{0}, at)
		assert.Zero(t, asked)
	})
}

// When one waiting caller finds out that Redis is back, all of them return to Redis.
func TestRedisTakesOverAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare(time.Hour)
		s.granted()
		s.takeOver()
		began := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				again, err := s.wait(t.Context())
				assert.NoError(t, err)
				assert.True(t, again)
				s.retire()
			})
		}
		wg.Wait()
		assert.Equal(t, askEvery, time.Since(began))
		assert.False(t, s.rules())
	})
}

func TestTheShareIsFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare(100 * time.Millisecond)
		s.takeOver()
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				_, err := s.wait(t.Context())
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait()
		}
		wg.Wait()
		assert.Equal(t, []int{0, 1, 2, 3, 4}, order)
	})
}

func TestWaitingForAShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare(time.Minute)
		s.granted()
		s.takeOver()
		began := time.Now()

		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := s.wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, time.Since(began), "refused at once")

		s.turn <- struct{}{}
		_, err = s.wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, time.Since(began), "also behind others")
		<-s.turn

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		var wg sync.WaitGroup
		for range 2 { // one waits for the permit, one for its turn
			wg.Go(func() {
				_, err := s.wait(ctx)
				assert.ErrorIs(t, err, context.Canceled)
			})
		}
		wg.Wait()
		assert.Equal(t, 500*time.Millisecond, time.Since(began))
		_, err = s.wait(ctx)
		require.ErrorIs(t, err, context.Canceled)

		s.hold(2 * time.Minute)
		s.hold(time.Second) // a pause never gets shorter
		at, _ := drain(t, s, 1)
		assert.Equal(t, []time.Duration{2 * time.Minute}, at)
	})
}
