package webdelivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"time"

	retryablehttp "github.com/hashicorp/go-retryablehttp"

	"github.com/webdelivery/webdelivery-go/internal/pace"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// The way of a call: a service describes it (call), send gives it to the retry loop of go-retryablehttp with hooks of
// its own (exchange), and each attempt passes the one RoundTripper below: permit, credentials, time limit, was it
// sent, body read and capped, log. None of the library's defaults is kept: they repeat a POST that was processed, wait
// for a Retry-After of years, and log to stderr.

const (
	maxErrorBody     = 64 << 10  // what an Error keeps of a reply
	maxTrusted       = 4 << 20   // of a Content-Length: more memory is taken when the bytes are there
	maxDrained       = 256 << 10 // what is read past that, so that the connection can be used again
	errorBodyWithin  = 2 * time.Second
	defaultMaxBody   = 32 << 20
	defaultAttempt   = 30 * time.Second
	defaultIdle      = 60 * time.Second
	contentTypeJSON  = "application/json"
	authCookieName   = "authtoken"
	purgePath        = "/cache/purge"
	sessionsPath     = "/sessions"
	transactionsPath = "/transactions/"
)

// call is one request as a service describes it.
type call struct {
	method string
	path   string     // below the base, escaped
	query  string     // encoded
	body   []byte     // JSON, nil for none
	purge  *purgeBody // in its place

	// take reads a success as it arrives, in each attempt that has one. begin reads up to the first row, and the rest is
	// handed on as it arrives. Both return the code of an envelope: 0 without one, and below 0 if they could not read so
	// far; and what is wrong with what they read.
	take, begin func(io.Reader) (code int, err error)

	id string // of what is asked for: one object with another id is another object; "": any

	permit    *permit // of the first attempt, if it was acquired before
	enveloped bool    // a code of 400 or more in the reply is a refusal, whatever its HTTP status

	hasBody     bool // a success has a body, so that none is one that was cut
	keepSession bool // a refused session is not renewed for this call
}

// exchange is one call on its way: what is asked, and what came of it so far. Its attempts follow one another, so
// nothing in it is locked.
type exchange struct {
	call
	ctx    context.Context //nolint:containedctx // lives as long as the call, and the hooks below get no other
	client *Client
	kind   kind
	url    url.URL

	carrier carrier
	seen    http.Response
	reply   reply

	last      attempt
	answered  attempt // the last one that brought a reply
	attempts  int
	faults    int           // attempts that failed in passing: what the policy counts
	paid      int           // taken from the budget for the attempt under way
	wait      time.Duration // before the next attempt
	ambiguous bool          // an attempt may have been processed though no reply says so
	caller    *pace.Caller  // of the purge's permits
	resent    bool          // sent again after a new login
	newerThan uint64        // generation of a session that the service may have refused
	giveUpAt  time.Time     // until when a purge that was refused as too fast is repeated; zero: it was not
	why       error         // it is not repeated
}

// attempt is what came of one attempt.
type attempt struct {
	status     int
	header     http.Header
	body       []byte
	cut        bool  // the body goes on, but no more of it arrived
	size       int64 // of the whole reply
	stream     *stream
	code       int    // code of the reply's envelope, where it has one
	err        error  // no whole reply arrived
	unsent     bool   // certainly nothing reached the service
	generation uint64 // of the session that was used
	permit     *permit
	refusal    pace.Refusal // of a purge that came too fast
}

type exchangeKey struct{}

// carrier is the caller's context, and leads the RoundTripper to the exchange.
type carrier struct {
	context.Context //nolint:containedctx // it is one
	exchange        *exchange
}

func (c *carrier) Value(key any) any {
	if key == (exchangeKey{}) {
		return c.exchange
	}
	return c.Context.Value(key)
}

