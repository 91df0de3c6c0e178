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

// trace records what net/http reports about one attempt. Each attempt has its own, because WithClientTrace adds the
// caller's hooks to hooks, and net/http may call them after the attempt has ended.
type trace struct {
	hooks  httptrace.ClientTrace
	cancel context.CancelFunc // of the attempt

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
func (t *trace) watch(plainHTTP2 bool) {
	t.hooks.GetConn = func(string) { t.connWanted.Store(true) }
	t.hooks.WroteHeaders = func() { t.headerWritten.Store(true) }
	t.hooks.GotConn = func(info httptrace.GotConnInfo) {
		t.connObtained.Store(true)
		if t.headerWritten.Load() && speaksHTTP2(info.Conn, plainHTTP2) {
			t.reset.Store(true)
			t.cancel() // HTTP/2 checks the context again before it writes the header
		}
		if t.permit != nil && t.permit.expired() {
			t.late.Store(true)
			t.cancel()
			if info.Conn != nil && !speaksHTTP2(info.Conn, false) {
				_ = info.Conn.Close() // HTTP/1 does not
			}
		}
	}
	if t.permit == nil {
		return
	}
	t.hooks.WroteRequest = func(info httptrace.WroteRequestInfo) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if info.Err != nil || t.ended {
			return
		}
		if t.overdue != nil {
			t.overdue.Stop() // the user's RoundTripper has sent another request before
		}
		t.written = time.Now()
		t.overdue = time.AfterFunc(arrivesWithin, func() { t.permit.End(t.ctx, time.Now()) })
	}
}

// endPermit ends the permit of a limited request with the latest time at which it may have arrived, which is now if it
// got a response. status is that of the response, or 0 without one.
func (t *trace) endPermit(status int) {
	t.mu.Lock()
	if t.ended = true; t.overdue != nil {
		t.overdue.Stop()
	}
	arrived := cmp.Or(t.written, time.Now()).Add(arrivesWithin)
	t.mu.Unlock()
	if status != 0 {
		arrived = time.Now()
	}
	t.permit.end(t.ctx, arrived, status)
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
