package transport

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"time"

	retryablehttp "github.com/hashicorp/go-retryablehttp"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/outcomes"
	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// call is the state of one call. Each call has its own retry loop, for which it is the RoundTripper and CheckRetry, and
// sets the waits. Attempts do not overlap, so the call needs no lock.
//
// The defaults of go-retryablehttp are all replaced: they would retry a POST that was processed, honor a Retry-After of
// years, and log to stderr. call deliberately has no CloseIdleConnections method: the loop would call it when a wait
// is canceled and close the idle connections of all calls.
type call struct {
	Request

	t    *Transport
	ctx  context.Context // the caller's; lives as long as the call
	url  url.URL
	loop retryablehttp.Client
	http http.Client

	began     time.Time
	last      attempt
	responded attempt       // the last one with a response
	nothing   http.Response // all that the loop sees of any attempt
	response  Response
	attempts  int
	wait      time.Duration // before the next one
	failures  int           // transient failures, which the policy counts
	ambiguous bool          // the service may have processed an attempt without a response that says so
	caller    *pace.Caller  // acquires the permits
	login     *login        // renews the session; nil if the call needs none
	renewed   bool          // retried after a new login, or with another password
	newerThan uint64        // generation of the session that the service may have refused
	doubted   int           // status that may have refused it; 0 if none
	giveUpAt  time.Time     // end of retries of a request refused as too fast; zero if it was not
	why       error         // why there is no retry
}

// Send makes one call and returns its result.
func (t *Transport) Send(ctx context.Context, r Request) *Response {
	c := &call{Request: r, t: t, ctx: ctx, began: time.Now()}
	if r.Class != Login {
		c.login = t.login
	}
	switch {
	case r.Permit != nil:
		c.caller = r.Permit.caller
		defer r.Permit.End(ctx, time.Time{}) // if there is no attempt
	case r.Permits != nil:
		c.caller = &pace.Caller{Patience: r.Permits.Patience}
	}
	var err error
	if c.url, err = t.Base.URL(r.Path, r.Query); err != nil {
		return &Response{Request: &c.Request, Err: &address.Error{Field: "path", Reason: err.Error()}, Outcome: outcomes.NotApplied}
	}
	req := &retryablehttp.Request{Request: (&http.Request{Method: r.Method, URL: &c.url}).WithContext(ctx)}
	if r.Body != nil {
		_ = req.SetBody(r.Body) // fails for other types only
	}
	// Neither the loop nor the http.Client sees a status, a header or an error of an attempt, so they follow no redirect.
	c.nothing = http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
	c.http.Transport = c
	c.loop = retryablehttp.Client{
		HTTPClient: &c.http, RetryMax: math.MaxInt, CheckRetry: c.checkRetry,
		Backoff: func(time.Duration, time.Duration, int, *http.Response) time.Duration { return c.wait },
	}
	if _, err = c.loop.Do(req); err != nil && c.attempts == 0 { //nolint:bodyclose // it is http.NoBody
		c.last.err = err // the loop's own, or the http.Client's
	}
	return c.finish()
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
		a.err, a.unsent = err, true // the body is bytes, so there is nothing to close
	}
	if a.status != 0 {
		c.responded = *a
	}
	if c.Permits != nil && c.succeeded() {
		a.permit.paced.Accepted()
	}
	if status := a.effectiveStatus(); c.login != nil && a.err == nil && !a.transient() &&
		status < http.StatusInternalServerError && c.Rules.credentials(status) == accepted {
		c.login.accepted(a.generation, func(status int) bool { return c.Rules.credentials(status) == doubtful })
	}
	if c.t.Logger != nil {
		c.log(started, waited)
	}
	return &c.nothing, nil
}

// prepare gets what an attempt needs before its timeout starts: a credential and, for a limited request, a permit. A
// login may take long, so it comes before the permit. If another call renews the session during the wait for the
// permit, prepare returns the new one.
func (c *call) prepare() (shown credential, waited time.Duration, err error) {
	if shown, err = c.credential(); err != nil || c.Permits == nil {
		return shown, 0, cmp.Or(err, c.ctx.Err()) // net/http would not send the request either, but would not report that
	}
	a, began := &c.last, time.Now()
	switch {
	case c.attempts == 1 && c.Permit != nil:
		a.permit = c.Permit
	case c.giveUpAt.IsZero():
		a.permit, err = c.Permits.acquire(c.ctx, c.caller)
	default: // no longer than the policy retries a refused request
		bounded, cancel := context.WithDeadline(c.ctx, c.giveUpAt)
		defer cancel()
		a.permit, err = c.Permits.acquire(bounded, c.caller)
		if first, _ := bounded.Deadline(); c.ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && first.Equal(c.giveUpAt) {
			err = unsent("waiting for a purge permit", c.t.Policy.gaveUp())
		}
	}
	waited = time.Since(began)
	if err == nil && a.permit.expired() {
		err = errPermitExpired
	}
	if c.login != nil {
		if s := c.login.newest(); s.valid {
			shown = c.t.cookie(s)
		}
	}
	return shown, waited, cmp.Or(err, c.ctx.Err())
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
	if !a.refusal.Everybody || c.Permits.Limiter == nil || c.Permits.Limiter.Pause == nil {
		return
	}
	if err := c.Permits.Limiter.Pause(c.ctx, a.refusal.Wait); err != nil {
		c.warn("webdelivery: purge limiter not paused", err)
	}
}

