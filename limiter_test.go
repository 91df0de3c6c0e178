package webdelivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
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
func arrivals(f *fixture.Fixture) (times []time.Duration) {
	var began time.Time
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
	var times []time.Duration
	for i := range n {
		times = append(times, time.Duration(i/2)*hold)
	}
	return times
}

// submitAll submits n purges at once. The service must accept them all.
func submitAll(f *fixture.Fixture, n int) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { assert.NoError(f, fixture.Submit.Call(f.Context(), f.Client)) })
	}
	wg.Wait()
}

// with is a setup with an option.
func with(option webdelivery.Option) fixture.Setup {
	return fixture.Setup{Options: []webdelivery.Option{option}}
}

// Of 20 purges at once, two leave at once. Never do 3 arrive within a second (service document, section 8), and the
// service rejects none. What a quiet hour left unused does not pile up. A caller that leaves the line leaves no gap.
func TestPurgesAreSpaced(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		submitAll(f, 20)
		assert.Equal(f, inPairs(20), arrivals(f))
		for leaving := range 4 {
			time.Sleep(time.Hour)
			began := len(arrivals(f))
			f.TakeSlots()
			var wg sync.WaitGroup
			for i := range 5 {
				ctx, cancel := context.WithCancel(f.Context())
				defer cancel()
				wg.Go(func() { assert.Equal(f, i == leaving, fixture.Submit.Call(ctx, f.Client) != nil) })
				synctest.Wait()
				if i == leaving {
					cancel()
				}
			}
			wg.Wait()
			for i, at := range arrivals(f)[began:] {
				assert.Equal(f, inPairs(6)[i], at-arrivals(f)[began])
			}
		}
	})
}

// Clients of one process share one budget if origin and customer are the same, whatever else differs.
func TestClientsOfOneProcessShareTheBudget(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		began := time.Now()
		require.ErrorIs(f, fixture.Submit.Call(f.Context(), f.NewClient(f.Srv.URL()+"/root", fixture.Setup{})), webdelivery.ErrNotFound)
		require.NoError(f, fixture.Submit.Call(f.Context(), f.NewClient(f.Srv.URL(), fixture.BySession)))
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		assert.Equal(f, hold, time.Since(began))
	})
}

// If a purge is sent again after a new login, it takes a permit for that too. Polls and reads take none.
func TestWhatTakesPermits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		call    func(context.Context, *webdelivery.Client) error
		permits int32
	}{
		"a purge":                       {fixture.Submit.Call, 1},
		"a purge of an expired session": {fixture.Submit.Call, 2},
		"a purge by Do": {func(ctx context.Context, c *webdelivery.Client) error {
			return c.Do(ctx, http.MethodPost, "/cache/purge", map[string]any{"purge_request": fixture.PurgeOf(fixture.AnObject)}, nil)
		}, 1},
		"a task":  {fixture.GetTask.Call, 0},
		"a login": {fixture.CreateSession.Call, 0},
	} {
		p := new(permits)
		fixture.InService(t, fixture.Setup{Auth: fixture.BySession.Auth, Options: countingPermits(p).Options}, func(f *fixture.Fixture) {
			if name == "a purge of an expired session" {
				f.Warm()
				f.Srv.ExpireSessions()
			}
			require.NoError(f, tt.call(f.Context(), f.Client))
			assert.Equal(f, tt.permits, p.taken.Load(), name)
		})
	}
}

// If the service refuses a purge as too fast, every caller waits for as long as the service asks, or about a second. Then
// one purge leaves after the other, at a rate of one a second, and a sixteenth of one more with each accepted purge. The
// waits are random, from half to one and a half of the mean.
func TestTooFastPausesEverybody(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 503} {
		for asked, pause := range map[string][2]time.Duration{"5": {5 * time.Second, 5 * time.Second}, "": {half, 3 * half}} {
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				f.Warm()
				// The refusal takes a second, so that the second purge has left by then.
				f.AddFault(testserver.Fault{Path: "/cache/purge", Count: 1, Status: status, Header: http.Header{"Retry-After": {asked}}, Delay: time.Second})
				f.AddFault(testserver.Fault{Path: "/cache/purge", Skip: 1, Count: 1, Delay: half}) // that one is accepted before the refusal
				submitAll(f, 5)
				times := arrivals(f)
				require.Len(f, times, 6)
				assert.Equal(f, []time.Duration{0, 0}, times[:2], "the refused purge, and the one that left with it")
				between(f, times[2]-time.Second, pause[0], pause[1])
				for i := 3; i < len(times); i++ {
					mean := time.Second * 16 / time.Duration(16+i-3)
					between(f, times[i]-times[i-1], mean/2, mean*3/2)
				}
			})
		}
	}
}

