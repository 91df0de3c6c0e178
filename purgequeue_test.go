package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// object returns the i-th of many URIs.
func object(i int) string { return fmt.Sprintf("https://www.example.com/%d", i) }

// newQueue returns a queue of the client, or of one with these options.
func (f *fixture) newQueue(options webdelivery.QueueOptions, clientOptions ...webdelivery.Option) *webdelivery.PurgeQueue {
	f.Helper()
	client := f.client
	if len(clientOptions) > 0 {
		client = f.newClient(f.srv.URL(), setup{options: clientOptions})
	}
	q, err := client.Purge.NewQueue(options)
	require.NoError(f, err)
	return q
}

// inQueue runs a test with a queue and closes it. If a goroutine is left, the test fails.
func inQueue(t *testing.T, s setup, options webdelivery.QueueOptions, test func(f *fixture, q *webdelivery.PurgeQueue)) {
	t.Helper()
	inFakeTime(t, s, func(f *fixture) {
		q := f.newQueue(options)
		test(f, q)
		require.NoError(f, q.Close(f.Context()))
	})
}

// purgedURIs returns the patterns that the service accepted, and how often.
func (f *fixture) purgedURIs() map[string]int {
	all := map[string]int{}
	for _, p := range f.srv.Purged() {
		for _, u := range p.URIs {
			all[u.URIPattern]++
		}
	}
	return all
}

// 10,000 callers with one URI each take seconds and a few requests. Each caller gets the receipt of the request with
// its URI.
func TestTenThousandCallers(t *testing.T) {
	t.Parallel()
	inQueue(t, setup{}, webdelivery.QueueOptions{}, func(f *fixture, q *webdelivery.PurgeQueue) {
		const callers = 10_000
		var wg sync.WaitGroup
		var mu sync.Mutex
		receipts := map[string]int64{}
		began := time.Now()
		for i := range callers {
			wg.Go(func() {
				receipt, err := q.Purge(f.Context(), webdelivery.Exact(object(i)))
				if assert.NoError(f, err) {
					mu.Lock()
					defer mu.Unlock()
					receipts[object(i)] = receipt.TransactionID
				}
			})
		}
		wg.Wait()
		assert.Less(f, time.Since(began), 4*time.Second)
		assert.LessOrEqual(f, len(f.arrivals()), 6)
		carried := map[string]int64{}
		for _, p := range f.srv.Purged() {
			for _, u := range p.URIs {
				carried[u.URIPattern] = p.TransactionID
			}
		}
		assert.Len(f, carried, callers)
		assert.True(f, maps.Equal(carried, receipts))
	})
}

// With the next permit, the queue sends the URIs that wait: two requests at once, and two every 1.05 s. A request has
// identical URIs once, at most MaxURIs and MaxBodyBytes, and all URIs of one caller together, oldest first.
func TestRequestsOfAQueue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		options webdelivery.QueueOptions
		calls   [][]int // objects
		want    [][]int
	}{
		{"together", webdelivery.QueueOptions{}, [][]int{{1}, {2, 3}, {4}}, [][]int{{1, 2, 3, 4}}},
		{"identical once", webdelivery.QueueOptions{}, [][]int{{1}, {1, 2}, {2, 2}}, [][]int{{1, 2}}},
		{"at most MaxURIs", webdelivery.QueueOptions{MaxURIs: 3}, [][]int{{1, 2}, {3, 4}, {5}}, [][]int{{1, 2}, {3, 4, 5}}},
		{"identical URIs take no room", webdelivery.QueueOptions{MaxURIs: 2}, [][]int{{1, 2}, {2, 1}, {3}}, [][]int{{1, 2}, {3}}},
		// One URI takes 74 bytes and a comma; 100 bytes are reserved for the frame.
		{"at most MaxBodyBytes", webdelivery.QueueOptions{MaxBodyBytes: 250}, [][]int{{1}, {2}, {3}}, [][]int{{1, 2}, {3}}},
		// An object takes 73 bytes with its comma, and 100 bytes are reserved for the frame.
		{"room for two to the byte", webdelivery.QueueOptions{MaxBodyBytes: 100 + 2*73}, [][]int{{1}, {2}, {3}}, [][]int{{1, 2}, {3}}},
		{"a byte too few for three", webdelivery.QueueOptions{MaxBodyBytes: 100 + 3*73 - 1}, [][]int{{1}, {2}, {3}}, [][]int{{1, 2}, {3}}},
		{"room for three of one caller to the byte", webdelivery.QueueOptions{MaxBodyBytes: 100 + 3*73}, [][]int{{1, 2, 3}}, [][]int{{1, 2, 3}}},
		{"a long URI alone", webdelivery.QueueOptions{MaxBodyBytes: 1}, [][]int{{1}, {2}}, [][]int{{1}, {2}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inQueue(t, setup{}, tt.options, func(f *fixture, q *webdelivery.PurgeQueue) {
				var wg sync.WaitGroup
				for _, objects := range tt.calls {
					var uris []webdelivery.PurgeURI
					for _, i := range objects {
						uris = append(uris, webdelivery.Exact(object(i)))
					}
					wg.Go(func() {
						_, err := q.Purge(f.Context(), uris...)
						assert.NoError(f, err)
					})
					synctest.Wait() // so that the calls are queued in this order
				}
				wg.Wait()
				var got [][]string
				for _, p := range f.srv.Purged() {
					var patterns []string
					for _, u := range p.URIs {
						patterns = append(patterns, u.URIPattern)
					}
					got = append(got, patterns)
				}
				var want [][]string
				for _, objects := range tt.want {
					var patterns []string
					for _, i := range objects {
						patterns = append(patterns, object(i))
					}
					want = append(want, patterns)
				}
				assert.ElementsMatch(f, want, got, "two leave at once, so their order is open")
				assert.Equal(f, inPairs(len(want)), f.arrivals())
			})
		})
	}
}

