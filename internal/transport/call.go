package transport

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"time"

	retryablehttp "github.com/hashicorp/go-retryablehttp"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// call is the state of one call. Each call has a retry loop of its own: the call is its RoundTripper and its
// CheckRetry, and sets its waits. The attempts follow one another, so the call needs no lock.
//
// The defaults of go-retryablehttp are all replaced: they retry a POST that was processed, wait for a Retry-After of
// years, and log to stderr. A call has no CloseIdleConnections method on purpose: the loop would call it after each
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
	drained   http.Response // the last response, without its body
	response  Response
	attempts  int
	failures  int          // transient failures, which the policy counts
	paid      int          // taken from the budget for the attempt under way
	ambiguous bool         // the service may have processed an attempt, although no response says so
	caller    *pace.Caller // of the permits
	renewed   bool         // retried after a new login
	newerThan uint64       // generation of a session that the service may have refused
	giveUpAt  time.Time    // until when to retry a limited request that was refused as too fast; zero: it was not
	why       error        // why there is no retry
}

// Send makes one call and returns its response. Its error is a [*Failure], or an [*address.Error] if the request cannot
// be sent.
func (t *Transport) Send(ctx context.Context, r Request) (*Response, error) {
	c := &call{Request: r, t: t, ctx: ctx}
	if r.Permit != nil {
		defer r.Permit.End(ctx, time.Time{}) // if there is no attempt, or it does not get so far
	}
	if r.Encoder != nil {
		defer r.Encoder.Close()
	}
	req, err := c.newRequest()
	if err != nil {
		return nil, err
	}
	c.http = http.Client{Transport: c, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	c.loop = retryablehttp.Client{HTTPClient: &c.http, RetryMax: math.MaxInt, CheckRetry: c.checkRetry, Backoff: decidedWait}
	// The result is in c; the response of the loop has no body.
	if _, err = c.loop.Do(req); err != nil && c.attempts == 0 { //nolint:bodyclose // as said
		c.last.err = err // the loop's own, or the http.Client's
	}
	return c.finish()
}

// noHeader is the header of the loop's requests. Each attempt has its own. Without a header, http.Client would copy the
// request. http.Client writes to the header only if there are cookies or a password in the URL, and there are none.
var noHeader = http.Header{}

func (c *call) newRequest() (req *retryablehttp.Request, err error) {
	if c.url, err = c.t.Base.URL(c.Path, c.Query); err != nil {
		return nil, &address.Error{Field: "path", Reason: err.Error()}
	}
	plain := (&http.Request{Method: c.Method, URL: &c.url, Header: noHeader}).WithContext(c.ctx)
	if req, err = retryablehttp.FromRequest(plain); err == nil {
		switch {
		case c.Encoder != nil:
			err = req.SetBody(retryablehttp.ReaderFunc(c.Encoder.Open))
		case c.Body != nil:
			err = req.SetBody(c.Body)
		}
	}
	if err != nil {
		return nil, &address.Error{Field: "request", Reason: err.Error()}
	}
	return req, nil
}

// RoundTrip is one attempt.
func (c *call) RoundTrip(req *http.Request) (*http.Response, error) {
	c.attempts++
	c.last = attempt{}
	a := &c.last
	defer func() {
		c.endProbe()
		if a.permit != nil {
			a.permit.End(c.ctx, time.Time{}) // it has ended, unless a method of the caller's context panicked before the attempt
		}
	}()
	started := time.Now()
	shown, waited, err := c.prepare()
	if err == nil {
		err = c.mayLeave()
	}
	if err == nil {
		c.send(req, shown)
	} else {
		a.err, a.unsent = err, true
		c.dropPermit()
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes the body also of a request that it does not send
		}
	}
	c.settle()
	c.log(started, waited)
	if a.err != nil {
		return nil, a.err
	}
	return &c.drained, nil
}

