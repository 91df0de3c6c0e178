package webdelivery

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// arrivesWithin is how long after it was written a request may still arrive: the longest stall of the network that the
// limit on arrivals covers. It also holds after the connection has failed, because a proxy may deliver what it has.
const arrivesWithin = 5 * time.Second

// errPermitExpired: the purge permit expired before the request could begin. Nothing was sent.
var errPermitExpired = errors.New("the purge permit expired before the connection was ready")

// departure is one attempt of a purge on its way. It ends the permit as soon as the latest time of arrival is known: by
// the response, or because the request was written long enough ago.
type departure struct {
	ctx    context.Context //nolint:containedctx // the caller's, for the end of the permit
	permit *permit
	cancel context.CancelFunc // of the attempt
	late   atomic.Bool        // the permit expired before there was a connection
	once   sync.Once

	mu      sync.Mutex
	settled bool        // the response or a fault has come
	written time.Time   // when the whole request was written
	overdue *time.Timer // ends the permit of a request whose response takes long
}

// watch adds the hooks of a purge to those of its attempt.
func (d *departure) watch(t *httptrace.ClientTrace) {
	got := t.GotConn
	t.GotConn = func(info httptrace.GotConnInfo) {
		got(info)
		if d.permit.expired() {
			d.late.Store(true)
			d.cancel() // HTTP/2 looks at the context once more before it writes the header
			if c, ok := info.Conn.(*tls.Conn); !ok || c.ConnectionState().NegotiatedProtocol != "h2" {
				_ = info.Conn.Close() // HTTP/1 does not
			}
		}
	}
	t.WroteRequest = func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			d.wrote()
		}
	}
}

// wrote bounds the time of arrival, because the response may take much longer.
func (d *departure) wrote() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.settled {
		d.written = time.Now()
		d.overdue = time.AfterFunc(arrivesWithin, func() { d.end(time.Now()) })
	}
}

// arrived notes the response.
func (d *departure) arrived() {
	d.settle()
	d.end(time.Now())
}

// failed notes that there will be no response.
func (d *departure) failed(unsent bool) {
	if from := d.settle(); unsent {
		d.end(time.Time{})
	} else {
		d.end(from.Add(arrivesWithin))
	}
}

// settle stops waiting, and returns when the request left at the latest.
func (d *departure) settle() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settled = true
	if d.overdue == nil {
		return time.Now()
	}
	d.overdue.Stop()
	return d.written
}

// end waits for an end that is under way, so that nothing of it outlives the attempt.
func (d *departure) end(arrived time.Time) {
	d.once.Do(func() { d.permit.end(d.ctx, arrived) })
}
