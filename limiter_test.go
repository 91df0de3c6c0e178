package webdelivery_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
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

// hold is how long a purge keeps its slot after its arrival: the second in which the service counts, and 50 ms.
const hold = 1050 * time.Millisecond

// arrivals returns when purges arrived, whatever the service answered.
func arrivals(f *fixture.Fixture) []time.Duration {
	var times []time.Duration
	began := time.Time{}
	for _, r := range f.Srv.Requests() {
		if r.Method == http.MethodPost && r.Path == "/acme/v1/cache/purge" {
			if began.IsZero() {
				began = r.Time
			}
			times = append(times, r.Time.Sub(began))
		}
	}
	return times
}

// inPairs returns when n purges arrive if each is answered at once: two, and two more whenever these have left their
// slots.
func inPairs(n int) []time.Duration {
	times := make([]time.Duration, n)
	for i := range times {
		times[i] = time.Duration(i/2) * hold
	}
	return times
}

// Of 20 purges at once, two leave at once. Never do 3 arrive within a second (service document, section 8), and the
// service rejects none.
func TestPurgesAreSpaced(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { assert.NoError(f, fixture.Submit.Call(f.Context(), f.Client)) })
		}
		wg.Wait()
		assert.Equal(f, inPairs(20), arrivals(f))
		assert.Len(f, f.Srv.Purged(), 20)
	})
}

// Two clients of one process share one budget if origin and customer are the same, whatever else differs.
func TestClientsOfOneProcessShareTheBudget(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		elsewhere := f.NewClient(f.Srv.URL()+"/root", fixture.Setup{})
		for range 2 {
			require.ErrorIs(f, fixture.Submit.Call(f.Context(), elsewhere), webdelivery.ErrNotFound) // takes one of the two slots
		}
		began := time.Now()
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		require.Equal(f, hold, time.Since(began))
	})
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		other := f.NewClient(f.Srv.URL(), fixture.Setup{Auth: webdelivery.SessionAuth(fixture.Username, fixture.Password)})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { assert.NoError(f, fixture.Submit.Call(f.Context(), f.Client)) })
			wg.Go(func() { assert.NoError(f, fixture.Submit.Call(f.Context(), other)) })
		}
		wg.Wait()
		assert.Equal(f, inPairs(10), arrivals(f))
	})
}

// If a purge is sent again after a new login, it takes a permit for that too. Polls and reads take none.
func TestWhatTakesPermits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		expired bool
		call    func(context.Context, *webdelivery.Client) error
		permits int32
	}{
		{"a purge", false, fixture.Submit.Call, 1},
		{"a purge of an expired session", true, fixture.Submit.Call, 2},
		{"a purge by Do", false, func(ctx context.Context, c *webdelivery.Client) error {
			body := map[string]any{"purge_request": map[string]any{
				"action": "PURGE",
				"uris":   []map[string]string{{"match_mode": "EXACT_LITERAL", "uri_pattern": fixture.AnObject}},
			}}
			return c.Do(ctx, http.MethodPost, "/cache/purge", body, nil)
		}, 1},
		{"an invalid purge", false, func(ctx context.Context, c *webdelivery.Client) error {
			if _, err := c.Purge.Submit(ctx, webdelivery.PurgeRequest{}); !errors.Is(err, webdelivery.ErrInvalid) {
				return errors.New("not rejected")
			}
			return nil
		}, 0},
		{"a task", false, fixture.GetTask.Call, 0},
		{"a login", false, fixture.CreateSession.Call, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var permits atomic.Int32
			count := limiter{wait: func(context.Context) error { permits.Add(1); return nil }}
			s := fixture.Setup{Auth: webdelivery.SessionAuth(fixture.Username, fixture.Password), Options: []webdelivery.Option{webdelivery.WithPurgeLimiter(count)}}
			fixture.InService(t, s, func(f *fixture.Fixture) {
				if tt.expired {
					require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
					f.Srv.ExpireSessions()
				}
				require.NoError(f, tt.call(f.Context(), f.Client))
				assert.Equal(f, tt.permits, permits.Load())
			})
		})
	}
}

