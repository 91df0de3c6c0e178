package transport

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"time"

	retryablehttp "github.com/hashicorp/go-retryablehttp"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// call is the state of one call. Each call has its own retry loop, for which it is the RoundTripper and CheckRetry, and
// sets the waits. Attempts do not overlap, so the call needs no lock.
//
// The defaults of go-retryablehttp are all replaced: they would retry a POST that was processed, honor a Retry-After of
// years, and log to stderr. call deliberately has no CloseIdleConnections method: the loop would call it after each
// failure and close the idle connections of all calls.
type call struct {
	Request

	t    *Transport
	ctx  context.Context //nolint:containedctx // the caller's; lives as long as the call
	url  url.URL
	loop retryablehttp.Client
	http http.Client

	last      attempt
	answered  attempt       // the last one with a response
	seen      http.Response // what the loop gets for every response, so that nothing follows a redirect
	response  Response
	attempts  int
	failures  int          // transient failures, which the policy counts
	ambiguous bool         // the service may have processed an attempt without a response that says so
	caller    *pace.Caller // acquires the permits
	login     *login       // renews the session; nil if the call needs none
	renewed   bool         // retried after a new login, or with another password
	newerThan uint64       // generation of the session that the service may have refused
	doubted   int          // status that may have refused it; 0 if none
	giveUpAt  time.Time    // end of retries of a request refused as too fast; zero if it was not
	why       error        // why there is no retry
}

// Send makes one call and returns its result.
func (t *Transport) Send(ctx context.Context, r Request) *Response {
	c := &call{Request: r, t: t, ctx: ctx}
	if r.Class != Login {
		c.login = t.auth.login
	}
	switch {
	case r.Permit != nil:
		c.caller = r.Permit.caller
		defer r.Permit.End(ctx, time.Time{}) // if there is no attempt
	case r.Gate != nil:
		c.caller = &pace.Caller{Patience: r.Gate.Patience}
	}
	req, err := c.newRequest()
	if err != nil {
		return &Response{Request: &c.Request, Err: err, Outcome: NotApplied}
	}
	c.http.Transport, c.seen.Body = c, http.NoBody
	c.loop = retryablehttp.Client{HTTPClient: &c.http, RetryMax: math.MaxInt, CheckRetry: c.checkRetry}
	c.loop.Backoff = func(least, _ time.Duration, _ int, _ *http.Response) time.Duration { return least } // as checkRetry has set it
	if _, err = c.loop.Do(req); err != nil && c.attempts == 0 {                                           //nolint:bodyclose // it is always c.seen
		c.last.err = err // the loop's own, or the http.Client's
	}
	return c.finish()
}

func (c *call) newRequest() (req *retryablehttp.Request, err error) {
	if c.url, err = c.t.Base.URL(c.Path, c.Query); err != nil {
		return nil, &address.Error{Field: "path", Reason: err.Error()}
	}
	plain := (&http.Request{Method: c.Method, URL: &c.url}).WithContext(c.ctx)
	if req, err = retryablehttp.FromRequest(plain); err == nil && c.Body != nil {
		err = req.SetBody(c.Body)
	}
	if err != nil {
		return nil, &address.Error{Field: "request", Reason: err.Error()}
	}
	return req, nil
}

// RoundTrip makes one attempt.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	c.attempts++
	c.last = attempt{}
	a := &c.last
	defer func() {
		if a.permit != nil {
			a.permit.End(c.ctx, time.Time{}) // does nothing if it has ended already
		}
	}()
	started := time.Now()
	shown, waited, err := c.prepare()
	if err == nil {
		c.send(req, shown)
	} else {
		a.err, a.unsent = err, true
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper must close the body even if it does not send the request
		}
	}
	c.settle()
	if c.t.Logger != nil {
		c.log(started, waited)
	}
	if a.err != nil {
		return nil, a.err
	}
	return &c.seen, nil
}

// prepare gets what an attempt needs before its timeout starts: a credential and, for a limited request, a permit. A
// login may take long, so it comes before the permit. If another call renews the session during the wait for the
// permit, prepare returns the new one.
func (c *call) prepare() (shown credential, waited time.Duration, err error) {
	if shown, err = c.credential(); err != nil {
		return shown, 0, err
	}
	if c.Gate != nil {
		began := time.Now()
		err = c.acquirePermit()
		waited = time.Since(began)
		if err != nil {
			return shown, waited, err
		}
		if c.login != nil {
			if s, valid := c.login.newest(); valid {
				shown = c.t.auth.cookie(s)
			}
		}
	}
	return shown, waited, c.ctx.Err() // net/http would not send the request either, but would not report that
}

