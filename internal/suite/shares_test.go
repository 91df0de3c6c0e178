package suite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// limited is a service that accepts two purges in any second (service document, section 8).
type limited struct {
	mu                sync.Mutex
	random            *rand.Rand
	counted           []time.Time
	accepted, refused int
}

// RoundTrip takes 22 to 30 ms: to the service and back.
func (s *limited) RoundTrip(*http.Request) (*http.Response, error) {
	const latency = 30 * time.Millisecond
	s.mu.Lock()
	there := latency/4 + time.Duration(s.random.Int64N(int64(latency/4)))
	s.mu.Unlock()
	time.Sleep(there)
	defer time.Sleep(latency / 2)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.counted = slices.DeleteFunc(s.counted, func(at time.Time) bool { return now.Sub(at) >= time.Second })
	if len(s.counted) == 2 {
		s.refused++
		return fixture.Response(http.StatusServiceUnavailable, nil), nil
	}
	s.counted = append(s.counted, now)
	s.accepted++
	return fixture.Response(http.StatusCreated, []byte(someReceipt)), nil
}

// load is what a process has to purge, in calls of one purge.
type load struct {
	once    int           // at the start, all at once
	endless bool          // one after another for 15 minutes
	every   time.Duration // for 15 minutes at random, one in this time on average
}

// put makes the calls of a load. purge may be called by several goroutines.
func (l load) put(random *rand.Rand, purge func()) {
	const until = 15 * time.Minute
	var all sync.WaitGroup
	defer all.Wait()
	began := time.Now()
	time.Sleep(time.Duration(random.Int64N(int64(time.Second / 2))))
	for range l.once {
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

// simulated counts the processes. Each has a host of its own, as clients of one host share permits.
var simulated atomic.Int64

// simulate runs the loads, each in a process of its own, and returns how long the purges of each took, how many failed,
// and the service.
func simulate(t *testing.T, seed uint64, policy webdelivery.RetryPolicy, loads []load) (waits [][]time.Duration, failed int, s *limited) {
	t.Helper()
	s = &limited{random: rand.New(rand.NewPCG(seed, 1))}
	waits = make([][]time.Duration, len(loads))
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, load := range loads {
		client, err := webdelivery.NewClient(fmt.Sprintf("https://%d.example.com", simulated.Add(1)), fixture.Customer,
			webdelivery.BasicAuth(fixture.Username, fixture.Password), webdelivery.WithHTTPClient(&http.Client{Transport: s}), webdelivery.WithRetry(policy))
		require.NoError(t, err)
		all.Go(func() {
			load.put(rand.New(rand.NewPCG(seed, uint64(i)+2)), func() {
				asked := time.Now()
				err := fixture.Submit.Call(context.Background(), client)
				mu.Lock()
				defer mu.Unlock()
				if waits[i] = append(waits[i], time.Since(asked)); err != nil {
					failed++
				}
			})
		})
	}
	all.Wait()
	return waits, failed, s
}

// Processes that share nothing divide the limit, and small ones find room beside greedy ones. The bounds are wide,
// because every run is different.
func TestShares(t *testing.T) {
	t.Parallel()
	patient := webdelivery.RetryPolicy{ThrottleTimeout: time.Hour} // until all are accepted
	for _, tt := range []struct {
		name          string
		policy        webdelivery.RetryPolicy
		loads         []load
		greedy        int // the first of the loads, whose waits do not count
		median, worst time.Duration
		failed        int // of all runs
	}{
		{"15 purges of each of 8 at once", patient, slices.Repeat([]load{{once: 15}}, 8), 0, 2 * time.Minute, 2 * time.Minute, 0},
		{"20 that purge now and then", webdelivery.RetryPolicy{}, slices.Repeat([]load{{every: 20 * time.Second}}, 20), 0, time.Second, 20 * time.Second, 0},
		{
			"5 of these beside 3 that are greedy",
			webdelivery.RetryPolicy{},
			append(slices.Repeat([]load{{endless: true}}, 3), slices.Repeat([]load{{every: 10 * time.Second}}, 5)...), 3, 5 * time.Second, time.Minute, 10,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var some []time.Duration
			runs := fixture.Cases(10, 3)
			failed, refused, accepted, unequal := 0, 0, 0, 0.0
			for run := range uint64(runs) {
				synctest.Test(t, func(t *testing.T) {
					waits, bad, s := simulate(t, run, tt.policy, tt.loads)
					some = slices.Concat(some, slices.Concat(waits[tt.greedy:]...))
					failed, refused, accepted = failed+bad, refused+s.refused, accepted+s.accepted
					var counts []int // of the greedy ones
					for _, of := range waits[:tt.greedy] {
						counts = append(counts, len(of))
					}
					if tt.greedy > 0 {
						unequal += float64(slices.Max(counts)) / float64(slices.Min(counts))
					}
				})
			}
			slices.Sort(some)
			assert.Less(t, some[len(some)/2], tt.median)
			assert.Less(t, some[len(some)*99/100], tt.worst)
			assert.LessOrEqual(t, failed, tt.failed)
			assert.Less(t, refused, 2*accepted)
			assert.Less(t, unequal/float64(runs), 2.5, "the greedy ones have shares of the same size, more or less")
		})
	}
}
