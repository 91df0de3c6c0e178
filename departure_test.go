package webdelivery_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// ending is a way in which a purge ends and leaves its slot.
type ending struct {
	name        string
	fault       testserver.Fault
	options     []webdelivery.Option
	setup       func(f *fixture.Fixture)
	cancelAfter time.Duration // when the caller cancels; 0: never
	arrived     time.Duration // the latest moment at which it may have arrived
	unsent      bool          // nothing was sent
}

func endings() []ending {
	stuck := func(f *fixture.Fixture) {
		f.HTTP.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	// silent is a transport that reports no connections, and waits for the context.
	silent := func(f *fixture.Fixture) {
		f.HTTP.Transport = fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
	}
	return []ending{
		{name: "a response at once"},
		{name: "a response after 3 s", fault: testserver.Fault{Delay: 3 * time.Second}, arrived: 3 * time.Second},
		{name: "a rejection after 3 s", fault: testserver.Fault{Delay: 3 * time.Second, Status: 400}, arrived: 3 * time.Second},
		{name: "a response whose body takes long", fault: testserver.Fault{Stall: 20 * time.Second}},
		{name: "a response after 20 s: written at once", fault: testserver.Fault{Delay: 20 * time.Second}, arrived: 5 * time.Second},
		{name: "no response within an attempt of 2 s", fault: testserver.Fault{Delay: time.Hour}, options: []webdelivery.Option{webdelivery.WithAttemptTimeout(2 * time.Second)}, arrived: 5 * time.Second},
		{name: "the caller cancels after 1 s", fault: testserver.Fault{Delay: time.Hour}, cancelAfter: time.Second, arrived: 5 * time.Second},
		{name: "the caller cancels after 10 s", fault: testserver.Fault{Delay: time.Hour}, cancelAfter: 10 * time.Second, arrived: 5 * time.Second},
		{name: "the connection is cut after 2 s", fault: testserver.Fault{Delay: 2 * time.Second, Cut: testserver.CutAfterRead}, arrived: 5 * time.Second},
		{name: "no connection", setup: func(f *fixture.Fixture) {
			f.HTTP.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
			}
		}, unsent: true},
		{name: "the caller cancels while a connection is opened", setup: stuck, cancelAfter: 3 * time.Second, unsent: true},
		{name: "a transport that reports nothing, and the caller cancels after 1 s", setup: silent, cancelAfter: time.Second, arrived: 6 * time.Second},
		{name: "a transport that reports nothing, and fails", setup: func(f *fixture.Fixture) {
			f.HTTP.Transport = fixture.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
		}, arrived: 5 * time.Second},
	}
}

// A purge keeps its slot until it has certainly arrived, or certainly can no longer arrive, and for 1.05 s after
// that. Two purges that end in some way take both slots; a third one shows when they are free.
func TestWhenASlotIsFree(t *testing.T) {
	t.Parallel()
	for _, tt := range endings() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			options := append([]webdelivery.Option{webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1})}, tt.options...)
			fixture.InFakeTime(t, fixture.Setup{Options: options}, func(f *fixture.Fixture) {
				fault := tt.fault
				fault.Path, fault.Count = "/cache/purge", 2
				f.AddFault(fault)
				working := f.Srv.Transport()
				defer working.CloseIdleConnections()
				next := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{Transport: working})}}) // shares the budget
				if tt.setup != nil {
					tt.setup(f)
				}
				began := time.Now()
				var wg sync.WaitGroup
				for range 2 {
					client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: options}) // one each: neither waits for the other's response
					wg.Go(func() {
						ctx, cancel := context.WithCancel(f.Context())
						defer cancel()
						if tt.cancelAfter > 0 {
							time.AfterFunc(tt.cancelAfter, cancel)
						}
						_ = fixture.Submit.Call(ctx, client)
					})
				}
				time.Sleep(time.Nanosecond) // both have their permits
				if tt.unsent {
					wg.Wait()
				}
				free := time.Now()
				require.NoError(f, fixture.Submit.Call(f.Context(), next))
				if tt.unsent {
					assert.Zero(f, time.Since(free))
				} else {
					assert.Equal(f, tt.arrived+hold, time.Since(began))
				}
				wg.Wait()
			})
		})
	}
}

// lender is a PermitLimiter that records how its permits end.
type lender struct {
	expires func() time.Time
	mu      sync.Mutex
	lent    int
	ends    []lending
}

type lending struct {
	at, arrived time.Duration // since the first permit; arrived is -1 for a permit with which nothing was sent
}

func (l *lender) Wait(context.Context) error { return errors.New("Wait was called") }

