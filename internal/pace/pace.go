// Package pace grants permits for purges. The service accepts two purge requests in any second for each customer, and
// counts them when they arrive (service document, section 8).
//
// Two mechanisms enforce this limit. Two slots limit the arrivals of this process: a request occupies a slot from when
// it is sent until [Hold] after its arrival. Of any three requests, two use the same slot, so the later one is sent at
// least [Hold] after the earlier one arrived, however long the network delays them. And after a refusal, because other
// processes use the limit too, the process sends at a rate that falls with each refusal and grows with each accepted
// purge, so that processes that know nothing of each other share the limit (see rate.go).
//
// The package must not depend on HTTP, addresses or the SDK. Its entry points are [New], [NewPace], [Limiter.Acquire]
// and [Permit].
package pace

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Hold is how long a slot stays occupied after its request has arrived: the second in which the service counts, plus a
// margin for clocks and timers.
const Hold = 1050 * time.Millisecond

const slots = 2 // service document, section 8

// onTheWay marks a slot whose request has not arrived yet. It is later than any time at which a slot becomes free.
var onTheWay = time.Unix(1<<40, 0)

// Limiter grants permits in the order of the calls, except that purges retried after a refusal get every second permit
// while others wait. A Limiter is safe for concurrent use.
type Limiter struct {
	mu     sync.Mutex
	queue  []*waiter
	slots  []time.Time // when each slot becomes free; empty for NewPace
	resume time.Time   // no permit before this time
	active time.Time   // last activity of any purge
	pace
}

// New returns a limiter that limits arrivals and adapts its pace.
func New() *Limiter {
	l := NewPace()
	l.slots = make([]time.Time, slots)
	return l
}

// NewPace returns a limiter that does not limit arrivals, for use in front of another limiter. It grants every permit
// at once until a purge is refused.
func NewPace() *Limiter {
	return &Limiter{pace: pace{random: rand.Float64}}
}

// Caller is a purge. It acquires a permit for each of its attempts, one after the other.
type Caller struct {
	// Patience is how long the purge waits for a permit while the service accepts no purge.
	Patience time.Duration

	since    time.Time // first request for a permit
	refused  time.Time // last refusal; zero if never refused
	refusals int       // that were not about the pace
}

// waiter is a caller in Acquire.
type waiter struct {
	*Caller

	deadline time.Time     // zero if there is none
	alarm    time.Time     // when serve runs again for this caller
	decided  chan struct{} // closed when permit or err is set
	permit   *Permit
	err      error
}

// Permit is the right to send one request.
type Permit struct {
	limiter *Limiter
	caller  *Caller
	slot    int // index of its slot; -1 if there is none
}

// Acquire blocks until a request may be sent. The caller must end the permit with [Permit.End]. When ctx ends, Acquire
// returns the error of ctx. As soon as the permit is known to come after the deadline of ctx, it returns a
// [*LateError]. If the service refuses all purges for longer than the caller's patience, it returns a [*RefusedError].
func (l *Limiter) Acquire(ctx context.Context, c *Caller) (*Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := l.enter(ctx, c)
	select {
	case <-w.decided:
	case <-ctx.Done():
		l.leave(w, ctx.Err())
	}
	return w.permit, w.err
}

// enter inserts a caller into the queue. A new caller goes to the end. A refused one goes behind the last refused
// caller and one new caller, so that both kinds take turns.
func (l *Limiter) enter(ctx context.Context, c *Caller) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.active.After(now) {
		l.forget()
	}
	if l.rate > 0 && len(l.queue) == 0 && now.Sub(l.active) > rest {
		l.rate = highest
	}
	l.active = now
	if c.since.IsZero() {
		c.since = now
	}
	w := &waiter{Caller: c, decided: make(chan struct{})}
	w.deadline, _ = ctx.Deadline()
	at := len(l.queue)
	if !c.refused.IsZero() {
		for at > 0 && l.queue[at-1].refused.IsZero() {
			at--
		}
		at = min(at+1, len(l.queue))
	}
	l.queue = slices.Insert(l.queue, at, w)
	if at == 0 || at < len(l.queue)-1 || !w.deadline.IsZero() || !l.refusing.IsZero() { // otherwise it delays nobody and cannot fail
		l.serve(now)
	}
	return w
}

// forget drops all times, which are in the future. They came from another clock: that of a testing/synctest bubble
// begins in the year 2000. A slot whose request is on its way stays occupied.
func (l *Limiter) forget() {
	l.resume, l.pace = time.Time{}, pace{random: l.random}
	for i, at := range l.slots {
		if !at.Equal(onTheWay) {
			l.slots[i] = time.Time{}
		}
	}
}

// leave removes a caller that has stopped waiting, unless it got its permit meanwhile.
func (l *Limiter) leave(w *waiter, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, w); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		w.decide(nil, why)
		l.serve(time.Now())
	}
}

// serve grants the permits that are free, and fails the callers that cannot get one in time. It runs after each change,
// and again when the next permit is free. The caller holds the lock.
func (l *Limiter) serve(now time.Time) {
	slot, at := l.free()
	for len(l.queue) > 0 && !at.After(now) {
		w := l.queue[0]
		l.queue[0], l.queue = nil, l.queue[1:]
		l.active = now
		l.spread(now)
		if slot >= 0 {
			l.slots[slot] = onTheWay
		}
		w.decide(&Permit{limiter: l, caller: w.Caller, slot: slot}, nil)
		slot, at = l.free()
	}
	l.failLate(now)
	if len(l.queue) == 0 || at.Equal(onTheWay) {
		return // the next change serves
	}
	if w := l.queue[0]; !w.alarm.After(now) || w.alarm.After(at) {
		w.alarm = at
		time.AfterFunc(at.Sub(now), func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.serve(time.Now())
		})
	}
}

func (w *waiter) decide(p *Permit, err error) {
	w.permit, w.err = p, err
	close(w.decided)
}

// free returns the slot that becomes free first, and when it gives the next permit. The slot is -1 if there are none.
func (l *Limiter) free() (slot int, at time.Time) {
	slot, at = -1, latest(l.next, l.resume)
	for i := range l.slots {
		if slot < 0 || l.slots[i].Before(l.slots[slot]) {
			slot = i
		}
	}
	if slot >= 0 {
		at = latest(at, l.slots[slot])
	}
	return slot, at
}

// End ends the permit and must be called exactly once. arrived is the latest time at which the request may reach the
// service, and may be in the future. The zero time means that nothing was sent.
func (p *Permit) End(arrived time.Time) {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.slot < 0 {
		return
	}
	if !arrived.IsZero() {
		arrived = arrived.Add(Hold)
	}
	l.slots[p.slot] = arrived
	l.serve(time.Now())
}
