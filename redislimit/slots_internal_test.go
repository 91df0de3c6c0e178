package redislimit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// within returns a context with a deadline that no test reaches: if an error comes, it is an answer, not the end of a
// wait.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// refused asserts that there is no permit before a deadline, and that the call did not wait for it.
func refused(t *testing.T, limiters ...*Limiter) {
	t.Helper()
	for _, l := range limiters {
		ctx := within(t, time.Minute)
		_, err := l.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, ctx.Err())
	}
}

// acquired asserts that there is a permit at once.
func acquired(t *testing.T, l *Limiter) webdelivery.Permit {
	t.Helper()
	permit, err := l.Acquire(within(t, time.Minute))
	require.NoError(t, err)
	return permit
}

// name returns an id.
func name(n int) string { return fmt.Sprintf("%026d", n) }

// ask asks once for a lease.
func ask(t *testing.T, l *Limiter, id int) answer {
	t.Helper()
	a, err := l.budget.ask(t.Context(), name(id))
	require.NoError(t, err)
	return a
}

// free ends a lease; its slot is free at once.
func free(t *testing.T, l *Limiter, id int) {
	t.Helper()
	require.NoError(t, l.budget.report(t.Context(), []any{name(id), 0, 1}))
}

// 100 concurrent callers of 4 processes get two permits.
func TestTwoAtOnceAndThenNone(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		var granted, late atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			l := s.limiter(t)
			for range 25 {
				wg.Go(func() {
					_, err := l.Acquire(within(t, time.Minute))
					if err == nil {
						granted.Add(1)
					} else if assert.ErrorIs(t, err, context.DeadlineExceeded) {
						late.Add(1)
					}
				})
			}
		}
		wg.Wait()
		assert.Equal(t, int64(2), granted.Load())
		assert.Equal(t, int64(98), late.Load())
		assert.Len(t, s.leases(t), 2)
		assert.Empty(t, s.tickets(t))
	})
}

// A permit expires sendWithin after its question. Its lease ends after a stall of the network and hold.
func TestAPermitExpires(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		before := time.Now()
		permit := acquired(t, s.limiter(t))
		after := time.Now()
		assert.WithinRange(t, permit.Expires, before.Add(10*time.Second), after.Add(10*time.Second))
		const longest = 2*time.Hour + 15*time.Second
		assert.WithinRange(t, s.instant(t, "end1"), before.Truncate(time.Microsecond).Add(longest), after.Add(longest))

		standard := New(s.client(t), "acme")
		assert.Equal(t, 1050*time.Millisecond, standard.budget.hold)
		assert.Equal(t, 16050*time.Millisecond, standard.budget.longest())
	})
}

// A slot is free hold after its purge has arrived.
func TestDone(t *testing.T) {
	t.Parallel()
	const hold = 2 * time.Hour
	tests := []struct {
		name        string
		arrives, is time.Duration // from the call of Done; 0: nothing was sent
	}{
		{"now", time.Nanosecond, hold},
		{"some time ago", -time.Hour, hold},
		{"in an hour at the latest", time.Hour, time.Hour + hold},
		{"nothing was sent", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, s *server) {
				l := s.limiter(t)
				l.budget.sendWithin = 10 * time.Hour
				permit := acquired(t, l)
				var arrived time.Time
				before := time.Now()
				if tt.arrives != 0 {
					arrived = before.Add(tt.arrives)
				}
				permit.Done(t.Context(), arrived)
				after := time.Now()
				end := s.instant(t, "end1")
				assert.Empty(t, s.leases(t))
				assert.WithinRange(t, end, before.Add(tt.is-time.Microsecond), after.Add(tt.is+time.Microsecond))

				acquired(t, l) // the other slot
				if tt.is == 0 {
					acquired(t, l)
					return
				}
				wait := ask(t, l, 1).wait
				left := end.Sub(s.instant(t, "last"))
				assert.Equal(t, min(left, wait), wait, "not longer than until then")
				s.step(t, time.Until(end)-time.Minute)
				require.False(t, ask(t, l, 1).granted)
				s.step(t, time.Minute)
				require.True(t, ask(t, l, 1).granted)
			})
		})
	}
}

