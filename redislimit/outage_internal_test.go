package redislimit

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// failsClosed asserts that there is no permit, and that the reason is Redis, not the deadline.
func failsClosed(t *testing.T, err error) {
	t.Helper()
	var down *UnavailableError
	require.ErrorAs(t, err, &down)
	require.Error(t, down.Unwrap())
	assert.Contains(t, err.Error(), "redislimit: no permit without Redis: ")
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, context.Canceled)
}

// If Redis is killed, all callers get an error, also sleeping ones. When it is back, permits continue after the earlier
// leases.
func TestRedisGoesAndComesBack(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.quick(t)
		require.NoError(t, l.Wait(t.Context()))
		acquired(t, l)
		sleeper := make(chan error)
		go func() { sleeper <- l.Wait(t.Context()) }()
		for len(s.tickets(t)) == 0 {
			time.Sleep(time.Millisecond)
		}
		s.Kill()
		failsClosed(t, <-sleeper)
		for range 3 {
			failsClosed(t, l.Wait(within(t, time.Minute)))
		}
		failsClosed(t, l.Pause(t.Context(), time.Millisecond))

		began := time.Now()
		require.NoError(t, s.Start())
		require.Eventually(t, func() bool { return l.Wait(t.Context()) == nil }, time.Minute, time.Millisecond)
		assert.GreaterOrEqual(t, time.Since(began), l.budget.longest())
		require.NoError(t, l.Wait(t.Context()))
	})
}

// A pause during an outage reaches Redis before the next permit, and then holds for all processes.
func TestAPauseIsNotForgotten(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l, other := s.limiter(t), s.limiter(t)
		s.Kill()
		failsClosed(t, l.Pause(t.Context(), 10*time.Hour))
		require.NoError(t, s.Start())
		s.ranForLong(t)
		require.Eventually(t, func() bool {
			_, err := l.Acquire(within(t, time.Minute))
			require.Error(t, err)
			return !isUnavailable(err)
		}, time.Minute, time.Millisecond)
		refused(t, l, other)
		assert.InDelta(t, 10*time.Hour, ask(t, other, 1).wait, float64(time.Minute))
	})
}

// A process that has noticed an outage reports its leases. If Redis has lost them, it gives no permit until they are
// over. For a purge that may be in flight, that is its whole lease; for an arrived one, it is hold.
func TestLostLeases(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(*testing.T, webdelivery.Permit)
		held time.Duration
	}{
		"in flight": {func(*testing.T, webdelivery.Permit) {}, 2*time.Hour + 15*time.Second},
		"arrived":   {func(t *testing.T, p webdelivery.Permit) { p.Done(t.Context(), time.Now()) }, 2 * time.Hour},
		"not sent":  {func(t *testing.T, p webdelivery.Permit) { p.Done(t.Context(), time.Time{}) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, s *server) {
				l, other := s.limiter(t), s.limiter(t)
				tt.end(t, acquired(t, l))
				s.Kill()
				failsClosed(t, l.Wait(t.Context()))
				require.NoError(t, s.Start())
				s.ranForLong(t) // an empty replica that took over
				require.Eventually(t, func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					permit, err := l.Acquire(ctx)
					if err == nil {
						permit.Done(t.Context(), time.Time{})
					}
					return !isUnavailable(err)
				}, time.Minute, time.Millisecond)
				if tt.held == 0 {
					acquired(t, other)
					return
				}
				refused(t, l, other)
				assert.InDelta(t, tt.held, s.blocked(t), float64(10*time.Second))
				assert.InDelta(t, min(tt.held, 2*time.Hour), ask(t, other, 1).wait, float64(20*time.Second))
			})
		})
	}
}

// Another Redis took over, and go-redis hid it by a retry or a new connection. The process reports its leases to the
// Redis that has lost them before it uses a permit of it.
func TestAHiddenOutage(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := New(s.client(t, func(o *redis.Options) { o.MaxRetries = 3 }), "acme", WithInterval(time.Hour))
		acquired(t, l)
		s.Kill()
		require.NoError(t, s.Start())
		s.ranForLong(t) // an empty replica
		refused(t, l, s.limiter(t))
		assert.Empty(t, s.leases(t), "its permit of the new Redis went back")
	})
}

