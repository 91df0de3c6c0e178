package transport

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptrace"
	"strings"
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

type attemptKey struct{}

// attemptValue is the value of a context of an HTTP request.
type attemptValue struct {
	operation string
	number    int
}

// OperationFromContext returns the operation and the number of the attempt to which the context of an HTTP request
// belongs.
func OperationFromContext(ctx context.Context) (operation string, attempt int) {
	v, _ := ctx.Value(attemptKey{}).(attemptValue)
	return v.operation, v.number
}

// newOutgoing prepares the request of an attempt and starts its timeout.
func (c *call) newOutgoing(req *http.Request, shown credential) *outgoing {
	ctx, cancel := context.WithCancel(context.WithValue(c.ctx, attemptKey{}, attemptValue{c.Operation, c.attempts}))
	o := &outgoing{ctx: c.ctx, cancel: cancel, permit: c.last.permit}
	o.timer = time.AfterFunc(c.t.AttemptTimeout, func() {
		o.expired.Store(true)
		cancel()
	})
	o.watch(c.t.PlainHTTP2)
	o.request = req.Clone(httptrace.WithClientTrace(ctx, &o.hooks))
	o.request.GetBody = nil // with it, net/http would retry by itself
	o.request.Header = http.Header{"Accept": {"application/json"}, "User-Agent": {c.t.UserAgent}, shown.name: {shown.value}}
	if c.Body != nil {
		o.request.Header["Content-Type"] = []string{"application/json"}
	}
	maps.Copy(o.request.Header, c.Header.Clone()) // as for the URL
	return o
}

// stop ends the attempt.
func (o *outgoing) stop() {
	o.timer.Stop()
	o.cancel()
}

// send sends the request once and reads the response, within the attempt's timeout.
func (c *call) send(req *http.Request, shown credential) {
	c.last.generation = shown.generation
	o := c.newOutgoing(req, shown)
	if c.Permits != nil {
		defer o.endPermit(0) // does nothing if it has ended, but the RoundTripper may panic
	}
	resp, err := c.t.Next.RoundTrip(o.request)
	if err == nil {
		err = c.receive(resp, o)
	}
	if err != nil {
		c.fail(err, o)
	}
	if c.last.stream == nil { // a stream goes on
		o.stop()
	}
}

// receive reads a response as the request asks, and the code of its envelope.
func (c *call) receive(resp *http.Response, o *outgoing) (err error) {
	a, success := &c.last, c.Rules.isSuccess(resp.StatusCode)
	a.status, a.header = resp.StatusCode, resp.Header
	if resp.Body == nil {
		resp.Body = http.NoBody // a RoundTripper may leave it out, such as one in a test
	}
	if c.Permits != nil {
		o.endPermit(a.status)
		c.noteRefusal() // before reading the body, which may be slow
	}
	code := -1 // not known yet
	switch {
	case a.status < http.StatusOK:
		// The body of a 101 is the connection itself, so a read would block.
		_ = resp.Body.Close()
		err = fmt.Errorf("%w: status %d", ErrBadResponse, a.status)
	case success && c.Begin != nil:
		code, err = c.beginStream(resp, o)
	case success && c.Take != nil:
		code, err = c.take(resp)
	case success:
		a.body, err = readWhole(resp, c.t.MaxBody)
	default:
		defer time.AfterFunc(errorBodyWithin, o.cancel).Stop()
		a.body = readRefusal(resp)
	}
	if err != nil {
		return err
	}
	if a.code = code; code < 0 {
		a.code = wire.EnvelopeCode(a.body, c.Rules.NotInEnvelope...)
	}
	if c.Permits != nil {
		c.noteRefusal() // the code may say more than the status
	}
	return nil
}

// take passes the body to Take as it arrives, and closes it. It keeps the beginning for errors.
func (c *call) take(resp *http.Response) (code int, err error) {
	defer func() { _ = resp.Body.Close() }()
	body := limitedBody{from: resp.Body, limit: c.t.MaxBody, keep: maxErrorBody}
	code = c.Take(&body)
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
	o.timer.Stop() // from here on, only reads take too long
	s.body, s.attempt, s.idle = resp.Body, o, c.t.IdleTimeout
	head := limitedBody{from: s, limit: math.MaxInt64, keep: maxErrorBody}
	code = c.Begin(&head)
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
	if c.Permits != nil && neverLeft {
		a.permit.End(c.ctx, time.Time{})
	}
	switch ended := c.ctx.Err(); {
	case late:
		a.err = errPermitExpired
	case ended != nil:
		a.err = endedWith(ended, err)
	case o.reset.Load():
		a.err = errReset
	case !o.expired.Load(), err == o.stream.err: //nolint:errorlint // the stream says itself that it stalled
		a.err = err
	case a.unsent:
		a.err = timeout("no connection within %v", c.t.AttemptTimeout)
	default:
		a.err = timeout("no complete response within %v", c.t.AttemptTimeout)
	}
}
