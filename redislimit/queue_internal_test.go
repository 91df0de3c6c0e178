package redislimit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// busy takes both slots with the ids 1 and 2.
func busy(t *testing.T, l *Limiter) {
	t.Helper()
	require.True(t, ask(t, l, 1).granted)
	require.True(t, ask(t, l, 2).granted)
}

// The caller that asks first is served first, in whatever process, and in whatever order callers ask again.
func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		limiters := []*Limiter{s.limiter(t), s.limiter(t), s.limiter(t), s.limiter(t)}
		busy(t, limiters[0])
		want := make([]string, 0, 8)
		for id := 3; id <= 10; id++ {
			require.False(t, ask(t, limiters[id%4], id).granted)
			want = append(want, name(id))
		}
		assert.Equal(t, want, s.tickets(t))
		for next := 3; next <= 10; next++ {
			free(t, limiters[0], next-2)
			for id := 10; id > next; id-- { // the last asks first
				require.False(t, ask(t, limiters[id%4], id).granted, "%d before %d", id, next)
			}
			require.True(t, ask(t, limiters[next%4], next).granted)
			assert.Equal(t, want[next-2:], s.tickets(t))
		}
		assert.Empty(t, s.tickets(t))
		assert.Equal(t, "7", s.state(t)["head"], "it moves on")
	})
}

// A newcomer does not overtake waiting callers. If both slots are free and one caller waits, it leaves one slot for the
// newcomer.
func TestNewcomers(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		busy(t, l)
		require.False(t, ask(t, l, 3).granted)
		free(t, l, 1)
		require.False(t, ask(t, l, 4).granted, "the free slot is for 3")
		free(t, l, 2)
		require.True(t, ask(t, l, 4).granted, "the second free slot is for 4")
		require.False(t, ask(t, l, 5).granted)
		require.True(t, ask(t, l, 3).granted)
	})
}

// The wait is the shortest possible. A known end counts to the microsecond. A purge in flight counts as hold, and so
// does each earlier caller on the same slot.
func TestHowLongToWait(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		const hold = 2 * time.Hour
		l := s.limiter(t)
		l.budget.sendWithin = 10 * time.Hour
		busy(t, l)
		require.NoError(t, l.budget.report(t.Context(), []any{name(1), micros(30 * time.Minute), 1}))
		end := s.instant(t, "end1")
		for place := range 6 {
			wait := ask(t, l, 10+place).wait
			want := time.Duration(place/2) * hold
			if place%2 == 0 {
				want += end.Sub(s.instant(t, "last"))
			} else {
				want += hold
			}
			assert.Equal(t, want, wait, "place %d", place)
		}
		s.step(t, time.Hour) // 1 is over: the first place may have it
		assert.InDelta(t, 30*time.Minute, ask(t, l, 11).wait, float64(time.Minute), "until the promise of 10")
		require.True(t, ask(t, l, 10).granted)
		s.step(t, 10*time.Hour)
		wait := ask(t, l, 11).wait
		assert.Equal(t, s.instant(t, "end2").Sub(s.instant(t, "last")), wait, "its lease ends before")

		l.budget.often = time.Minute
		assert.Equal(t, time.Minute/2, ask(t, l, 15).wait, "asks from time to time")
		require.NoError(t, l.Pause(t.Context(), 20*time.Hour))
		wait = ask(t, l, 15).wait
		assert.Equal(t, s.instant(t, "resume").Sub(s.instant(t, "last")), wait, "but not during a pause")
	})
}

// Callers that leave the middle of the queue make no other caller wait longer than necessary.
func TestGapsInTheQueue(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		busy(t, l)
		for id := 3; id <= 10; id++ {
			ask(t, l, id)
		}
		for id := 4; id <= 9; id++ {
			free(t, l, id)
		}
		assert.Equal(t, []string{name(3), name(10)}, s.tickets(t))
		assert.Equal(t, 2*time.Hour, ask(t, l, 10).wait, "second in the queue")
		assert.Equal(t, 4*time.Hour, ask(t, l, 11).wait)
		free(t, l, 1)
		free(t, l, 2)
		require.False(t, ask(t, l, 11).granted)
		require.True(t, ask(t, l, 10).granted)
		require.True(t, ask(t, l, 3).granted)
	})
}

// A caller that does not ask again in time loses its place. If it comes back, it is the last.
func TestABrokenPromise(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		busy(t, l)
		for id := 3; id <= 6; id++ {
			ask(t, l, id)
		}
		free(t, l, 1)
		require.False(t, ask(t, l, 6).granted)
		s.step(t, 2*time.Hour) // 3 and 4 should have come an hour ago at the latest
		require.False(t, ask(t, l, 5).granted, "within the grace")
		s.step(t, time.Hour+time.Minute)
		require.True(t, ask(t, l, 5).granted, "2 has ended too")
		assert.Equal(t, []string{name(6)}, s.tickets(t))
		require.True(t, ask(t, l, 6).granted)
		require.False(t, ask(t, l, 7).granted)
		require.False(t, ask(t, l, 3).granted)
		assert.Equal(t, []string{name(7), name(3)}, s.tickets(t))
	})
}

