package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// hooks is what net/http reports of one attempt. WithClientTrace writes the caller's hooks into the trace, and net/http
// may call them after the attempt has ended, so each attempt has hooks of its own.
type hooks struct {
	trace         httptrace.ClientTrace
	connWanted    atomic.Bool
	connObtained  atomic.Bool
	headerWritten atomic.Bool
	reset         atomic.Bool // net/http was about to send the request again
}

// watch sets them. net/http sends an HTTP/2 request again by itself after some resets, also one that the service may
// have processed (golang/go#42777): without end, without a permit, and without a word in the outcome. So cancel ends the
// attempt there, and the retry policy decides. HTTP/1 repeats only what was not written, and readings.
func (h *hooks) watch(cancel context.CancelFunc) {
	h.trace.GetConn = func(string) { h.connWanted.Store(true) }
	h.trace.WroteHeaders = func() { h.headerWritten.Store(true) }
	h.trace.GotConn = func(info httptrace.GotConnInfo) {
		h.connObtained.Store(true)
		if h.headerWritten.Load() && isHTTP2(info.Conn) {
			h.reset.Store(true)
			cancel() // HTTP/2 looks at the context once more before it writes the header
		}
	}
}

func isHTTP2(conn net.Conn) bool {
	c, ok := conn.(*tls.Conn)
	return ok && c.ConnectionState().NegotiatedProtocol == "h2"
}
