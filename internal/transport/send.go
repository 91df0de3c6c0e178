package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// errorBodyWithin limits how long the body of a refusal is read; its status matters more.
const errorBodyWithin = 2 * time.Second

// notProcessed reports whether net/http's text says that the server did not process the request: the GOAWAY of one that
// shuts down, or the code of the stream (RFC 9113, section 8.7). "server sent GOAWAY and closed the connection" proves
// nothing.
func notProcessed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "Transport received Server's graceful shutdown GOAWAY") || strings.Contains(text, "; REFUSED_STREAM; received from peer")
}

// outgoing is the request of one attempt with its trace and timeout. It has its own URL and header, so that changes
// made by the user's RoundTripper do not affect the next attempt.
type outgoing struct {
	trace

	request *http.Request
	stream  Stream // the response body, if the request has Begin
	url     url.URL
	header  [4]string   // the values of request.Header
	timer   *time.Timer // cancels the attempt. Unlike a deadline it can be stopped: a stream may take any time
	expired atomic.Bool
}

// expire cancels an attempt that takes too long.
func (o *outgoing) expire() {
	o.expired.Store(true)
	o.cancel()
}

func (o *outgoing) stop() {
	o.timer.Stop()
	o.cancel()
}

// newOutgoing prepares the request of an attempt and starts its timeout.
func (c *call) newOutgoing(req *http.Request, shown credential) *outgoing {
	o := &outgoing{url: *req.URL}
	o.ctx, o.permit = c.ctx, c.last.permit
	ctx, cancel := context.WithCancel(c.ctx)
	o.cancel = cancel
	o.timer = time.AfterFunc(c.t.AttemptTimeout, o.expire)
	o.watch(c.t.plainHTTP2)
	o.request = req.WithContext(httptrace.WithClientTrace(ctx, &o.hooks))
	o.request.URL = &o.url
	o.request.GetBody = nil // with it, net/http would retry by itself
	o.header = [4]string{"application/json", c.t.UserAgent, shown.value, "application/json"}
	v := &o.header
	o.request.Header = http.Header{"Accept": v[0:1:1], "User-Agent": v[1:2:2], shown.name: v[2:3:3]}
	if c.Body != nil {
		o.request.Header["Content-Type"] = v[3:4:4]
	}
	return o
}

// send sends the request once and reads the response, within the attempt's timeout.
func (c *call) send(req *http.Request, shown credential) {
	c.last.generation = shown.generation
	o := c.newOutgoing(req, shown)
	if c.Gate != nil {
		defer func() { o.permit.End(c.ctx, o.end()) }() // the request may have arrived, if nothing has ended it yet
	}
	resp, err := c.t.Next.RoundTrip(o.request) //nolint:bodyclose // receive reads and closes it, or a Stream does
	if err == nil {
		err = c.receive(resp, o)
	}
	if err != nil {
		c.fail(err, o)
	}
	if c.last.stream == nil { // a stream is still watched
		o.stop()
	}
}

// receive reads a response and its envelope.
func (c *call) receive(resp *http.Response, o *outgoing) error {
	a := &c.last
	a.status, a.header = resp.StatusCode, resp.Header
	if resp.Body == nil {
		resp.Body = http.NoBody // a RoundTripper may leave it out, such as one in a test
	}
	if c.Gate != nil {
		o.permit.End(c.ctx, time.Now())
		c.noteRefusal() // before reading the body, which may be slow
	}
	if !c.Rules.isSuccess(a.status) {
		defer time.AfterFunc(errorBodyWithin, o.cancel).Stop()
	}
	code, err := c.read(resp, o)
	if err != nil {
		return err
	}
	if code < 0 {
		code = wire.EnvelopeCode(a.body, c.Rules.NotInEnvelope...)
	}
	a.code = code
	if c.Gate != nil {
		c.noteRefusal() // the code may say more than the status
	}
	return nil
}

// read reads the body as the request asks. It returns the code of the envelope, or a negative value if it is not known
// yet.
func (c *call) read(resp *http.Response, o *outgoing) (code int, err error) {
	a, success := &c.last, c.Rules.isSuccess(resp.StatusCode)
	switch {
	case a.status < http.StatusOK:
		// The body of a 101 is the connection itself, so a read would block.
		_ = resp.Body.Close()
		return 0, fmt.Errorf("%w: status %d", ErrBadReply, a.status)
	case success && c.Begin != nil:
		return c.beginStream(resp, o)
	case success && c.Take != nil:
		return c.take(resp)
	case success:
		a.body, err = readWhole(resp, c.t.MaxBody)
	default:
		a.body = readRefusal(resp)
	}
	a.size = int64(len(a.body))
	return -1, err
}

// take passes the body to Take as it arrives, and closes it. It keeps the beginning for errors.
func (c *call) take(resp *http.Response) (code int, err error) {
	defer func() { _ = resp.Body.Close() }()
	body := limitedBody{from: resp.Body, limit: c.t.MaxBody, keep: maxErrorBody}
	code, _ = c.Take(&body)
	_, err = io.Copy(io.Discard, &body) // drain an unusable body, so that the connection can be reused
	if c.last.size = body.size; err == nil {
		c.last.body = body.beginning
	}
	return code, err
}

// beginStream reads the beginning of a body. The caller has received nothing yet, so a failure here can be retried. A
// body that is cut or stalls is an error, and a code of 400 or more is a refusal. The reader of the stream checks the
// rest.
func (c *call) beginStream(resp *http.Response, o *outgoing) (code int, err error) {
	a, s := &c.last, &o.stream
	s.body, s.from, s.idle = resp.Body, o, c.t.IdleTimeout
	head := limitedBody{from: s, limit: math.MaxInt64, keep: maxErrorBody}
	code, _ = c.Begin(&head)
	if code < 0 { // also find a code before a syntax error
		code = wire.EnvelopeCode(head.beginning, c.Rules.NotInEnvelope...)
	}
	switch {
	case s.err != nil:
		err = s.err
	case code < http.StatusBadRequest:
		a.stream = s
		return 0, nil
	default:
		defer time.AfterFunc(errorBodyWithin, o.cancel).Stop()                              // as with any refusal
		if _, cut := io.CopyN(io.Discard, &head, maxDrained); cut == nil || cut == io.EOF { //nolint:errorlint // as in Read
			a.body = head.beginning
		}
	}
	a.size = head.size
	s.Close()
	return code, err
}

// fail records the error of an attempt that got no complete response.
func (c *call) fail(err error, o *outgoing) {
	a := &c.last
	late := o.late.Load()
	neverLeft := late || o.connWanted.Load() && !o.connObtained.Load() // a RoundTripper that reports no connections proves nothing
	a.unsent = neverLeft || notProcessed(err)
	if c.Gate != nil && neverLeft {
		o.permit.End(c.ctx, time.Time{})
	}
	_, stalled := errors.AsType[timeoutError](err) // of a stream
	switch ended := c.ctx.Err(); {
	case late:
		a.err = errPermitExpired
	case ended != nil:
		a.err = endedWith(ended, err)
	case o.reset.Load():
		a.err = errReset
	case !o.expired.Load() || stalled:
		a.err = err
	case a.unsent:
		a.err = timeoutError(fmt.Sprintf("no connection within %v", c.t.AttemptTimeout))
	default:
		a.err = timeoutError(fmt.Sprintf("no complete response within %v", c.t.AttemptTimeout))
	}
}
