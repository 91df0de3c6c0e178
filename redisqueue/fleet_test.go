package redisqueue_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// large is true in make fleet.
var large = os.Getenv("REDISQUEUE_FLEET") != ""

// Processes are killed with a request that the service has answered and nobody else knows of. The others send its URIs
// again, so that each ends purged, and each caller of a living process gets a true result.
func TestKilledHolders(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		kills, each := 2, 10
		if large {
			kills, each = 10, 200
		}
		w.pause(time.Hour)
		caller := w.start(nil)
		var given []string
		for i := range kills * each {
			given = append(given, pattern(i))
		}
		w.give(caller, given...)
		w.queued(len(given))
		// The caller's process is stopped, so that only the others can take its calls.
		redistest.Suspend(w.T, caller.cmd.Process)
		w.goOn()
		for range kills {
			holder := w.start(func(s *setUp) { s.Hold = time.Hour })
			w.give(holder, "https://www.example.com/own")
			<-holder.events // the service has answered
			assert.NoError(w, holder.cmd.Process.Kill())
		}
		redistest.Resume(w.T, caller.cmd.Process)
		for _, e := range w.ends(caller, len(given)) {
			assert.Empty(w, e.Error, e.URI)
		}
		all := w.purged()
		for _, uri := range given {
			assert.NotZero(w, all[uri], uri)
		}
		w.finish(caller)
	})
}

// A process with yesterday's password answers for nobody: others purge its URIs and those that it has taken. Alone, it
// tells its caller after three tries.
func TestOneWrongPassword(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		wrong := w.start(func(s *setUp) { s.Password = "yesterday" })
		w.give(wrong, pattern(0))
		e := w.ends(wrong, 1)[0]
		assert.Contains(w, e.Error, "password")
		assert.Equal(w, webdelivery.OutcomeUnknown, e.Outcome)

		good := []*child{w.start(nil), w.start(nil), w.start(nil)}
		const rounds = 5
		for round := range rounds {
			for i, c := range append(slices.Clone(good), wrong) {
				w.give(c, pattern(100*i+round+1))
			}
			time.Sleep(50 * time.Millisecond) // so that not all are in one request
		}
		for _, c := range append(good, wrong) {
			for _, e := range w.ends(c, rounds) {
				assert.Empty(w, e.Error, e.URI)
			}
			w.finish(c)
		}
	})
}

// Many processes react to the same change: one or two requests carry all.
func TestOneChange(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		processes, most := 5, 3
		if large {
			processes = 40 // REDISQUEUE_FLEET may be another number
			if n, err := strconv.Atoi(os.Getenv("REDISQUEUE_FLEET")); err == nil && n > 1 {
				processes, most = n, 7
			}
		}
		var all []*child
		for range processes {
			all = append(all, w.start(nil))
		}
		began := time.Now()
		for i, c := range all {
			w.give(c, pattern(i))
		}
		var longest time.Duration
		for _, c := range all {
			longest = max(longest, w.ends(c, 1)[0].Took)
			w.finish(c)
		}
		w.Logf("%d processes: %d requests, longest wait %v, all %v", processes, len(w.service.Purged()), longest, time.Since(began))
		assert.LessOrEqual(w, len(w.service.Purged()), most)
		assert.Len(w, w.purged(), processes)
	})
}

// A minute of 200 URIs a second from 20 processes: beside Redis, 75 ms away from it each way, with a restart of Redis, and
// with a refused URI every 20 s.
func TestSteadyLoad(t *testing.T) {
	t.Parallel()
	if !large {
		t.Skip("make fleet runs it")
	}
	near := load{name: "near", processes: 20, perSecond: 10, seconds: 60}
	inWorld(t, func(w *world) { w.steady(near) })
	inWorld(t, func(w *world) {
		far := near
		far.name, far.redis = "75 ms away", redistest.NewProxy(w.T, w.redis.Addr, 75*time.Millisecond).Addr
		w.steady(far)
	})
	inWorld(t, func(w *world) {
		restarted := near
		restarted.name, restarted.restart = "with a restart", true
		w.steady(restarted)
	})
	inWorld(t, func(w *world) {
		some := near
		some.name, some.refused = "with refused URIs", func(process, call int) bool { return process == 0 && call%200 == 10 }
		for _, e := range w.steady(some) {
			assert.Equal(w, webdelivery.OutcomeNotApplied, e.Outcome, e.Error)
		}
	})
}