// send carries one call to its end. The reply is a 2xx (of a purge also a 303); everything else is an *Error.
func (c *Client) send(ctx context.Context, cl call) (*reply, error) {
	x := &exchange{call: cl, ctx: ctx, client: c, kind: kindOf(cl.method, cl.path)}
	x.carrier = carrier{ctx, x}
	if cl.permit != nil {
		defer cl.permit.end(ctx, time.Time{}) // if there is no attempt, or it does not get so far
	}
	var err error
	if x.url, err = c.base.URL(cl.path, cl.query); err != nil {
		return nil, invalid("path", "%v", err)
	}
	// The header is empty, as each attempt makes its own; without one http.Client would make a copy of the request.
	plain := (&http.Request{Method: cl.method, URL: &x.url, Header: http.Header{}}).WithContext(&x.carrier) //nolint:contextcheck // it carries the caller's
	req, err := retryablehttp.FromRequest(plain)
	switch {
	case err != nil:
	case cl.purge != nil:
		defer cl.purge.end()
		err = req.SetBody(retryablehttp.ReaderFunc(cl.purge.reader))
	case cl.body != nil:
		err = req.SetBody(cl.body)
	}
	if err != nil {
		return nil, invalid("request", "%v", err)
	}
	// What came of it is in x; the loop's own reply has an empty body.
	if _, err = c.loop.Do(req); err != nil && x.attempts == 0 { //nolint:bodyclose // as said
		x.last.err = err // the loop's own, or the http.Client's
	}
	return x.finish()
}

// newLoop makes the retry loop. One serves all calls: it knows each by the context of its request.
func newLoop(next http.RoundTripper) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     next,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		RetryMax: math.MaxInt, // decide counts
		CheckRetry: func(ctx context.Context, _ *http.Response, err error) (bool, error) {
			return err == nil && exchangeOf(ctx).check(), err
		},
		Backoff: func(_, _ time.Duration, _ int, seen *http.Response) time.Duration {
			return exchangeOf(seen.Request.Context()).wait
		},
	}
}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// check decides about another attempt.
func (x *exchange) check() bool {
	again, wait := x.decide()
	if x.processed() == Unknown {
		x.ambiguous = true
	}
	if again {
		x.wait = wait
		x.warn("webdelivery: retry", x.last.err, slog.Int("status", x.last.status), slog.Duration("wait", max(wait, x.last.refusal.Wait)))
	}
	return again
}

// finish turns the last attempt into a reply or an error.
func (x *exchange) finish() (*reply, error) {
	a := &x.last
	if x.kind == remove && x.ambiguous && a.severity() == http.StatusNotFound {
		// An earlier attempt of this very call has most likely removed it.
		x.reply = reply{status: a.status, header: a.header, gone: true, exchange: x}
		return &x.reply, nil
	}
	if x.succeeded() {
		x.reply = reply{status: a.status, header: a.header, body: a.body, stream: a.stream, exchange: x}
		return &x.reply, nil
	}
	cause := a.err
	if cause == nil {
		cause = x.why
	}
	if ended := x.ctx.Err(); ended != nil && !errors.Is(cause, ended) {
		cause = joinCause(ended, cause) // wherever it ended; the facts of the last reply stay on the error
	}
	return nil, x.newError(cause)
}

// succeeded: the last attempt brought a success whole, and no code says otherwise.
func (x *exchange) succeeded() bool {
	a := &x.last
	return a.err == nil && x.isSuccess(a.status) && x.isSuccess(a.severity())
}

// isSuccess: a 2xx, or of a purge a 303 (open point 7).
func (x *exchange) isSuccess(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices || x.kind == purge && status == http.StatusSeeOther
}

// errNoResponse: a transport of the user's does not keep to the contract of http.RoundTripper.
var errNoResponse = errors.New("the transport returned neither a response nor an error")

// joinCause puts a context's error before what it brought about.
func joinCause(ended, err error) error {
	if err == nil {
		return ended
	}
	return fmt.Errorf("%w: %w", ended, err)
}

