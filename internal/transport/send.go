package transport

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

const contentTypeJSON = "application/json"

// outgoing is the request of one attempt with all that watches it. It has its own URL and header, so that changes by a
// transport of the user's do not reach the next attempt.
type outgoing struct {
	hooks

	request   *http.Request
	dog       watchdog
	url       url.URL
	header    headerValues
	body      foreignBody
	departure *departure // of a limited request
}

// headerValues are those of one attempt.
type headerValues [4]string

// newOutgoing starts the time limit of an attempt.
func (c *call) newOutgoing(req *http.Request, shown credential) *outgoing {
	o := &outgoing{url: *req.URL}
	ctx := o.dog.guard(c.ctx, c.t.AttemptTimeout)
	o.watch(o.dog.cancel)
	if p := c.last.permit; p != nil {
		o.departure = &departure{ctx: c.ctx, permit: p, cancel: o.dog.cancel}
		o.departure.watch(&o.trace)
	}
	o.request = req.WithContext(httptrace.WithClientTrace(ctx, &o.trace))
	o.request.URL = &o.url
	if o.departure != nil {
		o.request.GetBody = nil // with it, net/http would retry the request itself, without a permit
	}
	o.header = headerValues{contentTypeJSON, c.t.UserAgent, shown.value, contentTypeJSON}
	v := &o.header
	o.request.Header = http.Header{"Accept": v[0:1:1], "User-Agent": v[1:2:2], shown.name: v[2:3:3]}
	if c.Body != nil || c.Encoder != nil {
		o.request.Header["Content-Type"] = v[3:4:4]
	}
	return o
}

// send sends the request once and reads the response, within the time limit of one attempt.
func (c *call) send(req *http.Request, shown credential) {
	c.last.generation = shown.generation
	o := c.newOutgoing(req, shown)
	defer c.end(o)
	resp, err := c.t.Next.RoundTrip(o.request) //nolint:bodyclose // receive reads and closes it, or a Stream does
	// net/http returns the cause of a context. That may be the error of another call.
	err = foreign(err, c.t.Own)
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if err == nil {
		err = c.receive(resp, o)
	}
	if err != nil {
		c.fail(err, o)
	}
}

// end stops what watches an attempt, also if the transport panics. A stream is watched further.
func (c *call) end(o *outgoing) {
	defer func() {
		if c.last.stream == nil {
			o.dog.stop()
		}
	}()
	if o.departure == nil {
		return
	}
	if fault := o.departure.close(); fault != nil {
		c.last.err = fault
	}
}

// receive reads a response and its envelope.
func (c *call) receive(resp *http.Response, o *outgoing) error {
	a := &c.last
	a.status, a.header = resp.StatusCode, resp.Header
	c.noteHeader()
	if o.departure != nil {
		o.departure.arrived()
		c.noteRefusal() // before the body, which may take long
	}
	switch resp.Body {
	case nil:
		resp.Body = http.NoBody // as http.Client does for transports that leave it out
	case http.NoBody:
	default:
		o.body = foreignBody{resp.Body, c.t.Own}
		resp.Body = &o.body
	}
	if !c.Rules.isSuccess(a.status) {
		defer time.AfterFunc(errorBodyWithin, o.dog.end).Stop() // the status matters more than the body
	}
	code, err := c.read(resp, &o.dog)
	if err != nil {
		return err
	}
	c.drained = *resp
	c.drained.Body = http.NoBody
	if code < 0 {
		code = wire.EnvelopeCode(a.body, c.Rules.NotInEnvelope...)
	}
	a.code = code
	c.noteRefusal()
	return nil
}

// read reads a body in the way that the request asks for. It returns the code of the envelope, or a value below 0 if it
// does not know the code yet.
func (c *call) read(resp *http.Response, dog *watchdog) (code int, err error) {
	a, success := &c.last, c.Rules.isSuccess(resp.StatusCode)
	switch {
	case a.status < http.StatusOK:
		// The body of a 101 is the connection itself. A read would wait until the service sends something.
		_ = resp.Body.Close()
		return 0, fmt.Errorf("%w: status %d", ErrBadReply, a.status)
	case success && c.Begin != nil:
		return c.beginStream(resp, dog)
	case success && c.Take != nil:
		return c.take(resp)
	case !success:
		a.body, a.cut = readRefusal(resp)
	default:
		if a.body, err = readWhole(resp, c.t.MaxBody); err == nil && endless(resp, len(a.body) > 0) && isCut(a.body, c.HasBody) {
			a.body, err = nil, errCut
		}
	}
	a.size = int64(len(a.body))
	return -1, err
}

// take passes a body to Take as it arrives, and closes it. It keeps the beginning for errors.
func (c *call) take(resp *http.Response) (code int, err error) {
	defer func() { _ = resp.Body.Close() }()
	body := countedBody{from: resp.Body, limit: c.t.MaxBody}
	code, unusable := c.Take(&body)
	_, err = io.Copy(io.Discard, &body) // the rest of an unusable body, so that the connection can be used again
	if err == nil && endless(resp, body.size > 0) && errors.Is(unusable, io.ErrUnexpectedEOF) {
		err = errCut
	}
	c.last.body, c.last.size = body.beginning, body.size
	return code, err
}

// beginStream reads the beginning of a body. The caller has got nothing of it yet, so a failure here can be retried. A
// body that is cut or stands still is an error, and a code of 400 or more is a refusal like any other. The reader of
// the stream judges what follows.
func (c *call) beginStream(resp *http.Response, dog *watchdog) (code int, err error) {
	a := &c.last
	dog.timer.Stop()
	s := newStream(resp, dog, c.t.IdleTimeout)
	defer func() {
		if a.stream == nil {
			s.Close() // also if the body panics
		}
	}()
	head := countedBody{from: s, limit: math.MaxInt64}
	code, unusable := c.Begin(&head)
	if err := s.failed(unusable); err != nil {
		a.size = head.size
		return code, err
	}
	if code < 0 { // a code of 400 or more is a refusal also if the body is defective after it
		code = wire.EnvelopeCode(head.beginning, c.Rules.NotInEnvelope...)
	}
	if code < http.StatusBadRequest {
		a.stream = s
		return 0, nil
	}
	defer time.AfterFunc(errorBodyWithin, dog.end).Stop() // as with any refusal
	_, failed := io.CopyN(io.Discard, &head, maxDrained)
	a.body, a.size = head.beginning, head.size
	a.cut = failed != nil && !errors.Is(failed, io.EOF)
	return code, nil
}

// fail notes an attempt that got no whole response.
func (c *call) fail(err error, o *outgoing) {
	a, ended := &c.last, c.ctx.Err()
	a.cut = true
	connected := o.connObtained.Load()
	a.unsent = o.connWanted.Load() && !connected // only a transport that reports its connections can prove that it had none
	if !connected {
		err = withoutProxySecrets(c.t.Next, o.request, err)
	}
	if o.reset.Load() && ended == nil {
		err = errReset
	}
	var stalled *streamStalled
	switch {
	case o.dog.expired.Load() && ended == nil && !errors.As(err, &stalled):
		a.err = &attemptExpired{c.t.AttemptTimeout, a.unsent}
	case ended != nil && !errors.Is(err, ended):
		a.err = joinCause(ended, err)
	default:
		a.err = explain(err)
	}
	if o.departure != nil {
		if o.departure.late.Load() {
			a.err, a.unsent = errPermitExpired, true
		}
		o.departure.failed(a.unsent)
	}
}