// acquirePermit waits for the attempt's permit, but no longer than the policy retries a refused request.
func (c *call) acquirePermit() (err error) {
	a := &c.last
	switch {
	case c.attempts == 1 && c.Permit != nil:
		a.permit = c.Permit
	case c.giveUpAt.IsZero():
		a.permit, err = c.Gate.acquire(c.ctx, c.caller)
	default:
		bounded, cancel := context.WithDeadline(c.ctx, c.giveUpAt)
		defer cancel()
		a.permit, err = c.Gate.acquire(bounded, c.caller)
		deadline, ends := c.ctx.Deadline()
		if err != nil && c.ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && (!ends || c.giveUpAt.Before(deadline)) {
			err = noPermit(c.t.Policy.gaveUp())
		}
	}
	if err == nil && a.permit.expired() {
		return errPermitExpired
	}
	return err
}

// settle records the response and what it implies for the session and the pace.
func (c *call) settle() {
	a := &c.last
	if a.status != 0 {
		c.answered = *a
	}
	if c.Gate != nil && c.succeeded() {
		a.permit.paced.Accepted()
	}
	if c.login == nil || a.err != nil || a.transient() {
		return
	}
	if status := a.effectiveStatus(); status < http.StatusInternalServerError && c.Rules.credentials(status) == taken {
		c.login.accepted(a.generation, c.doubted)
	}
}

// noteRefusal slows down the pace, and pauses the user's limiter, if the service refused the attempt as too fast.
func (c *call) noteRefusal() {
	a := &c.last
	if a.refusal.Wait > 0 || !a.tooFast() {
		return
	}
	a.refusal = a.permit.paced.Refused(RetryAfter(a.header))
	if c.giveUpAt.IsZero() {
		c.giveUpAt = a.refusal.Since.Add(c.t.Policy.ThrottleTimeout)
	}
	if !a.refusal.Everybody || c.Gate.Limiter == nil || c.Gate.Limiter.Pause == nil {
		return
	}
	if err := c.Gate.Limiter.Pause(c.ctx, a.refusal.Wait); err != nil {
		c.warn("webdelivery: purge limiter not paused", err)
	}
}

// Response is the result of a call. It describes the last attempt, or the last response if that attempt got none.
type Response struct {
	Request *Request // the request of the call

	OK   bool // the call has succeeded
	Gone bool // a Delete got 404, most likely because an earlier attempt had succeeded

	Status, Code int // of the response; 0 without one
	Header       http.Header
	Body         []byte  // of a refusal, or if the request has Take, only the beginning
	Stream       *Stream // instead of Body, if the request has Begin; the caller closes it

	Attempts     int
	Outcome      Outcome // of a write; if OK, the outcome to report if the response is unusable
	TooFast      bool    // the service refused a limited request as too fast
	Unauthorized bool    // the service refused the credentials
	LoginFailed  bool    // there is no session, because the login failed with Err
	Err          error   // a failure other than the status, such as of the connection; may contain secrets

	call *call
}

// finish describes the last attempt.
func (c *call) finish() *Response {
	a, r := &c.last, &c.response
	r.Gone = c.Class == Delete && c.ambiguous && a.effectiveStatus() == http.StatusNotFound
	r.OK = r.Gone || c.succeeded()
	r.Request, r.Attempts, r.call = &c.Request, c.attempts, c
	r.Outcome = c.outcome()
	switch {
	case c.Class == Read:
		r.Outcome = NotApplied
	case c.ambiguous, r.OK:
		r.Outcome = Unknown
	}
	got := &c.answered // the last response, even if a later attempt got none
	r.Status, r.Code, r.Header, r.Body, r.Stream = got.status, got.code, got.header, got.body, got.stream
	if r.OK {
		return r
	}
	r.TooFast = c.Gate != nil && got.tooFast()
	r.Unauthorized = c.Rules.refusesCredentials(a.effectiveStatus())
	r.Err = cmp.Or(a.err, c.why)
	if ended := c.ctx.Err(); ended != nil {
		r.Err = endedWith(ended, r.Err)
	}
	unsent, ok := errors.AsType[*unsentError](r.Err)
	r.LoginFailed = ok && unsent.login
	return r
}

// Broken returns why a stream could not be read to its end. If it returns nil, neither the connection nor the caller's
// context ended the stream, so its content is wrong.
func (r *Response) Broken() error {
	return cmp.Or(r.call.ctx.Err(), r.Stream.err)
}