// Each further refusal lowers the rate by a thirteenth, each accepted purge raises it by a sixteenth of a purge a second,
// between one in 6 s and three in 2 s. A client that had nothing to send for a while begins with the most.
func TestTheRateAfterRefusals(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, countingPermits(new(permits)), func(f *fixture.Fixture) {
		const refusals, accepted = 30, 32
		f.AddFault(testserver.Fault{Path: "/cache/purge", Count: refusals, Status: 429})
		for range accepted {
			require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		}
		times, rate := arrivals(f), 1.
		for i := range len(times) - 1 {
			if i > 0 && i < refusals {
				rate = max(1./6, rate*12/13)
			}
			mean := time.Duration(float64(time.Second) / rate)
			between(f, times[i+1]-times[i], mean/2, mean*3/2)
			if i >= refusals {
				rate = min(1.5, rate+1./16)
			}
		}
		f.AddFault(testserver.Fault{Path: "/cache/purge", Count: refusals, Status: 429})
		submitAll(f, 1)
		time.Sleep(10 * time.Second) // the longest wait at the lowest rate
		submitAll(f, 2)
		times = arrivals(f)
		between(f, times[len(times)-1]-times[len(times)-2], time.Second/3, time.Second)
	})
}

// purging is a client without a network.
func purging(t *testing.T, url string, send fixture.RoundTripper, options ...webdelivery.Option) *webdelivery.Client {
	t.Helper()
	client, err := webdelivery.NewClient(url, fixture.Customer, webdelivery.BasicAuth(fixture.Username, fixture.Password),
		append(options, webdelivery.WithHTTPClient(&http.Client{Transport: send}))...)
	require.NoError(t, err)
	return client
}

func accepted() *http.Response {
	return fixture.Response(http.StatusCreated, []byte(`{"code":201,"transaction_id":7}`))
}

// A bubble of testing/synctest begins in the year 2000. What purges in real time or in an earlier bubble left behind does
// not hold up its purges, but a request that is on its way still occupies its slot.
func TestAnotherClock(t *testing.T) {
	t.Parallel()
	const url = "https://clock.example.com"
	sent, arrived := make(chan bool), make(chan bool)
	onItsWay := purging(t, url, func(*http.Request) (*http.Response, error) {
		sent <- true
		<-arrived
		return accepted(), nil
	})
	go func() {
		_ = fixture.Submit.Call(t.Context(), onItsWay)
		sent <- true
	}()
	<-sent
	require.ErrorIs(t, fixture.Submit.Call(t.Context(), purging(t, url, func(*http.Request) (*http.Response, error) {
		answer := fixture.Response(http.StatusServiceUnavailable, nil)
		answer.Header.Set("Retry-After", "72000")
		return answer, nil
	})), webdelivery.ErrRateLimited)
	synctest.Test(t, func(t *testing.T) {
		client, began := purging(t, url, func(*http.Request) (*http.Response, error) { return accepted(), nil }), time.Now()
		for range 3 {
			require.NoError(t, fixture.Submit.Call(t.Context(), client))
		}
		assert.Equal(t, 2*hold, time.Since(began), "with one slot")
	})
	close(arrived)
	<-sent
}

// Callers get permits in the order of their calls. Those that were refused before get every second permit, in the order
// of the refusals.
func TestOrderOfPermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		refusals := map[string]time.Duration{"A": time.Second, "B": 1400 * time.Millisecond, "C": 1450 * time.Millisecond}
		client := purging(t, "https://order.example.com", func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			name := string(body[bytes.LastIndexByte(body, '/')+1:][:1])
			sent = append(sent, name)
			if wait := refusals[name]; wait > 0 {
				delete(refusals, name)
				time.Sleep(wait)
				return fixture.Response(http.StatusTooManyRequests, nil), err
			}
			return accepted(), err
		}, webdelivery.WithPurgeLimiter(fixture.Unlimited{}))
		var wg sync.WaitGroup
		for _, name := range strings.Split("ABCabcd", "") {
			if name == "a" { // after A was refused
				time.Sleep(1200 * time.Millisecond)
			}
			wg.Go(func() {
				_, err := client.Purge.Submit(t.Context(), fixture.PurgeOf("https://www.example.com/"+name))
				assert.NoError(t, err)
			})
			synctest.Wait()
		}
		wg.Wait()
		assert.Equal(t, "ABC"+"AaBbCcd", strings.Join(sent, ""))
	})
}

