package suite_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// This file is the matrix of faults: one table describes what each fault does to each kind of operation. The tests
// run it (operation x fault x moment). docs/guarantees.md has it in a shorter form: change both.

// promise is what a fault does to one kind of operation: the number of attempts while the fault lasts, and then the
// outcome. An operation with more than one attempt survives a transient fault. The zero value: such an operation
// cannot meet the fault.
type promise struct {
	attempts int
	outcome  webdelivery.Outcome
}

// untilTimeout: the client retries for as long as the policy's ThrottleTimeout.
const untilTimeout = -1

// survives reports whether a transient fault does no harm.
func (p promise) survives() bool { return p.attempts > 1 || p.attempts == untilTimeout }

type promises [operations.LogsIn + 1]promise

const (
	unknown = webdelivery.OutcomeUnknown
	not     = webdelivery.OutcomeNotApplied
	applied = webdelivery.OutcomeApplied
)

var (
	// The fault is transient, and the service may have carried out the request.
	transient = promisesOf(4, unknown).but(operations.Writes, promise{1, unknown})
	// The fault is transient, and the service certainly did nothing.
	unprocessed = promisesOf(4, not).but(operations.Writes, promise{3, not})
	// The fault is permanent, and the service certainly did nothing.
	refused = promisesOf(1, not)
	// The fault is permanent, and it is unknown what the service did.
	unclear = promisesOf(1, unknown)
)

// promisesOf promises this for every kind of operation; the outcome is that of the writes.
func promisesOf(attempts int, outcome webdelivery.Outcome) (p promises) {
	for kind := range p {
		if p[kind] = (promise{attempts, not}); kind >= int(operations.Deletes) {
			p[kind].outcome = outcome
		}
	}
	return p
}

func (p promises) but(kind operations.Kind, is promise) promises {
	p[kind] = is
	return p
}

type faultRow struct {
	fault    string
	is       error // what errors.Is matches; nil for nothing
	promises promises
	variants []variant // the ways in which the fault comes
	session  bool      // the client has a SessionAuth
}

type variant struct {
	name    string
	fault   testserver.Fault
	dial    error // every new connection fails with it
	applied bool  // the service has carried out the request although the response does not show it
	body    bool  // it needs a response with a body
}

func status(code int, header ...string) testserver.Fault {
	fault := testserver.Fault{Status: code, Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		fault.Header.Add(header[i], header[i+1])
	}
	return fault
}

func statuses(codes ...int) (all []variant) {
	for _, code := range codes {
		all = append(all, variant{name: fmt.Sprint(code), fault: status(code)})
	}
	return all
}

// doneAll adds a variant to each in which the service has already carried out the request.
func doneAll(variants []variant) (all []variant) {
	for _, v := range variants {
		done := v
		done.name, done.applied, done.fault.Execute = v.name+" after it was done", true, true
		all = append(all, v, done)
	}
	return all
}

// wire writes this text to the connection, and closes it.
func wire(text string) testserver.Fault {
	return testserver.Fault{Handler: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}}
}

func success(body string) testserver.Fault { return testserver.Fault{Status: 200, Body: body} }

var errRefused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}

