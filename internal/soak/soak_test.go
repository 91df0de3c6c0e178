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
	// operationTimeout bounds one operation, and so the delay of the end of a round.
	operationTimeout = 5 * time.Second
	// settleTimeout bounds the time in which connections and goroutines end after the load. They take milliseconds.
	settleTimeout = 30 * time.Second
)

// In fake time waits cost nothing, so a few thousand operations with all their retries and rate limits take seconds. A
// goroutine that remains fails the bubble.
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
			s.round(func(done int) bool { return done < 12 })
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
	goroutines := s.settleGoroutines(0)
	first := heap()
	last := first
	for end := began.Add(*flagDuration); time.Now().Before(end) && !s.failed(); {
		// In shorter rounds, the start and the end would dominate. In longer ones, the fake's records would grow.
		s.until(time.Now().Add(min(10*time.Second, time.Until(end))))
		s.settleGoroutines(goroutines)
		last = heap()
		_, total := s.tally.sums()
		t.Logf("%v: %d operations, %d bytes of heap", time.Since(began).Round(time.Second), total, last)
	}
	s.finish()
	// The memory that the SDK keeps does not depend on the number of operations. The tolerance is for the runtime and
	// net/http: pools, maps that were large once, descriptors of goroutines. After 20,000 operations (some minutes), a
	// leak of 120 bytes each exceeds it.
	require.LessOrEqual(t, last, first+first/10+2<<20, "bytes of heap")
}

func heap() uint64 {
	for range 3 { // the second and third collection free the contents of sync.Pool and finalizers
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

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
	tooFast       atomic.Int64 // responses of the service itself, not of the weather, that reject a purge as too fast
	starvedFast   int          // times that purges came too fast while this process got too little CPU time
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
		SessionLifetime: 20 * time.Minute, // by the clock, which jumps
		PurgeDuration:   700 * time.Millisecond,
		DeployDuration:  300 * time.Millisecond,
		EventsPerSecond: 0.1, EventSeed: seed,
	})
	s.weather = newWeather(s)
	return s
}

func (s *soak) until(end time.Time) {
	s.round(func(int) bool { return time.Now().Before(end) })
}

// round lets each goroutine work as long as more returns true for its number of operations. Then it checks what
// remains.
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

// settleConnections waits until no connection is open, so that no request is in flight.
func (s *soak) settleConnections() {
	for end := time.Now().Add(settleTimeout); s.srv.OpenConnections() > 0; {
		s.closeIdleConnections()
		if time.Now().After(end) {
			require.Zero(s, s.srv.OpenConnections(), "connections are left after the load")
		}
		time.Sleep(time.Millisecond)
	}
}

// settleGoroutines waits until there are as few goroutines as before. With 0, it waits until their number is stable. It
// returns their number.
func (s *soak) settleGoroutines(before int) int {
	stays := 0
	for began, last := time.Now(), -1; ; last = runtime.NumGoroutine() {
		now := runtime.NumGoroutine()
		if stays++; now != last {
			stays = 0
		}
		if before > 0 && now <= before || before == 0 && stays > 50 {
			return now
		}
		if time.Since(began) > settleTimeout {
			stacks := make([]byte, 1<<20)
			s.Fatalf("%d goroutines, and %d after the first second:\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// checkPace checks that of any three purge requests, the first and the last are not within one second (service
// document, section 8). The service itself must never reject one as too fast. All arrivals count, also those that a
// fault hit, because a real service would have seen them. The clock of the fake only jumps forward, so two arrivals
// within a second of that clock were so in real time too.
//
// The SDK spaces permits so that 100 ms may pass between a permit and its arrival. If this process gets too little CPU
// time, more can pass, and no limiter can prevent that. Such a case is counted, and does not fail the run.
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

// starved is the lateness of timers from which on this process gets too little CPU time to judge its pace. It is a
// quarter of the 100 ms above. On an idle machine, timers are a millisecond late.
const starved = 25 * time.Millisecond

// lateness measures how late timers are, until stop is closed. In fake time they are never late.
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

// failed returns whether the run has failed, so that it can stop early.
func (s *soak) failed() bool {
	return s.tally.problems.Load() >= maxProblems || s.Failed() && s.tally.problems.Load() == 0
}

const maxProblems = 20

func (s *soak) problem(what, format string, args ...any) {
	s.Helper()
	if s.tally.problems.Add(1) <= maxProblems {
		s.Errorf("%s: %s", what, fmt.Sprintf(format, args...))
	}
}