// A sleeping caller reports to Redis what Redis does not know, before it asks again.
func TestASleeperSettles(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		l.budget.often = 10 * time.Millisecond
		busy(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Wait(ctx) }()
		require.Eventually(t, func() bool { return len(s.tickets(t)) == 1 }, time.Minute, time.Millisecond)
		l.ledger.owe(time.Now().Add(10 * time.Hour))
		require.Eventually(t, func() bool { return s.state(t)["resume"] != "0" }, time.Minute, time.Millisecond)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

// Redis learns of a purge of the share, even if the share ends while it gives the permit.
func TestTheShareOwesItsPurges(t *testing.T) {
	t.Parallel()
	l := New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}), "acme", FallbackLocal(2))
	defer l.budget.rdb.Close()
	l.local()
	leases, _ := l.ledger.open()
	assert.Len(t, leases, 3)
}

// The end of a lease that Redis does not know delays all callers, too.
func TestFlushed(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		permit := acquired(t, l)
		require.NoError(t, s.client(t).FlushAll(t.Context()).Err())
		s.ranForLong(t)
		permit.Done(t.Context(), time.Now())
		refused(t, s.limiter(t))
	})
}

// A process remembers a bounded number of unanswered questions, and none for longer than they may hold a slot.
func TestTheLedgerStaysSmall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		for n := range 2 * maxWithdrawn {
			l.withdrawn(name(n), time.Now().Add(time.Minute))
		}
		l.granted("mine", time.Now().Add(time.Hour))
		l.outage()
		leases, outages := l.open()
		assert.Len(t, leases, 3*(maxWithdrawn+1))
		l.reported(leases)
		l.settle(outages)
		leases, _ = l.open()
		assert.Empty(t, leases)
		l.withdrawn(name(5000), time.Now().Add(time.Minute))
		assert.Len(t, l.leases, 2, "what Redis knows takes no room")
		l.reported([]any{name(5000), 0, 1})
		l.outage()
		leases, _ = l.open()
		assert.Len(t, leases, 3, "Redis knows the end of the others")

		time.Sleep(2 * time.Minute)
		l.outage()
		leases, _ = l.open()
		assert.Equal(t, []any{"mine", (58 * time.Minute).Microseconds(), 0}, leases)
		assert.Equal(t, []any{"mine", (58 * time.Minute).Microseconds(), 1}, l.done("mine", time.Now().Add(time.Hour)),
			"not longer than the lease")
		time.Sleep(time.Hour)
		assert.Nil(t, l.done("mine", time.Now()))
		l.granted("another", time.Now().Add(time.Hour))
		assert.Len(t, l.leases, 1)
	})
}

// A hung server delays no caller longer than its context, even if go-redis would wait forever.
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
				l := New(s.client(t, change), "acme", WithInterval(10*time.Millisecond))
				require.NoError(t, l.Wait(t.Context()))
				s.Hang(t)

				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				err := l.Wait(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Contains(t, err.Error(), "Redis has not answered")

				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(50*time.Millisecond, cancel)
				require.ErrorIs(t, l.Wait(ctx), context.Canceled)

				failsClosed(t, l.Wait(t.Context())) // without a deadline: a second
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(50*time.Millisecond, cancel)
				require.ErrorIs(t, l.Pause(ctx, time.Millisecond), context.Canceled)

				s.Wake(t)
				require.Eventually(t, func() bool { return l.Wait(t.Context()) == nil }, time.Minute, time.Millisecond)
			})
		})
	}
}

// A new connection takes five round trips. Far from Redis they take longer than a caller waits; the next caller finds
// the connection.
func TestFarFromRedis(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		way := s.through(t, 130*time.Millisecond)
		l := New(s.client(t, func(o *redis.Options) { o.Addr = way.Addr }), "acme", WithInterval(time.Hour))
		permits := 0
		for range 6 {
			permit, err := l.Acquire(t.Context())
			if err == nil {
				permits++
				permit.Done(t.Context(), time.Time{})
			}
		}
		assert.Positive(t, permits)
		require.Eventually(t, func() bool { return len(s.leases(t)) == 0 }, time.Minute, time.Millisecond,
			"what came late went back")
	})
}

