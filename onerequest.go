package webdelivery

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// errReset: the service broke off the stream or the connection of an HTTP/2 request that had been sent.
var errReset = errors.New("the HTTP/2 stream or connection was reset before a response")

// connTrace is what net/http reports of one attempt. WithClientTrace writes the caller's hooks into the trace, and
// net/http may call them after the attempt has ended, so each attempt has a connTrace of its own.
type connTrace struct {
	trace httptrace.ClientTrace
	asked atomic.Bool // for a connection
	got   atomic.Bool // one
	wrote atomic.Bool // the header of the request
	reset atomic.Bool // net/http was about to send the request again
}

// watch sets the hooks. net/http sends an HTTP/2 request again by itself after some resets, also one that the service may
// have processed (golang/go#42777): without end, without a permit, and without a word in the outcome. So cancel ends the
// attempt there, and the retry policy decides. HTTP/1 repeats only what was not written, and readings.
func (w *connTrace) watch(cancel context.CancelFunc) {
	w.trace.GetConn = func(string) { w.asked.Store(true) }
	w.trace.WroteHeaders = func() { w.wrote.Store(true) }
	w.trace.GotConn = func(info httptrace.GotConnInfo) {
		w.got.Store(true)
		if w.wrote.Load() && isHTTP2(info.Conn) {
			w.reset.Store(true)
			cancel() // HTTP/2 looks at the context once more before it writes the header
		}
	}
}

func isHTTP2(conn net.Conn) bool {
	c, ok := conn.(*tls.Conn)
	return ok && c.ConnectionState().NegotiatedProtocol == "h2"
}