// newError describes the exchange as it stands.
func (x *exchange) newError(cause error) *Error {
	a := &x.answered
	e := &Error{
		StatusCode: a.status, Code: a.code, Method: x.method, Path: x.shownPath(),
		Attempts: x.attempts, authFailed: x.authRefused(), tooFast: x.kind == purge && a.tooFast(), outcome: x.processed(),
	}
	if x.ambiguous {
		e.outcome = Unknown
	}
	if x.kind == read {
		e.outcome = NotApplied
	}
	e.Body = x.client.auth.excerpt(a.body, maxErrorBody, a.cut)
	e.Header = x.client.safeHeader(a.header)
	words := a.body // the secrets are taken out of what it says: without them it may be no JSON
	if x.kind == login {
		words = nil
	}
	e.Description = x.client.auth.text(describe(a.severity(), e.Header, words))
	if a.status >= http.StatusMultipleChoices && a.status < http.StatusBadRequest {
		e.Body = nil // it repeats where the redirect leads
	}
	if x.kind == login {
		// Whatever a login is answered with may hold a session, in a shape that is not known.
		e.Body = nil
		maps.DeleteFunc(e.Header, func(name string, _ []string) bool { return !slices.Contains(loginHeaders, name) })
	}
	if cause != nil {
		e.cause = x.client.auth.redactError(cause)
	}
	var inner *Error
	if a.status == 0 && errors.As(cause, &inner) {
		// A login that failed is told by its own reply.
		e.StatusCode, e.Code, e.Description, e.authFailed = inner.StatusCode, inner.Code, inner.Description, inner.authFailed
	}
	return e
}

// loginHeaders are what an error keeps of the reply to a login.
var loginHeaders = []string{"Content-Type", "Date", "Location", "Retry-After"}

// authRefused: the status means that the service does not take the credentials (open point 6).
func (x *exchange) authRefused() bool {
	status := x.last.severity()
	return status == http.StatusUnauthorized || status == http.StatusForbidden &&
		(x.kind == purge || x.kind == login || strings.HasPrefix(x.path, transactionsPath))
}

// sessionRefused: the same, and a new login may help.
func (x *exchange) sessionRefused() bool {
	return x.last.err == nil && x.kind != login && !x.keepSession && x.client.auth.session != nil && (x.authRefused() || x.doubtful())
}

// doubtful: a GET of a transaction answers 400 for errors with authentication, but also for others (open point 6).
func (x *exchange) doubtful() bool {
	return x.last.severity() == http.StatusBadRequest && x.readsTransaction()
}

func (x *exchange) readsTransaction() bool {
	return x.kind == read && strings.HasPrefix(x.path, transactionsPath)
}

// unsentError is a failure before the request left: no permit, no session.
type unsentError struct {
	what string
	err  error
}

func (e *unsentError) Error() string { return e.what + ": " + e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// attemptExpired is an attempt that got no whole reply in time. The caller's context has not ended.
type attemptExpired struct {
	after  time.Duration
	unsent bool // there was no connection yet
}

func (e *attemptExpired) Error() string {
	if e.unsent {
		return fmt.Sprintf("no connection within %v", e.after)
	}
	return fmt.Sprintf("no whole reply within %v", e.after)
}
func (e *attemptExpired) Timeout() bool { return true }

// transport is the RoundTripper that every attempt passes. It has no CloseIdleConnections method on purpose: the retry
// loop would call it after each failure and empty the pool for everybody.
type transport struct{ client *Client }

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := exchangeOf(req.Context())
	x.attempts++
	x.last = attempt{}
	defer func() {
		if p := x.last.permit; p != nil {
			p.end(x.ctx, time.Time{}) // it has ended, unless a method of the caller's context panicked before the attempt
		}
	}()
	started := time.Now()
	shown, permitAfter, err := t.prepare(req.Context(), x)
	if err == nil {
		err = req.Context().Err() // net/http would not send it either, but would not say so
	}
	if err == nil && x.last.permit != nil && x.last.permit.expired() {
		err = errPermitExpired
	}
	if err != nil {
		x.last.err, x.last.unsent = err, true
		x.dropPermit(req.Context())
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes the body also of a request that it does not send
		}
	} else {
		t.attempt(req, x, shown)
	}
	t.settle(x)
	if s := x.last.stream; s != nil {
		s.closed = func(bytes int64) { x.logAttempt(time.Since(started), permitAfter, bytes) }
	} else {
		x.logAttempt(time.Since(started), permitAfter, x.last.size)
	}
	// What came of it, an error too, is in x.last: the loop and the http.Client under it see the status alone, and
	// without a Location there is nothing to follow.
	x.seen = http.Response{StatusCode: x.last.status, Body: http.NoBody, Request: req}
	return &x.seen, nil
}

