package redislimit

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// If the clock of Redis is set back, no slot is free earlier or later than before.
func TestTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		busy(t, l)
		last := s.instant(t, "last")
		for range 3 {
			s.step(t, -24*time.Hour)
			before := s.instant(t, "end1").Sub(last)
			require.Equal(t, 2*time.Hour, ask(t, l, 3).wait)
			next := s.instant(t, "last")
			assert.False(t, next.Before(last), "time runs forward")
			assert.WithinDuration(t, last, next, time.Minute, "and not faster")
			assert.InDelta(t, before, s.instant(t, "end1").Sub(next), float64(time.Minute))
			last = next
		}
		s.step(t, 2*time.Hour+16*time.Second)
		require.True(t, ask(t, l, 3).granted)
	})
}

// Callers with near deadlines take nothing, but time still advances for them.
func TestTimeRunsForTheRefused(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		free(t, l, 9)
		require.NoError(t, s.client(t).HSet(t.Context(), acme, "run", "another").Err())
		refused(t, l)
		resume := s.instant(t, "resume")
		refused(t, l)
		assert.Equal(t, resume, s.instant(t, "resume"), "the end of the pause comes nearer")
		s.step(t, l.budget.longest())

		busy(t, l)
		s.step(t, -24*time.Hour)
		refused(t, l)
		offset := s.state(t)["offset"]
		refused(t, l)
		assert.Equal(t, offset, s.state(t)["offset"], "time goes on")

		require.NoError(t, s.client(t).HSet(t.Context(), acme, "run", "a third").Err())
		_, err := l.budget.ask(t.Context(), name(0))
		require.NoError(t, err)
		free(t, l, 0)
		s.step(t, -24*time.Hour)
		offset = s.state(t)["offset"]
		_, err = l.budget.ask(t.Context(), name(0))
		failsClosed(t, err)
		assert.NotEqual(t, offset, s.state(t)["offset"], "also after an answer for an id that has ended")
	})
}

// A budget that was unused for long gives two permits at once, not more.
func TestNoBurst(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		acquired(t, l).Done(t.Context(), time.Now())
		s.step(t, 1000*time.Hour)
		acquired(t, l)
		acquired(t, l)
		refused(t, l)
	})
}

// A Redis that was restarted without data gives no permit until the leases before are over.
func TestARestart(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		acquired(t, l)
		s.Kill()
		require.NoError(t, s.Start())
		other := s.limiter(t) // has not noticed
		refused(t, other, other)
		require.NoError(t, other.Pause(t.Context(), time.Microsecond))
		refused(t, other)
		wait := ask(t, other, 1).wait
		longest := other.budget.longest()
		assert.InDelta(t, longest, wait, float64(time.Minute))
		s.step(t, longest+time.Second)
		acquired(t, other)
		require.True(t, ask(t, other, 1).granted)
		refused(t, other)
	})
}

// The same in real time. A Redis with an uptime longer than a lease gives a permit at once.
func TestUptime(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		s.Kill()
		began := time.Now()
		require.NoError(t, s.Start())
		l := s.quick(t)
		_, err := l.Acquire(t.Context())
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(began), l.budget.longest())
		require.NoError(t, s.client(t).Del(t.Context(), acme).Err())
		require.Eventually(t, func() bool { // the uptime is in whole seconds
			a, err := l.budget.ask(t.Context(), name(1))
			return err == nil && a.granted
		}, time.Minute, 10*time.Millisecond)
		require.NoError(t, s.client(t).HSet(t.Context(), acme, "run", "another").Err())
		assert.Equal(t, l.budget.longest(), ask(t, l, 2).wait, "but not for data of another run")
	})
}

// Data of another run, such as an old snapshot or a lagging replica, may lack the last leases.
func TestAnotherRun(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l := s.limiter(t)
		acquired(t, l)
		require.NoError(t, s.client(t).HSet(t.Context(), acme, "run", "another").Err())
		refused(t, l)
		assert.InDelta(t, l.budget.longest(), ask(t, l, 1).wait, float64(time.Minute))
		s.step(t, l.budget.longest())
		acquired(t, l)
	})
}

// A master that was a replica meanwhile has the same run id, and may lack the last leases.
func TestAMasterThatWasAReplica(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		l, rdb := s.limiter(t), s.client(t)
		permit := acquired(t, l)
		permit.Done(t.Context(), time.Time{})
		require.NoError(t, rdb.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
		require.NoError(t, rdb.ReplicaOf(t.Context(), "no", "one").Err())
		refused(t, s.limiter(t))
		assert.InDelta(t, l.budget.longest(), ask(t, l, 1).wait, float64(time.Minute))
	})
}

// The commands on the package page are sufficient. Without INFO, no caller waits after a restart.
func TestCommands(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s *server) {
		rdb := s.client(t)
		commands := []any{"+eval", "+evalsha", "+time", "+hmget", "+hget", "+hset", "+hdel", "+pexpire"}
		for user, commands := range map[string][]any{"documented": append(commands, "+info"), "uninformed": commands} {
			args := append([]any{"acl", "setuser", user, "reset", "on", "nopass", "~webdelivery:*", "+hello", "+client"}, commands...)
			require.NoError(t, rdb.Do(t.Context(), args...).Err())
			l := New(s.client(t, func(o *redis.Options) { o.Username, o.Password = user, "any" }), user)
			l.budget.sendWithin = time.Hour
			if user == "documented" {
				refused(t, l)
				require.NoError(t, rdb.HSet(t.Context(), l.budget.keys[0], "offset", (3*time.Hour).Microseconds()).Err())
				require.NoError(t, rdb.HSet(t.Context(), l.budget.keys[0], "run", rdb.HGet(t.Context(), acme, "run").Val()).Err())
			}
			acquired(t, l)
			acquired(t, l)
			require.False(t, ask(t, l, 1).granted)
			free(t, l, 1)
			require.NoError(t, l.Pause(t.Context(), time.Second))
		}
	})
}
