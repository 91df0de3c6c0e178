package pace

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A caller fails at once if its deadline is before the earliest possible permit, and the error says when that is.
func TestForecast(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	for name, tt := range map[string]struct {
		prepare func(l *Limiter, now time.Time)
		want    []time.Duration
	}{
		"slots":                 {func(l *Limiter, now time.Time) { l.slots = []time.Time{onTheWay, now.Add(200 * ms)} }, []time.Duration{200 * ms, Hold, 200*ms + Hold, 2 * Hold}},
		"a pause":               {func(l *Limiter, now time.Time) { l.resume = now.Add(time.Minute) }, []time.Duration{time.Minute, time.Minute, time.Minute + Hold}},
		"after a refusal":       {func(l *Limiter, now time.Time) { l.next = now.Add(3 * time.Second) }, []time.Duration{3 * time.Second, 3 * time.Second, 3*time.Second + Hold}},
		"a request on its way":  {func(l *Limiter, _ time.Time) { l.slots = []time.Time{onTheWay, onTheWay} }, []time.Duration{Hold, Hold, 2 * Hold}},
		"in front of a limiter": {func(l *Limiter, now time.Time) { l.slots, l.next = nil, now.Add(time.Second) }, []time.Duration{time.Second, time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			tt.prepare(l, time.Now())
			all, cancel := context.WithCancel(t.Context())
			for _, want := range tt.want {
				ctx, stop := context.WithTimeout(t.Context(), want-1)
				_, err := l.Acquire(ctx, patient())
				stop()
				require.Equal(t, &LateError{Wait: want, Deadline: want - 1}, err, name)
				acquire(all, l, patient())
			}
			cancel()
		})
	}
}

// No caller fails because of its deadline if it could have got a permit: none comes before the forecast.
func TestNoPermitComesEarly(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			l.random = random.Float64
			l.rate, l.refused = lowest+random.Float64(), time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 0)
			defer cancel()
			for range 40 {
				synctest.Wait()
				w := &waiter{Caller: patient(), decided: make(chan struct{})}
				w.deadline, _ = ctx.Deadline()
				l.queue = []*waiter{w}
				l.failLate(time.Now())
				l.queue = nil
				var late *LateError
				forecast := time.Now()
				if errors.As(w.err, &late) {
					forecast = forecast.Add(late.Wait)
				}
				p := granted(t, l, patient())
				require.False(t, time.Now().Before(forecast))
				p.End(time.Now())
				p.Accepted()
			}
		})
	}
}

// A deadline before the forecast ends the wait at once, but only for that caller.
func TestLateCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, began := New(), time.Now()
		held, other := granted(t, l, patient()), granted(t, l, patient())
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithDeadline(t.Context(), began.Add(d))
			t.Cleanup(cancel)
			return ctx
		}
		_, err := l.Acquire(within(Hold-1), patient())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		first, soon, late := acquire(t.Context(), l, patient()), acquire(within(Hold), l, patient()), acquire(within(time.Minute), l, patient())
		_, err = l.Acquire(within(2*Hold-1), patient()) // the fourth
		require.Equal(t, &LateError{Wait: 2 * Hold, Deadline: 2*Hold - 1}, err)
		assert.Len(t, l.queue, 3)
		other.End(time.Time{})
		other = (<-first).(*Permit)
		held.End(time.Time{})
		assert.IsType(t, held, <-soon)
		other.Refused(2 * time.Minute)
		assert.ErrorIs(t, (<-late).(error), context.DeadlineExceeded)
		assert.Zero(t, time.Since(began))
		assert.True(t, l.Pausing())
	})
}

// Patience ends exactly after its time, which begins with the first refusal or the caller's arrival, whichever is
// later.
func TestPatienceIsExact(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct{ refusing, since time.Duration }{{0, 0}, {0, time.Minute}, {time.Minute, 0}} {
		l := New()
		l.refusing = now.Add(tt.refusing)
		w := &waiter{Caller: &Caller{Patience: 5 * time.Minute, since: now.Add(tt.since)}, decided: make(chan struct{})}
		l.queue = []*waiter{w}
		end := now.Add(max(tt.refusing, tt.since) + 5*time.Minute)
		l.failLate(end.Add(-1))
		require.NoError(t, w.err)
		assert.Len(t, l.queue, 1)
		l.failLate(end)
		require.Equal(t, &RefusedError{5 * time.Minute}, w.err)
		assert.Empty(t, l.queue)
	}
	l := New()
	l.queue = []*waiter{{Caller: &Caller{Patience: time.Minute, since: now}, decided: make(chan struct{})}}
	l.failLate(now.Add(time.Hour))
	assert.Len(t, l.queue, 1, "the service accepts purges")
}

// A caller whose context ends leaves no gap, wherever it is in the queue: those behind it move up.
func TestLeaving(t *testing.T) {
	t.Parallel()
	for gone := range 3 {
		synctest.Test(t, func(t *testing.T) {
			l, began := New(), time.Now()
			granted(t, l, patient()).End(began)
			granted(t, l, patient()).End(began)
			ctx, cancel := context.WithCancel(t.Context())
			var waiting []chan any
			for i := range 3 {
				of := t.Context()
				if i == gone {
					of = ctx
				}
				waiting = append(waiting, acquire(of, l, patient()))
			}
			cancel()
			assert.Equal(t, context.Canceled, <-waiting[gone])
			for i, next := range waiting {
				if i != gone {
					assert.IsType(t, &Permit{}, <-next)
				}
			}
			assert.Equal(t, Hold, time.Since(began))
			synctest.Wait()
			assert.Empty(t, l.queue)
		})
	}
}

func TestWhyThereIsNoPermit(t *testing.T) {
	t.Parallel()
	late := &LateError{Wait: 1500*time.Millisecond + 1, Deadline: time.Second}
	require.EqualError(t, late, "the next purge permit comes in 1.5s or later, but the deadline is in 1s")
	late.Refusing = true
	require.EqualError(t, late, "the next purge permit comes in 1.5s or later, but the deadline is in 1s; the service refuses purges as too fast")
	require.NotErrorIs(t, late, context.Canceled)
	require.EqualError(t, &RefusedError{time.Minute}, "the service has refused all purges as too fast for 1m0s")
}
