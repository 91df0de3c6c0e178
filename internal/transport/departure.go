package transport

import (
	"context"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// arrivesWithin is how long after it was written a request may still arrive: the longest stall of the network that the
// limit on arrivals covers. It also holds after the connection has failed, because a proxy may deliver what it has.
const arrivesWithin = 5 * time.Second

// departure is one attempt of a limited request on its way. It ends the permit as soon as the latest time of arrival is
// known: by the response, or because the request was written long enough ago.
type departure struct {
	ctx    context.Context //nolint:containedctx // the caller's, for the end of the permit
	permit *Permit
	cancel context.CancelFunc // of the attempt
	late   atomic.Bool        // the permit expired before there was a connection

	mu      sync.Mutex
	settled bool          // the response or a fault has come
	written time.Time     // when the whole request was written
	overdue *time.Timer   // ends the permit of a request whose response takes long
	ending  chan struct{} // is closed when it has; nil while it has not begun to
	fault   error         // what the user's limiter did then in place of returning
}

// watch adds the hooks of a limited request to those of its attempt.
func (d *departure) watch(t *httptrace.ClientTrace) {
	got := t.GotConn
	t.GotConn = func(info httptrace.GotConnInfo) {
		got(info)
		if d.permit.expired() {
			d.late.Store(true)
			d.cancel()                                   // HTTP/2 looks at the context once more before it writes the header
			if info.Conn != nil && !isHTTP2(info.Conn) { // a transport of the user's may leave it out
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
		if d.overdue != nil {
			d.overdue.Stop() // a transport of the user's has sent something else before
		}
		d.written = time.Now()
		d.overdue = time.AfterFunc(arrivesWithin, d.endOverdue)
	}
}

// endOverdue ends the permit, in the goroutine of the timer.
func (d *departure) endOverdue() {
	ending := make(chan struct{})
	d.mu.Lock()
	begins := !d.settled
	if begins {
		d.ending = ending
	}
	d.mu.Unlock()
	if !begins {
		return
	}
	usercode.Run(func() error {
		d.permit.End(d.ctx, time.Now())
		return nil
	}, func(err error) {
		d.fault = err
		close(ending)
	})
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

// close sees to it that the permit ends, also if the transport panics. It returns what the user's limiter did in place of
// returning when the permit was overdue; then the attempt has failed.
func (d *departure) close() (fault error) {
	d.failed(false)
	return d.fault
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

// end waits for an end that is under way, so that nothing of it outlives the attempt. It does so without a lock, as the
// user's limiter may take long.
func (d *departure) end(arrived time.Time) {
	d.mu.Lock()
	ending := d.ending
	d.mu.Unlock()
	if ending != nil {
		<-ending
		return
	}
	d.permit.End(d.ctx, arrived)
}