// prepare gets what an attempt needs before its time starts: a credential, and a permit for a limited request. A login
// may take long, so it never comes between a permit and its request. If the session ends while the request waits for
// its permit, prepare returns the permit and acquires another one after the login. Waits for probes are treated alike.
func (c *call) prepare() (shown credential, waited time.Duration, err error) {
	a, auth := &c.last, c.t.auth
	if c.attempts == 1 && c.Permit != nil {
		a.permit, c.caller = c.Permit, c.Permit.caller
		if !auth.ready(&c.Request) {
			c.dropPermit()
		}
	}
	var still patience
	for {
		if shown, err = auth.credential(c.ctx, &c.Request, c.newerThan, &still); err != nil {
			return shown, waited, err
		}
		if c.Gate != nil && a.permit == nil {
			began := time.Now()
			err = c.acquirePermit()
			waited += time.Since(began)
			if err != nil {
				return shown, waited, err
			}
		}
		var enters bool
		if a.pass, enters = auth.enter(&c.Request, shown.generation, &still); enters {
			return shown, waited, nil
		}
		c.dropPermit()
	}
}

// endProbe lets the next call show the credential, if this attempt is the probe.
func (c *call) endProbe() {
	if ended := c.last.pass.probe; ended != nil {
		c.last.pass.probe = nil
		c.t.auth.prober(c.Class).end(ended)
	}
}

// mayLeave returns why nothing is sent although all is ready.
func (c *call) mayLeave() error {
	if err := c.ctx.Err(); err != nil {
		return err // net/http would not send it either, but would not say so
	}
	if p := c.last.permit; p != nil && p.expired() {
		return errPermitExpired
	}
	return nil
}

// acquirePermit waits for the permit of an attempt, but not longer than the policy retries a refused request. It stores
// the permit before anything else, because even the cancel below calls the caller's context, which may panic.
func (c *call) acquirePermit() (err error) {
	if c.caller == nil {
		c.caller = c.Gate.newCaller()
	}
	if c.giveUpAt.IsZero() {
		c.last.permit, err = c.Gate.acquire(c.ctx, c.caller)
		return err
	}
	bounded, cancel := context.WithDeadline(c.ctx, c.giveUpAt)
	defer cancel()
	c.last.permit, err = c.Gate.acquire(bounded, c.caller)
	deadline, ends := c.ctx.Deadline()
	if err != nil && c.ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && (!ends || c.giveUpAt.Before(deadline)) {
		err = &unsentError{"waiting for a purge permit", c.t.Policy.gaveUp()}
	}
	return err
}

// dropPermit returns the permit, if there is one. Nothing was sent with it.
func (c *call) dropPermit() {
	if c.last.permit != nil {
		c.last.permit.End(c.ctx, time.Time{})
		c.last.permit = nil
	}
}

// settle keeps the response, and notes what it says of the credentials and of the pace.
func (c *call) settle() {
	a := &c.last
	if a.status != 0 {
		c.answered = *a
	}
	if c.Gate != nil && c.succeeded() {
		a.permit.paced.Accepted()
	}
	if a.err == nil {
		c.noteCredentials()
	}
	c.endProbe()
}

// noteCredentials notes what the response says of the credential that it is about.
func (c *call) noteCredentials() {
	switch said := c.credentials(); {
	case said == refused && !c.KeepSession:
		c.last.final = c.last.final || c.t.auth.refused(&c.Request, &c.last, c.renewed, c.refusal)
	case said == taken && c.last.effectiveStatus() < http.StatusInternalServerError && !c.last.transient():
		c.t.auth.accepted(&c.Request, &c.last)
	}
}

// noteHeader notes what the status says of the credentials before the body arrives, which may take long. A refusal is a
// verdict. For an acceptance, the code in the body counts too.
func (c *call) noteHeader() {
	switch a := &c.last; {
	case c.credentials() == refused:
		c.noteCredentials()
		c.endProbe()
	case a.pass.probe != nil && a.status >= http.StatusOK && !a.transient():
		c.t.auth.prober(c.Class).answered(a.pass.probe)
	}
}

// refusal describes the last response to the calls that are held after it.
func (c *call) refusal() *refusalError {
	return &refusalError{c.last.status, c.last.code, c.Method, c.t.auth.secrets.Text(c.t.Base.Path(c.Path))}
}

// log writes the record of an attempt. It does so for a stream when the stream is closed.
func (c *call) log(started time.Time, waited time.Duration) {
	if s := c.last.stream; s != nil {
		s.closed = func(bytes int64) { c.write(started, waited, bytes) }
	} else {
		c.write(started, waited, c.last.size)
	}
}

func (c *call) write(started time.Time, waited time.Duration, bytes int64) {
	c.t.journal.attempt(c.ctx, c.record(c.last.err), c.last.status, time.Since(started), waited, bytes)
}

