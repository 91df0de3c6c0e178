package suite_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// limited is a service that accepts two purges in any second (service document, section 8).
type limited struct {
	countsRefused     bool
	mu                sync.Mutex
	random            *rand.Rand
	counted           []time.Time
	accepted, refused int
}

// latency is the longest round trip. Each takes at least three quarters of it.
const latency = 30 * time.Millisecond

// purge sends a request to the service, waits for the response, and reports whether it was accepted.
func (s *limited) purge() bool {
	s.mu.Lock()
	there := latency/4 + time.Duration(s.random.Int64N(int64(latency/4)))
	s.mu.Unlock()
	time.Sleep(there)
	ok := s.arrive(time.Now())
	time.Sleep(latency / 2)
	return ok
}

func (s *limited) arrive(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.counted) > 0 && now.Sub(s.counted[0]) >= time.Second {
		s.counted = s.counted[1:]
	}
	ok := len(s.counted) < 2
	if ok || s.countsRefused {
		s.counted = append(s.counted, now)
	}
	if ok {
		s.accepted++
	} else {
		s.refused++
	}
	return ok
}

// until is when the last new purge comes.
const until = 15 * time.Minute

// load is what a process has to purge.
type load struct {
	purges  int           // at the start, all at once
	endless bool          // one after another
	every   time.Duration // at random, one in this time on average
}

// put purges what the load says, each purge in one call.
func (l load) put(all *sync.WaitGroup, random *rand.Rand, purge func()) {
	began := time.Now()
	time.Sleep(time.Duration(random.Int64N(int64(time.Second / 2))))
	for range l.purges {
		all.Go(purge)
	}
	for l.endless && time.Since(began) < until {
		purge()
	}
	for l.every > 0 {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(l.every)))
		if time.Since(began) > until {
			return
		}
		all.Go(purge)
	}
}

// crowd is a number of processes with their loads.
type crowd struct {
	name          string
	countsRefused bool
	runs          int
	loads         []load
	small         int // the first process whose waits are reported
}

// crowds returns the loads under which the pace is measured.
func crowds() (all []crowd) {
	for _, refused := range []bool{false, true} {
		for _, c := range [][2]int{{20, 1}, {1, 15}, {2, 15}, {4, 15}, {8, 15}, {16, 15}, {8, 100}} {
			name := fmt.Sprintf("once/%dx%d", c[0], c[1])
			if refused {
				name = fmt.Sprintf("refused=count/%dx%d", c[0], c[1])
			}
			all = append(all, crowd{name: name, countsRefused: refused, runs: 20, loads: slices.Repeat([]load{{purges: c[1]}}, c[0])})
		}
	}
	for _, n := range []int{4, 20} {
		loads := slices.Repeat([]load{{every: time.Duration(n) * time.Second}}, n)
		all = append(all, crowd{name: fmt.Sprintf("random/%d", n), runs: 20, loads: loads})
	}
	for _, c := range [][2]int{{1, 1}, {3, 1}, {3, 5}, {8, 2}} {
		loads := append(slices.Repeat([]load{{endless: true}}, c[0]), slices.Repeat([]load{{every: 10 * time.Second}}, c[1])...)
		all = append(all, crowd{name: fmt.Sprintf("endless/%d+%d", c[0], c[1]), runs: 20, loads: loads, small: c[0]})
	}
	return all
}

// ends reports whether all purges are there at the start.
func (c crowd) ends() bool { return c.loads[0].purges > 0 }

// simulate runs the crowd several times and reports the means: seconds until everything was purged, if the loads end, or
// else how long the random purges waited; the share of refused requests; failed purges in a run; and of the endless
// processes, the largest number of purges divided by the smallest. inBubble runs a function in a bubble, and process
// starts one that purges through the service.
func (c crowd) simulate(
	inBubble func(func()), process func(s *limited, seed uint64) (purge func() error), report func(value float64, unit string),
) {
	sums := map[string]float64{}
	var slowest float64
	for run := range uint64(c.runs) {
		inBubble(func() {
			for unit, value := range c.run(run, process) {
				sums[unit] += value / float64(c.runs)
				if unit == "s" || unit == "s/p99" {
					slowest = max(slowest, value)
				}
			}
		})
	}
	for unit, sum := range sums {
		report(sum, unit)
	}
	report(slowest, "s/worst")
}

func (c crowd) run(seed uint64, process func(s *limited, seed uint64) (purge func() error)) map[string]float64 {
	s := &limited{countsRefused: c.countsRefused, random: rand.New(rand.NewPCG(seed, 1))}
	var mu sync.Mutex
	var all sync.WaitGroup
	began, failed := time.Now(), 0.0
	waits := make([][]time.Duration, len(c.loads))
	for i, load := range c.loads {
		random := rand.New(rand.NewPCG(seed, uint64(i)+2))
		purge := process(s, random.Uint64())
		one := func() {
			asked := time.Now()
			err := purge()
			mu.Lock()
			defer mu.Unlock()
			if waits[i] = append(waits[i], time.Since(asked)); err != nil {
				failed++
			}
		}
		all.Go(func() { load.put(&all, random, one) })
	}
	all.Wait()
	result := map[string]float64{"failed": failed, "%refused": 100 * float64(s.refused) / float64(s.accepted+s.refused)}
	if c.ends() {
		result["s"] = time.Since(began).Seconds()
		return result
	}
	some := slices.Concat(waits[c.small:]...)
	slices.Sort(some)
	result["s/p50"], result["s/p99"] = some[len(some)/2].Seconds(), some[len(some)*99/100].Seconds()
	if c.small > 0 {
		counts := make([]int, c.small)
		for i := range counts {
			counts[i] = len(waits[i])
		}
		result["max/min"] = float64(slices.Max(counts)) / float64(slices.Min(counts))
	}
	return result
}