// If the service rejects a purge as too fast, every caller waits for as long as the service asks. Afterwards purges
// leave one by one at places 530 ms apart. Two are not nearer to each other than half of that, and at most 24 places are
// left out, before a moment up to one place after the next.
func TestTooFastPausesEverybody(t *testing.T) {
	t.Parallel()
	const apart = 530 * time.Millisecond
	for _, status := range []int{429, 503} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.Warm()
			// The refusal takes a second, so that the second purge has left by then.
			f.AddFault(testserver.Fault{Path: "/cache/purge", Count: 1, Status: status, Header: http.Header{"Retry-After": {"5"}}, Delay: time.Second})
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() { assert.NoError(f, fixture.Submit.Call(f.Context(), f.Client)) })
			}
			wg.Wait()
			times := arrivals(f)
			require.Len(f, times, 6)
			assert.Equal(f, []time.Duration{0, 0}, times[:2], "the rejected purge, and the one that left with it")
			assert.GreaterOrEqual(f, times[2], 6*time.Second)
			assert.LessOrEqual(f, times[2], time.Second+53*apart/2)
			for i := 3; i < len(times); i++ {
				gap := times[i] - times[i-1]
				assert.Greater(f, gap, apart/2, "%v", times)
				assert.LessOrEqual(f, gap, 53*apart/2, "%v", times)
			}
		})
	}
}

// A caller whose context ends while it waits takes no permit: the callers behind it move up.
func TestGivingUpLeavesNoHole(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.TakeSlots()
		impatient, cancel := context.WithCancel(f.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				err := fixture.Submit.Call(impatient, f.Client)
				assert.ErrorIs(f, err, context.Canceled)
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			})
		}
		synctest.Wait()
		wg.Go(func() { assert.NoError(f, fixture.Submit.Call(f.Context(), f.Client)) })
		time.Sleep(100 * time.Millisecond)
		cancel()
		wg.Wait()
		assert.Equal(f, inPairs(3), arrivals(f))
	})
}

// If the limiter returns an error, the client sends nothing and does not retry.
func TestABrokenLimiterSendsNothing(t *testing.T) {
	t.Parallel()
	var waits atomic.Int32
	broken := limiter{wait: func(context.Context) error { waits.Add(1); return assert.AnError }}
	fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithPurgeLimiter(broken)}}, func(f *fixture.Fixture) {
		err := fixture.Submit.Call(f.Context(), f.Client)
		require.ErrorIs(f, err, assert.AnError)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		assert.Zero(f, f.Requests(fixture.Submit))
		assert.Equal(f, int32(1), waits.Load())
	})
}

// After an error or a panic of the limiter, the pace forgets its refusals as always: after a quiet hour, no purge waits.
func TestABrokenLimiterSlowsNothing(t *testing.T) {
	t.Parallel()
	var waits atomic.Int32
	first := limiter{wait: func(context.Context) error {
		switch waits.Add(1) {
		case 1:
			return assert.AnError
		case 2:
			panic("limiter")
		default:
			return nil
		}
	}}
	s := fixture.Setup{Server: testserver.Config{PurgeRate: -1}, Options: []webdelivery.Option{webdelivery.WithPurgeLimiter(first)}}
	fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
		require.ErrorIs(f, fixture.Submit.Call(f.Context(), f.Client), assert.AnError)
		require.PanicsWithValue(f, "limiter", func() { _ = fixture.Submit.Call(f.Context(), f.Client) })
		f.AddFault(testserver.Fault{Path: "/cache/purge", Count: 3, Status: 429})
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		time.Sleep(time.Hour)
		began := time.Now()
		for range 5 {
			require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		}
		assert.Zero(f, time.Since(began))
	})
}

// A *rate.Limiter works as a Limiter. If the deadline is too near, its error is only a text; the client's error
// matches DeadlineExceeded.
func TestARateLimiterFits(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		slow := webdelivery.WithPurgeLimiter(rate.NewLimiter(rate.Every(time.Hour), 1))
		client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{slow}})
		require.NoError(f, fixture.Submit.Call(f.Context(), client))
		ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		require.ErrorIs(f, fixture.Submit.Call(ctx, client), context.DeadlineExceeded)
		assert.Zero(f, time.Since(began))
	})
}