// Many callers of one process do not make Redis look down, even with few and slow connections.
func TestABurst(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		way := s.through(t, 20*time.Millisecond)
		l := New(s.client(t, func(o *redis.Options) { o.Addr, o.PoolSize = way.Addr, underWay }), "acme", WithInterval(time.Hour))
		ctx := within(t, 10*time.Minute)
		var granted atomic.Int64
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if _, err := l.Acquire(ctx); err == nil {
					granted.Add(1)
				} else {
					assert.NotErrorAs(t, err, new(*UnavailableError))
				}
			})
		}
		wg.Wait()
		assert.Equal(t, int64(2), granted.Load())

		ended, cancel := context.WithCancel(t.Context())
		for range underWay {
			l.budget.turns <- struct{}{}
		}
		_, err := l.budget.askIn(t.Context(), l.budget.again, name(1))
		require.NoError(t, err, "a caller with a ticket does not queue behind newcomers")
		free(t, l, 1)
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err = l.Acquire(ended)
		require.ErrorIs(t, err, context.Canceled)
		_, err = l.Acquire(t.Context()) // Redis answers no caller
		failsClosed(t, err)
		assert.Empty(t, s.tickets(t))
	})
}

// A malformed answer gives no permit.
func TestRedisAnswersNonsense(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ answer, says string }{
		"another protocol":         {"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1.1 400 Bad Request"},
		"a number":                 {":1\r\n", "unexpected type"},
		"a text":                   {"+OK\r\n", "unexpected type"},
		"nothing":                  {"$-1\r\n", "redis: nil"},
		"an empty list":            {"*0\r\n", "malformed answer \"[]\""},
		"too short a list":         {"*2\r\n:1\r\n:0\r\n", "malformed answer \"[1 0]\""},
		"too long a list":          {"*5\r\n:1\r\n:0\r\n$26\r\nNUMBER\r\n$1\r\na\r\n:1\r\n", "malformed answer \"[1 0 "},
		"a wait below zero":        {"*4\r\n:1\r\n:-1\r\n$26\r\nNUMBER\r\n$1\r\na\r\n", "malformed answer \"[1 -1 "},
		"no wait":                  {"*4\r\n:1\r\n$1\r\n1\r\n$26\r\nNUMBER\r\n$1\r\na\r\n", "malformed answer \"[1 1 "},
		"an unknown answer":        {"*4\r\n:3\r\n:1\r\n$26\r\nNUMBER\r\n$1\r\na\r\n", "malformed answer 3"},
		"a list of texts":          {"*2\r\n$1\r\na\r\n$1\r\nb\r\n", "malformed answer \"[a b]\""},
		"that of another question": {"*4\r\n:1\r\n:0\r\n$26\r\n" + name(1) + "\r\n$1\r\na\r\n", "malformed answer \"[1 0 0000"},
		"an error":                 {"-NOAUTH Authentication required.\r\n", "NOAUTH Authentication required."},
		"still loading":            {"-LOADING Redis is loading the dataset in memory\r\n", "LOADING Redis is loading"},
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
		"another type":  {"set", acme, "1"},
		"no number":     {"hset", acme, "end1", "soon"},
		"no number now": {"hset", acme, "resume", "soon", "offset", "0"},
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

// A cause that looks like the end of a context does not match as the end of the caller's context.
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

// If the owner has closed the client, Redis is unreachable, and the cause says so.
func TestAClosedClient(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	require.NoError(t, rdb.Close())
	err := New(rdb, "acme").Wait(t.Context())
	failsClosed(t, err)
	require.ErrorIs(t, err, redis.ErrClosed)
	require.NotErrorIs(t, err, io.EOF)
}

// The share takes over while the server is down, also for a sleeping caller, and retires when the server is back.
func TestFallback(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.quick(t, FallbackLocal(3))
		acquired(t, l)
		acquired(t, l)
		sleeper := make(chan error)
		go func() { sleeper <- l.Wait(t.Context()) }()
		for len(s.tickets(t)) == 0 {
			time.Sleep(time.Millisecond)
		}
		s.Kill()
		require.NoError(t, <-sleeper)
		require.True(t, l.fallback.rules())
		require.NoError(t, l.Wait(t.Context()))
		failsClosed(t, l.Pause(t.Context(), time.Millisecond))

		require.NoError(t, s.Start())
		require.Eventually(t, func() bool {
			require.NoError(t, l.Wait(t.Context()))
			return !l.fallback.rules()
		}, time.Minute, time.Millisecond)
		assert.NotEmpty(t, s.state(t))
	})
}

// If the server hangs, the share takes over too, after the second in which the server must answer.
func TestFallbackOfAHungServer(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t, WithInterval(10*time.Millisecond), FallbackLocal(2))
		s.Hang(t)
		for range 3 {
			require.NoError(t, l.Wait(t.Context()))
		}
		assert.True(t, l.fallback.rules())
		s.Wake(t)
		require.Eventually(t, func() bool {
			require.NoError(t, l.Wait(t.Context()))
			return !l.fallback.rules()
		}, time.Minute, time.Millisecond)
	})
}

