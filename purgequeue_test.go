package webdelivery_test

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// object returns the i-th of many URIs.
func object(i int) string { return fmt.Sprintf("https://www.example.com/%d", i) }

// inQueue runs a test with a queue and closes it. If a goroutine is left, the test fails.
func inQueue(t *testing.T, s fixture.Setup, options webdelivery.QueueOptions, test func(f *fixture.Fixture, q *webdelivery.PurgeQueue)) {
	t.Helper()
	fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
		q := f.NewQueue(options)
		test(f, q)
		require.NoError(f, q.Close(f.Context()))
	})
}

// With the next permit, the queue sends the URIs that wait: two requests at once, and two every 1.05 s. A request has
// identical URIs once, at most MaxURIs and MaxBodyBytes, and all URIs of one caller together: those of the oldest one, and
// then whatever fits. The queue refuses a call without a URI, and one with more than fit into one request.
func TestRequestsOfAQueue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		options     webdelivery.QueueOptions
		calls, want string // the objects of each call and of each request; without a request, the call is refused
	}{
		{webdelivery.QueueOptions{}, "1 23 4", "1234"},
		{webdelivery.QueueOptions{MaxURIs: 3}, "12 34 5", "125 34"},
		{webdelivery.QueueOptions{MaxURIs: 2}, "121 21 3", "12 3"},
		// An object takes 73 bytes with its comma, and 100 bytes are reserved for the frame.
		{webdelivery.QueueOptions{MaxBodyBytes: 100 + 2*73}, "1 2 3", "12 3"},
		{webdelivery.QueueOptions{MaxBodyBytes: 100 + 3*73 - 1}, "1 2 3", "12 3"},
		{webdelivery.QueueOptions{MaxBodyBytes: 100 + 3*73}, "123", "123"},
		{webdelivery.QueueOptions{MaxBodyBytes: 1}, "1 2", "1 2"}, // each is too long, so it is sent alone
		{webdelivery.QueueOptions{}, "", ""},
		{webdelivery.QueueOptions{MaxURIs: 2}, "123", ""},
		{webdelivery.QueueOptions{MaxBodyBytes: 100 + 3*73 - 1}, "123", ""},
		{webdelivery.QueueOptions{MaxPending: 2}, "123", ""},
	} {
		inQueue(t, fixture.Setup{}, tt.options, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
			var wg sync.WaitGroup
			for digits := range strings.SplitSeq(tt.calls, " ") {
				wg.Go(func() {
					_, err := q.Purge(f.Context(), objects(digits)...)
					if tt.want == "" {
						assert.ErrorContains(f, err, "invalid uris")
					} else {
						assert.NoError(f, err)
					}
				})
				synctest.Wait() // so that the calls are queued in this order
			}
			wg.Wait()
			var got []string
			for _, p := range f.Srv.Purged() {
				var digits []byte
				for _, u := range p.URIs {
					digits = append(digits, u.URIPattern[len(object(0))-1:]...)
				}
				slices.Sort(digits)
				got = append(got, string(digits))
			}
			assert.ElementsMatch(f, strings.Fields(tt.want), got, "two leave at once, so their order is open")
			assert.Equal(f, inPairs(len(got)), arrivals(f))
		})
	}
}

// objects returns the URI of an object for each digit.
func objects(digits string) (uris []webdelivery.PurgeURI) {
	for _, digit := range digits {
		uris = append(uris, webdelivery.Exact(object(int(digit-'0'))))
	}
	return uris
}

// refusing is a service that accepts two purges in any second, and refuses those with certain URIs. It answers after 20 ms.
type refusing struct {
	*testing.T
	queue   *webdelivery.PurgeQueue
	refuses func(uri string) bool
	status  int // of a refusal; 0: 400
	most    int // bytes of a request; 0: no limit
	delay   time.Duration
	began   time.Time

	mu       sync.Mutex
	requests []string // the last parts of their URIs
	arrived  []time.Time
	sizes    []int // of the accepted requests
	refused  int   // requests
	canceled int   // requests
}

func inRefusing(t *testing.T, options webdelivery.QueueOptions, refuses func(uri string) bool, test func(s *refusing), more ...webdelivery.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &refusing{T: t, refuses: refuses, delay: 20 * time.Millisecond, began: time.Now()}
		origin := "https://" + strings.ToLower(crand.Text()) + ".example.com" // purges of one origin share their permits
		client, err := webdelivery.NewClient(origin, fixture.Customer, webdelivery.BasicAuth(fixture.Username, fixture.Password),
			append(more, webdelivery.WithHTTPClient(&http.Client{Transport: fixture.RoundTripper(s.answer)}))...)
		require.NoError(t, err)
		s.queue, err = client.Purge.NewQueue(options)
		require.NoError(t, err)
		test(s)
		require.NoError(t, s.queue.Close(t.Context()))
	})
}