func (l *lender) Acquire(ctx context.Context) (webdelivery.Permit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lent++
	permit := webdelivery.Permit{}
	if l.expires != nil {
		permit.Expires = l.expires()
	}
	began := time.Now()
	ended := false
	permit.Done = func(_ context.Context, arrived time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		end := lending{time.Since(began), -1}
		if !arrived.IsZero() {
			end.arrived = arrived.Sub(began)
		}
		if ended {
			end.at = -1
		}
		ended = true
		l.ends = append(l.ends, end)
	}
	return permit, ctx.Err()
}

// The client ends the permit of a PermitLimiter once, as soon as it knows the latest time of arrival.
func TestPermitsEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range endings() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := &lender{}
			options := append([]webdelivery.Option{webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}), webdelivery.WithPurgeLimiter(l)}, tt.options...)
			fixture.InFakeTime(t, fixture.Setup{Options: options}, func(f *fixture.Fixture) {
				fault := tt.fault
				fault.Path = "/cache/purge"
				f.AddFault(fault)
				if tt.setup != nil {
					tt.setup(f)
					f.Client = f.NewClient(f.Srv.URL(), fixture.Setup{Options: options})
				}
				ctx, cancel := context.WithCancel(f.Context())
				defer cancel()
				if tt.cancelAfter > 0 {
					time.AfterFunc(tt.cancelAfter, cancel)
				}
				began := time.Now()
				_ = fixture.Submit.Call(ctx, f.Client)
				took := time.Since(began)
				time.Sleep(time.Hour)
				want := lending{min(took, tt.arrived), tt.arrived}
				switch {
				case tt.unsent:
					want = lending{took, -1}
				case tt.cancelAfter > 0 && tt.cancelAfter < tt.arrived, tt.arrived > took: // known before it is over
					want.at = took
				}
				assert.Equal(f, []lending{want}, l.ends)
			})
		})
	}
}

// The client sends nothing with a permit that has expired. The connection may have taken too long, or the process may
// have been stopped before it began to send. It acquires another permit.
func TestPermitsExpire(t *testing.T) {
	t.Parallel()
	const lifetime, delay = 10 * time.Second, 11 * time.Second
	tests := []struct {
		name    string
		arrived time.Duration // of the first permit
		delay   func(f *fixture.Fixture, transport *http.Transport, once func() bool) http.RoundTripper
	}{
		{"the connection takes long", -1, func(_ *fixture.Fixture, transport *http.Transport, once func() bool) http.RoundTripper {
			dial := transport.DialContext
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				if once() {
					time.Sleep(delay)
				}
				return dial(ctx, network, address)
			}
			return transport
		}},
		{"the open connection is handed out late", -1, func(_ *fixture.Fixture, transport *http.Transport, once func() bool) http.RoundTripper {
			return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if once() {
					time.Sleep(delay)
				}
				return transport.RoundTrip(r)
			})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := &lender{expires: func() time.Time { return time.Now().Add(lifetime) }}
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				first := true
				once := func() bool { was := first; first = false; return was }
				f.HTTP.Transport = tt.delay(f, f.HTTP.Transport.(*http.Transport), once)
				client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithPurgeLimiter(l)}})
				require.NoError(f, fixture.Submit.Call(f.Context(), client))
				assert.Len(f, arrivals(f), 1)
				require.Len(f, l.ends, 2)
				assert.Equal(f, lending{delay, tt.arrived}, l.ends[0])
				assert.Equal(f, lending{0, 0}, l.ends[1])
			})
		})
	}
}

// A permit that comes too late for its purge ends unused: one that has expired already, and one whose caller has left.
func TestPermitsThatComeTooLate(t *testing.T) {
	t.Parallel()
	lent := 0
	l := &lender{expires: func() time.Time { lent++; return time.Now().Add(time.Duration(lent-2) * time.Second) }}
	fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithPurgeLimiter(l)}}, func(f *fixture.Fixture) {
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		assert.Equal(f, []time.Duration{-1, -1, 0}, []time.Duration{l.ends[0].arrived, l.ends[1].arrived, l.ends[2].arrived})
		assert.Equal(f, 1, f.Requests(fixture.Submit))

		ctx, cancel := context.WithCancel(f.Context())
		l.expires = func() time.Time { cancel(); return time.Time{} }
		require.ErrorIs(f, fixture.Submit.Call(ctx, f.Client), context.Canceled)
		require.Len(f, l.ends, 4)
		assert.Equal(f, lending{0, -1}, l.ends[3])
	})
}

// A deadline before ThrottleTimeout ends the purge, and the error says so.
func TestADeadlineBeforeThrottleTimeout(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/cache/purge", Status: 429})
		ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		require.ErrorIs(f, fixture.Submit.Call(ctx, f.Client), context.DeadlineExceeded)
		assert.LessOrEqual(f, time.Since(began), time.Minute)
	})
}

