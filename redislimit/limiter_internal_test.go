package redislimit

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const hour = int64(time.Hour / time.Microsecond)

// within is a context with a deadline that is met by nothing in these tests, so that who gets its error was refused.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// refused asserts that the deadline was the reason, and that nobody waited for it.
func refused(ctx context.Context, t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, ctx.Err())
}

// reserved takes an instant without waiting for it.
func reserved(t *testing.T, l *Limiter) reservation {
	t.Helper()
	r, _, err := l.budget.reserve(t.Context(), reservation{})
	require.NoError(t, err)
	return r
}

// 100 callers of 4 processes at once: every instant is an interval after the one before, to the microsecond.
func TestInstantsAreExactlySpaced(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		var mu sync.Mutex
		var instants []int64
		var wg sync.WaitGroup
		for range 4 {
			l := s.limiter(t)
			for range 25 {
				wg.Go(func() {
					r, _, err := l.budget.reserve(t.Context(), reservation{})
					assert.NoError(t, err)
					mu.Lock()
					defer mu.Unlock()
					instants = append(instants, r.at)
				})
			}
		}
		wg.Wait()
		slices.Sort(instants)
		require.Len(t, instants, 100)
		for i, at := range instants {
			require.Equal(t, instants[0]+int64(i)*hour, at)
		}
	})
}

// Who asks first is served first, whatever process he is in, and never before his instant.
func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		const interval = 100 * time.Millisecond
		rdb := s.client(t)
		require.NoError(t, s.limiter(t).Pause(t.Context(), 2*time.Second)) // time to queue in order
		instants := make([]int64, 12)
		var wg sync.WaitGroup
		for i := range instants {
			before := s.state(t)["free"]
			wg.Go(func() {
				r, err := s.limiter(t, WithInterval(interval)).permit(t.Context())
				assert.NoError(t, err)
				now, err := rdb.Time(t.Context()).Result()
				assert.NoError(t, err)
				assert.GreaterOrEqual(t, now.UnixMicro(), r.at)
				instants[i] = r.at
			})
			for s.state(t)["free"] == before { // he has asked: the next may come
				time.Sleep(time.Millisecond)
			}
		}
		wg.Wait()
		for i := 1; i < len(instants); i++ {
			assert.GreaterOrEqual(t, instants[i]-instants[i-1], interval.Microseconds())
		}
	})
}

// A budget that nobody used for long gives one permit at once, not several.
func TestNoBurst(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		require.NoError(t, l.Wait(t.Context()))
		s.setField(t, "free", time.Now().Add(-24*time.Hour))
		first, second := reserved(t, l), reserved(t, l)
		assert.Equal(t, first.at+hour, second.at)
	})
}

// A permit that comes after the caller's deadline is refused at once, and nothing changes.
func TestADeadlineBeforeThePermit(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		require.NoError(t, l.Wait(within(t, time.Minute)))
		before := s.state(t)
		require.NotEmpty(t, before)
		for range 3 {
			ctx := within(t, time.Minute)
			refused(ctx, t, l.Wait(ctx))
		}
		assert.Equal(t, before, s.state(t))
		assert.Equal(t, before["free"], strconv.FormatInt(reserved(t, l).at, 10))
	})
}

// A context that has ended takes nothing; one that ends during the wait ends it.
func TestACallerWhoGivesUp(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, l.Wait(ctx), context.Canceled)
		require.Empty(t, s.state(t))

		first := reserved(t, l)
		ctx, cancel = context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Wait(ctx) }()
		require.Eventually(t, func() bool {
			return s.state(t)["free"] == strconv.FormatInt(first.at+2*hour, 10)
		}, time.Minute, time.Millisecond)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		assert.Equal(t, first.at+2*hour, reserved(t, l).at, "his place stays empty")
	})
}

func TestTheKeyExpires(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		rdb := s.client(t)
		require.NoError(t, s.limiter(t).Wait(t.Context()))
		left, err := rdb.PTTL(t.Context(), defaultPrefix+":acme").Result()
		require.NoError(t, err)
		assert.Positive(t, left)
		assert.LessOrEqual(t, left, time.Hour+time.Second)

		short := New(rdb, "other", WithInterval(10*time.Millisecond))
		require.NoError(t, short.Wait(t.Context()))
		require.Eventually(t, func() bool {
			return rdb.Exists(t.Context(), defaultPrefix+":other").Val() == 0
		}, time.Minute, time.Millisecond)
		require.NoError(t, short.Wait(t.Context()))
	})
}

