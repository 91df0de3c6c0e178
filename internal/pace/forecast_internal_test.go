package pace

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The forecast assumes that requests on their way arrive now, and that all purges are accepted.
func TestForecast(t *testing.T) {
	t.Parallel()
	now, ms := time.Unix(0, 0).Add(1000*apart), time.Millisecond
	for name, tt := range map[string]struct {
		prepare func(l *Limiter)
		want    []time.Duration
	}{
		"unused": {func(*Limiter) {}, []time.Duration{0, 0, Hold, Hold, 2 * Hold}},
		"slots":  {func(l *Limiter) { l.slots = []time.Time{onTheWay, now.Add(200 * ms)} }, []time.Duration{200 * ms, Hold, 200*ms + Hold, 2 * Hold}},
		"a pause, then one place after the other": {func(l *Limiter) {
			l.chance, l.refused, l.next, l.resume = first, now, now.Add(apart), now.Add(10*apart)
		}, []time.Duration{10 * apart, 11 * apart, 12 * apart, 13 * apart}},
		"a place, and none before it": {func(l *Limiter) { l.chance, l.refused, l.next = first, now, now.Add(3*apart) }, []time.Duration{3 * apart, 4 * apart}},
		"after a random moment, the place that is next to it": {func(l *Limiter) {
			l.chance, l.refused, l.next = first, now, now.Add(apart*17/10)
		}, []time.Duration{apart * 17 / 10, 3 * apart, 4 * apart}},
		"a minute after the last refusal, no places": {func(l *Limiter) {
			l.chance, l.refused, l.next = first, now.Add(apart-busy), now.Add(apart)
		}, []time.Duration{apart, 2 * apart, apart + Hold, apart + Hold}},
	} {
		l := New()
		tt.prepare(l)
		next := l.forecast(now)
		for i, want := range tt.want {
			assert.Equal(t, want, next().Sub(now), "%s: %d", name, i)
		}
	}
	assert.Zero(t, NewPace().forecast(now)().Sub(now))
}

// No permit comes before its forecast, whatever the chances are.
func TestNoPermitComesEarly(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			l.jitter = random.Float64
			time.Sleep(time.Duration(random.Int64N(int64(time.Minute))))
			l.chance, l.own, l.refused = first*random.Float64(), uint16(random.Uint32()), time.Now()
			l.choose(time.Now(), false)
			next := l.forecast(time.Now())
			for i := range 40 {
				want := next()
				p := granted(t, l, patient())
				require.False(t, time.Now().Before(want), "permit %d", i)
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
		w := &waiter{Caller: &Caller{Patience: 5 * time.Minute, since: now.Add(tt.since)}, wake: make(chan struct{}, 1)}
		l.queue = []*waiter{w}
		end := now.Add(max(tt.refusing, tt.since) + 5*time.Minute)
		l.drop(end.Add(-1))
		require.NoError(t, w.err)
		assert.Len(t, l.queue, 1)
		l.drop(end)
		require.Equal(t, &RefusedError{5 * time.Minute}, w.err)
		assert.Empty(t, l.queue)
	}
	l := New()
	l.queue = []*waiter{{Caller: &Caller{Patience: time.Minute, since: now}, wake: make(chan struct{}, 1)}}
	l.drop(now.Add(time.Hour))
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
