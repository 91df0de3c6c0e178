package pace

import (
	"context"
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
		"after a refusal":       {func(l *Limiter, now time.Time) { l.next, l.rate, l.refused = now.Add(3*time.Second), first, now }, []time.Duration{3 * time.Second, 3 * time.Second, 3*time.Second + Hold}},
		"a request on its way":  {func(l *Limiter, _ time.Time) { l.slots = []time.Time{onTheWay, onTheWay} }, []time.Duration{Hold, Hold, 2 * Hold}},
		"in front of a limiter": {func(l *Limiter, now time.Time) { l.slots, l.next = nil, now.Add(time.Second) }, []time.Duration{time.Second, time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			tt.prepare(l, time.Now())
			for i, want := range tt.want {
				_, err := l.Acquire(within(t, want-1), patient())
				require.Equal(t, &LateError{Wait: want, Deadline: want - 1, Refusing: l.rate > 0}, err, name)
				acquire(within(t, want), l, patient())
				require.Len(t, l.queue, i+1, "%s: a deadline at the permit is not too early", name)
			}
		})
	}
}

// within returns a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// A refusal fails those in line at once whose deadline comes before the end of its pause.
func TestARefusalFailsLateCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		granted(t, l, patient())
		p := granted(t, l, patient())
		late := acquire(within(t, time.Minute), l, patient())
		p.Refused(2 * time.Minute)
		assert.Equal(t, &LateError{Wait: 2 * time.Minute, Deadline: time.Minute, Refusing: true}, <-late)
	})
}

// Patience ends exactly after its time, which begins with the first refusal or the caller's arrival, whichever is
// later.
func TestPatienceIsExact(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct{ refusing, since time.Duration }{{0, 0}, {0, time.Minute}, {time.Minute, 0}} {
		l := New()
		w := &waiter{Caller: &Caller{Patience: 5 * time.Minute, since: now.Add(tt.since)}, decided: make(chan struct{})}
		l.queue = []*waiter{w}
		end := now.Add(max(tt.refusing, tt.since) + 5*time.Minute)
		l.failLate(end.Add(time.Hour))
		require.Len(t, l.queue, 1, "the service accepts purges")
		l.refusing = now.Add(tt.refusing)
		l.failLate(end.Add(-1))
		require.Len(t, l.queue, 1)
		l.failLate(end)
		require.Equal(t, &RefusedError{5 * time.Minute}, w.err)
		assert.Empty(t, l.queue)
	}
}

// A caller whose context ends leaves no gap, wherever it is in the queue: those behind it move up.
func TestLeaving(t *testing.T) {
	t.Parallel()
	for gone := range 3 {
		synctest.Test(t, func(t *testing.T) {
			l, began := New(), time.Now()
			granted(t, l, patient()).End(began)
			granted(t, l, patient()).End(began)
			var waiting []chan any
			var leave []context.CancelFunc
			for range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				waiting, leave = append(waiting, acquire(ctx, l, patient())), append(leave, cancel)
			}
			leave[gone]()
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
	require.EqualError(t, &RefusedError{time.Minute}, "the service has refused all purges as too fast for 1m0s")
}
