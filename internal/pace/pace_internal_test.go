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

// step is one question to a limiter: at a time, is there a permit, and if not how long to wait for it.
type step struct {
	at, wait time.Duration
	end      time.Duration // when the request arrived; it is told at once. -1: it is on the way, -2: it was not sent
}

// Of three requests the first and the last are more than a second apart (service document, section 8): a place is free
// again 1.05 s after the arrival of its request, however long the request took.
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
				permit, wait := l.take(start.Add(s.at))
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

// A refusal doubles the average interval, from the service's 500 ms to at most 16 s; an accepted purge adds 0.02 a second
// to the rate, until the limit does not bind any more.
func TestThePaceAdapts(t *testing.T) {
	t.Parallel()
	l, now := New(), time.Now()
	for _, want := range []float64{1, 2, 4, 8, 16, 16} {
		l.refused(now, now, 0)
		assert.InDelta(t, want, l.interval.Seconds(), 0)
		now = now.Add(time.Minute)
	}
	rate := 1.0 / 16
	accepted := 0
	for ; l.interval > 0; accepted++ {
		assert.InDelta(t, rate, float64(time.Second)/float64(l.interval), 1e-6)
		l.accepted(now)
		rate += 0.02
	}
	assert.Equal(t, 97, accepted, "(2 - 1/16) / 0.02")
	for range 2 {
		permit, _ := l.take(now)
		require.NotNil(t, permit, "two at once again")
	}
}

// A refusal of a request that left before the interval was doubled says nothing new.
func TestTwoRefusalsOfOnePace(t *testing.T) {
	t.Parallel()
	l, now := New(), time.Now()
	first, _ := l.take(now)
	second, _ := l.take(now)
	l.refused(first.granted, now.Add(time.Second), 0)
	l.refused(second.granted, now.Add(2*time.Second), 0)
	assert.Equal(t, time.Second, l.interval)
	l.refused(now.Add(3*time.Second), now.Add(4*time.Second), 0)
	assert.Equal(t, 2*time.Second, l.interval)
}

// Intervals are drawn between three quarters and five quarters of their average; a pause lasts at least one of them, and
// as long as the service asks.
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
		permit, _ := l.take(now)
		assert.Equal(t, tt.pause, l.refused(permit.granted, now, tt.asked))
		_, wait := l.take(now)
		assert.Equal(t, tt.pause, wait)
		now = now.Add(tt.pause)
		permit, _ = l.take(now)
		require.NotNil(t, permit)
		_, wait = l.take(now)
		assert.InDelta(t, tt.next, wait, float64(time.Microsecond))
	}
}

// A pause never gets shorter.
func TestThePauseStays(t *testing.T) {
	t.Parallel()
	l, now := New(), time.Now()
	l.refused(now, now, 10*time.Second)
	l.refused(now, now.Add(time.Second), time.Second)
	_, wait := l.take(now.Add(2 * time.Second))
	assert.Equal(t, 8*time.Second, wait)
}

// The forecast of the k-th caller: everybody in front takes a permit, and what is on the way arrives now.
func TestForecast(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := New()
	at := func(position int) time.Duration { return l.forecast(now).at(position).Sub(now) }
	assert.Zero(t, at(0))
	assert.Zero(t, at(1))
	assert.Equal(t, Hold, at(2))
	l.places = []time.Time{onTheWay, now.Add(200 * time.Millisecond)}
	assert.Equal(t, 200*time.Millisecond, at(0))
	assert.Equal(t, Hold, at(1))
	assert.Equal(t, 200*time.Millisecond+Hold, at(2))
	assert.Equal(t, 2*Hold, at(3))
	l.refused(now, now, 10*time.Second)
	assert.Equal(t, 10*time.Second, at(0))
	assert.Equal(t, 10*time.Second+3*750*time.Millisecond, at(3))
	assert.Zero(t, NewPace().forecast(now).at(1000).Sub(now))
}

// acquire waits in a goroutine; it returns where the result comes.
func acquire(ctx context.Context, l *Limiter, turn Turn) chan any {
	done := make(chan any, 1)
	go func() {
		if p, err := l.Acquire(ctx, turn, time.Hour); err != nil {
			done <- err
		} else {
			done <- p
		}
	}()
	synctest.Wait()
	return done
}

// Callers are served in the order in which they came. One who comes with an earlier turn is before all who came later.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		first, err := l.Acquire(t.Context(), 0, time.Hour)
		require.NoError(t, err)
		second, err := l.Acquire(t.Context(), 0, time.Hour)
		require.NoError(t, err)
		waiting := []chan any{acquire(t.Context(), l, 0), acquire(t.Context(), l, 0)}
		again := acquire(t.Context(), l, first.Turn)
		assert.Equal(t, Turn(4), l.turns)
		for _, next := range append([]chan any{again}, waiting...) {
			second.End(time.Time{})
			synctest.Wait()
			select {
			case p := <-next:
				second = p.(*Permit)
			default:
				require.Fail(t, "another caller was served")
			}
		}
		assert.Less(t, first.Turn, second.Turn)
	})
}

