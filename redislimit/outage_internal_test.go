package redislimit

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// failsClosed asserts that there is no permit, and that it is Redis that is missing and not time.
func failsClosed(t *testing.T, err error) {
	t.Helper()
	var down *UnavailableError
	require.ErrorAs(t, err, &down)
	require.Error(t, down.Unwrap())
	assert.Contains(t, err.Error(), "redislimit: no permit without Redis: ")
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, context.Canceled)
}

// Killed: an error, for callers who sleep too. Back: it goes on.
func TestRedisGoesAndComesBack(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t, WithInterval(500*time.Millisecond))
		require.NoError(t, l.Wait(t.Context()))
		before := s.state(t)["free"]
		sleeper := make(chan error)
		go func() { sleeper <- l.Wait(t.Context()) }()
		for s.state(t)["free"] == before {
			time.Sleep(time.Millisecond)
		}
		s.kill()
		failsClosed(t, <-sleeper)
		for range 3 {
			failsClosed(t, l.Wait(within(t, time.Minute)))
		}
		failsClosed(t, l.Pause(t.Context(), time.Millisecond))

		require.NoError(t, s.start())
		require.Eventually(t, func() bool { return l.Wait(t.Context()) == nil }, time.Minute, time.Millisecond)
		require.NoError(t, l.Wait(t.Context()))
	})
}

// A pause that Redis was not there to hear reaches it before the next permit, and holds for everybody then.
func TestAPauseIsNotForgotten(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l, other := s.limiter(t), s.limiter(t)
		s.kill()
		failsClosed(t, l.Pause(t.Context(), 10*time.Hour))
		require.NoError(t, s.start())
		require.Eventually(t, func() bool {
			ctx := within(t, time.Minute)
			err := l.Wait(ctx)
			require.Error(t, err)
			return !isUnavailable(err)
		}, time.Minute, time.Millisecond)
		ctx := within(t, time.Minute)
		refused(ctx, t, l.Wait(ctx))
		refused(ctx, t, other.Wait(ctx))
	})
}

// A server that lost its data gives no permit to a process right after its last one, once that process has noticed.
func TestRestartKeepsTheDistance(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		require.NoError(t, l.Wait(t.Context()))
		s.kill()
		failsClosed(t, l.Wait(t.Context()))
		require.NoError(t, s.start())
		require.Eventually(t, func() bool {
			err := l.Wait(within(t, time.Minute))
			require.Error(t, err)
			return !isUnavailable(err)
		}, time.Minute, time.Millisecond)
	})
}

// A hung server holds nobody beyond his context, even when go-redis would wait for ever.
func TestRedisHangs(t *testing.T) {
	t.Parallel()
	patient := func(o *redis.Options) {
		o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout = false, -1, -1
	}
	for name, change := range map[string]func(*redis.Options){
		"as documented":                func(*redis.Options) {},
		"go-redis looks at no context": patient,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, s *server) {
				l := New(s.client(t, change), "acme", WithInterval(time.Millisecond))
				require.NoError(t, l.Wait(t.Context()))
				s.hang(t)

				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				err := l.Wait(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Contains(t, err.Error(), "Redis has not answered")

				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(50*time.Millisecond, cancel)
				require.ErrorIs(t, l.Wait(ctx), context.Canceled)

				failsClosed(t, l.Wait(t.Context())) // no deadline of his own: a second
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(50*time.Millisecond, cancel)
				require.ErrorIs(t, l.Pause(ctx, time.Millisecond), context.Canceled)

				s.wake(t)
				require.Eventually(t, func() bool { return l.Wait(t.Context()) == nil }, time.Minute, time.Millisecond)
			})
		})
	}
}

// Whatever is not a permit gives none.
func TestRedisAnswersNonsense(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ answer, says string }{
		"another protocol":  {"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"a number":          {":1\r\n", "unexpected type"},
		"a text":            {"+OK\r\n", "unexpected type"},
		"nothing":           {"$-1\r\n", "redis: nil"},
		"an empty list":     {"*0\r\n", "it answers []"},
		"too short a list":  {"*2\r\n:1\r\n:1\r\n", "it answers [1 1]"},
		"a wait below zero": {"*3\r\n:1\r\n:1\r\n:-1\r\n", "it answers [1 1 -1]"},
		"a list of texts":   {"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", "invalid syntax"},
		"an error":          {"-NOAUTH Authentication required.\r\n", "NOAUTH Authentication required."},
		"still loading":     {"-LOADING Redis is loading the dataset in memory\r\n", "LOADING Redis is loading"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redis.NewClient(&redis.Options{Addr: liar(t, tt.answer), MaxRetries: -1})
			t.Cleanup(func() { _ = rdb.Close() })
			l := New(rdb, "acme")
			err := l.Wait(t.Context())
			failsClosed(t, err)
			assert.Contains(t, err.Error(), tt.says)
			failsClosed(t, l.Pause(t.Context(), time.Second))
		})
	}

	for name, args := range map[string][]any{
		"another type":  {"set", defaultPrefix + ":acme", "1"},
		"no number":     {"hset", defaultPrefix + ":acme", "free", "soon"},
		"no number now": {"hset", defaultPrefix + ":acme", "resume", "soon", "moved", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, s *server) {
				rdb := s.client(t)
				require.NoError(t, rdb.Do(t.Context(), args...).Err())
				failsClosed(t, New(rdb, "acme").Wait(t.Context()))
			})
		})
	}
}

