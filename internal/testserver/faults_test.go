package testserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// A rule selects requests by method and path. The path is compared by element, as received.
func TestFaultsMatch(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, path string
		hits         []string
	}{
		{"", "", []string{"GET /tasks", "GET /tasks/a%2Fb", "GET /tasks/1", "POST /sessions", "GET /x/y/z", "outside"}},
		{"POST", "", []string{"POST /sessions"}},
		{"", "/tasks", []string{"GET /tasks"}},
		{"", "/tasks/*", []string{"GET /tasks/a%2Fb", "GET /tasks/1"}},
		{"", "/tasks/a%2Fb", []string{"GET /tasks/a%2Fb"}},
		{"", "/tasks/a/b", nil},
		{"", "/tasks/**", []string{"GET /tasks", "GET /tasks/a%2Fb", "GET /tasks/1"}},
		{"", "/**", []string{"GET /tasks", "GET /tasks/a%2Fb", "GET /tasks/1", "POST /sessions", "GET /x/y/z"}},
		{"", "/*/*", []string{"GET /tasks/a%2Fb", "GET /tasks/1"}},
		{"", "/*/y/**", []string{"GET /x/y/z"}},
		{"PUT", "/tasks", nil},
	} {
		f := start(t, testserver.Config{})
		f.Fail(testserver.Fault{Method: tc.method, Path: tc.path, Status: 418})
		var hits []string
		for _, request := range []string{"GET /tasks", "GET /tasks/a%2Fb", "GET /tasks/1", "POST /sessions", "GET /x/y/z"} {
			method, path, _ := strings.Cut(request, " ")
			if f.do(method, path, "").status == 418 {
				hits = append(hits, request)
			}
		}
		if f.get(f.URL()+"/other/v1/tasks").status == 418 {
			hits = append(hits, "outside")
		}
		assert.Equal(t, tc.hits, hits, "%s %s", tc.method, tc.path)
		assert.Equal(t, len(tc.hits), f.Count(tc.method, tc.path), "Count takes the same patterns")
	}
}

// The first rule with hits left wins. If it lets a request pass, the next rule gets it.
func TestFaultsInOrder(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.Fail(testserver.Fault{Path: "/tasks", Status: 500, Skip: 1, Count: 2})
	f.Fail(testserver.Fault{Path: "/tasks", Status: 502, Count: 1})
	remove := f.Fail(testserver.Fault{Status: 503})
	var got []int
	for range 5 {
		got = append(got, f.get("/tasks").status)
	}
	remove()
	remove()
	got = append(got, f.get("/tasks").status)
	assert.Equal(t, []int{502, 500, 500, 503, 503, 200}, got)
}