func (c *call) record(err error) record {
	return record{c.Method, c.Path, c.attempts, err}
}

// credentials returns what the last response says of the credentials of its request.
func (c *call) credentials() credentials {
	status := c.last.effectiveStatus()
	switch {
	case c.last.err != nil:
		return taken
	case c.Rules.refusesCredentials(status):
		if status != http.StatusUnauthorized && c.t.auth.renews(c.Class) {
			return doubtful // it may also be a missing permission
		}
		return refused
	case c.Rules.mayRefuseCredentials(status):
		return doubtful
	default:
		return taken
	}
}

// noteRefusal slows down the pace if the service refused the attempt as too fast. It also calls the user's limiter.
func (c *call) noteRefusal() {
	a := &c.last
	if c.Gate == nil || a.refusal.Wait > 0 || !a.tooFast() {
		return
	}
	a.refusal = a.permit.paced.Refused(retryAfter(a.header))
	if c.giveUpAt.IsZero() {
		c.giveUpAt = a.refusal.Since.Add(c.t.Policy.ThrottleTimeout)
	}
	if !a.refusal.Everybody || c.Gate.limiter == nil || c.Gate.limiter.Pause == nil {
		return
	}
	if err := c.Gate.limiter.Pause(c.ctx, a.refusal.Wait); err != nil {
		c.t.journal.warn(c.ctx, "webdelivery: purge limiter not paused", c.record(err))
	}
}

// checkRetry says whether another attempt follows. It judges the last attempt, which the loop does not know.
func (c *call) checkRetry(context.Context, *http.Response, error) (bool, error) {
	if c.succeeded() {
		c.t.budget.give(1 + c.paid)
		return false, nil
	}
	v := c.t.Policy.decide(c.situation())
	again := c.carryOut(v)
	if c.outcome() == Unknown {
		c.ambiguous = true
	}
	if again {
		c.loop.RetryWaitMin = v.wait
		c.t.journal.warn(c.ctx, "webdelivery: retry", c.record(c.last.err), //nolint:contextcheck // the loop's is the caller's
			slog.Int("status", c.last.status), slog.Duration("wait", max(v.wait, c.last.refusal.Wait)))
	}
	return again, nil
}

// decidedWait is the Backoff of every loop. checkRetry stores the wait that it has decided as the least wait of its
// loop.
func decidedWait(least, _ time.Duration, _ int, _ *http.Response) time.Duration { return least }

// outcome is that of the last attempt.
func (c *call) outcome() Outcome { return c.last.outcome(c.Gate != nil) }

// situation returns what the verdict on the last attempt depends on.
func (c *call) situation() situation {
	a := &c.last
	s := situation{
		class: c.Class, limited: c.Gate != nil, outcome: c.outcome(), failures: c.failures, renewed: c.renewed || a.final,
		ended: c.ctx.Err() != nil, transient: a.transient(), tooFast: a.tooFast(),
		asked: retryAfter(a.header), backoff: c.t.Policy.backoff(c.failures + 1), refusal: a.refusal,
		giveUpAt: c.giveUpAt, now: time.Now(),
	}
	if c.Class != Login && !c.KeepSession && c.t.auth.login != nil {
		s.credentials = c.credentials()
	}
	if c.Rules.isSuccess(a.effectiveStatus()) {
		s.asked = 0 // the Retry-After of a success that was cut means something else
	}
	s.deadline, _ = c.ctx.Deadline()
	return s
}

// carryOut carries out a verdict. It returns whether another attempt follows.
func (c *call) carryOut(v verdict) bool {
	login, generation := c.t.auth.login, c.last.generation
	switch v.action {
	case retry:
		cost := c.last.retryCost()
		if !c.t.budget.take(cost) {
			return false
		}
		c.failures++
		c.paid = cost
		return true
	case comeAgain:
		return true
	case refute:
		login.refute(c.Path)
		return false
	case renew:
		c.renewed = login.renew(generation, c.t.auth.prober(c.Class).suspects(&c.Request))
	case renewDoubt:
		c.renewed = login.doubt(c.Path)
	default:
		c.why = v.why
		return false
	}
	if c.renewed {
		c.newerThan = generation
		c.answered = attempt{} // this refusal says nothing of the next attempt
	}
	return c.renewed
}
