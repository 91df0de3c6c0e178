package pace

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const forever = untilWoken

// step asks a limiter for a permit at a time, and expects the permit or how long to wait for it.
type step struct {
	at, wait time.Duration
	end      time.Duration // arrival of the request, reported at once. -1: on its way, -2: not sent
}

// The first and the third of three requests are more than a second apart (service document, section 8). A place becomes
// free 1.05 s after the arrival of its request, however long the request took.
func TestPlaces(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	tests := []struct {
		name  string
		steps []step
	}{
		{"two at once, then 1.05 s after each arrival", []step{
			{0, 0, 10 * ms}, {0, 0, 30 * ms}, {40 * ms, 1020 * ms, 0}, {1060 * ms, 0, 1060 * ms}, {1060 * ms, 20 * ms, 0}, {1080 * ms, 0, 0},
		}},
		{"a request on the way keeps its place", []step{
			{0, 0, -1}, {0, 0, 0}, {time.Hour, 0, -1}, {2 * time.Hour, forever, 0},
		}},
		{"a permit that was not used is free at once", []step{{0, 0, -2}, {0, 0, -2}, {0, 0, -1}, {0, 0, -1}, {0, forever, 0}}},
		{"an arrival in the future", []step{{0, 0, 5000 * ms}, {0, 0, 1000 * ms}, {0, 2050 * ms, 0}, {2050 * ms, 0, -1}, {2050 * ms, 4000 * ms, 0}}},
		{"what was not taken does not pile up", []step{{time.Hour, 0, time.Hour}, {time.Hour, 0, time.Hour}, {time.Hour, Hold, 0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, start := New(), time.Now()
			for i, s := range tt.steps {
				permit, wait := l.take(&Caller{}, start.Add(s.at))
				require.Equal(t, s.wait, wait, "step %d", i)
				if permit == nil {
					continue
				}
				switch s.end {
				case -1:
				case -2:
					permit.End(time.Time{})
				default:
					permit.End(start.Add(s.end))
				}
			}
		})
	}
}

// refusedAt reports the refusal of a request with these times of departure and response.
func refusedAt(l *Limiter, left, answered time.Time, after time.Duration) {
	l.refuse(&Permit{limiter: l, caller: &Caller{}, place: -1, granted: left}, answered, after)
}

// A refusal doubles the average interval, from the service's 500 ms to at most 16 s. An accepted purge adds 0.02
// permits per second to the rate, until the interval is back at 500 ms.
func TestThePaceAdapts(t *testing.T) {
	t.Parallel()
	l, now := New(), time.Now()
	for _, want := range []float64{1, 2, 4, 8, 16, 16} {
		refusedAt(l, now, now, 0)
		assert.InDelta(t, want, l.interval.Seconds(), 0)
		now = now.Add(time.Minute)
	}
	rate := 1.0 / 16
	accepted := 0
	for ; l.interval > 0; accepted++ {
		assert.InDelta(t, rate, float64(time.Second)/float64(l.interval), 1e-6)
		l.accept(now)
		rate += 0.02
	}
	assert.Equal(t, 97, accepted, "(2 - 1/16) / 0.02")
	for range 2 {
		permit, _ := l.take(&Caller{}, now)
		require.NotNil(t, permit, "two at once again")
	}
}

// A purge that is refused again while others are accepted does not slow the others down. Only this purge waits, each
// time longer: from half to all of 0.5, 1, 2 and up to 16 s, at random.
func TestARefusalThatIsNotAboutThePace(t *testing.T) {
	t.Parallel()
	l, now := New(), time.Now()
	l.jitter = func() float64 { return 1 }
	poison := &Caller{}
	p, _ := l.take(poison, now)
	assert.True(t, l.refuse(p, now, 0).Everybody)
	assert.Equal(t, time.Second, l.interval)
	for _, want := range []float64{0.5, 1, 2, 4, 8, 16, 16} {
		now = now.Add(time.Minute)
		l.accept(now)
		before, resume := l.interval, l.resume
		r := l.refuse(&Permit{limiter: l, caller: poison, place: -1, granted: now}, now.Add(time.Second), 0)
		assert.False(t, r.Everybody)
		assert.InDelta(t, want, r.Wait.Seconds(), 0)
		assert.Equal(t, before, l.interval)
		assert.Equal(t, resume, l.resume)
	}
	r := l.refuse(&Permit{limiter: l, caller: poison, place: -1, granted: now}, now.Add(time.Hour), 0)
	assert.True(t, r.Everybody, "nothing was accepted since")
	l.accept(now.Add(2 * time.Hour))
	r = l.refuse(&Permit{limiter: l, caller: poison, place: -1, granted: now}, now.Add(3*time.Hour), time.Minute)
	assert.True(t, r.Everybody, "the service asks for a pause")
	assert.Equal(t, time.Minute, r.Wait)
}

// An interval is random, between three quarters and five quarters of the average. A pause lasts at least one interval,
// and as long as the service asks.
func TestIntervalsHaveJitter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		jitter       float64
		asked, pause time.Duration
		next         time.Duration // between the two permits after the pause
	}{
		{0, 0, 750 * time.Millisecond, 750 * time.Millisecond},
		{1, 0, 1250 * time.Millisecond, 1250 * time.Millisecond},
		{0.5, 0, time.Second, time.Second},
		{0.5, 30 * time.Second, 30 * time.Second, time.Second},
		{1, time.Millisecond, 1250 * time.Millisecond, 1250 * time.Millisecond},
	} {
		l, now := NewPace(), time.Now()
		l.jitter = func() float64 { return tt.jitter }
		permit, _ := l.take(&Caller{}, now)
		r := l.refuse(permit, now, tt.asked)
		assert.Equal(t, Refusal{Wait: tt.pause, Everybody: true, Since: now}, r)
		_, wait := l.take(&Caller{}, now)
		assert.Equal(t, tt.pause, wait)
		now = now.Add(tt.pause)
		permit, _ = l.take(&Caller{}, now)
		require.NotNil(t, permit)
		_, wait = l.take(&Caller{}, now)
		assert.InDelta(t, tt.next, wait, float64(time.Microsecond))
	}
}