// prepare gets what an attempt needs before its time runs: credentials, and a permit for a purge. A login never comes
// between a permit and its request, as it may take long: if the session ends while a purge waits for its permit, that
// permit is given back and another one acquired after the login.
func (t *transport) prepare(ctx context.Context, x *exchange) (shown credential, waited time.Duration, err error) {
	if x.kind == purge && x.attempts == 1 && x.permit != nil {
		x.last.permit, x.caller = x.permit, x.permit.caller
		if !t.client.auth.loggedIn() {
			x.dropPermit(ctx)
		}
	}
	for {
		if shown, err = t.client.auth.credential(ctx, x.kind, x.newerThan); err != nil || x.kind != purge || x.last.permit != nil {
			return shown, waited, err
		}
		began := time.Now()
		err = x.acquire(ctx)
		waited += time.Since(began)
		if err != nil {
			return shown, waited, err
		}
		if t.client.auth.holds(shown.generation) {
			return shown, waited, nil
		}
		x.dropPermit(ctx)
	}
}

func (c *Client) newCaller() *pace.Caller {
	return &pace.Caller{Patience: c.retry.ThrottleTimeout}
}

// dropPermit gives back a permit, if there is one, with which nothing was sent.
func (x *exchange) dropPermit(ctx context.Context) {
	if x.last.permit != nil {
		x.last.permit.end(ctx, time.Time{})
		x.last.permit = nil
	}
}

// acquire waits for the permit of an attempt, but not longer than a refused purge is repeated. The attempt has the permit
// at once, as even the cancel below asks the caller's context, which may panic.
func (x *exchange) acquire(ctx context.Context) (err error) {
	if x.caller == nil {
		x.caller = x.client.newCaller()
	}
	if x.giveUpAt.IsZero() {
		x.last.permit, err = x.client.gate.acquire(ctx, x.caller)
		return err
	}
	bounded, cancel := context.WithDeadline(ctx, x.giveUpAt)
	defer cancel()
	x.last.permit, err = x.client.gate.acquire(bounded, x.caller)
	deadline, ends := ctx.Deadline()
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && (!ends || x.giveUpAt.Before(deadline)) {
		err = &unsentError{"waiting for a purge permit", x.client.retry.gaveUp()}
	}
	return err
}