// Done never makes a lease longer, and ends only its own lease.
func TestDoneChangesNothingElse(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		permit := acquired(t, l)
		end := s.instant(t, "end1")
		permit.Done(t.Context(), time.Now().Add(1000*time.Hour))
		assert.WithinRange(t, s.instant(t, "end1"), end.Add(-5*time.Second), end, "after the end of the lease")
		end = s.instant(t, "end1")
		permit.Done(t.Context(), time.Time{})
		assert.Equal(t, end, s.instant(t, "end1"), "a second time")
		assert.Equal(t, "0", s.state(t)["resume"])

		require.True(t, ask(t, l, 1).granted)
		end = s.instant(t, "end2")
		require.NoError(t, l.budget.report(t.Context(), []any{name(1), micros(1000 * time.Hour), 1}))
		assert.Equal(t, end, s.instant(t, "end2"), "whatever a process says")
		s.step(t, 3*time.Hour)

		permit = acquired(t, l)
		free(t, l, 1)
		assert.Len(t, s.leases(t), 1, "a foreign one")
		for id, lease := range l.ledger.leases {
			lease.end = time.Now()
			l.ledger.leases[id] = lease
		}
		before := s.state(t)
		permit.Done(t.Context(), time.Now())
		assert.Equal(t, before, s.state(t), "one that has ended by itself")
	})
}

// Done works with a context that has ended, and returns with its context.
func TestDoneAndItsContext(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		first, second := acquired(t, l), acquired(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		first.Done(ctx, time.Time{})
		require.Eventually(t, func() bool { return len(s.leases(t)) == 1 }, time.Minute, time.Millisecond)

		s.Hang(t)
		ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		second.Done(ctx, time.Time{}) // returns, and the question goes on
		require.Error(t, ctx.Err())
		s.Wake(t)
		require.Eventually(t, func() bool { return len(s.leases(t)) == 0 }, time.Minute, time.Millisecond)
	})
}

// If Done never comes, the slot is free again after the longest lease, and not before.
func TestAPermitThatNobodyEnds(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		acquired(t, l)
		acquired(t, l)
		s.step(t, 2*time.Hour-time.Minute)
		refused(t, l)
		s.step(t, time.Minute+15*time.Second)
		acquired(t, l)
		acquired(t, l)
		refused(t, l)
	})
}

// Wait ends its permit at once: of any three departures, the first and the third are hold apart.
func TestWait(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		require.NoError(t, l.Wait(t.Context()))
		require.NoError(t, l.Wait(t.Context()))
		require.Eventually(t, func() bool { return len(s.leases(t)) == 0 }, time.Minute, time.Millisecond)
		require.ErrorIs(t, l.Wait(within(t, time.Minute)), context.DeadlineExceeded)
		assert.InDelta(t, 2*time.Hour, time.Until(s.instant(t, "end2")), float64(time.Minute))
	})
}

// This holds far from Redis too, because Redis counts from an instant after the return of Wait.
func TestWaitFarFromRedis(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		way := s.through(t, 50*time.Millisecond)
		l := New(s.client(t, func(o *redis.Options) { o.Addr = way.Addr }), "acme", WithInterval(time.Hour))
		var departure time.Time
		for range 2 {
			require.NoError(t, l.Wait(t.Context()))
			departure = time.Now()
		}
		require.Eventually(t, func() bool { return len(s.leases(t)) == 0 }, time.Minute, time.Millisecond)
		assert.False(t, s.instant(t, "end2").Before(departure.Add(2*time.Hour)))
	})
}

// The same question returns the same lease, with its full time.
func TestAskingTwice(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		require.True(t, ask(t, l, 1).granted)
		s.step(t, time.Hour)
		require.True(t, ask(t, l, 1).granted)
		assert.Equal(t, []string{name(1)}, s.leases(t))
		assert.Equal(t, l.budget.longest(), s.instant(t, "end1").Sub(s.instant(t, "last")))

		require.True(t, ask(t, l, 2).granted)
		require.NoError(t, l.Pause(t.Context(), time.Hour))
		a := ask(t, l, 1)
		assert.False(t, a.granted, "a pause holds it too")
		assert.InDelta(t, time.Hour, a.wait, float64(time.Minute))
		assert.Empty(t, s.tickets(t))
		s.step(t, time.Hour)
		require.True(t, ask(t, l, 1).granted)
		assert.Equal(t, []string{name(1), name(2)}, s.leases(t))
	})
}