// If the deadline of a Submit comes before its permit, it fails at once. It may have to wait for a slot, for other
// callers in front of it, or for the end of a pause. This includes a pause that begins while it waits.
func TestADeadlineBeforeThePermit(t *testing.T) {
	t.Parallel()
	// late submits with a deadline and checks that it fails without waiting.
	late := func(f *fixture.Fixture, d time.Duration) {
		f.Helper()
		ctx, cancel := context.WithTimeout(f.Context(), d)
		defer cancel()
		began := time.Now()
		err := fixture.Submit.Call(ctx, f.Client)
		require.ErrorIs(f, err, context.DeadlineExceeded)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		assert.Zero(f, time.Since(began))
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.TakeSlots()
		late(f, hold-time.Millisecond)
		var wg sync.WaitGroup
		for range 5 { // two at 1.05 s, two at 2.1 s, one at 3.15 s
			wg.Go(func() { assert.NoError(f, fixture.Submit.Call(f.Context(), f.Client)) })
		}
		synctest.Wait()
		late(f, 3*hold-time.Millisecond)
		ctx, cancel := context.WithTimeout(f.Context(), 3*hold+time.Millisecond)
		defer cancel()
		assert.NoError(f, fixture.Submit.Call(ctx, f.Client))
		wg.Wait()
		assert.Equal(f, inPairs(8), arrivals(f))
	})
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/cache/purge", Skip: 2, Count: 1, Delay: time.Second, Status: 503, Header: http.Header{"Retry-After": {"30"}}})
		f.TakeSlots()
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(f, fixture.Submit.Call(f.Context(), f.Client)) }) // rejected at 2.05 s
		synctest.Wait()
		wg.Go(func() { assert.NoError(f, fixture.Submit.Call(f.Context(), f.Client)) }) // accepted at 1.05 s, and frees its slot at 2.1 s
		synctest.Wait()
		ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(f, fixture.Submit.Call(ctx, f.Client), context.DeadlineExceeded)
		assert.Equal(f, 2050*time.Millisecond, time.Since(began), "when the pause began")
		late(f, 29*time.Second)
		wg.Wait()
	})
}

// The client reports a pause, as long as the service asks for but no longer than ThrottleTimeout, to a limiter that can
// pause.
func TestPauseIsTold(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]time.Duration{"5": 5 * time.Second, "3600": 5 * time.Minute} {
		var paused []time.Duration
		var log strings.Builder
		pausing := limiter{
			wait:  func(context.Context) error { return nil },
			pause: func(d time.Duration) error { paused = append(paused, d); return assert.AnError },
		}
		logger := webdelivery.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
		fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithPurgeLimiter(pausing), logger}}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: "/cache/purge", Count: 1, Status: 429, Header: http.Header{"Retry-After": {asked}}})
			_ = fixture.Submit.Call(f.Context(), f.Client) // an error of Pause changes nothing for the call
			assert.Equal(f, []time.Duration{want}, paused)
			assert.Contains(f, log.String(), "purge limiter not paused")
		})
	}
}

// A purge that is refused again although others are accepted is no reason to pause them.
func TestOneRefusedPurgePausesNobody(t *testing.T) {
	t.Parallel()
	var pauses atomic.Int32
	pausing := limiter{
		wait:  func(context.Context) error { return nil },
		pause: func(time.Duration) error { pauses.Add(1); return nil },
	}
	s := fixture.Setup{Server: testserver.Config{PurgeRate: -1}, Options: []webdelivery.Option{webdelivery.WithPurgeLimiter(pausing)}}
	fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/cache/purge", Handler: func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte("/refused")) {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"code":201,"description":"ok","transaction_id":7,"purge_response":{"transaction_status_uri":"/transactions/7"}}`)
		}})
		done := make(chan error)
		go func() {
			_, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf("https://www.example.com/refused"))
			done <- err
		}()
		for range 200 {
			time.Sleep(time.Second)
			require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		}
		refused, paused := f.Requests(fixture.Submit)-200, int(pauses.Load())
		assert.Greater(f, refused, 10)
		assert.Less(f, paused, refused/2, "only the first refusals, before the service accepts others")
		require.ErrorIs(f, <-done, webdelivery.ErrRateLimited)
	})
}

