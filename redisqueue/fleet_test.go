package redisqueue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// page returns the i-th of many addresses.
func page(i int) string { return object(i).URIPattern }

// waits returns how long calls took, the shortest first.
func waits(results map[string]event) (all []time.Duration) {
	for _, e := range results {
		all = append(all, e.Took)
	}
	slices.Sort(all)
	return all
}

// checkAccepted checks that all calls succeeded, and that the service has each of their URIs once.
func (w *world) checkAccepted(results map[string]event) {
	purged := w.purgedURIs()
	for uri, e := range results {
		assert.Empty(w, e.Error, uri)
		assert.Equal(w, 1, purged[uri], uri)
	}
	assert.Len(w, purged, len(results))
}

// checkPace checks that no three requests arrived within a second.
func (w *world) checkPace() (shortest time.Duration) {
	all := w.service.Requests()
	shortest = time.Hour
	for i := 2; i < len(all); i++ {
		shortest = min(shortest, all[i].Time.Sub(all[i-2].Time))
	}
	assert.GreaterOrEqual(w, shortest, time.Second, "three requests within a second")
	return shortest
}

// 50 processes with 10 goroutines and one URI each begin at the same moment. The start of the processes does not count.
func TestFiftyProcesses(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const processes, goroutines = 50, 10
		f := w.startFleet(processes, nil)
		var all []string
		for i, c := range f.children {
			var own []string
			for j := range goroutines {
				own = append(own, page(goroutines*i+j))
			}
			all = append(all, own...)
			c.give(order{URIs: own, Within: time.Minute})
		}
		results := f.waitFor(time.Minute+10*time.Second, all)
		w.checkAccepted(results)
		w.checkPace()
		assert.LessOrEqual(w, len(w.service.Requests()), 6)
		took := waits(results)
		longest := took[len(took)-1]
		assert.Less(w, longest, 4*time.Second)
		w.Logf("%d URIs: %d requests, longest wait %v", len(all), len(w.service.Requests()), longest)
	})
}

// 20 processes purge 200 URIs a second, for a minute. With -short it is 10 s. The test runs alone: beside the others, the
// machine would be so busy that the measured waits were its own.
func TestSteadyLoad(t *testing.T) { //nolint:paralleltest // see above
	inWorld(t, func(w *world) {
		const processes, perSecond = 20, 200
		lasts := time.Minute
		if testing.Short() {
			lasts = 10 * time.Second
		}
		f := w.startFleet(processes, nil)
		var all []string
		began := time.Now()
		for i := range int(lasts.Seconds()) * perSecond {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / perSecond)))
			all = append(all, page(i))
			f.children[i%processes].give(order{URIs: all[i:], Within: time.Minute})
		}
		results := f.waitFor(time.Minute+10*time.Second, all)
		w.checkAccepted(results)
		shortest := w.checkPace()
		took := waits(results)
		p99 := took[len(took)*99/100]
		assert.Less(w, p99, 2*time.Second)
		w.Logf("%d URIs in %v: %d requests, three of them in %v; waits: median %v, p99 %v, longest %v", len(all), lasts,
			len(w.service.Requests()), shortest, took[len(took)/2], p99, took[len(took)-1])
	})
}

// The service refuses one URI in a thousand. It fails for its callers alone, also if another process sent the request.
func TestRefusedURIAcrossProcesses(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const processes, goroutines, refused = 20, 50, "https://www.example.org/refused"
		f := w.startFleet(processes, nil)
		var good []string
		for i, c := range f.children {
			var own []string
			for j := range goroutines {
				own = append(own, page(goroutines*i+j))
			}
			good = append(good, own...)
			c.give(order{URIs: own, Within: time.Minute})
		}
		// At most one of these processes sends it.
		var bad []string
		for i := range 3 {
			mark := fmt.Sprint(" of process ", i)
			bad = append(bad, refused+mark)
			f.children[i].give(order{URIs: []string{refused}, Mark: mark, Within: time.Minute})
		}
		w.checkAccepted(f.waitFor(time.Minute+10*time.Second, good))
		remote := 0
		for _, e := range f.waitFor(time.Minute+10*time.Second, bad) {
			assert.True(w, e.matches("ErrBadRequest"), e.Error)
			assert.Equal(w, webdelivery.OutcomeNotApplied, e.Outcome, e.Error)
			assert.Equal(w, []string{refused}, e.Failed)
			if e.matches("RemoteError") {
				remote++
			}
		}
		assert.GreaterOrEqual(w, remote, 1, "no caller has the error of another process")
		w.checkPace()
		w.Logf("%d requests, %d of %d errors from other processes", len(w.service.Requests()), remote, len(bad))
	})
}

// Processes are killed while they have a batch, ten times in a run of 2,000 URIs. With -short it is twice in 400.
//
// A permit of a killed process is lost for 16.05 s. The kills are further apart, so that one slot is always left.
func TestKilledHolders(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const processes, lease, apart, perSecond = 6, 3 * time.Second, 17 * time.Second, 12
		kills := 10
		if testing.Short() {
			kills = 2
		}
		total := 200 * kills
		f := w.startFleet(processes, func(s *setUp) { s.Lease, s.Hold = lease, 150*time.Millisecond })
		began := time.Now()
		killed := []time.Time{began}
		made := map[string]madeCall{}
		for i := range total {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / perSecond)))
			if n := len(killed) - 1; n < kills && time.Since(began) > time.Second+time.Duration(n)*apart {
				f.killHolder()
				killed = append(killed, time.Now())
			}
			c := f.children[i%processes]
			made[page(i)] = madeCall{c, time.Now()}
			c.give(order{URIs: []string{page(i)}, Within: 30 * time.Second, Enqueue: i%4 == 0})
		}
		require.Len(w, killed, kills+1)
		var survive []string
		for uri, call := range made {
			if !call.by.killed {
				survive = append(survive, uri)
			}
		}
		f.waitFor(40*time.Second, survive)
		last := []string{page(total)} // all others have been taken when this one has ended
		f.children[0].give(order{URIs: last, Within: 30 * time.Second})
		f.waitFor(40*time.Second, last)
		f.end()

		record, longest := w.purgedURIs(), make([]time.Duration, len(killed))
		for uri, e := range f.results { // calls of killed processes that had returned are among them
			assert.Empty(w, e.Error, uri)
			assert.Positive(w, record[uri], uri)
			end, kill := made[uri].at.Add(e.Took), 0
			for kill+1 < len(killed) && end.After(killed[kill+1]) {
				kill++
			}
			longest[kill] = max(longest[kill], e.Took)
		}
		took := waits(f.results)
		assert.Less(w, took[len(took)-1], lease+3*time.Second)
		shortest := w.checkPace()
		w.Logf("%d URIs, %d handed over, %d kills, %d requests, three of them in %v; waits: p99 %v; longest before the first kill and after each: %v",
			total, len(f.results), kills, len(w.service.Requests()), shortest, took[len(took)*99/100], longest)
	})
}

// madeCall is a call that a child was asked for.
type madeCall struct {
	by *child
	at time.Time
}

// killHolder waits until a process has one request under way, and kills it. A new process takes its place.
func (f *fleet) killHolder() {
	victim := 0
	f.wait(10*time.Second, "no process sends a request", func() bool {
		victim = slices.IndexFunc(f.children, func(c *child) bool { return c.sends == 1 })
		return victim >= 0
	})
	f.children[victim].kill()
	f.children[victim] = f.start()
	f.children[victim].waitUntilReady()
}