// between checks a random wait, which may be rounded to nanoseconds.
func between(t testing.TB, wait, shortest, longest time.Duration) {
	t.Helper()
	assert.GreaterOrEqual(t, wait, shortest-1)
	assert.LessOrEqual(t, wait, longest+1)
}

// While another purge is refused, a purge with a permit of the pace that still waits for the user's limiter is not sent.
func TestAPauseWhileTheLimiterWaits(t *testing.T) {
	t.Parallel()
	var lent atomic.Int32
	l := &lender{acquire: func(context.Context) (time.Time, error) {
		if n := lent.Add(1); n == 2 || n == 3 {
			time.Sleep(5 * time.Second)
		}
		return time.Time{}, nil
	}}
	fixture.InFakeTime(t, with(webdelivery.WithSharedLimiter(l)), func(f *fixture.Fixture) {
		f.Warm()
		f.AddFault(testserver.Fault{Path: "/cache/purge", Count: 2, Status: 503, Header: http.Header{"Retry-After": {"10"}}, Delay: 2 * time.Second})
		submitAll(f, 2)
		times := arrivals(f)
		assert.GreaterOrEqual(f, times[1], 12*time.Second)
		assert.GreaterOrEqual(f, times[2], 24*time.Second, "the service refuses again, and the purge waits for the limiter again")
		assert.Contains(f, l.ends, lending{5 * time.Second, -1, 0})
	})
}

// If the limiter returns an error or panics, the client sends nothing and does not retry. The error stays on one line and
// contains no secret of the client, in a queue as in Submit.
func TestABrokenLimiter(t *testing.T) {
	t.Parallel()
	waits := 0
	s := with(webdelivery.WithPurgeLimiter(limiter(func(context.Context) error {
		if waits++; waits == 3 {
			panic("limiter")
		}
		return fmt.Errorf("the first line\nand the password %s: %w", fixture.Password, assert.AnError)
	})))
	fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
		_, queued := f.NewQueue(webdelivery.QueueOptions{}).Purge(f.Context(), webdelivery.Exact(fixture.AnObject))
		for _, err := range []error{queued, fixture.Submit.Call(f.Context(), f.Client)} {
			require.ErrorIs(f, err, assert.AnError)
			require.ErrorContains(f, err, "the first line")
			assert.NotContains(f, err.Error(), "\n")
			assert.NotContains(f, err.Error(), fixture.Password)
			assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		}
		assert.Equal(f, 2, waits)
		require.PanicsWithValue(f, "limiter", func() { _ = fixture.Submit.Call(f.Context(), f.Client) })
		assert.Zero(f, f.Requests(fixture.Submit))
	})
}

// A *rate.Limiter works as a Limiter. If the deadline is too near, its error is only a text; the client's error
// matches DeadlineExceeded.
func TestARateLimiterFits(t *testing.T) {
	t.Parallel()
	ofCustomer := rate.NewLimiter(rate.Every(time.Hour), 1)
	shared := &lender{acquire: func(ctx context.Context) (time.Time, error) { return time.Time{}, ofCustomer.Wait(ctx) }}
	own := webdelivery.WithPurgeLimiter(rate.NewLimiter(rate.Every(time.Hour), 1))
	for _, option := range []webdelivery.Option{own, webdelivery.WithSharedLimiter(shared)} {
		fixture.InFakeTime(t, with(option), func(f *fixture.Fixture) {
			require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
			ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			require.ErrorIs(f, fixture.Submit.Call(ctx, f.Client), context.DeadlineExceeded)
			assert.Zero(f, time.Since(began))
		})
	}
}

