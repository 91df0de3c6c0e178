package redislimit

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/redistest"
)

// TestMain runs the tests, or becomes one of the processes that a test starts.
func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // tests stop servers on purpose
	if role := os.Getenv(roleOf); role != "" {
		if err := runRole(role, os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(m.Run())
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// onServers runs a test on each installed kind of server, with a server that counts as one that has run for long.
func onServers(t *testing.T, test func(t *testing.T, s *server)) {
	t.Helper()
	redistest.OnServers(t, func(t *testing.T, started *redistest.Server) {
		s := &server{started}
		s.ranForLong(t)
		test(t, s)
	})
}

// server is a real server on a loopback port.
type server struct{ *redistest.Server }

// options are the recommended options, with more time for a busy machine.
func (s *server) options() *redis.Options {
	return &redis.Options{
		Addr: s.Addr, MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1,
		DialTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
	}
}

// client stands for a process, with its own connections.
func (s *server) client(t *testing.T, change ...func(*redis.Options)) *redis.Client {
	options := s.options()
	for _, c := range change {
		c(options)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// limiter returns a Limiter with an interval of an hour by default. Its callers keep their places as long, so nothing
// ends by itself during a test.
func (s *server) limiter(t *testing.T, opts ...Option) *Limiter {
	l := New(s.client(t), "acme", append([]Option{WithInterval(time.Hour)}, opts...)...)
	l.budget.grace, l.budget.often = time.Hour, 1000*time.Hour
	return l
}

// quick returns a Limiter with leases of a second and a half, for tests in real time.
func (s *server) quick(t *testing.T, opts ...Option) *Limiter {
	l := New(s.client(t), "acme", append([]Option{WithInterval(250 * time.Millisecond)}, opts...)...)
	l.budget.sendWithin, l.budget.stall = 500*time.Millisecond, 500*time.Millisecond
	return l
}

const acme = defaultPrefix + ":acme"

// ranForLong makes the budget of acme belong to this run of the server, so that no caller waits for the end of lost
// leases.
func (s *server) ranForLong(t *testing.T) {
	require.NoError(t, s.client(t).HSet(t.Context(), acme, "run", s.run(t)).Err())
}

// run returns the run of the server, as the scripts see it.
func (s *server) run(t *testing.T) string {
	info, err := s.client(t).InfoMap(t.Context(), "server", "replication").Result()
	require.NoError(t, err)
	return info["Server"]["run_id"] + ":" + info["Replication"]["master_replid"]
}

// step moves the clock of the server for the budget of acme.
func (s *server) step(t *testing.T, d time.Duration) {
	require.NoError(t, s.client(t).HIncrBy(t.Context(), acme, "offset", d.Microseconds()).Err())
}

// state returns the fields of the customer acme on the server, without the run.
func (s *server) state(t *testing.T) map[string]string {
	state, err := s.client(t).HGetAll(context.Background(), acme).Result()
	require.NoError(t, err)
	delete(state, "run")
	return state
}

// instant returns a field of the budget of acme in virtual time.
func (s *server) instant(t *testing.T, field string) time.Time {
	micros, err := strconv.ParseInt(s.state(t)[field], 10, 64)
	require.NoError(t, err)
	return time.UnixMicro(micros)
}

// leases returns the ids that hold a slot.
func (s *server) leases(t *testing.T) (ids []string) {
	state := s.state(t)
	for _, field := range []string{"id1", "id2"} {
		if state[field] != "" {
			ids = append(ids, state[field])
		}
	}
	return ids
}

// blocked returns how long lost leases delay all callers.
func (s *server) blocked(t *testing.T) (longest time.Duration) {
	for line := range strings.SplitSeq(s.state(t)["blocks"], ";") {
		if words := strings.Fields(line); len(words) > 0 {
			micros, err := strconv.ParseInt(words[1], 10, 64)
			require.NoError(t, err)
			longest = max(longest, time.UnixMicro(micros).Sub(s.instant(t, "last")))
		}
	}
	return longest
}

// tickets returns the waiting ids, in order. It checks that the fields of the queue agree.
func (s *server) tickets(t *testing.T) []string {
	state, ids := s.state(t), []string{}
	number := func(field string) int {
		n, _ := strconv.Atoi(state[field])
		return n
	}
	for n := number("head"); n < number("tail"); n++ {
		if _, id, ok := strings.Cut(state[fmt.Sprint("ticket:", n)], " "); ok {
			ids = append(ids, id)
			assert.Equal(t, n, number("number:"+id))
		}
	}
	fields := 0
	for field := range state {
		if strings.Contains(field, ":") {
			fields++
		}
	}
	assert.Len(t, ids, number("waiting"))
	assert.Equal(t, 2*len(ids), fields, "no field is left behind")
	return ids
}

// through starts a proxy that delays each direction.
func (s *server) through(t *testing.T, delay time.Duration) *redistest.Proxy {
	return redistest.NewProxy(t, s.Addr, delay)
}

// liar is a server that knows only evalsha, and always returns the same answer. In the answer, NUMBER is the number of
// the question.
func liar(t *testing.T, answer string) (addr string) {
	return redistest.Fake(t, func(request []byte) string {
		if parts := bytes.Split(request, []byte("\r\n")); len(parts) > 12 {
			return strings.ReplaceAll(answer, "NUMBER", string(parts[12]))
		}
		return answer
	})
}