// The client retries a purge that the service rejects as too fast until ThrottleTimeout, which counts from the first
// rejection. MaxAttempts 1 turns this off.
func TestThrottleTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		policy      webdelivery.RetryPolicy
		least, most time.Duration
	}{
		{webdelivery.RetryPolicy{}, 5*time.Minute - 25*time.Second, 5 * time.Minute},
		{webdelivery.RetryPolicy{ThrottleTimeout: time.Hour}, time.Hour - 25*time.Second, time.Hour},
		{webdelivery.RetryPolicy{ThrottleTimeout: time.Millisecond}, 0, 0},
		{webdelivery.RetryPolicy{MaxAttempts: 1}, 0, 0},
		{webdelivery.RetryPolicy{MaxAttempts: 2}, 5*time.Minute - 25*time.Second, 5 * time.Minute},
	} {
		for status, outcome := range map[int]webdelivery.Outcome{429: webdelivery.OutcomeNotApplied, 503: webdelivery.OutcomeUnknown} {
			fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithRetry(tt.policy)}}, func(f *fixture.Fixture) {
				f.AddFault(testserver.Fault{Path: "/cache/purge", Status: status})
				began := time.Now()
				err := fixture.Submit.Call(f.Context(), f.Client)
				assert.GreaterOrEqual(f, time.Since(began), tt.least)
				assert.LessOrEqual(f, time.Since(began), tt.most)
				require.ErrorIs(f, err, webdelivery.ErrRateLimited)
				require.NotErrorIs(f, err, context.DeadlineExceeded)
				var e *webdelivery.Error
				require.ErrorAs(f, err, &e)
				assert.Equal(f, status, e.StatusCode)
				assert.Equal(f, outcome, webdelivery.OutcomeOf(err))
			})
		}
	}
}

// While the service accepts no purge, those that wait in line give up after ThrottleTimeout, too.
func TestThrottleTimeoutInLine(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/cache/purge", Status: 429})
		began := time.Now()
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				err := fixture.Submit.Call(f.Context(), f.Client)
				assert.ErrorIs(f, err, webdelivery.ErrRateLimited)
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			})
		}
		wg.Wait()
		assert.LessOrEqual(f, time.Since(began), 6*time.Minute)
		assert.Less(f, f.Requests(fixture.Submit), 100, "some have sent nothing")
	})
}

// A Retry-After of a day ends its purge at once. The next one tries again as soon as it would have given up.
func TestARetryAfterBeyondThrottleTimeout(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/cache/purge", Status: 503, Header: http.Header{"Retry-After": {"86400"}}, Count: 1})
		began := time.Now()
		require.ErrorIs(f, fixture.Submit.Call(f.Context(), f.Client), webdelivery.ErrRateLimited)
		assert.Equal(f, began, time.Now())
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		assert.Equal(f, 5*time.Minute, time.Since(began))
	})
}

// The outcome of a purge that was answered with 503 is unknown until the service accepts a retry.
func TestA503IsUnknownUntilARetryIsAccepted(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/cache/purge", Status: 503, Count: 9})
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		assert.Len(f, arrivals(f), 10)
		f.AddFault(testserver.Fault{Path: "/cache/purge", Status: 503, Count: 1})
		f.AddFault(testserver.Fault{Path: "/cache/purge", Status: 400, Count: 1})
		err := fixture.Submit.Call(f.Context(), f.Client)
		require.ErrorIs(f, err, webdelivery.ErrBadRequest)
		assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
	})
}

// A purge that the service always answers with 503 does not delay those that it accepts.
func TestAPurgeThatIsAlwaysRefused(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		next := f.HTTP.Transport
		f.HTTP.Transport = fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			if strings.Contains(string(body), "poison") {
				return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
			}
			r = r.Clone(r.Context())
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			return next.RoundTrip(r)
		})
		client := f.NewClient(f.Srv.URL(), fixture.Setup{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := client.Purge.Submit(f.Context(), fixture.PurgeOf("https://www.example.com/poison"))
			assert.ErrorIs(f, err, webdelivery.ErrRateLimited)
			assert.ErrorContains(f, err, "ThrottleTimeout")
		})
		for range 25 { // one every 10 s
			time.Sleep(10 * time.Second)
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(f.Context(), 2*time.Minute)
				defer cancel()
				assert.NoError(f, fixture.Submit.Call(ctx, client))
			})
		}
		wg.Wait()
		assert.Len(f, f.Srv.Purged(), 25)
	})
}

// net/http itself would retry a purge whose body looks empty to it. A method in another letter case is no purge, and
// takes no permit. The client refuses both before sending.
func TestPurgesByDo(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		require.ErrorIs(f, f.Client.Do(f.Context(), http.MethodPost, "/cache/purge", nil, nil), webdelivery.ErrInvalid)
		for _, method := range []string{"post", "Post", "get", "dELETE"} {
			require.ErrorIs(f, f.Client.Do(f.Context(), method, "/cache/purge", map[string]int{}, nil), webdelivery.ErrInvalid, method)
		}
		assert.Empty(f, f.Srv.Requests())
	})
}