// The forecast assumes that requests on their way arrive now, and that all purges are accepted.
func TestForecast(t *testing.T) {
	t.Parallel()
	now, ms := time.Now(), time.Millisecond
	quick := func(rate float64) time.Duration { return time.Duration(0.75 / rate * float64(time.Second)) }
	tests := []struct {
		name    string
		prepare func(l *Limiter)
		want    []time.Duration
	}{
		{"unused", func(*Limiter) {}, []time.Duration{0, 0, Hold, Hold, 2 * Hold}},
		{"places", func(l *Limiter) { l.places = []time.Time{onTheWay, now.Add(200 * ms)} }, []time.Duration{200 * ms, Hold, 200*ms + Hold, 2 * Hold}},
		{"a pause, then the slow pace, shortened by each", func(l *Limiter) { refusedAt(l, now, now, 10*time.Second) }, []time.Duration{
			10 * time.Second, 10*time.Second + quick(1.02), 10*time.Second + quick(1.02) + quick(1.04),
		}},
		{"the interval under way, as nothing can change it", func(l *Limiter) {
			for range 4 {
				refusedAt(l, now.Add(-time.Minute), now.Add(-time.Minute), 0)
				l.slowed = time.Time{}
			}
			_, _ = l.take(&Caller{}, now)
			l.flying, l.places = 0, make([]time.Time, places) // nothing was sent
		}, []time.Duration{8 * time.Second, 8*time.Second + quick(1.0/8+0.02)}},
		{"the interval under way, which the purge on the way may shorten", func(l *Limiter) {
			for range 4 {
				refusedAt(l, now.Add(-time.Minute), now.Add(-time.Minute), 0)
				l.slowed = time.Time{}
			}
			_, _ = l.take(&Caller{}, now)
		}, []time.Duration{quick(1.0/8 + 0.02), quick(1.0/8+0.02) + quick(1.0/8+0.04)}},
		{"the interval under way, which two purges on the way may shorten", func(l *Limiter) {
			l.setInterval(now, 8*time.Second)
			_, _ = l.take(&Caller{}, now)
			l.flying++
		}, []time.Duration{quick(1.0/8 + 0.04), quick(1.0/8+0.04) + quick(1.0/8+0.06)}},
		{"an interval that ends when the purge on the way is accepted", func(l *Limiter) {
			l.setInterval(now, 501*ms)
			_, _ = l.take(&Caller{}, now)
		}, []time.Duration{0, Hold}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := New()
			l.jitter = func() float64 { return 0.5 }
			tt.prepare(l)
			next := l.forecast(now)
			for i, want := range tt.want {
				assert.InDelta(t, want, next().Sub(now), float64(time.Microsecond), "%d", i)
			}
		})
	}
	assert.Zero(t, NewPace().forecast(now)().Sub(now))
}

// patient is a caller with unlimited patience.
func patient() *Caller { return &Caller{Patience: time.Hour} }

// acquire waits in a goroutine. It returns the channel for the result.
func acquire(ctx context.Context, l *Limiter, c *Caller) chan any {
	done := make(chan any, 1)
	go func() {
		if p, err := l.Acquire(ctx, c); err != nil {
			done <- err
		} else {
			done <- p
		}
	}()
	synctest.Wait()
	return done
}

// Callers get permits in the order of their calls. Those that were refused before get every second permit, in the order
// of the refusals.
func TestOrder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		arrive string // lower case: a new caller; upper case: a caller that was refused before
		served string
	}{
		{"abc", "abc"},
		{"ABC", "ABC"},
		{"aB", "aB"},
		{"abcD", "aDbc"},
		{"abcdEF", "aEbFcd"},
		{"AbC", "AbC"},
		{"AbcDeF", "AbDcFe"},
		{"abCDe", "aCbDe"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			held, err := l.Acquire(t.Context(), patient())
			require.NoError(t, err)
			_, err = l.Acquire(t.Context(), patient())
			require.NoError(t, err)
			waiting := map[rune]chan any{}
			for _, name := range tt.arrive {
				c := patient()
				if name < 'a' {
					c.refused = time.Now()
				}
				waiting[name] = acquire(t.Context(), l, c)
			}
			served := ""
			for range tt.arrive {
				held.End(time.Time{})
				synctest.Wait()
				for name, done := range waiting {
					select {
					case p := <-done:
						held = p.(*Permit)
						served += string(name)
						delete(waiting, name)
					default:
					}
				}
			}
			assert.Equal(t, tt.served, served)
		})
	}
}