// Killed callers block the slots until their promises, and no longer.
func TestCallersWhoWereKilled(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		l.budget.grace, l.budget.often = time.Minute, 2*time.Minute
		busy(t, l)
		for id := range 20 {
			require.Equal(t, time.Minute, ask(t, l, 10+id).wait)
		}
		free(t, l, 1)
		free(t, l, 2)
		l.budget.often = 1000 * time.Hour
		wait := ask(t, l, 3).wait
		assert.InDelta(t, 2*time.Minute, wait, float64(20*time.Second), "until the first promise ends")
		s.step(t, wait+20*time.Second)
		require.True(t, ask(t, l, 3).granted)
		assert.Empty(t, s.tickets(t))
	})
}

// Before a caller is refused, callers that have left lose their places.
func TestTheDeadDelayNobody(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		busy(t, l)
		require.False(t, ask(t, l, 3).granted)
		l.budget.often, l.budget.grace = 2*time.Minute, 0
		for id := range 20 {
			ask(t, l, 10+id)
		}
		s.step(t, 10*time.Minute)
		a, err := l.budget.ask(within(t, 3*time.Hour), name(4))
		require.NoError(t, err)
		assert.False(t, a.refused)
		assert.Equal(t, []string{name(3), name(4)}, s.tickets(t))
	})
}

// A caller that leaves keeps no ticket and no lease, and the next one moves up.
func TestACallerWhoGivesUp(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Acquire(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, s.state(t), "a context that has ended takes nothing")

		busy(t, l)
		ctx, cancel = context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := l.Acquire(ctx)
			done <- err
		}()
		require.Eventually(t, func() bool { return len(s.tickets(t)) == 1 }, time.Minute, time.Millisecond)
		require.False(t, ask(t, l, 3).granted)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Eventually(t, func() bool {
			tickets := s.tickets(t)
			return len(tickets) == 1 && tickets[0] == name(3)
		}, time.Minute, time.Millisecond)
		free(t, l, 1)
		require.True(t, ask(t, l, 3).granted)
	})
}

// However many callers of a process leave together, none of them keeps a ticket or a lease.
func TestManyCallersGiveUp(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		const callers = 1500
		commands := s.client(t).Pipeline()
		for id := range callers {
			commands.HSet(t.Context(), acme, fmt.Sprint("ticket:", id), "9999999999999999 "+name(id), "number:"+name(id), id)
		}
		commands.HSet(t.Context(), acme, "head", 0, "tail", callers, "waiting", callers)
		_, err := commands.Exec(t.Context())
		require.NoError(t, err)
		require.Len(t, s.tickets(t), callers)
		for id := range callers {
			l.withdraw(t.Context(), name(id), context.Canceled)
		}
		require.Eventually(t, func() bool { return len(s.tickets(t)) == 0 }, time.Minute, time.Millisecond)
		require.Eventually(t, func() bool {
			l.leavers.mu.Lock()
			defer l.leavers.mu.Unlock()
			return !l.leavers.sending
		}, time.Minute, time.Millisecond)
		acquired(t, l)
		acquired(t, l)
		refused(t, l)
	})
}

// If the permit would come after the deadline, the caller gets an error at once, and nothing changes. A caller that
// waited loses its ticket.
func TestADeadlineBeforeThePermit(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		busy(t, l)
		before := s.state(t)
		refused(t, l, l, l)
		assert.Equal(t, before, s.state(t))

		require.False(t, ask(t, l, 3).granted)
		require.NoError(t, l.Pause(t.Context(), 10*time.Hour))
		a, err := l.budget.ask(within(t, time.Hour), name(3))
		require.NoError(t, err)
		assert.True(t, a.refused)
		assert.InDelta(t, 10*time.Hour, a.wait, float64(time.Minute))
		assert.Empty(t, s.tickets(t))
	})
}

// If the next answer of Redis would come after the deadline, a caller returns at once instead of sleeping.
func TestTheWayCounts(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		busy(t, l)
		require.NoError(t, l.budget.report(t.Context(), []any{name(1), micros(2 * time.Minute), 1}))
		far := s.through(t, 100*time.Millisecond)
		l = New(s.client(t, func(o *redis.Options) { o.Addr = far.Addr }), "acme", WithInterval(time.Hour))
		l.budget.often = 1000 * time.Hour
		l.budget.grace = time.Hour
		require.Eventually(t, func() bool { return l.Pause(t.Context(), time.Nanosecond) == nil }, time.Minute, time.Millisecond)
		end, last := s.instant(t, "end1"), s.instant(t, "last")
		left := end.Sub(last) - time.Since(last) // the clock of this server is that of the test
		ctx := within(t, left+100*time.Millisecond)
		_, err := l.Acquire(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, ctx.Err())
		assert.Contains(t, err.Error(), "after the deadline")
		require.Eventually(t, func() bool { return len(s.tickets(t)) == 0 }, time.Minute, time.Millisecond)
	})
}

// A waiting caller gets the slot that another one leaves.
func TestAWaiterIsServed(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l, other := s.limiter(t, WithInterval(50*time.Millisecond)), s.limiter(t, WithInterval(50*time.Millisecond))
		first, second := acquired(t, l), acquired(t, l)
		done := make(chan error)
		go func() {
			_, err := other.Acquire(t.Context())
			done <- err
		}()
		require.Eventually(t, func() bool { return len(s.tickets(t)) == 1 }, time.Minute, time.Millisecond)
		second.Done(t.Context(), time.Now())
		end := s.instant(t, "end2")
		require.NoError(t, <-done)
		assert.False(t, time.Now().Before(end), "not before hold is over")
		assert.Len(t, s.leases(t), 2)
		first.Done(t.Context(), time.Now())
	})
}