// checkRetry reports whether another attempt follows. It ignores its arguments and judges c.last.
func (c *call) checkRetry(context.Context, *http.Response, error) (bool, error) {
	if c.succeeded() {
		return false, nil
	}
	v := c.t.Policy.decide(c.situation())
	again := c.carryOut(v)
	if c.last.outcome() == outcomes.Unknown {
		c.ambiguous = true
	}
	if again {
		c.wait = v.wait
		if c.Retrying != nil && v.action < renew { // a refused session says nothing about the service
			c.Retrying(c.finish())
		}
		c.warn("webdelivery: retry", c.last.err, slog.Int("status", c.last.status), slog.Duration("wait", max(v.wait, c.last.refusal.Wait)))
	}
	return again, nil
}

// succeeded reports whether the last attempt got a complete success, and no code in its envelope contradicts that.
func (c *call) succeeded() bool {
	a := &c.last
	return a.err == nil && c.Rules.isSuccess(a.effectiveStatus())
}

// situation returns everything that the verdict on the last attempt depends on.
func (c *call) situation() situation {
	a := &c.last
	s := situation{
		class: c.Class, single: c.Single, outcome: a.outcome(), failures: c.failures,
		ended: c.ctx.Err() != nil, transient: a.transient(), tooFast: a.tooFast(),
		asked: RetryAfter(a.header), backoff: c.t.Policy.backoff(c.failures + 1), refusal: a.refusal,
		giveUpAt: c.giveUpAt, now: time.Now(),
	}
	if a.err == nil && (c.login != nil || c.t.Credentials.Pair != nil) {
		s.credentials = c.Rules.credentials(a.effectiveStatus())
	}
	if c.Rules.isSuccess(a.effectiveStatus()) {
		s.asked = 0 // in a success that was cut, Retry-After means something else
	}
	s.deadline, _ = c.ctx.Deadline()
	return s
}

// carryOut carries out a verdict. It reports whether another attempt follows.
func (c *call) carryOut(v verdict) bool {
	generation, again := c.last.generation, false
	switch {
	case c.login == nil && v.action >= renew:
		if !c.renewed {
			now, err := c.t.authorization(c.ctx)
			again = err == nil && now.generation != generation // the password was rotated
		}
	case v.action == retry:
		c.failures++
		return true
	case v.action == retryFree:
		return true
	case v.action >= renew && generation < c.login.newest().generation: // so the refusal says nothing about the present session
		c.newerThan, c.responded = generation, attempt{}
		return true
	case v.action == renew:
		again = c.login.renew(generation, c.renewed) && !c.renewed
	case v.action == renewDoubt:
		c.doubted = c.last.effectiveStatus()
		again = c.login.doubt(generation, c.doubted) && !c.renewed
	default:
		c.why = v.why
	}
	if again {
		c.renewed, c.newerThan = true, generation
		c.responded = attempt{} // this refusal says nothing about the next attempt
	}
	return again
}

// finish describes the last attempt.
func (c *call) finish() *Response {
	a, r := &c.last, &c.response
	r.Gone = c.Class == Delete && c.ambiguous && a.effectiveStatus() == http.StatusNotFound
	r.OK = r.Gone || c.succeeded()
	r.Request, r.Attempts, r.Duration = &c.Request, c.attempts, time.Since(c.began)
	r.Outcome = a.outcome()
	switch {
	case c.Class == Read:
		r.Outcome = outcomes.NotApplied
	case c.ambiguous, r.OK:
		r.Outcome = outcomes.Unknown
	}
	if !r.OK {
		r.TooFast = c.responded.tooFast()
		r.Unauthorized = c.Rules.refusesCredentials(a.effectiveStatus())
		r.Err = cmp.Or(a.err, c.why)
		if ended := c.ctx.Err(); ended != nil {
			r.Err = endedWith(ended, r.Err)
		}
		f, ok := errors.AsType[*failure](r.Err)
		r.LoginFailed = ok && f.login
		a = &c.responded // keep the last response even if a later attempt got none
	}
	r.Status, r.Code, r.Header, r.Body, r.Stream = a.status, a.code, a.header, a.body, a.stream
	return r
}