// If the deadline of a Submit comes before its permit, it fails at once and says when that comes, at the earliest. It may
// have to wait for a slot, for other callers in front of it, or for the end of a pause.
func TestADeadlineBeforeThePermit(t *testing.T) {
	t.Parallel()
	// late submits with a deadline and checks that it fails without waiting.
	late := func(f *fixture.Fixture, d time.Duration, why string) {
		f.Helper()
		ctx, cancel := context.WithTimeout(f.Context(), d)
		defer cancel()
		began := time.Now()
		err := fixture.Submit.Call(ctx, f.Client)
		require.ErrorIs(f, err, context.DeadlineExceeded)
		require.ErrorContains(f, err, why)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		assert.Zero(f, time.Since(began))
	}
	const refusing = "; the service refuses purges as too fast"
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.TakeSlots()
		late(f, hold-time.Millisecond, "the next purge permit comes in 1.05s or later, but the deadline is in 1.049s")
		var wg sync.WaitGroup
		wg.Go(func() { submitAll(f, 5) }) // two at 1.05 s, two at 2.1 s, one at 3.15 s
		synctest.Wait()
		late(f, 3*hold-time.Millisecond, "comes in 3.15s or later")
		ctx, cancel := context.WithTimeout(f.Context(), 3*hold+time.Millisecond)
		defer cancel()
		assert.NoError(f, fixture.Submit.Call(ctx, f.Client))
		wg.Wait()
		assert.Equal(f, inPairs(8), arrivals(f))

		time.Sleep(hold)
		f.AddFault(testserver.Fault{Path: "/cache/purge", Count: 1, Status: 503, Header: http.Header{"Retry-After": {"30"}}, Delay: half})
		wg.Go(func() { submitAll(f, 2) })
		synctest.Wait()
		began := time.Now()
		inLine, stop := context.WithTimeout(f.Context(), 20*time.Second)
		defer stop()
		require.ErrorContains(f, fixture.Submit.Call(inLine, f.Client), refusing)
		assert.Equal(f, half, time.Since(began), "when the refusal comes")
		late(f, 20*time.Second, refusing)
		wg.Wait()
		late(f, 100*time.Millisecond, refusing)
	})
}

// The client reports a pause, as long as the service asks for but no longer than ThrottleTimeout, to a limiter that can
// pause. The customer does not depend on the spelling of the base URL.
func TestPauseIsTold(t *testing.T) {
	t.Parallel()
	for i, tt := range []struct {
		spelling, asked string
		want            time.Duration // the next slot comes sooner
		err             error         // a purge that would have to wait too long ends at once
	}{
		{"https://told.example.com", "20", 20 * time.Second, webdelivery.ErrBadRequest},
		{"https://TOLD.example.com.:443/root/", "3600", 5 * time.Minute, webdelivery.ErrRateLimited},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Duration(i)) // a bubble knows what an earlier one left behind by its later times
			var paused []time.Duration
			var log strings.Builder
			l := &lender{pause: func(d time.Duration) error { paused = append(paused, d); return assert.AnError }}
			status := http.StatusTooManyRequests
			client := purging(t, tt.spelling, func(*http.Request) (*http.Response, error) {
				r := fixture.Response(status, nil)
				r.Header.Set("Retry-After", tt.asked)
				status = http.StatusBadRequest
				return r, nil
			}, webdelivery.WithSharedLimiter(l), webdelivery.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			began := time.Now()
			require.ErrorIs(t, fixture.Submit.Call(t.Context(), client), tt.err) // that of Pause changes nothing for the call
			assert.Less(t, time.Since(began), time.Minute)
			assert.Equal(t, []time.Duration{tt.want}, paused)
			assert.Contains(t, log.String(), "purge limiter not paused")
			assert.Equal(t, map[any]any{"https://told.example.com/acme": true}, maps.Collect(l.customers.Range))
		})
	}
}

// limiter is a Limiter that calls a function.
type limiter func(context.Context) error

func (l limiter) Wait(ctx context.Context) error { return l(ctx) }

// ending is a way in which a purge ends and leaves its slot.
type ending struct {
	name        string
	fault       testserver.Fault
	options     []webdelivery.Option
	setup       func(f *fixture.Fixture)
	cancelAfter time.Duration // when the caller cancels; 0: never
	arrived     time.Duration // the latest moment at which it may have arrived
	unsent      bool          // nothing was sent
	panics      any           // of the transport
	status      int           // of the response, if it was in time
}