// A caller whose context ends leaves no gap, wherever it is in the queue.
func TestLeaving(t *testing.T) {
	t.Parallel()
	for gone := range 3 {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			held, err := l.Acquire(t.Context(), patient())
			require.NoError(t, err)
			_, err = l.Acquire(t.Context(), patient())
			require.NoError(t, err)
			var waiting []chan any
			var cancels []context.CancelFunc
			for range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				waiting, cancels = append(waiting, acquire(ctx, l, patient())), append(cancels, cancel)
			}
			cancels[gone]()
			synctest.Wait()
			assert.Equal(t, context.Canceled, <-waiting[gone])
			for i, next := range waiting {
				if i == gone {
					continue
				}
				held.End(time.Time{})
				held = (<-next).(*Permit)
			}
			assert.Empty(t, l.queue)
			for _, cancel := range cancels {
				cancel()
			}
		})
	}
}

// A deadline before the forecast ends the wait at once, but only for that caller.
func TestLateCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		held, err := l.Acquire(t.Context(), patient())
		require.NoError(t, err)
		other, err := l.Acquire(t.Context(), patient())
		require.NoError(t, err)
		began := time.Now()
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithDeadline(t.Context(), began.Add(d))
			t.Cleanup(cancel)
			return ctx
		}
		_, err = l.Acquire(within(Hold-1), patient())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		first, soon, late := acquire(t.Context(), l, patient()), acquire(within(Hold), l, patient()), acquire(within(time.Minute), l, patient())
		_, err = l.Acquire(within(2*Hold-1), patient()) // the fourth
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, &LateError{Wait: 2 * Hold, Deadline: 2*Hold - 1}, err)
		assert.Len(t, l.queue, 3)
		other.End(time.Time{})
		other = (<-first).(*Permit)
		held.End(time.Time{})
		assert.IsType(t, held, <-soon)
		assert.Zero(t, time.Since(began))
		other.Refused(2 * time.Minute)
		assert.ErrorIs(t, (<-late).(error), context.DeadlineExceeded)
		assert.Zero(t, time.Since(began))
		assert.True(t, l.Pausing())
	})
}

// A minute without any purge halves the interval.
func TestIdleTimeRestoresThePace(t *testing.T) {
	t.Parallel()
	for unused, want := range map[time.Duration]time.Duration{
		59 * time.Second: 16 * time.Second, time.Minute: 8 * time.Second, 2*time.Minute + 59*time.Second: 4 * time.Second,
		4 * time.Minute: time.Second, 5 * time.Minute: 0, 1000 * time.Hour: 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			for range 5 {
				now := time.Now()
				refusedAt(l, now, now, 0)
				time.Sleep(time.Second)
			}
			assert.Equal(t, 16*time.Second, l.interval)
			time.Sleep(unused - time.Second)
			_, err := l.Acquire(t.Context(), patient())
			require.NoError(t, err)
			assert.Equal(t, want, l.interval)
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

// While the service accepts no purge, each waiting caller fails when its own patience ends, not one after the other.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		var wg sync.WaitGroup
		began := time.Now()
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				asked := time.Now()
				c := &Caller{Patience: 5 * time.Minute}
				for {
					p, err := l.Acquire(t.Context(), c)
					var refused *RefusedError
					if errors.As(err, &refused) {
						assert.Equal(t, 5*time.Minute, refused.After)
						break
					}
					if !assert.NoError(t, err) {
						return
					}
					p.End(time.Now())
					if time.Since(p.Refused(0).Since) >= 5*time.Minute {
						break
					}
				}
				assert.GreaterOrEqual(t, time.Since(asked), 5*time.Minute)
			})
		}
		wg.Wait()
		assert.Less(t, time.Since(began), 6*time.Minute)
		assert.True(t, l.Refusing())
		p, err := l.Acquire(t.Context(), patient())
		require.NoError(t, err)
		p.Accepted()
		assert.False(t, l.Refusing())
	})
}

// A bubble of testing/synctest begins in the year 2000. What purges in real time or in an earlier bubble left behind does
// not hold up its purges, and a permit that has not ended stays taken.
func TestAnotherClock(t *testing.T) {
	t.Parallel()
	l := New()
	held, err := l.Acquire(t.Context(), patient())
	require.NoError(t, err)
	p, err := l.Acquire(t.Context(), patient())
	require.NoError(t, err)
	p.Refused(20 * time.Hour)
	p.End(time.Now())
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for range 3 {
			p, err := l.Acquire(t.Context(), patient())
			require.NoError(t, err)
			p.End(time.Now())
			p.Accepted()
		}
		assert.Equal(t, 2*Hold, time.Since(began), "one place, because a request is on its way in the other")
	})
	held.End(time.Time{})
}