// attempt sends the request once and reads the reply whole, within the time of one attempt.
func (t *transport) attempt(req *http.Request, x *exchange, shown credential) {
	c, a := t.client, &x.last
	a.generation = shown.generation
	// What a transport of the user's does to URL and header stays out of the next attempt.
	own := &struct {
		connTrace
		dog    watchdog
		url    url.URL
		header headerValues
	}{url: *req.URL}
	dog := &own.dog
	ctx := dog.guard(req.Context(), c.attemptTimeout)
	own.watch(dog.cancel)
	defer func() {
		if a.stream == nil {
			dog.stop()
		}
	}()
	var away *departure
	if a.permit != nil {
		away = &departure{ctx: req.Context(), permit: a.permit, cancel: dog.cancel}
		defer away.close(a)
		away.watch(&own.trace)
	}
	out := req.WithContext(httptrace.WithClientTrace(ctx, &own.trace))
	out.URL, out.Header = &own.url, x.header(&own.header, shown)
	if away != nil {
		out.GetBody = nil // with it, net/http would send a purge again by itself, without a permit
	}
	resp, err := c.next.RoundTrip(out)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err == nil {
		a.status, a.header = resp.StatusCode, resp.Header
		if away != nil {
			away.arrived()
			x.noteRefusal() // before the body, which may take long
		}
		if resp.Body == nil {
			resp.Body = http.NoBody // as http.Client does for transports that leave it out
		}
		if a.status >= http.StatusBadRequest { // not the 303 of a purge, whose body is its receipt
			defer time.AfterFunc(errorBodyWithin, dog.end).Stop() // the status is what counts
		}
		code := -1 // not known yet
		switch {
		case a.status < http.StatusOK:
			// The body of a 101 is the connection itself: reading it would wait for what the service sends next.
			_ = resp.Body.Close()
			err = fmt.Errorf("%w: status %d", ErrBadReply, a.status)
		case x.begin != nil && a.status < http.StatusMultipleChoices:
			if err = c.beginStream(a, resp, dog, x.begin); err == nil {
				return
			}
		case x.take != nil && a.status < http.StatusMultipleChoices:
			code, a.body, a.size, err = c.takeBody(resp, x.take)
		default:
			a.body, a.cut, err = c.readBody(resp, x.isSuccess(a.status))
			if err == nil && x.isSuccess(a.status) && endless(resp, len(a.body) > 0) && x.isCut(a.body) {
				a.body, err = nil, errCut
			}
			a.size = int64(len(a.body))
		}
		if err == nil && (x.kind == purge || x.enveloped) {
			if code < 0 {
				code = envelopeCode(a.body, x.readsTransaction())
			}
			a.code = code
			x.noteRefusal()
		}
	}
	if err != nil {
		a.cut = true
		// Only a transport that reports its connections can prove that it never had one.
		a.unsent = own.asked.Load() && !own.got.Load()
		if !own.got.Load() {
			err = withoutProxySecrets(c.next, out, err)
		}
		if own.reset.Load() && req.Context().Err() == nil {
			err = errReset
		}
		a.err = explain(err)
		if stalled := new(streamStalled); dog.expired.Load() && req.Context().Err() == nil && !errors.As(err, &stalled) {
			a.err = &attemptExpired{c.attemptTimeout, a.unsent}
		} else if ended := req.Context().Err(); ended != nil && !errors.Is(err, ended) {
			a.err = joinCause(ended, err)
		}
		if away != nil {
			if away.late.Load() {
				a.err, a.unsent = errPermitExpired, true
			}
			away.failed(a.unsent)
		}
	}
}

// settle keeps the reply, and notes whether the session still works and the pace is right.
func (t *transport) settle(x *exchange) {
	if x.last.status != 0 {
		x.answered = x.last
	}
	if x.kind == purge && x.succeeded() {
		x.last.permit.paced.Accepted()
	}
	if x.last.err == nil && !x.authRefused() && !x.doubtful() && x.last.severity() < http.StatusInternalServerError {
		t.client.auth.accepted(x.last.generation)
	}
}

// headerValues are those of one attempt.
type headerValues [4]string

// header makes the header of one attempt.
func (x *exchange) header(v *headerValues, shown credential) http.Header {
	*v = headerValues{contentTypeJSON, x.client.userAgent, shown.value, contentTypeJSON}
	h := http.Header{"Accept": v[0:1:1], "User-Agent": v[1:2:2], shown.name: v[2:3:3]}
	if x.body != nil || x.purge != nil {
		h["Content-Type"] = v[3:4:4]
	}
	return h
}

// errCut is a body that HTTP takes for whole, as it may end anywhere.
var errCut = fmt.Errorf("the connection ended in the middle of the JSON text: %w", io.ErrUnexpectedEOF)

// endless: nothing marks the end of the body but that of the connection (HTTP/1 without a length, not chunked), so that
// one that was cut looks whole, unless its JSON tells. Where HTTP does mark the end, the service has sent what it meant to
// send, and would send the same again. The end of a gzip text is marked too, once it has begun.
func endless(resp *http.Response, begun bool) bool {
	return resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && (!resp.Uncompressed || !begun)
}

// isCut: the body of an endless response is only the beginning of a JSON text. What begins otherwise may be anything.
func (x *exchange) isCut(body []byte) bool {
	if wire.SkipBlanks(body, 0) == len(body) {
		return x.hasBody
	}
	return wire.IsCut(body)
}