// A cause that looks like the end of a context is not taken for that of the caller's.
func TestCausesThatLookLikeAContext(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{
		context.DeadlineExceeded, context.Canceled,
		&net.OpError{Op: "dial", Err: context.DeadlineExceeded},
	} {
		failsClosed(t, unavailable(cause))
		assert.Contains(t, unavailable(cause).Error(), cause.Error())
	}
	assert.Equal(t, "redislimit: no permit without Redis: <nil>", (&UnavailableError{}).Error())
}

// A client that its owner closed is a Redis that is out of reach; the cause says so.
func TestAClosedClient(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	require.NoError(t, rdb.Close())
	err := New(rdb, "acme").Wait(t.Context())
	failsClosed(t, err)
	require.ErrorIs(t, err, redis.ErrClosed)
	require.NotErrorIs(t, err, io.EOF)
}

// The share takes over while the server is away, also for a caller who sleeps, and gives way when it is back.
func TestFallback(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t, WithInterval(200*time.Millisecond), FallbackLocal(3))
		require.NoError(t, l.Wait(t.Context()))
		before := s.state(t)["free"]
		sleeper := make(chan error)
		go func() { sleeper <- l.Wait(t.Context()) }()
		for s.state(t)["free"] == before {
			time.Sleep(time.Millisecond)
		}
		s.kill()
		require.NoError(t, <-sleeper)
		require.True(t, l.fallback.rules())
		require.NoError(t, l.Wait(t.Context()))
		failsClosed(t, l.Pause(t.Context(), time.Millisecond))

		require.NoError(t, s.start())
		require.Eventually(t, func() bool {
			require.NoError(t, l.Wait(t.Context()))
			return !l.fallback.rules()
		}, time.Minute, time.Millisecond)
		assert.NotEmpty(t, s.state(t))
	})
}

// While it hangs the share takes over too, after the second that it has to answer.
func TestFallbackOfAHungServer(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t, WithInterval(10*time.Millisecond), FallbackLocal(2))
		s.hang(t)
		for range 3 {
			require.NoError(t, l.Wait(t.Context()))
		}
		assert.True(t, l.fallback.rules())
		s.wake(t)
		require.Eventually(t, func() bool {
			require.NoError(t, l.Wait(t.Context()))
			return !l.fallback.rules()
		}, time.Minute, time.Millisecond)
	})
}

// The share counts what the process had of Redis, and keeps its pauses.
func TestTheShareBeginsWhereRedisLeftOff(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		granted, paused := s.limiter(t, FallbackLocal(2)), s.limiter(t, FallbackLocal(2))
		require.NoError(t, granted.Wait(t.Context()))
		s.kill()
		failsClosed(t, paused.Pause(t.Context(), time.Hour))
		for _, l := range []*Limiter{granted, paused} {
			ctx := within(t, time.Minute)
			refused(ctx, t, l.Wait(ctx))
			assert.True(t, l.fallback.rules())
		}
	})
}

// And Redis begins where the share left off.
func TestRedisBeginsWhereTheShareLeftOff(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t, FallbackLocal(2))
		s.kill()
		require.NoError(t, l.Wait(t.Context()))
		require.NoError(t, s.start())
		require.Eventually(t, func() bool {
			ctx := within(t, time.Minute)
			refused(ctx, t, l.Wait(ctx))
			return !l.fallback.rules()
		}, time.Minute, 10*time.Millisecond)
		assert.NotEmpty(t, s.state(t))
	})
}

// A caller who had no time to hear from Redis has not found that it is back.
func TestTheImpatientLearnNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t, FallbackLocal(2))
		s.hang(t)
		l.fallback.takeOver()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := l.permit(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.True(t, l.fallback.rules())
	})
}
