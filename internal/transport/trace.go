package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// arrivesWithin is how long after it was written a request may still arrive, even if the connection has failed, because
// a proxy may deliver it late.
const arrivesWithin = 5 * time.Second

// outgoing is the request of one attempt with its time limit, and what net/http reports about it. It has its own URL and
// header, so that changes made by the user's RoundTripper do not affect the next attempt, and its own hooks, because
// WithClientTrace adds the caller's to them, and net/http may call them after the attempt has ended.
type outgoing struct {
	request *http.Request
	timer   *time.Timer        // cancels an attempt that takes too long; unlike a deadline, it can be stopped for a stream
	expired atomic.Bool        // the timer has done so
	cancel  context.CancelFunc // of the attempt
	stream  Stream             // the response body, if the request has Begin

	hooks         httptrace.ClientTrace
	connWanted    atomic.Bool
	connObtained  atomic.Bool
	headerWritten atomic.Bool
	reset         atomic.Bool // net/http was about to retry by itself

	// For a limited request. Its permit ends as soon as the latest time of arrival is known: when the response arrives, or
	// arrivesWithin after the request was written.
	ctx    context.Context // the caller's, for the end of the permit
	permit *Permit         // nil if not limited
	late   atomic.Bool     // the permit expired before there was a connection

	mu      sync.Mutex
	ended   bool        // a response or an error has arrived
	written time.Time   // when the whole request was written
	overdue *time.Timer // ends the permit if the response is slow
}

// watch sets the hooks. After some resets, net/http by itself retries an HTTP/2 request without a body, even one that
// the service may have processed (golang/go#42777), any number of times and without a permit. The hooks cancel the
// attempt then, so that the retry policy decides. Requests with a body are safe because they have no GetBody. Over
// HTTP/1, net/http retries only reads and requests that were not written.
func (o *outgoing) watch(plainHTTP2 bool) {
	o.hooks.GetConn = func(string) { o.connWanted.Store(true) }
	o.hooks.WroteHeaders = func() { o.headerWritten.Store(true) }
	o.hooks.GotConn = func(info httptrace.GotConnInfo) {
		o.connObtained.Store(true)
		if o.headerWritten.Load() && speaksHTTP2(info.Conn, plainHTTP2) {
			o.reset.Store(true)
			o.cancel() // HTTP/2 checks the context again before it writes the header
		}
		if o.permit != nil && o.permit.expired() {
			o.late.Store(true)
			o.cancel()
			if info.Conn != nil && !speaksHTTP2(info.Conn, false) {
				_ = info.Conn.Close() // HTTP/1 does not
			}
		}
	}
	if o.permit == nil {
		return
	}
	o.hooks.WroteRequest = func(info httptrace.WroteRequestInfo) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if info.Err != nil || o.ended {
			return
		}
		if o.overdue != nil {
			o.overdue.Stop() // the user's RoundTripper has sent another request before
		}
		o.written = time.Now()
		o.overdue = time.AfterFunc(arrivesWithin, func() { o.permit.End(o.ctx, time.Now()) })
	}
}

// endPermit ends the permit of a limited request with the latest time at which it may have arrived, which is now if it
// got a response. status is that of the response, or 0 without one.
func (o *outgoing) endPermit(status int) {
	o.mu.Lock()
	if o.ended = true; o.overdue != nil {
		o.overdue.Stop()
	}
	arrived := cmp.Or(o.written, time.Now()).Add(arrivesWithin)
	o.mu.Unlock()
	if status != 0 {
		arrived = time.Now()
	}
	o.permit.end(o.ctx, arrived, status)
}

// speaksHTTP2 reports whether a connection uses HTTP/2. Without TLS it returns plain.
func speaksHTTP2(conn net.Conn, plain bool) bool {
	if c, ok := conn.(*tls.Conn); ok {
		return c.ConnectionState().NegotiatedProtocol == "h2"
	}
	return plain
}

// MayPlainHTTP2 reports whether next may use HTTP/2 without TLS. That is assumed unless next is a *http.Transport.
func MayPlainHTTP2(next http.RoundTripper) bool {
	t, ok := next.(*http.Transport)
	return !ok || t.Protocols != nil && t.Protocols.UnencryptedHTTP2()
}