// readBody reads a reply whole and closes it, of one that is no success the beginning. One longer than the limit is an
// error: cut short in silence it could pass for a whole one. It counts the bytes after decompression.
func (c *Client) readBody(resp *http.Response, success bool) (body []byte, cut bool, err error) {
	defer func() { _ = resp.Body.Close() }()
	if !success {
		body, cut = readErrorBody(resp.Body)
		return body, cut, nil
	}
	size := int64(bytes.MinRead)
	if n := resp.ContentLength; n > 0 && resp.Body != http.NoBody {
		size += min(n, c.maxBody, maxTrusted)
	}
	body = make([]byte, 0, size)
	for {
		if len(body) == cap(body) {
			more := int64(len(body))
			if rest := resp.ContentLength - more; rest >= 0 {
				more = min(more, rest+1) // never more than as much again: a length is believed for what has come
			}
			body = slices.Grow(body, int(more))
		}
		room := body[len(body):cap(body)]
		if left := c.maxBody - int64(len(body)); left < int64(len(room)) {
			room = room[:left+1] // one byte more than there may be
		}
		n, err := resp.Body.Read(room)
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > c.maxBody:
			return nil, true, tooLarge(c.maxBody)
		case err == io.EOF:
			return body, false, nil
		case err != nil:
			return nil, true, err
		}
	}
}

// takeBody hands a reply on as it arrives, and closes it. It returns the beginning, for errors, and how much there was.
func (c *Client) takeBody(resp *http.Response, take func(io.Reader) (int, error)) (code int, beginning []byte, size int64, err error) {
	defer func() { _ = resp.Body.Close() }()
	body := takenBody{from: resp.Body, limit: c.maxBody}
	code, unusable := take(&body)
	_, err = io.Copy(io.Discard, &body) // the rest of one that cannot be used, so that the connection can
	if err == nil && endless(resp, body.size > 0) && errors.Is(unusable, io.ErrUnexpectedEOF) {
		err = errCut
	}
	return code, body.beginning, body.size, err
}

// beginStream begins to read a reply. Nothing of that is handed out, so what goes wrong here can be repeated: a body that
// is cut or stands still is an error, and a code of 400 or more in place of what was asked for a refusal like any other.
// How the stream goes on is told by whoever reads it.
func (c *Client) beginStream(a *attempt, resp *http.Response, dog *watchdog, begin func(io.Reader) (int, error)) error {
	dog.timer.Stop()
	s := newStream(resp, dog, c.idleTimeout)
	defer func() {
		if a.stream == nil {
			s.close() // also if the body panics
		}
	}()
	head := takenBody{from: s, limit: math.MaxInt64}
	code, unusable := begin(&head)
	err := s.failed(unusable)
	if err == nil && code < http.StatusBadRequest {
		a.stream = s
		return nil
	}
	if err == nil {
		defer time.AfterFunc(errorBodyWithin, dog.end).Stop() // as that of any refusal
		_, _ = io.CopyN(io.Discard, &head, maxDrained)
		a.code, a.body = code, head.beginning
	}
	a.size = head.size
	return err
}

// takenBody is a body on its way to somebody who takes it apart: within the limit, counted after decompression.
type takenBody struct {
	from        io.Reader
	limit, size int64
	beginning   []byte
	err         error // that ended the reading, io.EOF aside
}

func (b *takenBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if left := b.limit - b.size; left < int64(len(p)) {
		p = p[:left+1] // one byte more than there may be
	}
	n, err := b.from.Read(p)
	b.size += int64(n)
	if b.size > b.limit {
		err = tooLarge(b.limit)
	}
	if room := maxErrorBody + redact.Margin - len(b.beginning); room > 0 {
		b.beginning = append(b.beginning, p[:min(n, room)]...)
	}
	if err != io.EOF { //nolint:errorlint // a Reader's io.EOF is never wrapped
		b.err = err
	}
	return n, err
}

func tooLarge(limit int64) error {
	return fmt.Errorf("%w: more than %d bytes", ErrResponseTooLarge, limit)
}

// readErrorBody keeps the beginning of a refusal and reads some of the rest, so that the connection can be used again.
// The status has arrived, so a body cut short or slow is no error of its own.
func readErrorBody(body io.Reader) (beginning []byte, cut bool) {
	var buf bytes.Buffer
	_, err := buf.ReadFrom(io.LimitReader(body, maxErrorBody+redact.Margin))
	if err == nil {
		_, _ = io.CopyN(io.Discard, body, maxDrained)
	}
	return buf.Bytes(), err != nil
}