// A server that forgot the scripts is sent them again.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		first := reserved(t, l)
		require.NoError(t, s.client(t).ScriptFlush(t.Context()).Err())
		assert.Equal(t, first.at+hour, reserved(t, l).at)
		require.NoError(t, s.client(t).ScriptFlush(t.Context()).Err())
		require.NoError(t, l.Pause(t.Context(), time.Hour))
	})
}

func TestBudgetsAreApart(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		rdb := s.client(t)
		limiters := []*Limiter{
			New(rdb, "acme"),
			New(rdb, "Acme"),
			New(rdb, "b:acme"),
			New(rdb, "acme", WithKeyPrefix(defaultPrefix+":b")),
			New(rdb, "a b"),
			New(rdb, "a+b"),
			New(rdb, "{a}"),
			New(rdb, "a%20b"),
		}
		for _, l := range limiters {
			l.budget.interval = time.Hour
			require.NoError(t, l.Wait(t.Context()))
		}
		keys, err := rdb.Keys(t.Context(), "*").Result()
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{
			"webdelivery:purge:acme", "webdelivery:purge:Acme", "webdelivery:purge:b%3Aacme", "webdelivery:purge:b:acme",
			"webdelivery:purge:a+b", "webdelivery:purge:a%2Bb", "webdelivery:purge:%7Ba%7D", "webdelivery:purge:a%2520b",
		}, keys)
	})
}

// setField changes one field of the budget of acme.
func (s *server) setField(t *testing.T, field string, value time.Time) {
	require.NoError(t, s.client(t).HSet(t.Context(), defaultPrefix+":acme", field, value.UnixMicro()).Err())
}

// What a caller finds when he wakes: his reservation stands, or is void and he queues again.
func TestReservationsThatAreVoid(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		after func(t *testing.T, s *server)
		void  bool
	}{
		{"it stands", func(*testing.T, *server) {}, false},
		{"the data is lost", func(t *testing.T, s *server) {
			require.NoError(t, s.client(t).FlushAll(t.Context()).Err())
		}, true},
		{"the data is lost, and others were faster", func(t *testing.T, s *server) {
			require.NoError(t, s.client(t).FlushAll(t.Context()).Err())
			for range 3 {
				reserved(t, s.limiter(t))
			}
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, s *server) {
				l := s.limiter(t)
				reserved(t, l)
				held := reserved(t, l)
				tt.after(t, s)
				next := s.state(t)["free"]
				got, wait, err := l.budget.reserve(t.Context(), held)
				require.NoError(t, err)
				if !tt.void {
					assert.Equal(t, held, got)
					assert.InDelta(t, time.Hour, wait, float64(10*time.Minute))
					assert.Equal(t, next, s.state(t)["free"], "nothing was taken")
					return
				}
				assert.NotEqual(t, held.born, got.born)
				if next != "" {
					assert.Equal(t, next, strconv.FormatInt(got.at, 10), "at the end of the queue")
				}
			})
		})
	}
}

// A process that was stopped does not use all its reservations at once when it goes on.
func TestOverslept(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		late := make([]reservation, 10)
		for i := range late {
			late[i] = reserved(t, l)
			late[i].at -= 11*hour + hour/2 // the last is two and a half hours late
		}
		queue := s.state(t)["free"]
		granted := 0
		for i, held := range late {
			got, wait, err := l.budget.reserve(t.Context(), held)
			require.NoError(t, err)
			if wait == 0 {
				granted++
				assert.Equal(t, held, got, i)
			}
		}
		assert.Zero(t, granted)
		assert.NotEqual(t, queue, s.state(t)["free"])

		held := reservation{at: time.Now().Add(-30 * time.Minute).UnixMicro(), born: late[0].born}
		got, wait, err := l.budget.reserve(t.Context(), held)
		require.NoError(t, err)
		assert.Zero(t, wait)
		assert.Equal(t, held, got, "less than an interval late is in time")
	})
}

// A pause holds for every process, for an unused budget too, and never gets shorter.
func TestPause(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		one, other := s.limiter(t, WithInterval(time.Millisecond)), s.limiter(t, WithInterval(time.Millisecond))
		began, err := s.client(t).Time(t.Context()).Result()
		require.NoError(t, err)
		require.NoError(t, one.Pause(t.Context(), time.Hour))
		assert.Zero(t, one.owed, "Redis knows")
		for _, l := range []*Limiter{one, other} {
			ctx := within(t, time.Minute)
			refused(ctx, t, l.Wait(ctx))
		}
		before := s.state(t)
		for _, d := range []time.Duration{time.Minute, time.Nanosecond, 0, -time.Hour} {
			require.NoError(t, other.Pause(t.Context(), d))
		}
		assert.Equal(t, before, s.state(t))
		require.NoError(t, other.Pause(t.Context(), 2*time.Hour))
		first, _, err := one.budget.reserve(t.Context(), reservation{})
		require.NoError(t, err)
		moved, _ := strconv.ParseInt(s.state(t)["moved"], 10, 64)
		assert.GreaterOrEqual(t, first.at+moved, began.Add(2*time.Hour).UnixMicro())
	})
}

