package transport

import (
	"context"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// arrivesWithin is how long after it was written a request may still arrive. The limit on arrivals allows for network
// delays up to this time. It also holds after the connection has failed, because a proxy may deliver what it has.
const arrivesWithin = 5 * time.Second

// departure watches one attempt of a limited request. It ends the permit as soon as it knows the latest time of
// arrival: the response has come, or arrivesWithin has passed.
type departure struct {
	ctx    context.Context //nolint:containedctx // the caller's, for the end of the permit
	permit *Permit
	cancel context.CancelFunc // of the attempt
	late   atomic.Bool        // the permit expired before there was a connection

	mu      sync.Mutex
	settled bool          // a response or an error has come
	written time.Time     // when the whole request was written
	overdue *time.Timer   // ends the permit of a request whose response takes long
	ending  chan struct{} // closed when overdue has ended the permit; nil before it begins to
	fault   error         // how the user's limiter panicked then
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
				_ = info.Conn.Close() // HTTP/1 does not check it
			}
		}
	}
	t.WroteRequest = func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			d.wrote()
		}
	}
}

// wrote starts the timer that bounds the time of arrival, because the response may take much longer.
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

// close ends the permit, also if the transport panics. If the user's limiter panicked when the permit was overdue,
// close returns that error, and the attempt has failed.
func (d *departure) close() (fault error) {
	d.failed(false)
	return d.fault
}

// settle stops the timer. It returns the latest time at which the request left.
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

// end ends the permit. If the timer is doing so already, end waits for it, so that no goroutine outlives the attempt.
// It waits without a lock, as the user's limiter may take long.
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