// The queue refuses the arguments that Submit refuses, and more URIs than fit into one request. Nothing is sent.
func TestPurgesThatAQueueRefuses(t *testing.T) {
	t.Parallel()
	three := []webdelivery.PurgeURI{webdelivery.Exact(object(1)), webdelivery.Exact(object(2)), webdelivery.Exact(object(3))}
	tests := []struct {
		name    string
		options webdelivery.QueueOptions
		uris    []webdelivery.PurgeURI
		field   string
	}{
		{"no URI", webdelivery.QueueOptions{}, nil, "uris"},
		{"an empty URI", webdelivery.QueueOptions{}, []webdelivery.PurgeURI{webdelivery.Exact(object(1)), webdelivery.Exact("")}, "uris[1].uri_pattern"},
		{"a modifier with an exact URI", webdelivery.QueueOptions{}, []webdelivery.PurgeURI{webdelivery.Exact(anObject).WithCacheKeyModifier("b")}, "uris[0].cache_key_modifier_regex"},
		{"more than MaxURIs", webdelivery.QueueOptions{MaxURIs: 2}, three, "uris"},
		{"more than MaxBodyBytes", webdelivery.QueueOptions{MaxBodyBytes: 200}, three, "uris"},
		{"a byte more than MaxBodyBytes", webdelivery.QueueOptions{MaxBodyBytes: 100 + 3*73 - 1}, three, "uris"},
		{"more than MaxPending", webdelivery.QueueOptions{MaxPending: 2}, three, "uris"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inQueue(t, setup{}, tt.options, func(f *fixture, q *webdelivery.PurgeQueue) {
				_, err := q.Purge(f.Context(), tt.uris...)
				var invalid *webdelivery.ValidationError
				require.ErrorAs(f, err, &invalid)
				assert.Equal(f, tt.field, invalid.Field)
				assert.Empty(f, f.srv.Requests())
			})
		})
	}
}

// 1 forbidden URI among those of 1,000 callers: 999 calls succeed, and the error of one names its URI. Few requests
// find it, at any position.
func TestOneForbiddenAmongThousand(t *testing.T) {
	t.Parallel()
	for _, bad := range []int{0, 1, 499, 500, 777, 999} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			t.Parallel()
			inQueue(t, setup{}, webdelivery.QueueOptions{}, func(f *fixture, q *webdelivery.PurgeQueue) {
				const forbidden = "https://www.example.org/not-ours"
				var wg sync.WaitGroup
				for i := range 1000 {
					wg.Go(func() {
						if i != bad {
							_, err := q.Purge(f.Context(), webdelivery.Exact(object(i)))
							assert.NoError(f, err)
							return
						}
						receipt, err := q.Purge(f.Context(), webdelivery.Exact(forbidden))
						assert.Nil(f, receipt)
						assert.ErrorIs(f, err, webdelivery.ErrBadRequest)
						assert.ErrorContains(f, err, forbidden)
						assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
						var e *webdelivery.QueueError
						if assert.ErrorAs(f, err, &e) {
							assert.Equal(f, []webdelivery.PurgeURI{webdelivery.Exact(forbidden)}, e.URIs)
						}
					})
					if i%100 == 99 {
						synctest.Wait()
					}
				}
				wg.Wait()
				assert.Len(f, f.purgedURIs(), 999)
				assert.LessOrEqual(f, len(f.arrivals()), 21, "2 + 2*log2(1000)")
				assert.Equal(f, inPairs(len(f.arrivals())), f.arrivals(), "splitting waits for permits too")
			})
		})
	}
}

