package redislimit

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The key expires a minute after everything in it has ended.
func TestTheKeyExpires(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l, rdb := s.limiter(t), s.client(t)
		expires := func(want time.Duration) {
			t.Helper()
			left, err := rdb.PTTL(t.Context(), acme).Result()
			require.NoError(t, err)
			assert.InDelta(t, want+time.Minute, left, float64(10*time.Second))
		}
		permit := acquired(t, l)
		expires(2*time.Hour + 15*time.Second)
		permit.Done(t.Context(), time.Time{})
		expires(0)
		require.NoError(t, l.Pause(t.Context(), 5*time.Hour))
		expires(5 * time.Hour)
	})
}

// If a server has lost the scripts, the limiter sends them again.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		permit := acquired(t, l)
		require.NoError(t, s.client(t).ScriptFlush(t.Context()).Err())
		permit.Done(t.Context(), time.Time{})
		assert.Empty(t, s.leases(t))
		require.NoError(t, s.client(t).ScriptFlush(t.Context()).Err())
		acquired(t, l)
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
			require.NoError(t, l.Pause(t.Context(), time.Hour))
		}
		keys, err := rdb.Keys(t.Context(), "*").Result()
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{
			"webdelivery:purge:acme", "webdelivery:purge:Acme", "webdelivery:purge:b%3Aacme", "webdelivery:purge:b:acme",
			"webdelivery:purge:a+b", "webdelivery:purge:a%2Bb", "webdelivery:purge:%7Ba%7D", "webdelivery:purge:a%2520b",
		}, keys)
	})
}

// A pause holds for every process, for an unused budget too, and never gets shorter.
func TestPause(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		one, other := s.limiter(t, WithInterval(time.Millisecond)), s.limiter(t, WithInterval(time.Millisecond))
		began := time.Now()
		require.NoError(t, one.Pause(t.Context(), time.Hour))
		assert.Zero(t, one.ledger.debt(), "Redis knows")
		refused(t, one, other)
		before := s.state(t)
		for _, d := range []time.Duration{time.Minute, time.Nanosecond, 0, -time.Hour} {
			require.NoError(t, other.Pause(t.Context(), d))
		}
		assert.Equal(t, before, s.state(t))
		require.NoError(t, other.Pause(t.Context(), 2*time.Hour))
		assert.WithinRange(t, s.instant(t, "resume"), began.Add(2*time.Hour-time.Microsecond), time.Now().Add(2*time.Hour))
		s.step(t, 2*time.Hour)
		acquired(t, one)
		acquired(t, other)
	})
}

// A pause also delays callers that already wait, and they keep their order.
func TestAPauseHoldsThoseWhoWait(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		busy(t, l)
		require.False(t, ask(t, l, 3).granted)
		require.False(t, ask(t, l, 4).granted)
		free(t, l, 1)
		free(t, l, 2)
		require.NoError(t, s.limiter(t).Pause(t.Context(), 10*time.Hour))
		for id := 4; id >= 3; id-- {
			a := ask(t, l, id)
			require.False(t, a.granted)
			assert.InDelta(t, 10*time.Hour, a.wait, float64(time.Minute))
		}
		s.step(t, 10*time.Hour)
		require.True(t, ask(t, l, 3).granted)
		require.False(t, ask(t, l, 5).granted)
		require.True(t, ask(t, l, 4).granted)
	})
}

// A pause also delays a sleeping caller: when it wakes, the next permit is after its deadline.
func TestAPauseHoldsASleeper(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t, WithInterval(250*time.Millisecond))
		busy(t, l)
		ctx := within(t, 10*time.Minute)
		done := make(chan error)
		go func() { done <- l.Wait(ctx) }()
		for len(s.tickets(t)) == 0 {
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, s.limiter(t).Pause(t.Context(), time.Hour))
		require.ErrorIs(t, <-done, context.DeadlineExceeded)
		require.NoError(t, ctx.Err())
		assert.Empty(t, s.tickets(t))
	})
}

// The longest possible durations do not overflow.
func TestAPauseForEver(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		require.NoError(t, l.Pause(t.Context(), time.Duration(1<<63-1)))
		require.NoError(t, l.Pause(t.Context(), time.Duration(1<<63-1)))
		refused(t, l)
		assert.Greater(t, ask(t, l, 1).wait, 200*365*24*time.Hour)
	})
}

func TestInvalidOptionsGiveNoPermit(t *testing.T) {
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
			{"WithInterval", New(rdb, "acme", WithInterval(time.Hour+1))},
			{"WithInterval", New(rdb, "acme", WithInterval(1<<63-1), FallbackLocal(10_000))},
			{"WithKeyPrefix", New(rdb, "acme", WithKeyPrefix(""))},
			{"FallbackLocal", New(rdb, "acme", FallbackLocal(0))},
			{"FallbackLocal", New(rdb, "acme", FallbackLocal(10_001))},
		}
		for _, tt := range tests {
			permit, err := tt.l.Acquire(t.Context())
			assert.Zero(t, permit)
			for _, err := range []error{err, tt.l.Wait(t.Context()), tt.l.Pause(t.Context(), time.Second)} {
				var invalid *OptionError
				require.ErrorAs(t, err, &invalid)
				assert.Equal(t, tt.option, invalid.Option)
				assert.Contains(t, err.Error(), "redislimit: "+tt.option+" ")
			}
		}
		assert.Empty(t, s.state(t))
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
	largest := New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}), "acme", WithInterval(time.Hour), FallbackLocal(10_000))
	assert.Equal(t, 10_000*time.Hour, largest.fallback.interval)
	assert.Positive(t, largest.budget.longest())
}
