package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

var (
	flagDuration = flag.Duration("soak.duration", 0, "how long to work in real time over TCP; 0 leaves that test out")
	flagSeed     = flag.Uint64("soak.seed", 0, "seed of all random choices; 0 takes a new one")
)

const (
	workers = 32
	// operationTimeout bounds one operation, and so how long the end of a round can be put off.
	operationTimeout = 5 * time.Second
	// settleTimeout bounds how long connections and goroutines may take to end after the load. They take milliseconds.
	settleTimeout = 30 * time.Second
)

// In fake time waiting costs nothing, so a few thousand operations with all their retries and rate limits take seconds.
// A goroutine that is left behind fails the bubble.
func TestInFakeTime(t *testing.T) {
	t.Parallel()
	if *flagDuration > 0 {
		t.Skip("the run over TCP is asked for")
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSoak(t)
		url := s.srv.ListenMemory()
		s.connect(url)
		for range 2 {
			s.round(func(done int) bool { return done < 50 })
		}
		s.finish()
	})
}

func TestOverTCP(t *testing.T) { //nolint:paralleltest // it measures the whole process
	if *flagDuration == 0 {
		t.Skip("-soak.duration is not given")
	}
	s := newSoak(t)
	url, err := s.srv.ListenTCP()
	require.NoError(t, err)
	s.connect(url)

	began := time.Now()
	s.until(began.Add(time.Second))
	s.settleGoroutines(0)
	first := measure()
	last := first
	for end := began.Add(*flagDuration); time.Now().Before(end) && !s.failed(); {
		// Shorter rounds would measure their own beginnings and ends, longer ones let the fake's records grow.
		next := time.Now().Add(10 * time.Second)
		if next.After(end) {
			next = end
		}
		s.until(next)
		s.settleGoroutines(first.goroutines)
		last = measure()
		t.Logf("%v: %d operations, %v", time.Since(began).Round(time.Second), s.tally.total(), last)
	}
	s.finish()
	t.Logf("after the first second %v\nat the end             %v", first, last)
	// What the SDK keeps does not depend on how much it did. The tolerance is for what the runtime and net/http keep:
	// pools, maps that have once been large, descriptors of goroutines. After 20,000 operations, some minutes, a leak of
	// 120 bytes each is past it.
	require.LessOrEqual(t, last.heap, first.heap+first.heap/10+2<<20, "bytes of heap")
}

// state is what a process holds when nothing is under way.
type state struct {
	goroutines int
	heap       uint64
}

func (m state) String() string {
	return fmt.Sprintf("goroutines %d, heap %.2f MiB", m.goroutines, float64(m.heap)/(1<<20))
}