// submit sends a purge, without retries.
func (e *ending) submit(f *fixture.Fixture, options ...webdelivery.Option) {
	options = append(options, webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
	client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: append(options, e.options...)})
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	if e.cancelAfter > 0 {
		time.AfterFunc(e.cancelAfter, cancel)
	}
	defer func() { assert.Equal(f, e.panics, recover()) }()
	_ = fixture.Submit.Call(ctx, client)
}

func endings() []ending {
	dials := func(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(f *fixture.Fixture) {
		return func(f *fixture.Fixture) { f.HTTP.Transport.(*http.Transport).DialContext = dial }
	}
	refused := dials(func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	})
	stuck := dials(func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	sends := func(send fixture.RoundTripper) func(f *fixture.Fixture) {
		return func(f *fixture.Fixture) { f.HTTP.Transport = send }
	}
	// silent is a transport that reports no connections, and waits for the context.
	silent := sends(func(r *http.Request) (*http.Response, error) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	failing := sends(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	panicking := sends(func(*http.Request) (*http.Response, error) { panic("transport") })
	never, short := testserver.Fault{Delay: time.Hour}, []webdelivery.Option{webdelivery.WithAttemptTimeout(2 * time.Second)}
	return []ending{
		{name: "a response at once", status: 201},
		{name: "a response after 3 s", fault: testserver.Fault{Delay: 3 * time.Second}, arrived: 3 * time.Second, status: 201},
		{name: "a rejection after 3 s", fault: testserver.Fault{Delay: 3 * time.Second, Status: 400}, arrived: 3 * time.Second, status: 400},
		{name: "a response whose body takes long", fault: testserver.Fault{Stall: 20 * time.Second}, status: 201},
		{name: "a response after 20 s: written at once", fault: testserver.Fault{Delay: 20 * time.Second}, arrived: 5 * time.Second},
		{name: "no response within an attempt of 2 s", fault: never, options: short, arrived: 5 * time.Second},
		{name: "the caller cancels after 1 s", fault: never, cancelAfter: time.Second, arrived: 5 * time.Second},
		{name: "the caller cancels after 10 s", fault: never, cancelAfter: 10 * time.Second, arrived: 5 * time.Second},
		{name: "the connection is cut after 2 s", fault: testserver.Fault{Delay: 2 * time.Second, Cut: testserver.CutAfterRead}, arrived: 5 * time.Second},
		{name: "no connection", setup: refused, unsent: true},
		{name: "the caller cancels while a connection is opened", setup: stuck, cancelAfter: 3 * time.Second, unsent: true},
		{name: "a transport that reports nothing, and the caller cancels after 1 s", setup: silent, cancelAfter: time.Second, arrived: 6 * time.Second},
		{name: "a transport that reports nothing, and fails", setup: failing, arrived: 5 * time.Second},
		{name: "a transport that panics", setup: panicking, arrived: 5 * time.Second, panics: "transport"}, // a program that recovers purges on
	}
}

// eachEnding runs a test in which the first purges end in some way.
func eachEnding(t *testing.T, purges int, test func(f *fixture.Fixture, tt *ending)) {
	t.Helper()
	for _, tt := range endings() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				tt.fault.Path, tt.fault.Count = "/cache/purge", purges
				f.AddFault(tt.fault)
				if tt.setup != nil {
					tt.setup(f)
				}
				test(f, &tt)
			})
		})
	}
}

// A purge keeps its slot until it has certainly arrived, or certainly can no longer arrive, and for 1.05 s after
// that. Two purges that end in some way take both slots; a third one shows when they are free.
func TestWhenASlotIsFree(t *testing.T) {
	t.Parallel()
	eachEnding(t, 2, func(f *fixture.Fixture, tt *ending) {
		working := f.Srv.Transport()
		defer working.CloseIdleConnections()
		next := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{Transport: working})}}) // shares the budget
		began := time.Now()
		var wg sync.WaitGroup
		for range 2 { // with a client each: neither waits for the other's response
			wg.Go(func() { tt.submit(f) })
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
}

