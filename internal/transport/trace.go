package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// arrivesWithin is how long after it was written a request may still arrive. The limit on arrivals allows for network
// delays up to this time. It also holds after the connection has failed, because a proxy may deliver what it has.
const arrivesWithin = 5 * time.Second

// trace keeps what net/http reports of one attempt. WithClientTrace writes the caller's hooks into the hooks, and
// net/http may call them after the attempt has ended. So each attempt has its own.
type trace struct {
	hooks  httptrace.ClientTrace
	cancel context.CancelFunc // of the attempt

	connWanted    atomic.Bool
	connObtained  atomic.Bool
	headerWritten atomic.Bool
	reset         atomic.Bool // net/http was about to send the request again by itself

	// Of a limited request. Its permit ends as soon as the latest time of arrival is known: the response has come, or
	// arrivesWithin has passed.
	ctx    context.Context //nolint:containedctx // the caller's, for the end of the permit
	permit *Permit         // nil: not limited
	late   atomic.Bool     // the permit expired before there was a connection

	mu      sync.Mutex
	ended   bool        // a response or an error has come
	written time.Time   // when the whole request was written
	overdue *time.Timer // ends the permit of a request whose response takes long
}

// watch sets the hooks. After some resets net/http sends an HTTP/2 request without body again by itself, also one that
// the service may have processed (golang/go#42777). It does so without end and without a permit, and the outcome would
// not show it. So cancel ends the attempt there, and the retry policy decides. (A request with a body has no GetBody,
// which keeps net/http from it.) Over HTTP/1, net/http repeats only reads and what was not written.
func (t *trace) watch(plainHTTP2 bool) {
	t.hooks.GetConn = func(string) { t.connWanted.Store(true) }
	t.hooks.WroteHeaders = func() { t.headerWritten.Store(true) }
	t.hooks.GotConn = func(info httptrace.GotConnInfo) {
		t.connObtained.Store(true)
		if t.headerWritten.Load() && speaksHTTP2(info.Conn, plainHTTP2) {
			t.reset.Store(true)
			t.cancel() // HTTP/2 checks the context once more before it writes the header
		}
		if t.permit != nil && t.permit.expired() {
			t.late.Store(true)
			t.cancel()
			if info.Conn != nil && !speaksHTTP2(info.Conn, false) {
				_ = info.Conn.Close() // HTTP/1 does not check it
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
			t.overdue.Stop() // a transport of the user's has sent something else before
		}
		t.written = time.Now()
		t.overdue = time.AfterFunc(arrivesWithin, func() { t.permit.End(t.ctx, time.Now()) })
	}
}

// How an attempt ended.
type ending int

const (
	notSent  ending = iota // nothing reached the service
	answered               // the response has come
	lost                   // nobody knows whether the request has arrived
)

// endPermit ends the permit of a limited request, with the latest time at which the request may have arrived.
func (t *trace) endPermit(how ending) {
	t.mu.Lock()
	left := time.Now()
	if t.ended = true; t.overdue != nil {
		t.overdue.Stop()
		left = t.written
	}
	t.mu.Unlock()
	switch how {
	case notSent:
		t.permit.End(t.ctx, time.Time{})
	case answered:
		t.permit.End(t.ctx, time.Now())
	default:
		t.permit.End(t.ctx, left.Add(arrivesWithin))
	}
}

// speaksHTTP2 reports whether a connection speaks HTTP/2. plain is the answer for one without TLS.
func speaksHTTP2(conn net.Conn, plain bool) bool {
	if c, ok := conn.(*tls.Conn); ok {
		return c.ConnectionState().NegotiatedProtocol == "h2"
	}
	return plain
}

// mayPlainHTTP2 reports whether a transport may speak HTTP/2 without TLS. One of another type may speak anything.
func mayPlainHTTP2(next http.RoundTripper) bool {
	t, ok := next.(*http.Transport)
	return !ok || t.Protocols != nil && t.Protocols.UnencryptedHTTP2()
}