// Who gives up leaves no hole, wherever it stands in the queue.
func TestLeaving(t *testing.T) {
	t.Parallel()
	for gone := range 3 {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			held, err := l.Acquire(t.Context(), 0, time.Hour)
			require.NoError(t, err)
			_, err = l.Acquire(t.Context(), 0, time.Hour)
			require.NoError(t, err)
			var waiting []chan any
			var cancels []context.CancelFunc
			for range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				waiting, cancels = append(waiting, acquire(ctx, l, 0)), append(cancels, cancel)
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

// A deadline before the forecast ends the wait at once, for the callers concerned alone.
func TestLateCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		held, err := l.Acquire(t.Context(), 0, time.Hour)
		require.NoError(t, err)
		other, err := l.Acquire(t.Context(), 0, time.Hour)
		require.NoError(t, err)
		began := time.Now()
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithDeadline(t.Context(), began.Add(d))
			t.Cleanup(cancel)
			return ctx
		}
		_, err = l.Acquire(within(Hold-1), 0, time.Hour)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		patient, soon, late := acquire(t.Context(), l, 0), acquire(within(Hold), l, 0), acquire(within(time.Minute), l, 0)
		_, err = l.Acquire(within(2*Hold-1), 0, time.Hour) // the fourth
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Len(t, l.queue, 3)
		other.End(time.Time{})
		other = (<-patient).(*Permit)
		held.End(time.Time{})
		assert.IsType(t, held, <-soon)
		assert.Zero(t, time.Since(began))
		other.Refused(2 * time.Minute)
		assert.ErrorIs(t, (<-late).(error), context.DeadlineExceeded)
		assert.Zero(t, time.Since(began))
		assert.True(t, l.Pausing())
	})
}

// Any number of goroutines: never more than two permits at once, none is lost, nobody waits for ever.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		var mu sync.Mutex
		held, served, refused := 0, 0, 0
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Second)
				defer cancel()
				p, err := l.Acquire(ctx, 0, time.Hour)
				if err != nil {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					mu.Lock()
					refused++
					mu.Unlock()
					return
				}
				mu.Lock()
				held++
				served++
				assert.LessOrEqual(t, held, 2)
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				held--
				mu.Unlock()
				p.End(time.Now())
				if i%50 == 49 {
					p.Refused(0)
				} else {
					p.Accepted()
				}
			})
		}
		wg.Wait()
		assert.Equal(t, 200, served+refused)
		assert.Greater(t, served, 20)
		assert.Empty(t, l.queue)
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
				l.refused(now, now, 0)
				time.Sleep(time.Second)
			}
			assert.Equal(t, 16*time.Second, l.interval)
			time.Sleep(unused - time.Second)
			_, err := l.Acquire(t.Context(), 0, time.Hour)
			require.NoError(t, err)
			assert.Equal(t, want, l.interval)
		})
	}
}

// A caller knows at once that the slow pace brings its permit too late, also behind others.
func TestLateByThePace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		l.jitter = func() float64 { return 0.5 }
		for range 4 {
			now := time.Now()
			l.refused(now, now, 0)
			time.Sleep(time.Second)
		}
		time.Sleep(8 * time.Second)
		p, err := l.Acquire(t.Context(), 0, time.Hour)
		require.NoError(t, err)
		p.End(time.Now())
		p.Accepted()
		began := time.Now()
		waiting := acquire(t.Context(), l, 0) // for 6.9 s: 1 / (1/8 + 0.02); the caller behind it for 5.2 s more at least
		for _, d := range []time.Duration{time.Second, 6 * time.Second, 10 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			_, err = l.Acquire(ctx, 0, time.Hour)
			var late *LateError
			require.ErrorAs(t, err, &late)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Greater(t, late.Wait, d)
			assert.Equal(t, d, late.Deadline)
			assert.False(t, l.Refusing())
			cancel()
		}
		assert.Zero(t, time.Since(began))
		<-waiting
	})
}

// While the service accepts nothing, callers who wait give up when their patience ends, and not one after the other.
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
				for {
					p, err := l.Acquire(t.Context(), Turn(1+i), 5*time.Minute)
					var refused *RefusedError
					if errors.As(err, &refused) {
						assert.Equal(t, 5*time.Minute, refused.After)
						break
					}
					if !assert.NoError(t, err) {
						return
					}
					p.End(time.Now())
					if _, since := p.Refused(0); time.Since(latest(since, asked)) >= 5*time.Minute {
						break
					}
				}
				assert.GreaterOrEqual(t, time.Since(asked), 5*time.Minute)
			})
		}
		wg.Wait()
		assert.Less(t, time.Since(began), 6*time.Minute)
		assert.True(t, l.Refusing())
		p, err := l.Acquire(t.Context(), 0, time.Hour)
		require.NoError(t, err)
		p.Accepted()
		assert.False(t, l.Refusing())
	})
}