// lender is a SharedLimiter that records how its permits end.
type lender struct {
	acquire func(ctx context.Context) (expires time.Time, err error) // nil: always, and it does not expire
	pause   func(time.Duration) error                                // may be nil
	why     error

	customers sync.Map // that its methods were called with
	mu        sync.Mutex
	ends      []lending
}

type lending struct {
	at, arrived time.Duration // since the first permit; arrived is -1 for a permit with which nothing was sent
	status      int
}

func (l *lender) Waiting(customer string) error {
	l.customers.Store(customer, true)
	return l.why
}

func (l *lender) Pause(_ context.Context, customer string, d time.Duration) error {
	l.customers.Store(customer, true)
	if l.pause == nil {
		return nil
	}
	return l.pause(d)
}

func (l *lender) Acquire(ctx context.Context, customer string) (webdelivery.Permit, error) {
	l.customers.Store(customer, true)
	permit, err, began := webdelivery.Permit{}, ctx.Err(), time.Now()
	if l.acquire != nil {
		permit.Expires, err = l.acquire(ctx)
	}
	permit.Done = func(_ context.Context, arrived time.Time, status int) {
		end := lending{time.Since(began), -1, status}
		if !arrived.IsZero() {
			end.arrived = arrived.Sub(began)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ends = append(l.ends, end)
	}
	return permit, err
}

// The client ends the permit of a SharedLimiter once, as soon as it knows the latest time of arrival.
func TestPermitsEnd(t *testing.T) {
	t.Parallel()
	eachEnding(t, 1, func(f *fixture.Fixture, tt *ending) {
		l, began := &lender{}, time.Now()
		tt.submit(f, webdelivery.WithSharedLimiter(l))
		took := time.Since(began)
		time.Sleep(time.Hour)
		want := lending{min(took, tt.arrived), tt.arrived, tt.status}
		switch {
		case tt.unsent:
			want = lending{took, -1, 0}
		case tt.cancelAfter > 0 && tt.cancelAfter < tt.arrived, tt.arrived > took: // known before it is over
			want.at = took
		}
		assert.Equal(f, []lending{want}, l.ends)
	})
}

// The client sends nothing with a permit that has expired, and acquires another one. The connection may have taken too
// long, the process may have been stopped before it began to send, or the permit may come too late. A permit whose caller
// has left ends unused, too.
func TestPermitsExpire(t *testing.T) {
	t.Parallel()
	const lifetime, delay = 10 * time.Second, 11 * time.Second
	for _, late := range []string{"connecting", "sending", "acquiring"} {
		var once sync.Once
		hold := func(where string) {
			if where == late {
				once.Do(func() { time.Sleep(delay) })
			}
		}
		l := &lender{acquire: func(context.Context) (time.Time, error) {
			expires := time.Now().Add(lifetime)
			hold("acquiring")
			return expires, nil
		}}
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			transport := f.HTTP.Transport.(*http.Transport)
			dial := transport.DialContext
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				hold("connecting")
				return dial(ctx, network, address)
			}
			f.HTTP.Transport = fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				hold("sending")
				return transport.RoundTrip(r)
			})
			client := f.NewClient(f.Srv.URL(), with(webdelivery.WithSharedLimiter(l)))
			require.NoError(f, fixture.Submit.Call(f.Context(), client))
			assert.Len(f, arrivals(f), 1)
			assert.Equal(f, []lending{{delay, -1, 0}, {0, 0, 201}}, l.ends)

			ctx, cancel := context.WithCancel(f.Context())
			l.acquire = func(ctx context.Context) (time.Time, error) { cancel(); return time.Time{}, ctx.Err() }
			require.ErrorIs(f, fixture.Submit.Call(ctx, client), context.Canceled)
			require.Len(f, l.ends, 3)
			assert.Equal(f, lending{0, -1, 0}, l.ends[2])
		})
	}
}