func measure() state {
	for range 3 { // what sync.Pool and finalizers hold goes with the second and third
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return state{runtime.NumGoroutine(), m.HeapAlloc}
}

// soak is one run.
type soak struct {
	*testing.T

	seed    uint64
	srv     *testserver.Server
	weather *weather
	tally   *tally
	clients
	world

	rounds        int
	requests      int
	arrivals      []time.Time  // the last purge requests that the service saw
	tooFast       atomic.Int64 // replies of the service itself, not of the weather, that say so
	starvedFast   int          // times that purges came too fast while the machine had no time for this process
	maxGoroutines atomic.Int64
	queueLock     sync.RWMutex
	queues        [2]*webdelivery.PurgeQueue // one that waits for transactions, and one that does not
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	seed := *flagSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d (repeat with -soak.seed=%d)", seed, seed)
	s := &soak{T: t, seed: seed, tally: newTally()}
	s.srv = testserver.New(testserver.Config{
		SessionLifetime: 20 * time.Minute, // on the clock, which jumps
		PurgeDuration:   700 * time.Millisecond,
		DeployDuration:  300 * time.Millisecond,
		EventsPerSecond: 2, EventSeed: seed,
	})
	s.weather = newWeather(s)
	return s
}

// until works in one round until a time.
func (s *soak) until(end time.Time) {
	s.round(func(int) bool { return time.Now().Before(end) })
}

// round lets all goroutines work as long as more says so of each, given how much it has done, and checks what is left.
func (s *soak) round(more func(done int) bool) {
	s.rounds++
	s.prepare()
	s.weather.begin()
	stop, late := make(chan struct{}), make(chan time.Duration, 1)
	go func() { late <- lateness(stop) }()
	var all sync.WaitGroup
	for i := range workers {
		w := &worker{soak: s, Rand: rand.New(rand.NewPCG(s.seed, uint64(s.rounds*workers+i)))}
		all.Go(func() {
			for done := 0; more(done) && !s.failed(); done++ {
				w.operate()
			}
		})
	}
	all.Wait()
	s.weather.end()
	for _, q := range s.queues {
		ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
		require.NoError(s, q.Close(ctx), "closing a queue in fair weather")
		cancel()
	}
	close(stop)
	s.settleConnections()
	s.checkClaims()
	s.checkPace(<-late)
	s.sweep()
	s.settleConnections()
	s.requests += s.srv.Count("", "")
	s.srv.Forget()
	s.srv.ExpireSessions()
}

// settleConnections waits until none is open, and so no request under way.
func (s *soak) settleConnections() {
	for end := time.Now().Add(settleTimeout); s.srv.OpenConnections() > 0; {
		s.closeIdleConnections()
		if time.Now().After(end) {
			require.Zero(s, s.srv.OpenConnections(), "connections are left after the load")
		}
		time.Sleep(time.Millisecond)
	}
}

// settleGoroutines waits until there are as few as before; 0 waits until their number stays.
func (s *soak) settleGoroutines(before int) {
	began, stays := time.Now(), 0
	for last := -1; ; last = runtime.NumGoroutine() {
		now := runtime.NumGoroutine()
		if now == last {
			stays++
		} else {
			stays = 0
		}
		if before > 0 && now <= before || before == 0 && stays > 50 {
			return
		}
		if time.Since(began) > settleTimeout {
			stacks := make([]byte, 1<<20)
			s.Fatalf("%d goroutines, and %d after the first second:\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// checkPace: of three purge requests the first and the last are never within one second (service-interface section 8),
// and the service itself never says that they come too fast. All that arrived count, also those that a fault hit: a real
// service would have seen them. The clock of the fake jumps forward only, so what it shows as within a second was.
//
// The SDK spaces permits so that 100 ms may pass between a permit and its arrival. On a machine that has no time for
// this process more than that can pass, which no limiter can help: then it is counted, and is no failure.
func (s *soak) checkPace(lateness time.Duration) {
	tooFast := int(s.tooFast.Swap(0))
	for _, r := range s.srv.Requests() {
		if r.Method == http.MethodPost && r.Path == "/"+customer+"/v1/cache/purge" {
			s.arrivals = append(s.arrivals, r.Time)
		}
	}
	for i := 2; i < len(s.arrivals); i++ {
		if span := s.arrivals[i].Sub(s.arrivals[i-2]); span < time.Second {
			tooFast++
			s.Logf("three purge requests within %v; timers were up to %v late", span, lateness)
		}
	}
	s.arrivals = slices.Clone(s.arrivals[max(0, len(s.arrivals)-2):])
	switch {
	case tooFast == 0:
	case lateness < starved:
		s.problem("pace", "%d times too fast, and timers were at most %v late", tooFast, lateness)
	default:
		s.starvedFast += tooFast
	}
}

// starved is how late a timer of this process is when it gets too little of the machine to tell how it keeps time: a
// quarter of the 100 ms above. Timers on a machine with time to spare are a millisecond late.
const starved = 25 * time.Millisecond

// lateness measures how late timers are until stop is closed. In fake time they never are.
func lateness(stop <-chan struct{}) (worst time.Duration) {
	const often = 5 * time.Millisecond
	for {
		began := time.Now()
		select {
		case <-time.After(often):
			worst = max(worst, time.Since(began)-often)
		case <-stop:
			return worst
		}
	}
}

// finish closes everything and tells what happened.
func (s *soak) finish() {
	s.closeIdleConnections()
	require.NoError(s, s.srv.Close())
	s.Logf("\n%s%d requests, %d faults hit, %d logins, at most %d goroutines, %d purges too fast on a starved machine, seed %d", s.tally,
		s.requests, s.srv.FaultHits(), s.srv.Logins(), s.maxGoroutines.Load(), s.starvedFast, s.seed)
	if s.failed() {
		return
	}
	s.tally.checkThatItTellsSomething(s.T)
}

// failed: there is no point in going on.
func (s *soak) failed() bool {
	return s.tally.problems.Load() >= maxProblems || s.Failed() && s.tally.problems.Load() == 0
}

const maxProblems = 20

// problem fails the run.
func (s *soak) problem(what, format string, args ...any) {
	s.Helper()
	if s.tally.problems.Add(1) <= maxProblems {
		s.Errorf("%s: %s", what, fmt.Sprintf(format, args...))
	}
}