// The share counts the permits that the process got from Redis, and keeps its pauses.
func TestTheShareBeginsWhereRedisLeftOff(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		granted, paused := s.limiter(t, FallbackLocal(2)), s.limiter(t, FallbackLocal(2))
		acquired(t, granted)
		s.Kill()
		failsClosed(t, paused.Pause(t.Context(), time.Hour))
		for _, l := range []*Limiter{granted, paused} {
			refused(t, l)
			assert.True(t, l.fallback.rules())
		}
	})
}

// When Redis is back, all callers wait for the purges of the share.
func TestRedisBeginsWhereTheShareLeftOff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		arrives time.Duration // from Done; 0: nothing was sent
		held    time.Duration
	}{
		"arrived":   {time.Nanosecond, 2 * time.Hour},
		"late":      {10 * time.Second, 2*time.Hour + 10*time.Second},
		"in flight": {-1, 2*time.Hour + 15*time.Second},
		"not sent":  {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, s *server) {
				l, other := s.limiter(t, FallbackLocal(2)), s.limiter(t)
				s.Kill()
				permit := acquired(t, l)
				assert.InDelta(t, 10*time.Second, time.Until(permit.Expires), float64(2*time.Second))
				require.True(t, l.fallback.rules())
				switch {
				case tt.arrives == 0:
					permit.Done(t.Context(), time.Time{})
				case tt.arrives > 0:
					permit.Done(t.Context(), time.Now().Add(tt.arrives))
				}
				require.NoError(t, s.Start())
				s.ranForLong(t)
				require.Eventually(t, func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					_, err := l.Acquire(ctx)
					require.True(t, tt.held == 0 || err != nil)
					return !l.fallback.rules()
				}, time.Minute, 10*time.Millisecond)
				if tt.held == 0 {
					acquired(t, other)
					return
				}
				refused(t, other)
				assert.InDelta(t, tt.held, s.blocked(t), float64(10*time.Second))
				assert.InDelta(t, min(tt.held, 2*time.Hour), ask(t, other, 1).wait, float64(20*time.Second))
			})
		})
	}
}

// A purge of the share that is in flight when Redis is back delays all callers until it has arrived, not for its whole
// lease.
func TestAPurgeOfTheShareArrives(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l, other := s.limiter(t, FallbackLocal(2)), s.limiter(t)
		s.Kill()
		first, second, third := acquired(t, l), l.local(), l.local()
		require.NoError(t, s.Start())
		s.ranForLong(t)
		require.Eventually(t, func() bool {
			_, err := l.Acquire(within(t, time.Minute))
			require.Error(t, err)
			return !l.fallback.rules()
		}, time.Minute, 10*time.Millisecond)
		first.Done(t.Context(), time.Time{})
		second.Done(t.Context(), time.Now())
		assert.InDelta(t, l.budget.longest(), s.blocked(t), float64(10*time.Second), "the third is under way")
		third.Done(t.Context(), time.Now())
		assert.InDelta(t, 2*time.Hour, s.blocked(t), float64(5*time.Second))
		refused(t, l, other)
		assert.Equal(t, "0", s.state(t)["resume"])
		end := s.blocked(t)
		third.Done(t.Context(), time.Now().Add(time.Hour))
		assert.InDelta(t, end, s.blocked(t), float64(time.Second), "only once")
		s.step(t, 2*time.Hour)
		acquired(t, other)
		acquired(t, l)
		refused(t, l, other)
		assert.Empty(t, s.state(t)["blocks"])
	})
}

// If there are more lost leases than the hash may hold, they become a pause.
func TestManyLostLeases(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		var leases []any
		for id := range 300 {
			leases = append(leases, name(id), micros(time.Hour), 0)
		}
		require.NoError(t, l.budget.report(t.Context(), leases))
		assert.Equal(t, 256, strings.Count(s.state(t)["blocks"], ";"))
		assert.Equal(t, time.Hour, s.instant(t, "resume").Sub(s.instant(t, "last")))
		refused(t, l)
		s.step(t, time.Hour)
		acquired(t, l)
	})
}

// A caller whose deadline ends before the answer of Redis does not prove that Redis is back.
func TestTheImpatientLearnNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t, FallbackLocal(2))
		s.Hang(t)
		l.fallback.takeOver()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := l.lease(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.True(t, l.fallback.rules())
	})
}
