package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// hooks keeps what net/http reports of one attempt. WithClientTrace writes the caller's hooks into the trace, and
// net/http may call them after the attempt has ended. So each attempt has hooks of its own.
type hooks struct {
	trace         httptrace.ClientTrace
	connWanted    atomic.Bool
	connObtained  atomic.Bool
	headerWritten atomic.Bool
	reset         atomic.Bool // net/http was about to retry the request itself
}

// watch sets the hooks. After some resets net/http retries an HTTP/2 request itself, also one that the service may have
// processed (golang/go#42777). It does so without end and without a permit, and the outcome would not show it. So
// cancel ends the attempt there, and the retry policy decides. Over HTTP/1, net/http retries only reads and what was
// not written.
func (h *hooks) watch(cancel context.CancelFunc) {
	h.trace.GetConn = func(string) { h.connWanted.Store(true) }
	h.trace.WroteHeaders = func() { h.headerWritten.Store(true) }
	h.trace.GotConn = func(info httptrace.GotConnInfo) {
		h.connObtained.Store(true)
		if h.headerWritten.Load() && isHTTP2(info.Conn) {
			h.reset.Store(true)
			cancel() // HTTP/2 checks the context once more before it writes the header
		}
	}
}

func isHTTP2(conn net.Conn) bool {
	c, ok := conn.(*tls.Conn)
	return ok && c.ConnectionState().NegotiatedProtocol == "h2"
}