func matrix() []faultRow {
	const elsewhere = "http://198.51.100.7/v1"
	html := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	return []faultRow{
		{
			fault: "429", is: webdelivery.ErrRateLimited, promises: unprocessed.but(operations.Purges, promise{untilTimeout, not}),
			variants: append(statuses(429), variant{name: "with Retry-After", fault: status(429, "Retry-After", "1")},
				variant{name: "with Retry-After as a date", fault: status(429, "Retry-After", "Sat, 01 Jan 2000 00:00:03 GMT", "Date", "Sat, 01 Jan 2000 00:00:01 GMT")},
				variant{name: "with a Retry-After that is none", fault: status(429, "Retry-After", "soon")}),
		},
		{
			fault: "429 with a Retry-After above MaxWait", is: webdelivery.ErrRateLimited,
			promises: refused.but(operations.Purges, promise{untilTimeout, not}),
			variants: []variant{{name: "429", fault: status(429, "Retry-After", "21")}},
		},
		{
			fault: "503 with a Retry-After above MaxWait", is: webdelivery.ErrServer,
			promises: refused.but(operations.Purges, promise{untilTimeout, unknown}),
			variants: []variant{{name: "503", fault: status(503, "Retry-After", "21")}},
		},
		{
			fault: "503 with a Retry-After above ThrottleTimeout", is: webdelivery.ErrServer,
			promises: refused.but(operations.Purges, promise{1, unknown}),
			variants: []variant{{name: "503", fault: status(503, "Retry-After", "86400")}},
		},
		{
			fault: "503 with Retry-After", is: webdelivery.ErrServer,
			promises: unprocessed.but(operations.Purges, promise{untilTimeout, unknown}),
			variants: []variant{{name: "503", fault: status(503, "Retry-After", "1")}},
		},
		{
			fault: "503", is: webdelivery.ErrServer, promises: transient.but(operations.Purges, promise{untilTimeout, unknown}),
			variants: doneAll(statuses(503)),
		},
		{fault: "500, 502, 504", is: webdelivery.ErrServer, promises: transient, variants: doneAll(statuses(500, 502, 504))},
		{fault: "408", promises: transient, variants: doneAll(statuses(408))},
		{fault: "501", is: webdelivery.ErrServer, promises: unclear, variants: statuses(501)},
		{fault: "400", is: webdelivery.ErrBadRequest, promises: refused, variants: statuses(400)},
		{
			fault: "401 with Basic authentication", is: webdelivery.ErrUnauthorized, promises: refused,
			variants: statuses(401),
		},
		{fault: "403", is: webdelivery.ErrForbidden, promises: refused, variants: statuses(403)},
		{fault: "404", is: webdelivery.ErrNotFound, promises: refused, variants: statuses(404)},
		{fault: "405, 406, 409, 410, 413, 422", promises: refused, variants: statuses(405, 406, 409, 410, 413, 422)},
		{
			fault: "A redirect, to any address", is: webdelivery.ErrBadResponse, promises: unclear,
			variants: []variant{
				{name: "300", fault: status(300, "Location", elsewhere)},
				{name: "301", fault: status(301, "Location", elsewhere)},
				{name: "302", fault: status(302, "Location", "/elsewhere")},
				{name: "303", fault: status(303, "Location", elsewhere)},
				{name: "307", fault: status(307, "Location", elsewhere)},
				{name: "308", fault: status(308, "Location", "//198.51.100.7/")},
			},
		},
		{
			fault: "304 to a request without a condition", is: webdelivery.ErrBadResponse, promises: unclear,
			variants: statuses(304),
		},
		{
			fault: "No connection: refused, or the name server does not respond", is: errRefused, promises: unprocessed,
			variants: []variant{{name: "refused", dial: errRefused}, {name: "DNS timeout", dial: &net.DNSError{Err: errRefused.Error(), UnwrapErr: errRefused, IsTimeout: true}}},
		},
		{
			fault: "No connection: unknown host", promises: refused,
			variants: []variant{{name: "NXDOMAIN", dial: &net.DNSError{Err: "no such host", IsNotFound: true}}},
		},
		{
			fault: "No connection: untrusted certificate, on either side", promises: refused,
			variants: []variant{
				{name: "unknown authority", dial: x509.UnknownAuthorityError{}},
				{name: "client certificate", dial: &net.OpError{Op: "remote error", Err: tls.AlertError(48)}}, // unknown_ca
			},
		},
		{
			fault: "The connection is lost before a response arrives", promises: transient,
			variants: []variant{
				{name: "before it is read", fault: testserver.Fault{Cut: testserver.CutBeforeRead}},
				{name: "after it is read", fault: testserver.Fault{Cut: testserver.CutAfterRead}},
				{name: "after it is done", fault: testserver.Fault{Cut: testserver.CutAfterExecute}, applied: true},
			},
		},
		{
			fault: "The response is not HTTP", promises: transient,
			variants: []variant{
				{name: "status line", fault: wire("HTTP/1.1 what\r\n\r\n")},
				{name: "another protocol", fault: wire("220 mail.example.com ESMTP\r\n")},
				{name: "header", fault: wire("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n")},
			},
		},
		{
			fault: "Nothing arrives before the attempt timeout", promises: transient,
			variants: []variant{{name: "no header", fault: testserver.Fault{Delay: time.Hour}}},
		},
		{
			fault: "The body is cut short", is: io.ErrUnexpectedEOF, promises: transient.but(operations.Streams, promise{1, not}),
			variants: []variant{
				{name: "with a length", fault: testserver.Fault{Cut: testserver.CutBody}, applied: true, body: true},
				{name: "chunked", fault: testserver.Fault{Cut: testserver.CutChunked}, applied: true, body: true},
			},
		},
		{
			fault: "The body stalls", promises: transient.but(operations.Streams, promise{1, not}),
			variants: []variant{{name: "stall", fault: testserver.Fault{Stall: time.Hour}, applied: true, body: true}},
		},
		{
			fault: "One of these two, before the first row has arrived", promises: promises{operations.Streams: {4, not}},
			variants: []variant{
				{name: "cut with a length", fault: testserver.Fault{Cut: testserver.CutBody, CutAfter: 40}, body: true},
				{name: "cut, chunked", fault: testserver.Fault{Cut: testserver.CutChunked, CutAfter: 40}, body: true},
				{name: "stall", fault: testserver.Fault{Stall: time.Hour, CutAfter: 40}, body: true},
			},
		},
		{
			fault: "The body arrives at one byte per second", promises: transient.but(operations.Streams, promise{}),
			variants: []variant{{name: "dribble", fault: testserver.Fault{Dribble: time.Second}, applied: true, body: true}},
		},
		{
			fault: "A success status with an HTML page", is: webdelivery.ErrBadResponse, promises: unclear,
			variants: []variant{
				{name: "HTML", fault: testserver.Fault{Status: 200, Header: html, Body: "<html>"}, body: true},
				{name: "what says that it is", fault: testserver.Fault{Status: 200, Header: html, Body: "{}"}, body: true},
			},
		},
		{
			fault: "A success status with a body that is not JSON", is: webdelivery.ErrBadResponse,
			promises: unclear.but(operations.Deletes, promise{}).but(operations.Writes, promise{}),
			variants: []variant{
				{name: "trailing garbage", fault: success(`{"id":"a"} x`), body: true},
				{name: "two values", fault: success(`{}{}`), body: true},
				{name: "byte order mark", fault: success("\ufeff{}"), body: true},
				{name: "invalid UTF-8", fault: success("{\"id\":\"\xff\"}"), body: true},
				{name: "too deep", fault: success(`{"x":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + "}"), body: true},
			},
		},
		{
			fault: "401 with a session: one new login, one more attempt", is: webdelivery.ErrUnauthorized,
			promises: promisesOf(2, not).but(operations.LogsIn, promise{}), variants: statuses(401), session: true,
		},
	}
}

// moment says which of an operation's requests meets the fault, and for how long.
type moment struct {
	name  string
	skip  int
	stays bool
}

func (o operationOf) moments() []moment {
	all := []moment{{"once", 0, false}, {"always", 0, true}}
	if o.InOrder {
		all = append(all, moment{"in the middle", 1, false}, moment{"from the middle on", 1, true})
	}
	return all
}

// unmet are operations on which a fault has no effect, and why, with patterns as in path.Match.
var unmet = []struct{ fault, variant, operation, why string }{
	{"A success status with *", "*", "Do [DPp]*", "Do hands out a json.RawMessage as it is, and reads no body into nil"},
	{"A redirect, *", "303", "Do purge", "it is a success, and Do does not read the transaction"},
	{"400", "400", "NetworkLists.GetByName", "it reads on without a count"},
	{"400", "400", "NetworkLists.[FP]*", "Find and Plan, too"},
	{"The body arrives at one byte per second", "*", "Stats.*.Metrics", "the body is so short that it comes in time"},
}

// meets reports whether an operation can meet a fault.
func (o operationOf) meets(row faultRow, v variant) bool {
	if row.promises[o.Kind].attempts == 0 || v.body && o.Bodiless || o.login && row.session {
		return false
	}
	for _, u := range unmet {
		if like(u.fault, row.fault) && like(u.variant, v.name) && like(u.operation, o.String()) {
			return false
		}
	}
	return true
}

// like compares a text with a pattern in which a star stands for any text.
func like(pattern, text string) bool {
	matches, err := path.Match(pattern, strings.ReplaceAll(text, "/", " "))
	return err == nil && matches
}

// Every fault, in every variant, at every moment. Every operation that can meet a fault meets its first variant, and one
// of each column the others. The families of statistics share their operations.
func TestFaultMatrix(t *testing.T) {
	t.Parallel()
	for _, row := range matrix() {
		for i, v := range row.variants {
			met := map[operations.Kind]bool{}
			for _, op := range operationsOf() {
				is := row.promises[op.Kind]
				if !op.meets(row, v) || (i > 0 || testing.Short()) && met[op.Kind] {
					continue
				}
				met[op.Kind] = true
				for _, when := range op.moments() {
					if when.stays && is.attempts == 1 && !op.Waits && !op.Resumes {
						continue // one attempt does not show how long a fault lasts
					}
					t.Run(strings.Join([]string{row.fault, v.name, op.String(), when.name}, "/"), func(t *testing.T) {
						t.Parallel()
						var s fixture.Setup
						if op.login || row.session {
							s.Auth = webdelivery.SessionAuth(fixture.Username, fixture.Password)
						}
						inReliableService(t, s, func(f *fixture.Fixture) {
							if op.Waits {
								disturbWait(f, row, v, op, is, when)
							} else {
								disturb(f, row, v, op, is, when)
							}
						})
					})
				}
			}
		}
	}
}

// checkResumed checks a stream that continues after a fault in the middle of a response. The stream sends one more
// request, and then one for the total. If the fault lasts, the stream ends with its error after 5 minutes.
func checkResumed(f *fixture.Fixture, op operationOf, when moment, items, sent int, err error) {
	f.Helper()
	if when.stays {
		require.NotNil(f, innermost(err))
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		assert.Greater(f, sent, 20)
		return
	}
	require.NoError(f, err)
	assert.Equal(f, op.Items, items, "no item is missing, and none came twice")
	assert.Equal(f, op.Requests+2, sent)
}

// disturb makes one call while a fault lasts, and checks the promise.
func disturb(f *fixture.Fixture, row faultRow, v variant, op operationOf, is promise, when moment) {
	use := prepare(f, op)
	before, began := f.Srv.Count(op.Method, op.Pattern()), time.Now()
	dials, _ := addFault(f, v, op, when)

	items, err := op.Call(f.Context(), f.Client, use)
	require.NoError(f, use.End(f.Context()))

	sent := f.Srv.Count(op.Method, op.Pattern()) - before
	if op.Resumes && v.body && is.attempts == 1 && v.fault.Body == "" {
		checkResumed(f, op, when, items, sent, err)
		return
	}
	// If a DELETE was carried out but its response was lost, its retry gets 404, and that is a success.
	gone := op.Kind == operations.Deletes && v.body && v.applied
	if is.survives() && (!when.stays || gone) {
		require.NoError(f, err)
		assert.Equal(f, op.Items, items, "no item is missing, and none came twice")
		if op.Requests > 0 && v.dial == nil {
			assert.Equal(f, op.Requests+1, sent, "there was one retry")
		}
		assert.True(f, !op.Changes() || op.Applied(f.Srv, use))
		return
	}

	e := innermost(err)
	require.NotNil(f, e)
	if row.is != nil && !op.login { // TestALoginSaysNothingOfWhatIsAskedFor has what a failed login is
		assert.ErrorIs(f, err, row.is)
		if errors.Is(row.is, webdelivery.ErrForbidden) {
			password := slices.Contains([]string{"/cache/purge", "/transactions/*", "/sessions"}, op.Pattern()) // it may be wrong
			assert.Equal(f, password, errors.Is(err, webdelivery.ErrUnauthorized), op.Name)
		}
	}
	assert.NotErrorIs(f, err, context.DeadlineExceeded, "the caller's context has no deadline")
	attempts := is.attempts
	if attempts != untilTimeout {
		assert.Equal(f, attempts, e.Attempts)
	} else {
		attempts = sent - when.skip
		assert.InDelta(f, attempts, e.Attempts, 1, "the last retry may have got no permit in time")
		assert.GreaterOrEqual(f, time.Since(began), 4*time.Minute)
		assert.LessOrEqual(f, time.Since(began), 5*time.Minute+10*time.Millisecond, "a queue gathers callers for 10 ms before it acquires a permit")
		assert.ErrorIs(f, err, webdelivery.ErrRateLimited)
	}
	if v.dial != nil || v.fault.Status != 0 {
		assert.Equal(f, v.fault.Status, e.StatusCode)
	}
	last := op.Requests - op.Ahead
	if v.dial == nil && (op.InOrder || last == 1) {
		assert.Equal(f, op.Ahead+when.skip+attempts, sent)
	}
	if v.dial != nil && last == 1 {
		assert.Equal(f, int64(op.Before+op.Ahead+attempts), dials.Load())
	}
	if op.Kind == operations.Pages && op.InOrder {
		assert.Equal(f, when.skip, items, "the items before the fault are yielded")
	}
	checkOutcome(f, op, use, is.outcome, err)
	assert.True(f, !v.applied || !op.Changes() || op.Applied(f.Srv, use), "the fault must come after the service carried out the request")
	assert.Zero(f, f.Srv.ForeignDials())
}

// checkOutcome checks the outcome of a call: want is that of a write.
func checkOutcome(f *fixture.Fixture, op operationOf, use *operations.Use, want webdelivery.Outcome, err error) {
	f.Helper()
	switch {
	case op.Waits:
		want = webdelivery.OutcomeUnknown
	case !op.Changes():
		want = webdelivery.OutcomeNotApplied
	}
	assert.Equal(f, want, webdelivery.OutcomeOf(err))
	assert.False(f, want == webdelivery.OutcomeNotApplied && op.Applied(f.Srv, use))
}

// Which faults end a wait; it polls through all others. The second ones end a wait that has not read anything yet.
var (
	endsWait = []string{
		"400", "401 with Basic authentication", "401 with a session: one new login, one more attempt", "403", "404",
		"405, 406, 409, 410, 413, 422",
	}
	endsFirstPoll = []string{
		"A redirect, to any address", "304 to a request without a condition", "No connection: unknown host",
		"No connection: untrusted certificate, on either side",
	}
)

// disturbWait waits while a fault lasts: for one request, or for nine minutes, which the task takes, too.
func disturbWait(f *fixture.Fixture, row faultRow, v variant, op operationOf, is promise, when moment) {
	use := prepare(f, op)
	before, began := f.Srv.Count(op.Method, op.Pattern()), time.Now()
	dials, remove := addFault(f, v, op, when)
	const outage = 9 * time.Minute
	time.AfterFunc(outage, remove)
	use.Poll = 20 * time.Second

	_, err := op.Call(f.Context(), f.Client, use)

	ends := slices.Contains(endsWait, row.fault) || when.skip == 0 && slices.Contains(endsFirstPoll, row.fault)
	if row.session { // a new login helps against a transient fault
		ends = when.stays
	}
	if !ends {
		require.NoError(f, err)
		assert.True(f, !when.stays || time.Since(began) >= outage)
		return
	}
	require.Error(f, err)
	checkOutcome(f, op, use, unknown, err)
	assert.Less(f, time.Since(began), outage)
	if row.is != nil {
		assert.ErrorIs(f, err, row.is)
	}
	if v.dial == nil {
		assert.Equal(f, when.skip+is.attempts, f.Srv.Count(op.Method, op.Pattern())-before)
	} else {
		assert.Equal(f, int64(when.skip+1), dials.Load())
	}
}

// innermost returns the error of the request that failed: the error of a login is inside the error of the call that
// needed it.
func innermost(err error) (last *webdelivery.Error) {
	for e := last; errors.As(err, &e); err = e.Unwrap() {
		last = e
	}
	return last
}

// addFault makes the requests of an operation meet a fault, and counts the connections that it affects.
func addFault(f *fixture.Fixture, v variant, op operationOf, when moment) (dials *atomic.Int64, remove func()) {
	dials = new(atomic.Int64)
	// On a connection that was used before, net/http itself retries a read once; here only the SDK's requests count.
	transport := f.HTTP.Transport.(*http.Transport)
	transport.CloseIdleConnections()
	transport.DisableKeepAlives = true
	if v.dial != nil {
		first := op.Before + op.Ahead + when.skip
		reach := transport.DialContext
		over := new(atomic.Bool)
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			n := int(dials.Add(1))
			if over.Load() || n <= first || !when.stays && n > first+1 {
				return reach(ctx, network, address)
			}
			return nil, v.dial
		}
		return dials, func() { over.Store(true) }
	}
	fault := v.fault
	fault.Method, fault.Path, fault.Skip = op.Method, op.Pattern(), op.Ahead+when.skip
	if !when.stays {
		fault.Count = 1
	}
	return dials, f.Srv.Fail(fault)
}

// cancellation is a moment at which the caller cancels.
type cancellation struct {
	moment  string
	outcome webdelivery.Outcome      // of a write
	fault   testserver.Fault         // makes the moment last
	blocked func(f *fixture.Fixture) // or this does
	before  bool                     // the context has ended before the call
	body    bool                     // responses need a body
	session bool
	only    func(operations.Kind) bool // nil: every operation
}

func cancellations() []cancellation {
	purging := func(kind operations.Kind) bool { return kind == operations.Purges }
	return []cancellation{
		{moment: "before the call", outcome: not, before: true},
		{moment: "while it waits for a purge permit", outcome: not, only: purging, blocked: func(f *fixture.Fixture) {
			f.Client = f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithPurgeLimiter(noPermits{})}})
		}},
		{moment: "during a login", outcome: not, session: true, fault: testserver.Fault{Path: "/sessions", Delay: time.Hour}},
		{moment: "while it connects", outcome: not, blocked: func(f *fixture.Fixture) {
			f.HTTP.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}},
		{moment: "while it waits for the response", outcome: unknown, fault: testserver.Fault{Delay: time.Hour}},
		{moment: "while the body arrives", outcome: unknown, fault: testserver.Fault{Stall: time.Hour}, body: true},
		{moment: "between two attempts, after the service refused the first", outcome: not, fault: status(429, "Retry-After", "15")},
	}
}

type noPermits struct{}

func (noPermits) Wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A canceled call returns at once, whatever it waits for, and nothing is sent after that.
func TestGivingUp(t *testing.T) {
	t.Parallel()
	for _, c := range cancellations() {
		for _, op := range operationsOf() {
			if c.only != nil && !c.only(op.Kind) || c.body && op.Bodiless || c.session && op.Kind == operations.LogsIn {
				continue
			}
			t.Run(c.moment+"/"+op.String(), func(t *testing.T) {
				t.Parallel()
				var s fixture.Setup
				if op.login {
					s.Auth = webdelivery.SessionAuth(fixture.Username, fixture.Password)
				}
				inReliableService(t, s, func(f *fixture.Fixture) { cancelCall(f, c, op) })
			})
		}
	}
}

func cancelCall(f *fixture.Fixture, c cancellation, op operationOf) {
	use := prepare(f, op)
	transport := f.HTTP.Transport.(*http.Transport)
	transport.CloseIdleConnections()
	if c.session {
		f.Client = f.NewClient(f.Srv.URL(), fixture.Setup{Auth: webdelivery.SessionAuth(fixture.Username, fixture.Password)})
	}
	if c.blocked != nil {
		c.blocked(f)
	}
	fault := c.fault
	if fault.Path == "" {
		fault.Method, fault.Path = op.Method, op.Pattern()
	}
	f.AddFault(fault)
	const patience = 3 * time.Second
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	want := patience
	if c.before {
		want = 0
		cancel()
	} else {
		time.AfterFunc(patience, cancel)
	}
	sent, began := len(f.Srv.Requests()), time.Now()

	_, err := op.Call(ctx, f.Client, use)
	defer func() { _ = use.End(ctx) }()

	assert.Equal(f, want, time.Since(began))
	require.ErrorIs(f, err, context.Canceled)
	require.NotErrorIs(f, err, context.DeadlineExceeded)
	if c.before {
		assert.Len(f, f.Srv.Requests(), sent)
	}
	checkOutcome(f, op, use, c.outcome, err)
	sent = len(f.Srv.Requests())
	time.Sleep(time.Minute)
	assert.Len(f, f.Srv.Requests(), sent, "nothing is sent afterwards")
}