// If nearly all URIs are rejected, splitting stops before it takes all permits for hours. URIs that were not sent
// alone get an error of their own, which contains nothing of the others.
func TestSplittingIsBounded(t *testing.T) {
	t.Parallel()
	inQueue(t, setup{}, webdelivery.QueueOptions{}, func(f *fixture, q *webdelivery.PurgeQueue) {
		var wg sync.WaitGroup
		var alone atomic.Int32
		for i := range 1000 {
			wg.Go(func() {
				uri := fmt.Sprint("https://www.example.org/", i)
				_, err := q.Purge(f.Context(), webdelivery.Exact(uri))
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				if errors.Is(err, webdelivery.ErrBadRequest) {
					alone.Add(1)
					return
				}
				assert.EqualError(f, err, "webdelivery: purge of "+uri+": refused together with others and not sent alone; purge it again")
				assert.ErrorIs(f, err, webdelivery.ErrRefusedTogether)
			})
		}
		wg.Wait()
		assert.Len(f, f.arrivals(), 161, "1 + 16*log2(1000)")
		assert.Greater(f, alone.Load(), int32(100), "one request per rejected URI, except for those that find the first two")
	})
}

// Close refuses new purges and sends the rest.
func TestCloseDrains(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		q := f.newQueue(webdelivery.QueueOptions{MaxURIs: 2, MaxPending: 8})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				_, err := q.Purge(f.Context(), webdelivery.Exact(object(i)))
				assert.NoError(f, err)
			})
		}
		synctest.Wait()
		wg.Go(func() { // waits for room
			_, err := q.Purge(f.Context(), webdelivery.Exact(object(8)), webdelivery.Exact(object(9)))
			assert.ErrorIs(f, err, webdelivery.ErrQueueClosed)
		})
		synctest.Wait()
		require.NoError(f, q.Close(f.Context()))
		wg.Wait()
		assert.Len(f, f.purgedURIs(), 8)
		_, err := q.Purge(f.Context(), webdelivery.Exact(object(1)))
		require.ErrorIs(f, err, webdelivery.ErrQueueClosed)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		require.NoError(f, q.Close(f.Context()), "again")
	})
}

// If its context ends first, Close cancels: unsent URIs get an error that says so, requests under way end too, and no
// goroutine is left.
func TestCloseGivesUp(t *testing.T) {
	t.Parallel()
	for _, wait := range []bool{false, true} {
		inFakeTime(t, setup{}, func(f *fixture) {
			f.fail(testserver.Fault{Path: "/cache/purge", Skip: 1, Count: 1, Delay: time.Hour})
			f.fail(testserver.Fault{Path: "/transactions/*", Delay: time.Hour})
			q := f.newQueue(webdelivery.QueueOptions{MaxURIs: 1, Wait: wait})
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
			wg.Wait()
			first := webdelivery.OutcomeApplied
			if wait {
				first = webdelivery.OutcomeUnknown
			}
			assert.Equal(f, []webdelivery.Outcome{first, webdelivery.OutcomeUnknown, webdelivery.OutcomeNotApplied, webdelivery.OutcomeNotApplied}, outcomes)
		})
	}
}