// A rule with a probability hits the same requests in every run, whoever sends them. Only the order of arrival of the
// matching requests decides.
func TestFaultProbability(t *testing.T) {
	t.Parallel()
	const n = 400
	// hits sends n requests from so many goroutines. It returns which of them were hit, in order of arrival.
	hits := func(senders int, fault testserver.Fault) (hit []bool) {
		f := start(t, testserver.Config{})
		fault.Path, fault.Status = "/tasks", 503
		f.Fail(fault)
		var all sync.WaitGroup
		for range senders {
			all.Go(func() {
				for range n / senders {
					_, err := f.try(http.MethodGet, "/tasks", "")
					assert.NoError(t, err)
					_, err = f.try(http.MethodGet, "/tasks/1", "") // matches no rule, and changes nothing
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
		for _, seen := range f.Requests() {
			if seen.Path == "/acme/v1/tasks" {
				hit = append(hit, seen.Status == 503)
			}
		}
		return hit
	}
	count := func(hit []bool) (count int) {
		for _, h := range hit {
			if h {
				count++
			}
		}
		return count
	}
	alone := hits(1, testserver.Fault{Probability: 0.25, Seed: 7})
	assert.InDelta(t, n/4, count(alone), 35, "four standard deviations of a binomial distribution")
	assert.Equal(t, alone, hits(4, testserver.Fault{Probability: 0.25, Seed: 7}))
	assert.NotEqual(t, alone, hits(1, testserver.Fault{Probability: 0.25, Seed: 8}))
	assert.Equal(t, append(make([]bool, 10), alone[:n-10]...), hits(1, testserver.Fault{Probability: 0.25, Seed: 7, Skip: 10}))
	assert.Equal(t, 3, count(hits(1, testserver.Fault{Probability: 0.25, Count: 3})))
	assert.Equal(t, n, count(hits(1, testserver.Fault{Probability: 1})))
	assert.Equal(t, n, count(hits(1, testserver.Fault{})))
}

// Fail panics for a Probability outside 0 to 1, an unknown Cut, and negative numbers. It also panics for a Status that
// net/http would reject or treat as interim.
func TestFaultNonsense(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	for _, p := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		assert.PanicsWithValue(t, fmt.Sprintf("testserver: Fault.Probability is %v: use 0 to 1; 0 hits every request", p), func() {
			f.Fail(testserver.Fault{Probability: p})
		})
	}
	for _, status := range []int{-1, 1, 100, 199, 1000} {
		assert.PanicsWithValue(t, fmt.Sprintf("testserver: Fault.Status is %d: use 200 to 999, or 0 to execute the request", status), func() {
			f.Fail(testserver.Fault{Status: status})
		})
	}
	for want, fault := range map[string]testserver.Fault{
		"Cut is -1: use one of the Cut constants": {Cut: -1},
		"Cut is 6: use one of the Cut constants":  {Cut: testserver.CutChunked + 1},
		"Skip is -1: use 0 or more":               {Skip: -1},
		"Count is -2: use 0 or more":              {Count: -2},
		"CutAfter is -3: use 0 or more":           {CutAfter: -3},
		"Delay is -1s: use 0 or more":             {Delay: -time.Second},
		"Stall is -1ns: use 0 or more":            {Stall: -1},
		"Dribble is -1m0s: use 0 or more":         {Dribble: -time.Minute},
	} {
		assert.PanicsWithValue(t, "testserver: Fault."+want, func() { f.Fail(fault) })
	}
	assert.Equal(t, 200, f.get("/tasks").status, "no rule is left behind")
}

// The place of a cut decides whether the request is executed, in memory and on TCP.
func TestCuts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20) // more than all buffers on the way can hold
	big := uris(exact("www.example.com/"+long), exact("www.example.com/b"))
	for name, tc := range map[string]struct {
		fault    testserver.Fault
		status   int // 0: no response
		got      string
		executed bool
		read     bool
	}{
		"before read":       {testserver.Fault{Cut: testserver.CutBeforeRead}, 0, "", false, false},
		"after read":        {testserver.Fault{Cut: testserver.CutAfterRead}, 0, "", false, true},
		"after execute":     {testserver.Fault{Cut: testserver.CutAfterExecute}, 0, "", true, true},
		"in the body":       {testserver.Fault{Cut: testserver.CutBody, Body: "12345678"}, 201, "1234", true, true},
		"in chunks":         {testserver.Fault{Cut: testserver.CutChunked, Body: "12345678"}, 201, "1234", true, true},
		"in an error":       {testserver.Fault{Cut: testserver.CutBody, Body: "12345678", Status: 500}, 500, "1234", false, true},
		"of an empty body":  {testserver.Fault{Cut: testserver.CutBody, Status: 200}, 200, "", false, true},
		"of empty chunks":   {testserver.Fault{Cut: testserver.CutChunked, Status: 200}, 200, "", false, true},
		"in a dribble":      {testserver.Fault{Cut: testserver.CutBody, Body: "1234", Dribble: 1}, 201, "12", true, true},
		"of its own length": {testserver.Fault{Body: "12345", Header: http.Header{"Content-Length": {"100"}}}, 201, "12345", true, true},
	} {
		for _, body := range []string{onePurge, big} {
			for _, wire := range []string{"memory", "tcp"} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, len(body), wire), func(t *testing.T) {
					t.Parallel()
					f := startOn(t, wire)
					f.Fail(tc.fault)
					resp, err := f.client.Do(f.request(http.MethodPost, "/cache/purge", body))
					if tc.status == 0 {
						require.Error(t, err)
					} else {
						require.NoError(t, err)
						got, err := io.ReadAll(resp.Body)
						require.ErrorIs(t, err, io.ErrUnexpectedEOF)
						require.NoError(t, resp.Body.Close())
						assert.Equal(t, tc.got, string(got))
						assert.Equal(t, tc.status, resp.StatusCode)
					}
					assert.Equal(t, tc.executed, len(f.Purged()) == 1)
					require.NoError(t, f.Close()) // the handler has returned then
					seen := f.Requests()
					require.Len(t, seen, 1)
					assert.Equal(t, tc.status, seen[0].Status)
					assert.Equal(t, tc.read, len(seen[0].Body) == len(body))
				})
			}
		}
	}
}