// NewClient asks a limiter with a budget for each customer for that of its own, by a key that does not depend on the
// spelling of the base URL.
func TestTheLimiterOfACustomer(t *testing.T) {
	t.Parallel()
	budgets := perCustomer{limiters: map[string]webdelivery.Limiter{}}
	newClient := func(baseURL, customer string) (*webdelivery.Client, error) {
		return webdelivery.NewClient(baseURL, customer, webdelivery.BasicAuth("alice", "secret"), webdelivery.WithPurgeLimiter(budgets))
	}
	_, err := newClient("https://api.example.com", "acme")
	require.EqualError(t, err, "webdelivery: invalid WithPurgeLimiter: its ForCustomer returns nil for https://api.example.com/acme")
	own := &onePlaceOf{}
	budgets.limiters["https://api.example.com/acme"] = own
	for _, spelling := range []string{"https://api.example.com", "https://API.example.com.:443/root/"} {
		client, err := newClient(spelling, "acme")
		require.NoError(t, err)
		assert.Same(t, own, client.PurgeLimiter())
	}
}

type perCustomer struct {
	webdelivery.Limiter

	limiters map[string]webdelivery.Limiter
}

func (p perCustomer) ForCustomer(key string) webdelivery.Limiter { return p.limiters[key] }

type onePlaceOf struct{ onePlace }

// waiting is a limiter that says why it gives no permit.
type waiting struct{ limiter }

func (waiting) Waiting() error { return errors.New("the next permit comes in 5s") }

// A caller of a queue that leaves before its purge was sent learns why it was not.
func TestWhyAQueuedPurgeWasNotSent(t *testing.T) {
	t.Parallel()
	never := limiter{wait: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
	for why, l := range map[string]webdelivery.Limiter{"": never, ": the next permit comes in 5s": waiting{never}} {
		fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithPurgeLimiter(l)}}, func(f *fixture.Fixture) {
			q, err := f.Client.Purge.NewQueue(webdelivery.QueueOptions{})
			require.NoError(f, err)
			ctx, cancel := context.WithTimeout(f.Context(), time.Second)
			defer cancel()
			_, err = q.Purge(ctx, webdelivery.Exact(fixture.AnObject))
			require.ErrorIs(f, err, context.DeadlineExceeded)
			require.EqualError(f, err, "webdelivery: purge of "+fixture.AnObject+": context deadline exceeded before the purge was sent"+why)
			assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))

			ctx, cancel = context.WithTimeout(f.Context(), time.Second)
			defer cancel()
			err = q.PurgeFrom(ctx, nil, nil)
			require.ErrorIs(f, err, context.DeadlineExceeded)
			assert.ErrorContains(f, err, "waiting for a purge permit", "the limiter's own error")
		})
	}
}

// limiter is a Limiter that calls functions.
type limiter struct {
	wait  func(context.Context) error
	pause func(time.Duration) error
}

func (l limiter) Wait(ctx context.Context) error { return l.wait(ctx) }

func (l limiter) Pause(_ context.Context, d time.Duration) error {
	if l.pause == nil {
		return nil
	}
	return l.pause(d)
}

// A permit ends also if the transport or the limiter panics, so that a program that recovers can purge on.
func TestAPanicEndsThePermit(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		panicking := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{
			Transport: fixture.RoundTripper(func(*http.Request) (*http.Response, error) { panic("transport") }),
		})}})
		began := time.Now()
		for range 5 {
			assert.PanicsWithValue(f, "transport", func() { _ = fixture.Submit.Call(f.Context(), panicking) })
		}
		assert.GreaterOrEqual(f, time.Since(began), 2*5*time.Second, "nobody knows whether the request arrives")
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		limited := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithPurgeLimiter(panickingLimiter{})}})
		for range 5 {
			assert.PanicsWithValue(f, "limiter", func() { _ = fixture.Submit.Call(f.Context(), limited) })
		}
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
	})
}

type panickingLimiter struct{}

func (panickingLimiter) Wait(context.Context) error { panic("limiter") }