// Half a minute of 20 URIs a second from four processes, one of which purges only a host that the service refuses. Each
// searches by itself, so that a limiter that lets anybody go first, unlike that of redislimit, makes some wait for long.
func TestARefusedHost(t *testing.T) {
	t.Parallel()
	if !large {
		t.Skip("make fleet runs it")
	}
	inWorld(t, func(w *world) {
		w.steady(load{
			name: "one process with a refused host", processes: 4, perSecond: 5, seconds: 30, fair: true,
			refused: func(process, _ int) bool { return process == 3 },
		})
	})
}

// load is what the processes of a fleet purge.
type load struct {
	name, redis                   string // the address of Redis, if it is another than that of the world
	processes, perSecond, seconds int    // calls of one URI, of each process
	fair                          bool   // with the limiter of package redislimit
	restart                       bool   // Redis is killed in the middle, and starts without its data
	refused                       func(process, call int) bool
}

// steady purges a load, and returns the ends of its refused calls. The others must not fail.
func (w *world) steady(l load) (refusals []event) {
	var all []*child
	for range l.processes {
		all = append(all, w.start(func(s *setUp) { s.Lease, s.Redis, s.Fair = 10*time.Second, cmp.Or(l.redis, s.Redis), l.fair }))
	}
	tick := time.NewTicker(time.Second / time.Duration(l.perSecond))
	defer tick.Stop()
	calls := l.perSecond * l.seconds
	for i := range calls {
		<-tick.C
		if l.restart && i == calls/2 {
			w.redis.Kill()
			assert.NoError(w, w.redis.Start())
		}
		for p, c := range all {
			uri := pattern(i*l.processes + p)
			if l.refused != nil && l.refused(p, i) {
				uri = fmt.Sprint(refused.URIPattern, i)
			}
			w.give(c, uri)
		}
	}
	var took, tookRefused []time.Duration
	commands := int64(0)
	for _, c := range all {
		of := int64(0)
		for _, e := range w.ends(c, calls) {
			of = max(of, e.Commands)
			if strings.HasPrefix(e.URI, refused.URIPattern) {
				assert.NotEmpty(w, e.Error, e.URI)
				refusals, tookRefused = append(refusals, e), append(tookRefused, e.Took)
				continue
			}
			assert.Empty(w, e.Error, e.URI)
			took = append(took, e.Took)
		}
		commands += of
	}
	w.Logf("%s: %s; refused: %s; %d requests accepted; %.1f commands per URI", l.name, spread(took), spread(tookRefused),
		len(w.service.Purged()), float64(commands)/float64(len(took)))
	assert.Len(w, w.purged(), len(took))
	for uri := range w.purged() {
		assert.NotContains(w, uri, refused.URIPattern)
	}
	return refusals
}

// spread describes how long calls took.
func spread(took []time.Duration) string {
	if len(took) == 0 {
		return "none"
	}
	slices.Sort(took)
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("%d with p50 %v, p99 %v, longest %v", len(took), ms(took[len(took)/2]), ms(took[len(took)*99/100]), ms(took[len(took)-1]))
}

// 10,000 waiting calls take little memory.
func TestMemory(t *testing.T) {
	t.Parallel()
	if !large {
		t.Skip("make fleet runs it")
	}
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		q := w.process(func(o *redisqueue.Options) { o.Lease = time.Minute })
		before := w.info("memory", "used_memory")
		ctx, cancel := context.WithCancel(w.Context())
		var calls sync.WaitGroup
		for i := range 10_000 {
			calls.Go(func() { _, _ = q.Purge(ctx, object(i)) })
		}
		w.queued(10_000)
		used := w.info("memory", "used_memory") - before
		w.Logf("%d bytes", used)
		assert.Less(w, used, 5_000_000)
		w.goOn()
		w.until("all are purged", func() bool { return len(w.purged()) == 10_000 })
		cancel()
		calls.Wait()
	})
}