// All who wait move by the pause: nobody comes in front of them, and they keep their distance.
func TestAPauseMovesThoseWhoWait(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		one, other := s.limiter(t), s.limiter(t)
		held := []reservation{reserved(t, one), reserved(t, other), reserved(t, one)}
		waits := func() (all []time.Duration) {
			for _, r := range held {
				got, wait, err := other.budget.reserve(t.Context(), r)
				require.NoError(t, err)
				require.Equal(t, r, got)
				all = append(all, wait)
			}
			return all
		}
		for _, d := range []time.Duration{5 * time.Hour, 10 * time.Hour} { // the second makes the first longer
			require.NoError(t, one.Pause(t.Context(), d))
			for i, wait := range waits() {
				assert.InDelta(t, d+time.Duration(i)*time.Hour, wait, float64(10*time.Minute))
			}
		}
		assert.Equal(t, held[2].at+hour, reserved(t, other).at, "a new one comes behind them")
	})
}

// A caller whose instant has come, and who asks a little later, is held until the end of the pause as well.
func TestAPauseHoldsWhoIsLate(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		late := reserved(t, l)
		late.at -= hour / 2
		require.NoError(t, l.Pause(t.Context(), 10*time.Hour))
		got, wait, err := l.budget.reserve(t.Context(), late)
		require.NoError(t, err)
		assert.Equal(t, late, got)
		assert.InDelta(t, 10*time.Hour, wait, float64(10*time.Minute))
	})
}

// A caller who sleeps already is held too: at his instant he is told that it has moved past his deadline.
func TestAPauseHoldsASleeper(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t, WithInterval(500*time.Millisecond))
		require.NoError(t, l.Wait(t.Context()))
		before := s.state(t)["free"]
		ctx := within(t, 10*time.Minute)
		done := make(chan error)
		go func() { done <- l.Wait(ctx) }()
		for s.state(t)["free"] == before {
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, s.limiter(t).Pause(t.Context(), time.Hour))
		refused(ctx, t, <-done)
	})
}

// The longest durations there are change no sign.
func TestAPauseForEver(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		require.NoError(t, l.Pause(t.Context(), time.Duration(1<<63-1)))
		require.NoError(t, l.Pause(t.Context(), time.Duration(1<<63-1)))
		ctx := within(t, time.Minute)
		refused(ctx, t, l.Wait(ctx))
		_, wait, err := l.budget.reserve(t.Context(), reservation{})
		require.NoError(t, err)
		assert.Greater(t, wait, 200*365*24*time.Hour)
	})
}

func TestNonsenseGivesNoPermit(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		rdb := s.client(t)
		tests := []struct {
			option string
			l      *Limiter
		}{
			{"rdb", New(nil, "acme")},
			{"customer", New(rdb, "")},
			{"opts", New(rdb, "acme", nil)},
			{"WithInterval", New(rdb, "acme", WithInterval(0))},
			{"WithInterval", New(rdb, "acme", WithInterval(-time.Second), WithInterval(time.Second))},
			{"WithKeyPrefix", New(rdb, "acme", WithKeyPrefix(""))},
			{"FallbackLocal", New(rdb, "acme", FallbackLocal(0))},
			{"FallbackLocal", New(rdb, "acme", FallbackLocal(10_001))},
		}
		for _, tt := range tests {
			for _, err := range []error{tt.l.Wait(t.Context()), tt.l.Pause(t.Context(), time.Second)} {
				var invalid *OptionError
				require.ErrorAs(t, err, &invalid)
				assert.Equal(t, tt.option, invalid.Option)
				assert.Contains(t, err.Error(), "redislimit: "+tt.option+" ")
			}
		}
		assert.Empty(t, rdb.Keys(t.Context(), "*").Val())
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	tests := []struct{ given, want time.Duration }{
		{time.Nanosecond, time.Microsecond},
		{time.Microsecond, time.Microsecond},
		{1500 * time.Nanosecond, 2 * time.Microsecond},
		{time.Second, time.Second},
	}
	for _, tt := range tests {
		var s settings
		require.NoError(t, WithInterval(tt.given)(&s))
		assert.Equal(t, tt.want, s.interval)
	}
}