func startOn(t *testing.T, wire string) fake {
	t.Helper()
	if wire == "memory" {
		return start(t, testserver.Config{})
	}
	s := testserver.New(testserver.Config{})
	_, err := s.ListenTCP()
	require.NoError(t, err)
	transport := s.Transport()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		assert.NoError(t, s.Close())
	})
	return fake{Server: s, t: t, client: &http.Client{Transport: transport}}
}

// A delay comes before execution. If the client disconnects, the delay ends and the request is not executed.
func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t, testserver.Config{Clock: testserver.NewClock(nil)})
		f.Fail(testserver.Fault{Delay: time.Hour})
		began := time.Now()
		assert.Equal(t, 201, f.purge(onePurge).status)
		assert.Equal(t, time.Hour, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := f.client.Do(f.request(http.MethodPost, "/cache/purge", onePurge).WithContext(ctx))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		assert.Equal(t, time.Hour+time.Minute, time.Since(began))
		assert.Len(t, f.Purged(), 1)
		assert.Zero(t, f.Requests()[1].Status)
	})
}

// A dribbled body comes byte by byte, and ends when the client disconnects.
func TestDribble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t, testserver.Config{})
		f.Fail(testserver.Fault{Body: "12345", Dribble: time.Second})
		began := time.Now()
		resp, err := f.client.Do(f.request(http.MethodGet, "/tasks", ""))
		require.NoError(t, err)
		assert.Zero(t, time.Since(began), "the headers come at once")
		var first [5]byte
		n, err := resp.Body.Read(first[:])
		require.NoError(t, err)
		assert.Equal(t, "1", string(first[:n]))
		assert.Equal(t, time.Second, time.Since(began))
		rest, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, "2345", string(rest))
		assert.Equal(t, 5*time.Second, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		resp, err = f.client.Do(f.request(http.MethodGet, "/tasks", "").WithContext(ctx))
		require.NoError(t, err)
		rest, err = io.ReadAll(resp.Body)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, "12", string(rest))
	})
}

// A handler of a fault gets the whole request and has full control. The request is recorded and not executed.
func TestFaultHandler(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.Fail(testserver.Fault{Path: "/cache/purge", Handler: func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(body)
	}})
	f.Fail(testserver.Fault{Path: "/sessions", Handler: func(w http.ResponseWriter, _ *http.Request) {
		flusher, _ := w.(http.Flusher)
		flusher.Flush()
		assert.NoError(t, http.NewResponseController(w).SetWriteDeadline(time.Time{}))
		_, _ = io.WriteString(w, "late")
	}})
	f.Fail(testserver.Fault{Path: "/tasks", Count: 1, Handler: func(http.ResponseWriter, *http.Request) {}})
	f.Fail(testserver.Fault{Path: "/tasks", Handler: func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, err = io.WriteString(conn, "ICY 200 OK\r\n\r\n")
		}
		assert.NoError(t, errors.Join(err, conn.Close()))
	}})
	r := f.purge(onePurge)
	assert.Equal(t, http.StatusTeapot, r.status)
	assert.Equal(t, onePurge, r.body)
	assert.Equal(t, "late", f.do(http.MethodPost, "/sessions", "").body)
	assert.Equal(t, 200, f.get("/tasks").status)
	_, err := f.try(http.MethodGet, "/tasks", "")
	require.ErrorContains(t, err, "malformed HTTP")
	assert.Empty(t, f.Purged())
	var statuses []int
	for _, seen := range f.Requests() {
		statuses = append(statuses, seen.Status)
	}
	assert.Equal(t, []int{418, 200, 200, 0}, statuses)
}