// A 201 means that the service accepted a purge, whatever the body is, unless it is an HTML page (open point 7). A
// queue that waits does not know how the transaction ends.
func TestAcceptedWithoutATransaction(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{}", "null", "[]", "garbage", `{"transaction_id":"x"}`} {
		for status, want := range map[int]webdelivery.Outcome{201: applied, 200: unknown} {
			t.Run(fmt.Sprintf("%d %q", status, body), func(t *testing.T) {
				t.Parallel()
				for _, wait := range []bool{false, true} {
					inQueue(t, setup{}, webdelivery.QueueOptions{Wait: wait}, func(f *fixture, q *webdelivery.PurgeQueue) {
						f.fail(testserver.Fault{Path: "/cache/purge", Handler: func(w http.ResponseWriter, _ *http.Request) {
							w.Header().Set("Content-Type", "application/json")
							w.WriteHeader(status)
							_, _ = io.WriteString(w, body)
						}})
						_, err := f.client.Purge.Submit(f.Context(), purgeOf(object(1)))
						require.ErrorIs(f, err, webdelivery.ErrBadReply)
						assert.Equal(f, want, webdelivery.OutcomeOf(err))
						want := want
						if wait {
							want = unknown
						}
						_, err = q.Purge(f.Context(), webdelivery.Exact(object(1)))
						require.ErrorIs(f, err, webdelivery.ErrBadReply)
						assert.Equal(f, want, webdelivery.OutcomeOf(err))
					})
				}
			})
		}
	}
}

// A caller that leaves while its transaction runs learns that the purge was accepted.
func TestLeftWhileTheTransactionRuns(t *testing.T) {
	t.Parallel()
	inQueue(t, setup{}, webdelivery.QueueOptions{Wait: true}, func(f *fixture, q *webdelivery.PurgeQueue) {
		ctx, cancel := context.WithTimeout(f.Context(), time.Second)
		defer cancel()
		receipt, err := q.Purge(ctx, webdelivery.Exact(anObject))
		require.ErrorIs(f, err, context.DeadlineExceeded)
		require.NotNil(f, receipt)
		assert.ErrorContains(f, err, fmt.Sprint("accepted transaction ", receipt.TransactionID))
	})
}

// OnStats gets the statistics after each request, also if only its login failed.
func TestQueueStats(t *testing.T) {
	t.Parallel()
	var last webdelivery.QueueStats
	options := webdelivery.QueueOptions{OnStats: func(now webdelivery.QueueStats) { last = now }}
	inQueue(t, bySession, options, func(f *fixture, q *webdelivery.PurgeQueue) {
		remove := f.srv.Fail(testserver.Fault{Status: http.StatusBadGateway})
		_, err := q.Purge(f.Context(), webdelivery.Exact(anObject))
		require.ErrorIs(f, err, webdelivery.ErrServer)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		synctest.Wait() // the report has ended
		assert.Equal(f, 1, last.Failures)
		require.ErrorIs(f, last.Err, webdelivery.ErrServer)
		remove()
		_, err = q.Purge(f.Context(), webdelivery.Exact(anObject))
		require.NoError(f, err)
		synctest.Wait()
		assert.Equal(f, webdelivery.QueueStats{Accepted: 1, Requests: 1}, last)
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
			inQueue(t, setup{}, options, func(f *fixture, q *webdelivery.PurgeQueue) {
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
					f.fail(fault)
				}
				type result struct {
					uri string
					err error
				}
				results := make([]result, 150)
				var wg sync.WaitGroup
				for i := range results {
					uri, patience, pause := object(i), time.Duration(0), time.Duration(r.IntN(5000))*time.Millisecond
					if r.IntN(20) == 0 {
						uri = fmt.Sprint("https://www.example.org/", i)
					}
					if r.IntN(4) == 0 {
						patience = time.Duration(1+r.IntN(3000)) * time.Millisecond
					}
					wg.Go(func() {
						time.Sleep(pause)
						ctx := f.Context()
						if patience > 0 {
							var cancel context.CancelFunc
							ctx, cancel = context.WithTimeout(ctx, patience)
							defer cancel()
						}
						_, err := q.Purge(ctx, webdelivery.Exact(uri))
						results[i] = result{uri, err}
					})
				}
				wg.Wait()
				require.NoError(f, q.Close(f.Context()))
				purged := f.purgedURIs()
				for _, got := range results {
					switch outcome := webdelivery.OutcomeOf(got.err); {
					case outcome == webdelivery.OutcomeApplied:
						assert.Contains(f, purged, got.uri)
					case outcome == webdelivery.OutcomeNotApplied:
						assert.NotContains(f, purged, got.uri, "%v", got.err)
					case strings.Contains(got.uri, "example.org"):
						assert.NotContains(f, purged, got.uri)
					}
					if got.err != nil && !errors.Is(got.err, context.DeadlineExceeded) {
						assert.ErrorContains(f, got.err, got.uri)
					}
				}
				times := f.arrivals()
				for i := 2; i < len(times); i++ {
					assert.Greater(f, times[i]-times[i-2], time.Second)
				}
			})
		})
	}
}