// A copy of a question that arrives after the end of the permit takes nothing.
func TestALateQuestion(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		require.True(t, ask(t, l, 1).granted)
		free(t, l, 1)
		free(t, l, 2) // ended before the question arrived
		for id := 1; id <= 2; id++ {
			_, err := l.budget.ask(t.Context(), name(id))
			failsClosed(t, err)
		}
		assert.Empty(t, s.leases(t))
		var ended []any
		for id := 3; id < 300; id++ {
			ended = append(ended, name(id), 0, 1)
		}
		require.NoError(t, l.budget.report(t.Context(), ended))
		assert.Len(t, s.state(t)["gone"], reportAtOnce*27)
	})
}

// If the answer of a script is lost and go-redis runs it again, there is one lease.
func TestGoRedisAsksAgain(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		way := s.through(t, 0)
		l := New(s.client(t, func(o *redis.Options) {
			o.Addr, o.MaxRetries, o.ReadTimeout = way.Addr, 3, 200*time.Millisecond
		}), "acme", WithInterval(time.Hour))
		acquired(t, l).Done(t.Context(), time.Time{}) // connected, and the scripts are loaded
		way.Lost.Store(1)
		acquired(t, l)
		assert.Equal(t, int64(1), way.Dropped.Load())
		assert.Len(t, s.leases(t), 1)
		acquired(t, l)
		refused(t, l)
	})
}

// If a process never got the answer with its lease, the lease ends with the next question.
func TestALostAnswer(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		way := s.through(t, 0)
		l := New(s.client(t, func(o *redis.Options) { o.Addr = way.Addr }), "acme", WithInterval(time.Hour))
		acquired(t, l).Done(t.Context(), time.Time{})
		way.Lost.Store(1)
		_, err := l.Acquire(t.Context())
		failsClosed(t, err)
		lost := s.leases(t)
		require.Len(t, lost, 1)

		acquired(t, l)
		require.Len(t, s.leases(t), 1)
		assert.NotEqual(t, lost, s.leases(t))
		acquired(t, l)
		refused(t, l)
		assert.Equal(t, "0", s.state(t)["resume"], "nothing was lost, so nobody is held back")
	})
}

// If Redis did not get the end of a lease, the process sends it again with the next question.
func TestALostEnd(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		permit := acquired(t, l)
		down := l.budget.rdb
		closed := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
		defer closed.Close()
		l.budget.rdb = closed
		permit.Done(t.Context(), time.Time{})
		l.budget.rdb = down
		require.Len(t, s.leases(t), 1)
		acquired(t, l)
		acquired(t, l)
		refused(t, l)
	})
}

// A caller that leaves before the answer returns the lease.
func TestACallerWhoLeaves(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		way := s.through(t, 0)
		l := New(s.client(t, func(o *redis.Options) { o.Addr = way.Addr }), "acme", WithInterval(time.Hour))
		acquired(t, l).Done(t.Context(), time.Time{})
		ctx, cancel := context.WithCancel(t.Context())
		way.Lost.Store(1)
		go func() {
			for way.Dropped.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		_, err := l.Acquire(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.Eventually(t, func() bool { return len(s.leases(t)) == 0 }, time.Minute, time.Millisecond)
	})
}

// A process that was stopped between question and answer does not use what little is left of its permit.
func TestAStalePermit(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		way := s.through(t, 100*time.Millisecond)
		l := New(s.client(t, func(o *redis.Options) { o.Addr = way.Addr }), "acme", WithInterval(time.Hour))
		require.Eventually(t, func() bool { // until it is connected, and the scripts are loaded
			permit, err := l.Acquire(t.Context())
			if err == nil {
				permit.Done(t.Context(), time.Time{})
			}
			return err == nil
		}, time.Minute, time.Millisecond)
		l.budget.sendWithin = 300 * time.Millisecond // the answer comes after more than the half of it
		_, err := l.Acquire(within(t, 2*time.Second))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Eventually(t, func() bool { return len(s.leases(t)) == 0 }, time.Minute, time.Millisecond)
	})
}
