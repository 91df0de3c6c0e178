// Package pace grants permits for purges. The service accepts two purge requests in any second for each customer, and
// counts them when they arrive (service document, section 8).
//
// Two mechanisms enforce this limit. Two slots limit the arrivals of this process: a request occupies a slot from when
// it is sent until [Hold] after its arrival. Of any three requests, two use the same slot, so the later one is sent at
// least [Hold] after the earlier one arrived, however long the network delays them. And after a refusal, because other
// processes use the limit too, time is a cycle of places. The limiter returns to those where the service accepted a purge
// and tries others now and then, so that processes that know nothing of each other share the limit.
//
// The package must not depend on HTTP, addresses or the SDK. Its entry points are [New], [NewPace], [Limiter.Acquire]
// and [Permit].
package pace

import (
	"context"
	"math"
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
	flying int         // permits that have not ended
	resume time.Time   // no permit before this time
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
	return &Limiter{pace: newPace(rand.Float64)}
}

// Caller is a purge. It acquires a permit for each of its attempts, one after the other.
type Caller struct {
	// Patience is how long the purge waits for a permit while the service accepts no purge.
	Patience time.Duration

	since   time.Time // first request for a permit
	refused time.Time // last refusal; zero if never refused
	own     int       // refusals that were not about the pace
}

// waiter is a caller in Acquire.
type waiter struct {
	*Caller

	deadline time.Time     // zero if there is none
	wake     chan struct{} // signals that the caller must try again
	err      error         // set if the caller gets no permit
}

// Permit is the right to send one request.
type Permit struct {
	limiter *Limiter
	caller  *Caller
	slot    int    // index of its slot; -1 if there is none
	place   uint64 // the number of its place
	granted time.Time
}

// Acquire blocks until a request may be sent. The caller must end the permit with [Permit.End]. When ctx ends, Acquire
// returns the error of ctx. As soon as the permit is known to come after the deadline of ctx, it returns a
// [*LateError]. If the service refuses all purges for longer than the caller's patience, it returns a [*RefusedError].
func (l *Limiter) Acquire(ctx context.Context, c *Caller) (*Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	w := l.enter(deadline, c)
	for {
		permit, wait, err := l.try(w, time.Now())
		if permit != nil || err != nil {
			return permit, err
		}
		if err := w.sleep(ctx, wait); err != nil {
			l.leave(w)
			return nil, err
		}
	}
}

// enter inserts a caller into the queue. A new caller goes to the end. A refused one goes behind the last refused
// caller and one new caller, so that both kinds take turns.
func (l *Limiter) enter(deadline time.Time, c *Caller) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.active.After(now) {
		l.forget()
	}
	if c.since.IsZero() {
		c.since = now
	}
	if len(l.queue) == 0 && l.flying == 0 && l.chance < 1 && now.Sub(l.refused) > cycle*apart {
		l.free() // there was nothing to send
	}
	l.active = now
	w := &waiter{Caller: c, deadline: deadline, wake: make(chan struct{}, 1)}
	at := len(l.queue)
	if !c.refused.IsZero() {
		for at > 0 && l.queue[at-1].refused.IsZero() {
			at--
		}
		at = min(at+1, len(l.queue))
	}
	l.queue = slices.Insert(l.queue, at, w)
	if at == len(l.queue)-1 && w.deadline.IsZero() && l.refusing.IsZero() {
		l.wakeFirst() // the new caller delays no other
	} else {
		l.drop(now)
	}
	return w
}

// forget drops all times, which are in the future. They came from another clock: that of a testing/synctest bubble
// begins in the year 2000. A slot whose request is on its way stays occupied.
func (l *Limiter) forget() {
	l.resume, l.pace = time.Time{}, newPace(l.jitter)
	for i, at := range l.slots {
		if !at.Equal(onTheWay) {
			l.slots[i] = time.Time{}
		}
	}
}

// leave removes a caller that has stopped waiting, and wakes the first one.
func (l *Limiter) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, w); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	l.wakeFirst()
}

// untilWoken is a wait that only a signal ends, such as the wait for an earlier caller or for a request on its way.
const untilWoken = time.Duration(math.MaxInt64)

// try returns a permit if the caller is first and a permit is available. Otherwise it returns how long to wait before
// the next try, or an error if the caller will get no permit.
func (l *Limiter) try(w *waiter, now time.Time) (*Permit, time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.err != nil {
		return nil, 0, w.err
	}
	if l.queue[0] != w {
		return nil, untilWoken, nil
	}
	permit, wait := l.take(w.Caller, now)
	if permit != nil {
		l.queue[0] = nil
		l.queue = l.queue[1:]
		if len(l.queue) > 0 {
			l.drop(now) // the next place changes the forecast
		}
	}
	return permit, wait, nil
}

// take returns a permit, or how long to wait for one. The caller holds the lock.
func (l *Limiter) take(c *Caller, now time.Time) (*Permit, time.Duration) {
	slot, free := l.nextSlot()
	if free.Equal(onTheWay) {
		return nil, untilWoken
	}
	if wait := max(free.Sub(now), l.resume.Sub(now), l.next.Sub(now)); wait > 0 {
		return nil, wait
	}
	place := l.placeAt(now)
	l.choose(now, slot >= 0 && now.Sub(latest(free, l.next)) < apart)
	l.active = now
	l.flying++
	if slot >= 0 {
		l.slots[slot] = onTheWay
	}
	return &Permit{limiter: l, caller: c, slot: slot, place: place, granted: now}, 0
}

// nextSlot returns the slot that becomes free first, and when. It returns -1 if the limiter has no slots.
func (l *Limiter) nextSlot() (slot int, free time.Time) {
	slot = -1
	for i, at := range l.slots {
		if slot < 0 || at.Before(free) {
			slot, free = i, at
		}
	}
	return slot, free
}

// End ends the permit and must be called exactly once. arrived is the latest time at which the request may reach the
// service, and may be in the future. The zero time means that nothing was sent.
func (p *Permit) End(arrived time.Time) {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying--
	if p.slot < 0 {
		return
	}
	if !arrived.IsZero() {
		arrived = arrived.Add(Hold)
	}
	if l.slots[p.slot] = arrived; len(l.queue) > 0 {
		l.drop(time.Now())
	}
}

// wakeFirst makes the first caller try again. The caller holds the lock.
func (l *Limiter) wakeFirst() {
	if len(l.queue) > 0 {
		l.queue[0].signal()
	}
}

func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // a signal is pending already
	}
}

// sleep waits for d, a signal, or the end of ctx.
func (w *waiter) sleep(ctx context.Context, d time.Duration) error {
	var after <-chan time.Time
	if d != untilWoken {
		timer := time.NewTimer(d)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-after:
	case <-w.wake:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
