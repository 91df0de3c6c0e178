package redisqueue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// fault is something that happens to Redis while many callers purge.
type fault struct {
	args   []string      // of the server
	away   time.Duration // one way to Redis
	strike func(w *world)
	mend   func(w *world)
	lasts  time.Duration
	loses  bool // Redis loses its data, so URIs of Enqueue are lost
	fails  bool // some calls certainly fail with an UnavailableError
}

// storm is callers of several queues, each call with a deadline of its own, and what became of the calls.
type storm struct {
	*world

	queues []*redisqueue.Queue
	over   chan struct{} // closed when no new call may begin
	mu     sync.Mutex
	calls  []stormCall
}

type stormCall struct {
	uri         string
	enqueue     bool
	limit, took time.Duration
	err         error
}

// The times that the callers of a storm have.
var stormLimits = []time.Duration{30 * time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second, 6 * time.Second}

// Whatever happens to Redis, each call ends with its context and reports a true outcome, and later calls succeed.
//
// After a restart of Redis, redislimit gives no permit for 16 s, so this test takes as long with -short.
func TestFaultsOfRedis(t *testing.T) {
	t.Parallel()
	kill := func(w *world) { w.redis.Kill() }
	start := func(w *world) { assert.NoError(w, w.redis.Start()) }
	maxMemory := func(value string) func(*world) {
		return func(w *world) { assert.NoError(w, w.rdb().ConfigSet(w.Context(), "maxmemory", value).Err()) }
	}
	nothing := func(*world) {}
	for name, f := range map[string]fault{
		"killed, without its data": {strike: kill, mend: start, lasts: time.Second, loses: true, fails: true},
		"killed, with its data": {
			strike: kill, mend: start, lasts: time.Second, fails: true,
			args: []string{"--appendonly", "yes", "--appendfsync", "always"},
		},
		"emptied": {
			strike: func(w *world) { assert.NoError(w, w.rdb().FlushAll(w.Context()).Err()) }, mend: nothing, loses: true,
		},
		"stopped": {
			strike: func(w *world) { w.redis.Hang(w.T) }, mend: func(w *world) { w.redis.Wake(w.T) }, lasts: 3 * time.Second,
		},
		"full": {strike: maxMemory("1"), mend: maxMemory("0"), lasts: 3 * time.Second, fails: true},
		"away": {strike: nothing, mend: nothing, lasts: 3 * time.Second, away: 150 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, f.test)
		})
	}
}

func (f fault) test(w *world) {
	if f.args != nil {
		w.redis.Kill()
		w.redis.Args = f.args
		require.NoError(w, w.redis.Start())
		w.ranForLong()
	}
	s := &storm{world: w, over: make(chan struct{})}
	for range 4 {
		s.queues = append(s.queues, s.stormQueue(f.away))
	}
	var callers sync.WaitGroup
	for i := range 32 {
		callers.Go(func() { s.call(i) })
	}
	time.Sleep(1500 * time.Millisecond)
	f.strike(w)
	time.Sleep(f.lasts)
	f.mend(w)
	mended := time.Now()
	time.Sleep(4 * time.Second)
	close(s.over)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		callers.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		require.FailNow(w, "a call does not end")
	}
	s.purgeAgain()
	again := time.Since(mended)
	for _, q := range s.queues {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		assert.NoError(w, q.Close(ctx))
		cancel()
	}
	s.check(f, again)
}

// stormQueue is the queue of one process.
func (s *storm) stormQueue(away time.Duration) *redisqueue.Queue {
	o := redisOptions(s.redis.Addr)
	if away > 0 {
		o.Addr = redistest.NewProxy(s.T, s.redis.Addr, away).Addr
	}
	rdb := redis.NewClient(o)
	s.Cleanup(func() { _ = rdb.Close() })
	return s.queue(rdb, s.client(rdb), func(o *redisqueue.Options) { o.Lease = 3 * time.Second })
}

// call purges one URI after another.
func (s *storm) call(caller int) {
	queue := s.queues[caller%len(s.queues)]
	for i := 0; ; i++ {
		select {
		case <-s.over:
			return
		default:
		}
		c := stormCall{
			uri: fmt.Sprintf("https://www.example.com/%d/%d", caller, i), enqueue: i%4 == 3, limit: stormLimits[rand.N(len(stormLimits))],
		}
		ctx, cancel := context.WithTimeout(context.Background(), c.limit)
		began := time.Now()
		if c.enqueue {
			_, c.err = queue.Enqueue(ctx, webdelivery.Exact(c.uri))
		} else {
			_, c.err = queue.Purge(ctx, webdelivery.Exact(c.uri))
		}
		c.took = time.Since(began)
		cancel()
		s.mu.Lock()
		s.calls = append(s.calls, c)
		s.mu.Unlock()
		time.Sleep(rand.N(100 * time.Millisecond))
	}
}

// purgeAgain purges with each queue, now that Redis works again.
func (s *storm) purgeAgain() {
	var all sync.WaitGroup
	for i, q := range s.queues {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
			defer cancel()
			_, err := q.Purge(ctx, webdelivery.Exact(fmt.Sprintf("https://www.example.com/again/%d", i)))
			assert.NoError(s, err)
		})
	}
	all.Wait()
}

// check compares the outcomes with the record of the service.
func (s *storm) check(f fault, again time.Duration) {
	record := s.purgedURIs()
	counts := map[string]int{}
	var late []time.Duration
	for _, c := range s.calls {
		if c.took > c.limit {
			late = append(late, c.took-c.limit)
		}
		what := fmt.Sprintf("%s, enqueue %v: %v", c.uri, c.enqueue, c.err)
		switch outcome := webdelivery.OutcomeOf(c.err); {
		case c.err == nil:
			counts["no error"]++
			assert.True(s, record[c.uri] > 0 || c.enqueue && f.loses, "%s: it was not purged", what)
		case outcome == webdelivery.OutcomeNotApplied:
			counts["not applied"]++
			assert.Zero(s, record[c.uri], "%s: it was purged", what)
		default:
			counts[outcome.String()]++
		}
		if unavailable, ok := errors.AsType[*redisqueue.UnavailableError](c.err); ok {
			counts["UnavailableError"]++
			assert.NotErrorIs(s, unavailable, context.DeadlineExceeded)
		}
	}
	assert.Positive(s, counts["no error"])
	if f.fails {
		assert.Positive(s, counts["UnavailableError"])
	}
	slices.Sort(late)
	require.NotEmpty(s, late)
	most, latest := late[len(late)*3/4], late[len(late)-1]
	assert.Less(s, most, 100*time.Millisecond, "calls did not end with their contexts")
	assert.Less(s, latest, time.Second, "a call did not end with its context") // a busy machine delays some
	s.Logf("%d calls, %v; after their contexts, 3/4 returned within %v and all within %v; purged again %v after the fault; %d requests",
		len(s.calls), counts, most, latest, again, len(s.service.Requests()))
}