// The client retries a purge that the service rejects as too fast until ThrottleTimeout, which counts from the first
// rejection. MaxAttempts 1 turns this off.
func TestThrottleTimeout(t *testing.T) {
	t.Parallel()
	for policy, most := range map[webdelivery.RetryPolicy]time.Duration{
		{}:                                  5 * time.Minute,
		{ThrottleTimeout: time.Hour}:        time.Hour,
		{ThrottleTimeout: time.Millisecond}: 0,
		{MaxAttempts: 1}:                    0,
		{MaxAttempts: 2}:                    5 * time.Minute,
	} {
		for status, outcome := range map[int]webdelivery.Outcome{429: webdelivery.OutcomeNotApplied, 503: webdelivery.OutcomeUnknown} {
			fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithRetry(policy)}}, func(f *fixture.Fixture) {
				f.AddFault(testserver.Fault{Path: "/cache/purge", Status: status})
				began := time.Now()
				err := fixture.Submit.Call(f.Context(), f.Client)
				assert.GreaterOrEqual(f, time.Since(began), most-25*time.Second)
				assert.LessOrEqual(f, time.Since(began), most)
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

// While the service accepts no purge, those that wait in line give up after ThrottleTimeout, too, which counts from the first
// refusal or from their own beginning, whichever is later.
func TestThrottleTimeoutInLine(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/cache/purge", Status: 429})
		began := time.Now()
		var wg sync.WaitGroup
		submit := func() {
			err := fixture.Submit.Call(f.Context(), f.Client)
			assert.ErrorIs(f, err, webdelivery.ErrRateLimited)
			assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		}
		for range 200 {
			wg.Go(submit)
		}
		time.Sleep(4 * time.Minute)
		submit()
		between(f, time.Since(began), 8*time.Minute+half, 9*time.Minute)
		wg.Wait()
		assert.Less(f, f.Requests(fixture.Submit), 150, "some have sent nothing")
	})
	fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithRetry(webdelivery.RetryPolicy{ThrottleTimeout: 10 * time.Second})}},
		func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: "/cache/purge", Status: 429, Skip: 40, Count: 1})
			submitAll(f, 60) // a line of half a minute
		})
}

// A purge that is refused again and again although others are accepted waits alone, each time longer: from half to all of
// 0.5, 1, 2 and up to 16 s, at random, or as long as the service asks. It does not delay the others, and is no reason to
// pause the limiter of a user. But while there is a rate after other refusals, that lasts.
func TestAPurgeThatIsAlwaysRefused(t *testing.T) {
	t.Parallel()
	const poison = "https://www.example.com/poison"
	for _, asked := range []map[int]time.Duration{{1: 61 * time.Second, 9: time.Minute}, nil} {
		synctest.Test(t, func(t *testing.T) {
			var refusals []time.Time
			pauses, slow := 0, time.Second // the first of the others is accepted after the first refusal
			client := purging(t, "https://refused.example.com", func(r *http.Request) (*http.Response, error) {
				if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte(poison)) {
					refusals = append(refusals, time.Now())
					answer := fixture.Response(http.StatusServiceUnavailable, nil)
					answer.Header.Set("Retry-After", fmt.Sprint(asked[len(refusals)].Seconds()))
					return answer, nil
				}
				time.Sleep(slow)
				slow = 0
				return accepted(), nil
			}, webdelivery.WithSharedLimiter(&lender{pause: func(time.Duration) error { pauses++; return nil }}))
			var wg sync.WaitGroup
			wg.Go(func() { assert.NoError(t, fixture.Submit.Call(t.Context(), client)) })
			synctest.Wait()
			wg.Go(func() {
				_, err := client.Purge.Submit(t.Context(), fixture.PurgeOf(poison))
				assert.ErrorIs(t, err, webdelivery.ErrRateLimited)
				assert.ErrorContains(t, err, "ThrottleTimeout")
			})
			time.Sleep(time.Minute) // until only the limiter limits
			waited := time.Duration(0)
			for range 1200 {
				time.Sleep(200 * time.Millisecond)
				began := time.Now()
				require.NoError(t, fixture.Submit.Call(t.Context(), client))
				waited += time.Since(began)
			}
			wg.Wait()
			if asked == nil {
				assert.Greater(t, waited, 2*time.Minute)
				return
			}
			assert.Zero(t, waited)
			require.Greater(t, len(refusals), 12)
			longest := half
			for i := range len(refusals) - 1 {
				if wait := refusals[i+1].Sub(refusals[i]); asked[i+1] > 0 {
					assert.Equal(t, asked[i+1], wait)
				} else {
					between(t, wait, longest/2, longest)
					longest = min(2*longest, 16*time.Second)
				}
			}
			assert.Equal(t, 1, pauses)
		})
	}
}