func (s *refusing) answer(r *http.Request) (*http.Response, error) {
	var body struct {
		PurgeRequest struct {
			URIs []struct {
				Pattern string `json:"uri_pattern"`
			} `json:"uris"`
		} `json:"purge_request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	var all strings.Builder
	for _, u := range body.PurgeRequest.URIs {
		all.WriteString(path.Base(u.Pattern))
	}
	s.mu.Lock()
	s.requests = append(s.requests, all.String())
	s.mu.Unlock()
	err := sleep(r.Context(), s.delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.canceled++
		return nil, err
	}
	s.arrived = append(s.arrived, time.Now())
	if n := len(s.arrived); n > 2 {
		assert.Greater(s, s.arrived[n-1].Sub(s.arrived[n-3]), time.Second, "three purges arrive within a second")
	}
	for _, u := range body.PurgeRequest.URIs {
		if s.refuses(u.Pattern) {
			s.refused++
			status := cmp.Or(s.status, http.StatusBadRequest)
			return fixture.Response(status, fmt.Appendf(nil, `{"code":%d,"description":"request could not be validated"}`, status)), nil
		}
	}
	if s.most > 0 && int(r.ContentLength) > s.most {
		return fixture.Response(http.StatusRequestEntityTooLarge, []byte("<html>too large</html>")), nil
	}
	s.sizes = append(s.sizes, int(r.ContentLength))
	return fixture.Response(http.StatusCreated, fmt.Appendf(nil, `{"code":201,"transaction_id":%d}`, len(s.arrived))), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

const half = time.Second / 2

// inSteps is inRefusing with a limiter, by default of a permit each second. The service refuses some letters, and answers
// after half a second.
func inSteps(t *testing.T, options webdelivery.QueueOptions, limit webdelivery.Option, refused string, test func(s *refusing)) {
	t.Helper()
	if limit == nil {
		limit = webdelivery.WithPurgeLimiter(rate.NewLimiter(1, 1))
	}
	inRefusing(t, options, func(uri string) bool { return strings.Contains(refused, path.Base(uri)) }, func(s *refusing) {
		s.delay = half
		test(s)
	}, limit)
}

// ended is how a purge of letters ends.
type ended struct {
	receipt int64  // the last one
	failed  string // letters
	why     error  // the last sentinel that the error matches
	outcome webdelivery.Outcome
	after   time.Duration
}

// start begins to purge a URI for each letter. Those of lower and upper case letters have a host each.
func (s *refusing) start(ctx context.Context, letters string) <-chan ended {
	var uris []string
	for _, letter := range letters {
		host := "upper"
		if letter >= 'a' {
			host = "lower"
		}
		uris = append(uris, fmt.Sprintf("https://%s.example.com/%c", host, letter))
	}
	result := make(chan ended, 1)
	go func() {
		receipts, err := s.queue.Purge(ctx, exacts(uris...)...)
		end := ended{after: time.Since(s.began).Round(100 * time.Millisecond)}
		for _, receipt := range receipts {
			end.receipt = max(end.receipt, receipt.TransactionID)
		}
		if failed, ok := errors.AsType[*webdelivery.QueueError](err); ok {
			end.outcome = failed.Outcome
			for _, f := range failed.Failures {
				end.failed += path.Base(f.URI.URIPattern)
			}
		}
		for _, why := range []error{context.Canceled, context.DeadlineExceeded, assert.AnError, webdelivery.ErrQueueClosed, webdelivery.ErrBadRequest, webdelivery.ErrHostRefused} {
			if errors.Is(err, why) {
				end.why = why
			}
		}
		result <- end
	}()
	synctest.Wait()
	return result
}

// within returns a context that ends after d.
func (s *refusing) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), d)
	s.Cleanup(cancel)
	return ctx
}

// purge purges URIs, which the service must accept, and returns how long that takes.
func (s *refusing) purge(uris ...string) time.Duration {
	began := time.Now()
	_, err := s.queue.Purge(s.Context(), exacts(uris...)...)
	assert.NoError(s, err)
	return time.Since(began)
}

// refusedURIs purges URIs of which some are refused, and returns the error.
func (s *refusing) refusedURIs(uris []string) *webdelivery.QueueError {
	s.Helper()
	_, err := s.queue.Purge(s.Context(), exacts(uris...)...)
	failed, ok := errors.AsType[*webdelivery.QueueError](err)
	require.True(s, ok)
	return failed
}

// hosts returns URIs of good hosts, and then of refused ones.
func hosts(good, each, refused, ofEach int) (uris []string) {
	for i := range good {
		uris = append(uris, urisOf(fmt.Sprintf("www%d.example.com", i), each)...)
	}
	for i := range refused {
		uris = append(uris, urisOf(fmt.Sprintf("refused%d.example.org", i), ofEach)...)
	}
	return uris
}

// steadily purges n URIs at a rate. The service must accept them, and none waits for too long.
func (s *refusing) steadily(n, perSecond int, uri func(i int) string, mean, longest time.Duration) {
	var all sync.WaitGroup
	took, sum := make([]time.Duration, n), time.Duration(0)
	for i := range took {
		all.Go(func() {
			time.Sleep(time.Duration(i) * time.Second / time.Duration(perSecond))
			took[i] = s.purge(uri(i))
		})
	}
	all.Wait()
	for _, d := range took {
		sum += d
	}
	assert.LessOrEqual(s, sum/time.Duration(n), mean)
	assert.LessOrEqual(s, slices.Max(took), longest)
}

// urisOf returns URIs of a host.
func urisOf(host string, n int) (uris []string) {
	for i := range n {
		uris = append(uris, fmt.Sprintf("https://%s/%d", host, i))
	}
	return uris
}

// refusedHost reports whether the service refuses the host of a URI.
func refusedHost(uri string) bool { return strings.Contains(uri, "refused") }

// paths returns n URIs of one host, and a service that refuses some of them.
func paths(r *rand.Rand, n, refused int) (uris []string, refuses func(string) bool) {
	uris, set := urisOf("www.example.com", n), map[string]bool{}
	for _, i := range r.Perm(n)[:refused] {
		set[uris[i]] = true
	}
	return uris, func(uri string) bool { return set[uri] }
}

// A refused request is split by host first: few requests find refused hosts and paths, in any order, and no good URI
// fails. Nothing is said about a URI that the service has not said.
func TestRefusedURIsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		uris     []string // nil: of one host
		paths    int      // of that host are refused
		requests int
		within   time.Duration
	}{
		{"20 of 1,000, of one host", hosts(1, 980, 1, 20), 0, 15, 8 * time.Second},
		{"200 of 1,000, of one host", hosts(1, 800, 1, 200), 0, 15, 8 * time.Second},
		{"all 1,000", hosts(0, 0, 1, 1000), 0, 15, 8 * time.Second},
		{"20 of 10,000, of one of 9 hosts", hosts(8, 1247, 1, 20), 0, 15, 8 * time.Second},
		{"20 of 1,000, each of another host", hosts(1, 980, 20, 1), 0, 45, 24 * time.Second},
		{"1 of 1,000 paths", nil, 1, 25, 14 * time.Second},
		{"3 of 1,000 paths", nil, 3, 60, 32 * time.Second},
		{"20 of 1,000 paths", nil, 20, 230, 2 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(fixture.Cases(5, 1)) {
				r := rand.New(rand.NewPCG(seed, 1))
				uris, refuses := slices.Clone(c.uris), refusedHost
				if c.paths > 0 {
					uris, refuses = paths(r, 1000, c.paths)
				}
				r.Shuffle(len(uris), func(i, j int) { uris[i], uris[j] = uris[j], uris[i] })
				inRefusing(t, webdelivery.QueueOptions{}, refuses, func(s *refusing) {
					began := time.Now()
					failed := s.refusedURIs(uris)
					assert.LessOrEqual(s, len(s.arrived), c.requests)
					assert.LessOrEqual(s, time.Since(began), c.within)
					want := slices.DeleteFunc(slices.Clone(uris), func(uri string) bool { return !refuses(uri) })
					assert.Equal(s, exacts(want...), failedURIs(failed), "seed %d", seed)
					for _, f := range failed.Failures {
						assert.Equal(s, webdelivery.OutcomeNotApplied, f.Outcome)
						alone, host := errors.Is(f.Err, webdelivery.ErrBadRequest), errors.Is(f.Err, webdelivery.ErrHostRefused)
						assert.NotEqual(s, alone, host, "%v", f.Err)
						if host {
							name := strings.Split(f.URI.URIPattern, "/")[2]
							assert.EqualError(s, f.Err, "webdelivery: host refused: the service refused 5 URIs of "+name+" alone and accepted none "+
								"meanwhile, so this one was not sent alone; repeating helps only when rights or configuration change")
						}
					}
				})
			}
		})
	}
}

// If the service refuses too many paths of a good host, the search ends after 1 + 15*log2(n) refused requests. Nobody is
// told that a good URI is refused, and the others match ErrRefusedTogether.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	uris, refuses := paths(rand.New(rand.NewPCG(1, 1)), 1000, 300)
	inRefusing(t, webdelivery.QueueOptions{}, refuses, func(s *refusing) {
		s.purge("https://www.example.com/") // so that the host is known as good
		failed := s.refusedURIs(uris)
		assert.InDelta(s, 1+15*10, s.refused, 3, "and those under way")
		assert.Equal(s, webdelivery.OutcomeUnknown, failed.Outcome, "some URIs were purged")
		for _, f := range failed.Failures {
			assert.Equal(s, webdelivery.OutcomeNotApplied, f.Outcome)
			if errors.Is(f.Err, webdelivery.ErrBadRequest) {
				assert.True(s, refuses(f.URI.URIPattern), "a good URI is called refused")
				continue
			}
			assert.ErrorIs(s, f.Err, webdelivery.ErrRefusedTogether)
		}
	})
}

// Callers of good hosts hardly notice that others purge refused ones: one, or a new one with each call. Nor do callers of
// hosts that the service has not seen before, if a new one is refused every 2 s.
func TestGoodCallsBesideRefusedOnes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		newHosts, perSecond int
		refusedHosts        int
		every               time.Duration
		mean, longest       time.Duration
	}{
		{0, 15, 1, time.Second / 5, 800 * time.Millisecond, 3 * time.Second},
		{0, 15, 1000, time.Second / 20, 800 * time.Millisecond, 3 * time.Second},
		{1000, 1, 1000, 2 * time.Second, 5 * time.Second, 30 * time.Second},
	} {
		inRefusing(t, webdelivery.QueueOptions{}, refusedHost, func(s *refusing) {
			var all sync.WaitGroup
			good := object
			if c.newHosts > 0 {
				good = func(i int) string { return fmt.Sprintf("https://new%d.example.com/", i%c.newHosts) }
			}
			all.Go(func() { s.steadily(30*c.perSecond, c.perSecond, good, c.mean, c.longest) })
			for i := range int(30 * time.Second / c.every) {
				all.Go(func() {
					time.Sleep(time.Duration(i) * c.every)
					_, err := s.queue.Purge(s.Context(), exacts(fmt.Sprintf("https://refused%d.example.org/%d", i%c.refusedHosts, i))...)
					assert.Equal(s, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				})
			}
			all.Wait()
		})
	}
}

// Refused paths, alone or in a bulk, hold up the other URIs of their hosts for a moment only.
func TestGoodCallsOfHostsWithRefusedPaths(t *testing.T) {
	t.Parallel()
	inRefusing(t, webdelivery.QueueOptions{}, refusedHost, func(s *refusing) {
		s.purge("https://www0.example.com/", "https://www1.example.com/", "https://www2.example.com/", "https://bulk.example.com/")
		var all sync.WaitGroup
		all.Go(func() {
			bulk := urisOf("bulk.example.com", 5000)
			for i := range 5 {
				bulk[i*1000] += "/refused"
			}
			assert.Len(s, s.refusedURIs(bulk).Failures, 5)
		})
		for i := range 3 {
			all.Go(func() { s.refusedURIs([]string{fmt.Sprintf("https://www%d.example.com/refused", i)}) })
		}
		good := func(i int) string { return fmt.Sprintf("https://www%d.example.com/%d", i%3, i) }
		s.steadily(15*60, 15, good, 1200*time.Millisecond, 20*time.Second) // the longest are in one request with the bulk
		all.Wait()
	})
}

// A request that is too large for a gateway is halved, and the next ones have a size that it lets pass, which grows again
// while it does. A URI that is too large alone fails alone.
func TestRequestsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	inRefusing(t, webdelivery.QueueOptions{MaxBodyBytes: 1 << 20}, refusedHost, func(s *refusing) {
		s.most = 1 << 18
		purge := func() {
			var all sync.WaitGroup
			for i := range 300 {
				all.Go(func() { s.purge(object(i) + strings.Repeat("a", 3_200)) })
			}
			all.Wait()
		}
		purge()
		assert.LessOrEqual(s, len(s.arrived), 8, "0.98 MB, two halves, and four of these")
		for range 10 {
			purge()
		}
		assert.LessOrEqual(s, len(s.arrived), 8+10*6, "4 of 250 kB each, and 1 of 12 is too large")
		failed := s.refusedURIs([]string{object(1) + strings.Repeat("a", 1<<18), object(2)})
		require.Len(s, failed.Failures, 1)
		refusal, _ := errors.AsType[*webdelivery.Error](failed.Failures[0].Err)
		assert.Equal(s, http.StatusRequestEntityTooLarge, refusal.StatusCode)
		assert.Equal(s, webdelivery.OutcomeNotApplied, failed.Failures[0].Outcome)
		s.most = 0
		for range 20 {
			purge()
		}
		assert.Greater(s, s.sizes[len(s.sizes)-1], 900_000)
	})
}

// A URI for which the service fails is found, like a refused one, while it accepts others; and it is the only one that
// fails. In an outage nobody is halved.
func TestFaultsOfAURI(t *testing.T) {
	t.Parallel()
	inRefusing(t, webdelivery.QueueOptions{}, refusedHost, func(s *refusing) {
		s.status = http.StatusInternalServerError
		var all sync.WaitGroup
		good := func(i int) string { return fmt.Sprint("https://other.example.com/", i) }
		all.Go(func() { s.steadily(60, 2, good, time.Minute, time.Minute) })
		failed := s.refusedURIs(append(urisOf("www.example.com", 20), "https://refused.example.org/"))
		assert.Equal(s, exacts("https://refused.example.org/"), failedURIs(failed))
		assert.Equal(s, webdelivery.OutcomeUnknown, failed.Failures[0].Outcome)
		all.Wait()
		before := len(s.arrived)
		s.refuses = func(string) bool { return true }
		assert.Len(s, s.refusedURIs(urisOf("www.example.com", 20)).Failures, 20)
		assert.Equal(s, 4, len(s.arrived)-before)
	})
}

// Long calls do not hold up short ones, of suspect hosts or others: every 3.5 s the shortest come first.
func TestShortCallsBesideLongOnes(t *testing.T) {
	t.Parallel()
	inRefusing(t, webdelivery.QueueOptions{MaxURIs: 1000}, refusedHost, func(s *refusing) {
		s.purge("https://marred.example.com/")
		s.refusedURIs([]string{"https://marred.example.com/refused"})
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				assert.LessOrEqual(s, s.purge(urisOf(fmt.Sprintf("www%d.example.com", i), 1000)...), 121*time.Second)
			})
		}
		short := func(i int) string { return []string{object(i), fmt.Sprint("https://marred.example.com/", i)}[i%2] }
		s.steadily(200, 4, short, 6*time.Second, 6*time.Second)
		all.Wait()
	})
}

// Callers wait for room in order. The end of the caller's context and Close end the wait.
func TestRoom(t *testing.T) {
	t.Parallel()
	slow := limiter(func(context.Context) error { time.Sleep(10 * time.Second); return nil })
	inSteps(t, webdelivery.QueueOptions{MaxPending: 2, MaxURIs: 2}, webdelivery.WithPurgeLimiter(slow), "", func(s *refusing) {
		ctx, cancel := context.WithCancel(s.Context())
		first, second, third := s.start(s.Context(), "ab"), s.start(ctx, "c"), s.start(s.Context(), "d")
		time.Sleep(time.Second)
		cancel()
		assert.Equal(s, ended{failed: "c", why: context.Canceled, outcome: webdelivery.OutcomeNotApplied, after: time.Second}, <-second)
		assert.Equal(s, ended{receipt: 1, after: 10*time.Second + half}, <-first)
		assert.Equal(s, ended{receipt: 2, after: 20*time.Second + half}, <-third)
		fourth, fifth := s.start(s.Context(), "ef"), s.start(s.Context(), "g")
		require.NoError(s, s.queue.Close(s.Context()))
		closed := ended{failed: "g", why: webdelivery.ErrQueueClosed, outcome: webdelivery.OutcomeNotApplied, after: 20*time.Second + half}
		assert.Equal(s, closed, <-fifth)
		assert.Equal(s, int64(3), (<-fourth).receipt)
		closed.failed, closed.after = "h", 31*time.Second
		assert.Equal(s, closed, <-s.start(s.Context(), "h"))
	})
}

// A host is refused after five of its URIs, of which each counts once. Its calls then fail at once, and take no room.
func TestRoomOfRefusedHosts(t *testing.T) {
	t.Parallel()
	inSteps(t, webdelivery.QueueOptions{MaxPending: 2}, nil, "ABCDEF", func(s *refusing) {
		for _, item := range "AAAAAABCDEFFFFF" {
			assert.NotEmpty(s, (<-s.start(s.Context(), string(item))).failed)
		}
		assert.Equal(s, "AAAAAABCDE", strings.Join(s.requests, ""))
		assert.Empty(s, (<-s.start(s.within(time.Minute), "ab")).failed)
	})
}

// A refused URI fails only its callers. A caller with other URIs also gets their receipt. Each caller ends when its own
// URIs are decided. After the first refused URI, the rest goes in one request.
func TestEachCallerGetsItsOwnResult(t *testing.T) {
	t.Parallel()
	inSteps(t, webdelivery.QueueOptions{}, nil, "c", func(s *refusing) {
		<-s.start(s.Context(), "z") // the service accepts the host
		time.Sleep(time.Minute)
		s.began = time.Now()
		var results []<-chan ended
		for _, letters := range []string{"ab", "ccd", "c", "d", "efgh"} { // identical URIs of a call count once
			results = append(results, s.start(s.Context(), letters))
		}
		third, fifth := 3*time.Second+half, 4*time.Second+half
		for i, want := range []ended{
			{receipt: 6, after: fifth},
			{receipt: 6, failed: "c", why: webdelivery.ErrBadRequest, after: fifth},
			{failed: "c", why: webdelivery.ErrBadRequest, outcome: webdelivery.OutcomeNotApplied, after: third},
			{receipt: 6, after: fifth},
			{receipt: 6, after: fifth},
		} {
			assert.Equal(s, want, <-results[i])
		}
		assert.Equal(s, []string{"z", "cdabefgh", "cdab", "cd", "c", "efghabd"}, s.requests, "the shortest callers come first")
		assert.Equal(s, webdelivery.QueueStats{Accepted: 8, Refused: 1, Requests: 6}, s.queue.Stats())
	})
}

// When all callers have left, the wait for a permit is canceled. If the permit comes all the same, it is used for new
// callers or returned.
func TestPermitsForNobody(t *testing.T) {
	t.Parallel()
	for deaf, permits := range map[bool]int{false: 7, true: 6} {
		l := &lender{acquire: func(ctx context.Context) (time.Time, error) {
			if deaf {
				ctx = context.WithoutCancel(ctx)
			}
			return time.Time{}, sleep(ctx, 10*time.Second)
		}}
		inSteps(t, webdelivery.QueueOptions{}, webdelivery.WithSharedLimiter(l), "", func(s *refusing) {
			for range 5 { // more than may be under way
				<-s.start(s.within(time.Second), "a")
				time.Sleep(20 * time.Second)
			}
			assert.Zero(s, s.queue.Stats(), "a caller that leaves early is no failure")
			<-s.start(s.within(time.Second), "b")
			assert.Equal(s, int64(1), (<-s.start(s.Context(), "c")).receipt)
			assert.Equal(s, []string{"c"}, s.requests)
		})
		assert.Len(t, l.ends, permits)
	}
}

// A request goes on while one of its callers stays, and is canceled when all have left.
func TestLeavingARequest(t *testing.T) {
	t.Parallel()
	inSteps(t, webdelivery.QueueOptions{}, nil, "", func(s *refusing) {
		s.delay = 3 * half
		a, b, both := s.start(s.within(half/5), "a"), s.start(s.within(half/5), "b"), s.start(s.Context(), "ab")
		assert.Equal(s, ended{failed: "a", why: context.DeadlineExceeded, after: half / 5}, <-a)
		<-b
		assert.Equal(s, ended{receipt: 1, after: 3 * half}, <-both)

		assert.Equal(s, webdelivery.OutcomeUnknown, (<-s.start(s.within(half/5), "c")).outcome)
		synctest.Wait()
		assert.Equal(s, 1, s.canceled)
	})
}

// A caller that leaves learns why its purge was not sent, or what the queue waited for. If its URIs were only refused,
// together or as too fast, nothing was purged.
func TestWhyACallerLeft(t *testing.T) {
	t.Parallel()
	never := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	known := &lender{why: errors.New("the next permit comes in 5s"), acquire: func(ctx context.Context) (time.Time, error) { return time.Time{}, never(ctx) }}
	asked := 0
	one := limiter(func(ctx context.Context) error {
		if asked++; asked == 1 {
			return nil
		}
		return never(ctx)
	})
	all, underWay := webdelivery.WithPurgeLimiter(new(permits)), " while the purge was under way"
	for _, tt := range []struct {
		limit   webdelivery.Option
		fault   testserver.Fault
		why     string
		outcome webdelivery.Outcome
	}{
		{webdelivery.WithPurgeLimiter(limiter(never)), testserver.Fault{}, " before the purge was sent\n", webdelivery.OutcomeNotApplied},
		{webdelivery.WithSharedLimiter(known), testserver.Fault{}, " before the purge was sent: the next permit comes in 5s\n", webdelivery.OutcomeNotApplied},
		{all, testserver.Fault{Status: 429}, " while the service refused purges as too fast\n", webdelivery.OutcomeNotApplied},
		{webdelivery.WithPurgeLimiter(one), testserver.Fault{Status: 400}, underWay + "\n", webdelivery.OutcomeNotApplied},
		{all, testserver.Fault{Delay: time.Hour}, underWay + "\n", webdelivery.OutcomeUnknown},
		{all, testserver.Fault{Status: 502}, underWay + "; the last failure was: POST ", webdelivery.OutcomeUnknown},
	} {
		again := webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1000})
		fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{tt.limit, again}}, func(f *fixture.Fixture) {
			tt.fault.Path = "/cache/purge"
			f.AddFault(tt.fault)
			q := f.NewQueue(webdelivery.QueueOptions{})
			ctx, cancel := context.WithTimeout(f.Context(), time.Second)
			defer cancel()
			_, err := q.Purge(ctx, objects("12")...)
			require.ErrorIs(f, err, context.DeadlineExceeded)
			assert.Contains(f, err.Error()+"\n", "webdelivery: purge of "+object(1)+", "+object(2)+": context deadline exceeded"+tt.why)
			assert.Equal(f, tt.outcome, webdelivery.OutcomeOf(err))
			assert.Equal(f, strings.HasSuffix(tt.why, "5s\n"), q.Stats().Waiting != nil)
		})
	}
}

// If a request may have been applied before it was refused, the outcome of its URIs is unknown.
func TestDoubt(t *testing.T) {
	t.Parallel()
	inSteps(t, webdelivery.QueueOptions{}, nil, "ab", func(s *refusing) {
		s.status = http.StatusServiceUnavailable
		got := s.start(s.Context(), "ab")
		time.Sleep(time.Second)
		s.mu.Lock()
		s.status = http.StatusBadRequest
		s.mu.Unlock()
		end := <-got
		assert.Equal(s, ended{failed: "ab", why: webdelivery.ErrBadRequest, after: end.after}, end)
	})
}

// URIs of a host that was refused travel apart, so that the callers of others wait for one permit at most. An accepted
// URI clears the host.
func TestRefusedHostsTravelApart(t *testing.T) {
	t.Parallel()
	inSteps(t, webdelivery.QueueOptions{}, nil, "ABCDEFGHIJ", func(s *refusing) {
		<-s.start(s.Context(), "a")
		good, bad := s.start(s.Context(), "ab"), s.start(s.Context(), "ABCDEFGHIJ")
		assert.Equal(s, ended{receipt: 3, after: 2*time.Second + half}, <-good)
		end := <-bad
		refused := ended{failed: "ABCDEFGHIJ", why: webdelivery.ErrHostRefused, outcome: webdelivery.OutcomeNotApplied, after: end.after}
		assert.Equal(s, refused, end)
		assert.Equal(s, []string{"a", "abABCDEFGHIJ", "ab"}, s.requests[:3], "accepted hosts come first")
		assert.Len(s, s.requests, 3+5)
		for _, alone := range s.requests[3:] {
			assert.Len(s, alone, 1)
		}

		s.requests, refused.failed = nil, "AB"
		assert.Equal(s, refused, <-s.start(s.Context(), "AB"))
		assert.Empty(s, s.requests, "for 10 s it is known")
		time.Sleep(10 * time.Second)
		purge := func() { // both
			bad, good := s.start(s.Context(), "AB"), s.start(s.Context(), "c")
			<-good
			<-bad
		}
		purge()
		assert.Len(s, s.requests, 2, "c, and one of A and B")

		time.Sleep(10 * time.Second)
		s.requests, s.refuses = nil, func(string) bool { return false }
		<-s.start(s.Context(), "AB")
		purge()
		require.Len(s, s.requests, 4)
		assert.Len(s, s.requests[0]+s.requests[1], 2, "alone first")
		assert.ElementsMatch(s, []string{"c", "AB"}, s.requests[2:], "apart for ten minutes")
		time.Sleep(10 * time.Minute)
		purge()
		assert.Equal(s, "cAB", s.requests[4])
	})
}

// If a permit fails, the parts that wait for one fail, too.
func TestPermitsOfParts(t *testing.T) {
	t.Parallel()
	asked := 0
	failing := limiter(func(context.Context) error {
		if asked++; asked == 1 {
			return nil
		}
		time.Sleep(half)
		return assert.AnError
	})
	inSteps(t, webdelivery.QueueOptions{}, webdelivery.WithPurgeLimiter(failing), "b", func(s *refusing) {
		lost := ended{failed: "ab", why: assert.AnError, outcome: webdelivery.OutcomeNotApplied, after: time.Second}
		assert.Equal(s, lost, <-s.start(s.Context(), "ab"))
		assert.Equal(s, []string{"ab"}, s.requests)
	})
}

// Stats shows where the URIs are, and with Wait how far each transaction is. A call that was split has the receipts of all
// parts.
func TestProgressOfAQueue(t *testing.T) {
	t.Parallel()
	inQueue(t, fixture.Setup{}, webdelivery.QueueOptions{Wait: true}, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
		f.AddFault(testserver.Fault{Path: "/cache/purge", Delay: time.Second, Count: 1, Status: http.StatusBadRequest})
		var wg sync.WaitGroup
		wg.Go(func() {
			receipts, err := q.Purge(f.Context(), objects("123")...)
			assert.NoError(f, err)
			assert.Len(f, receipts, 3, "no URI was refused, so each part was accepted")
		})
		synctest.Wait()
		time.Sleep(5 * time.Millisecond)
		assert.Equal(f, webdelivery.QueueStats{Pending: 3, OldestAge: 5 * time.Millisecond}, q.Stats())
		time.Sleep(95 * time.Millisecond)
		assert.Equal(f, webdelivery.QueueStats{InFlight: 3}, q.Stats())
		time.Sleep(1100 * time.Millisecond)
		now := q.Stats()
		assert.Equal(f, 2, now.InFlight, "the first one alone was accepted")
		assert.Equal(f, 1, now.Accepted)
		require.Len(f, now.Transactions, 1)
		assert.False(f, now.Transactions[0].Complete)
		wg.Wait()
		assert.Equal(f, webdelivery.QueueStats{Accepted: 3, Requests: 4}, q.Stats())
	})
}

// If its context ends first, Close cancels: unsent URIs get an error that says so, requests under way end too, and no
// goroutine is left.
func TestCloseGivesUp(t *testing.T) {
	t.Parallel()
	for _, wait := range []bool{false, true} {
		first, dropped := webdelivery.OutcomeApplied, 3
		if wait {
			first, dropped = webdelivery.OutcomeUnknown, 4
		}
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: "/cache/purge", Skip: 1, Count: 1, Delay: time.Hour})
			f.AddFault(testserver.Fault{Path: "/transactions/*", Delay: time.Hour})
			q := f.NewQueue(webdelivery.QueueOptions{MaxURIs: 1, Wait: wait})
			var wg sync.WaitGroup
			outcomes := make([]webdelivery.Outcome, 4)
			for i := range 4 {
				wg.Go(func() {
					_, err := q.Purge(f.Context(), webdelivery.Exact(object(i)))
					outcomes[i] = webdelivery.OutcomeOf(err)
					if i > 0 || wait {
						assert.ErrorIs(f, err, webdelivery.ErrQueueClosed)
						assert.NotErrorIs(f, err, context.Canceled, "no caller's context has ended")
					}
				})
				time.Sleep(20 * time.Millisecond) // so that the first is sent alone
			}
			time.Sleep(600 * time.Millisecond) // the first was accepted, the second is under way
			ctx, cancel := context.WithTimeout(f.Context(), 100*time.Millisecond)
			defer cancel()
			require.ErrorIs(f, q.Close(ctx), context.DeadlineExceeded)
			require.EqualError(f, q.Close(f.Context()), fmt.Sprintf("webdelivery: purge queue closed: another Close dropped %d calls", dropped))
			wg.Wait()
			assert.Equal(f, []webdelivery.Outcome{first, webdelivery.OutcomeUnknown, webdelivery.OutcomeNotApplied, webdelivery.OutcomeNotApplied}, outcomes)
		})
	}
}

// A 201 means that the service accepted a purge, whatever the body is (open point 7; TestPurgeWithoutTransaction has every
// form of it). A queue that waits does not know how the transaction ends.
func TestAcceptedWithoutATransaction(t *testing.T) {
	t.Parallel()
	for options, want := range map[webdelivery.QueueOptions]webdelivery.Outcome{{}: webdelivery.OutcomeApplied, {Wait: true}: webdelivery.OutcomeUnknown} {
		synctest.Test(t, func(t *testing.T) {
			client := fixture.Answered(t, func(*http.Request) *http.Response { return fixture.Response(http.StatusCreated, []byte("garbage")) })
			q, err := client.Purge.NewQueue(options)
			require.NoError(t, err)
			_, err = q.Purge(t.Context(), webdelivery.Exact(object(1)))
			require.ErrorIs(t, err, webdelivery.ErrBadResponse)
			assert.Equal(t, want, webdelivery.OutcomeOf(err))
			require.NoError(t, q.Close(t.Context()))
		})
	}
}

// A caller that leaves while its transaction runs learns that the purge was accepted. When all its callers have left, nobody
// polls the transaction any more. Stats has the error of the last poll.
func TestLeftWhileTheTransactionRuns(t *testing.T) {
	t.Parallel()
	inQueue(t, fixture.Setup{}, webdelivery.QueueOptions{Wait: true}, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
		f.AddFault(testserver.Fault{Path: "/transactions/*", Status: http.StatusBadGateway})
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(f.Context(), time.Duration(i+1)*time.Second)
				defer cancel()
				receipts, err := q.Purge(ctx, webdelivery.Exact(object(i)))
				assert.ErrorIs(f, err, context.DeadlineExceeded)
				if assert.Len(f, receipts, 1) {
					assert.ErrorContains(f, err, fmt.Sprint("accepted transaction ", receipts[0].TransactionID))
					failed, _ := errors.AsType[*webdelivery.QueueError](err)
					assert.Equal(f, receipts[0].TransactionID, failed.Failures[0].TransactionID)
				}
			})
		}
		time.Sleep(3 * half)
		require.Len(f, q.Stats().Transactions, 1)
		assert.ErrorIs(f, q.Stats().Transactions[0].Err, webdelivery.ErrServer)
		assert.Zero(f, q.Stats().Failures)
		all.Wait()
		synctest.Wait()
		assert.Empty(f, q.Stats().Transactions)
	})
}

// Failures count failed requests and logins, also those that are repeated, until the service decides again.
func TestQueueStats(t *testing.T) {
	t.Parallel()
	inQueue(t, fixture.BySession, webdelivery.QueueOptions{}, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
		began := time.Now()
		for _, path := range []string{"/sessions", "/cache/purge"} { // the queue logs in once
			remove := f.Srv.Fail(testserver.Fault{Path: path, Status: http.StatusServiceUnavailable})
			ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
			defer cancel()
			before := q.Stats().Requests
			go func() {
				_, err := q.Purge(ctx, webdelivery.Exact(fixture.AnObject))
				assert.Error(f, err)
			}()
			time.Sleep(15 * time.Second)
			now := q.Stats()
			require.Positive(f, now.Failures)
			require.ErrorIs(f, now.Err, webdelivery.ErrServer)
			assert.WithinRange(f, now.Since, began, time.Now().Add(-10*time.Second))
			assert.Equal(f, path == "/cache/purge", now.Requests > before)
			<-ctx.Done()
			remove()
			time.Sleep(time.Minute)
		}
		_, err := q.Purge(f.Context(), webdelivery.Exact(fixture.AnObject))
		require.NoError(f, err)
		assert.Equal(f, webdelivery.QueueStats{Accepted: 1, Requests: q.Stats().Requests}, q.Stats())
	})
}

// Random cancellations, rejections, faults and cuts: each accepted URI reached the service, and each error has the
// right outcome.
func TestQueueOutcomesAreTrue(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			options := webdelivery.QueueOptions{MaxURIs: 1 + r.IntN(40), Wait: r.IntN(2) == 0}
			inQueue(t, fixture.Setup{}, options, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
				faults := []testserver.Fault{
					{Status: 503},
					{Status: 400},
					{Status: 429},
					{Cut: testserver.CutAfterRead},
					{Cut: testserver.CutAfterExecute},
					{Cut: testserver.CutBody},
					{Status: 500, Execute: true},
				}
				for range 10 {
					fault := faults[r.IntN(len(faults))]
					fault.Path, fault.Skip, fault.Count = "/cache/purge", r.IntN(20), 1+r.IntN(2)
					f.AddFault(fault)
				}
				uris, errs := make([]string, 150), make([]error, 150)
				var wg sync.WaitGroup
				for i := range uris {
					patience, pause := time.Hour, time.Duration(r.IntN(5000))*time.Millisecond
					if uris[i] = object(i); r.IntN(20) == 0 {
						uris[i] = fmt.Sprint("https://www.example.org/", i)
					}
					if r.IntN(4) == 0 {
						patience = time.Duration(1+r.IntN(3000)) * time.Millisecond
					}
					wg.Go(func() {
						time.Sleep(pause)
						ctx, cancel := context.WithTimeout(f.Context(), patience)
						defer cancel()
						_, errs[i] = q.Purge(ctx, webdelivery.Exact(uris[i]))
					})
				}
				wg.Wait()
				require.NoError(f, q.Close(f.Context()))
				purged := map[string]bool{}
				for _, p := range f.Srv.Purged() {
					for _, u := range p.URIs {
						purged[u.URIPattern] = true
					}
				}
				for i, err := range errs {
					switch outcome := webdelivery.OutcomeOf(err); {
					case outcome == webdelivery.OutcomeApplied:
						assert.Contains(f, purged, uris[i])
					case outcome == webdelivery.OutcomeNotApplied, strings.Contains(uris[i], "example.org"):
						assert.NotContains(f, purged, uris[i], "%v", err)
					}
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						assert.ErrorContains(f, err, uris[i])
					}
				}
				times := arrivals(f)
				for i := 2; i < len(times); i++ {
					assert.Greater(f, times[i]-times[i-2], time.Second)
				}
			})
		})
	}
}

func exacts(uris ...string) (all []webdelivery.PurgeURI) {
	for _, uri := range uris {
		all = append(all, webdelivery.Exact(uri))
	}
	return all
}

// A queue that waits for transactions polls 4 of them at a time, but no poll holds up others for more than a second: those
// that hang delay nobody's wait.
func TestPollsOfAQueueAreBounded(t *testing.T) {
	t.Parallel()
	inQueue(t, fixture.Setup{}, webdelivery.QueueOptions{Wait: true, MaxURIs: 1}, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
		var polling, most atomic.Int32
		var hang atomic.Bool
		hang.Store(true)
		f.AddFault(testserver.Fault{Path: "/transactions/*", Handler: func(w http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), polling.Add(1)))
			defer polling.Add(-1)
			if hang.Load() {
				<-r.Context().Done()
				return
			}
			time.Sleep(900 * time.Millisecond)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"code":200,"transaction_id":`+path.Base(r.URL.Path)+`,"transaction_response":{"transaction_status":"DONE"}}`)
		}})
		purge := func(i int) {
			_, err := q.Purge(f.Context(), webdelivery.Exact(object(i)))
			assert.NoError(f, err)
		}
		var hanging, wg sync.WaitGroup
		for i := range 8 {
			hanging.Go(func() { purge(i) })
		}
		time.Sleep(10 * time.Second) // all are accepted, and their polls hang
		hang.Store(false)
		began := time.Now()
		for i := range 8 {
			wg.Go(func() { purge(100 + i) })
		}
		wg.Wait()
		assert.Less(f, time.Since(began), 12*time.Second, "8 permits take 4 s; with 4 slots taken for 30 s each it is minutes")
		assert.LessOrEqual(f, most.Load(), int32(8+4))
		hanging.Wait()
	})
}
