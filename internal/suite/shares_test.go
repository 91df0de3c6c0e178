package suite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
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
	counted           []time.Time
	accepted, refused int
}

// RoundTrip takes 22 to 30 ms: to the service and back.
func (s *limited) RoundTrip(*http.Request) (*http.Response, error) {
	const latency = 30 * time.Millisecond
	time.Sleep(latency/4 + rand.N(latency/4))
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

// load is what a process purges for 15 minutes: at random, one in this time on average; 0: one after another.
type load time.Duration

// put makes the calls of a load. purge may be called by several goroutines.
func (l load) put(purge func()) {
	var all sync.WaitGroup
	defer all.Wait()
	began := time.Now()
	time.Sleep(rand.N(time.Second / 2))
	for time.Since(began) < 15*time.Minute {
		if l == 0 {
			purge()
			continue
		}
		time.Sleep(time.Duration(rand.ExpFloat64() * float64(l)))
		all.Go(purge)
	}
}

// simulate runs the loads, each in a process and with a host of its own, as clients of one host share permits. It returns
// how long the purges of each took, how many failed, and the service.
func simulate(t *testing.T, loads []load) (waits [][]time.Duration, failed int, s *limited) {
	t.Helper()
	s, waits = &limited{}, make([][]time.Duration, len(loads))
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, load := range loads {
		client, err := webdelivery.NewClient(fmt.Sprintf("https://%x.example.com", rand.Uint64()), fixture.Customer,
			webdelivery.BasicAuth(fixture.Username, fixture.Password), webdelivery.WithHTTPClient(&http.Client{Transport: s}))
		require.NoError(t, err)
		all.Go(func() {
			load.put(func() {
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

// Processes that share nothing divide the limit, and small ones find room beside greedy ones. Every run is different: the
// bounds are at least twice what the worst of a hundred runs has. What waits longest tells nothing, as it is luck.
func TestShares(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		loads        []load
		greedy       int           // the first of the loads, whose waits do not count
		median, most time.Duration // of the waits: half of them, and nine of ten
		failed       int           // of all runs
	}{
		{"20 that purge now and then", slices.Repeat([]load{load(20 * time.Second)}, 20), 0, time.Second, 5 * time.Second, 0},
		{"5 of these beside 3 that are greedy", append(make([]load, 3), slices.Repeat([]load{load(10 * time.Second)}, 5)...), 3, 5 * time.Second, 20 * time.Second, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var some []time.Duration
			runs := fixture.Cases(10, 3)
			failed, refused, accepted, unequal := 0, 0, 0, 0.0
			for range runs {
				synctest.Test(t, func(t *testing.T) {
					waits, bad, s := simulate(t, tt.loads)
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
			assert.Less(t, some[len(some)*9/10], tt.most)
			assert.LessOrEqual(t, failed, tt.failed)
			assert.Less(t, refused, 2*accepted)
			assert.Less(t, unequal/float64(runs), 5., "the greedy ones have shares of the same size, more or less")
		})
	}
}
