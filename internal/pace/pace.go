// Package pace hands out permits for purges. The service takes two purge requests in any second for each customer, and
// counts them when they arrive (service document, section 8).
//
// Two rules hold. A place bounds arrivals: there are two of them, and each is taken from the departure of a request until
// [Hold] after its arrival. Of any three requests two share a place, so the later one leaves at least [Hold] after the
// earlier one arrived, whatever happens on the way. The pace adapts: a refused purge doubles the interval between
// permits, and accepted ones shorten it slowly, so that processes that know nothing of each other find their shares.
//
// The package knows time and contexts. It may know nothing of HTTP, of addresses and of the SDK. Its entry points are
// [New], [NewPace], [Limiter.Acquire] and [Permit].
package pace

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Hold is how long a place stays taken after its request has arrived: the second in which the service counts, and a
// margin for clocks and timers.
const Hold = 1050 * time.Millisecond

const places = 2 // service document, section 8

// onTheWay marks a place whose request has not arrived yet. It is later than every time at which a place is free.
var onTheWay = time.Unix(1<<40, 0)

// Limiter hands out permits in the order in which callers came. Callers whose purge was refused come again, and get
// every second permit while others wait. It is safe for concurrent use.
type Limiter struct {
	mu     sync.Mutex
	queue  []*waiter
	places []time.Time // when each of them is free; empty for a pace alone
	flying int         // permits that have not ended
	resume time.Time   // no permit before this
	pace
}

// New returns a limiter that bounds arrivals and adapts its pace.
func New() *Limiter {
	l := NewPace()
	l.places = make([]time.Time, places)
	return l
}

// NewPace returns a limiter that does not bound arrivals, for use in front of another limiter. It waits for nothing until
// a purge is refused.
func NewPace() *Limiter {
	return &Limiter{pace: pace{jitter: rand.Float64, rate: rate.NewLimiter(rate.Inf, 1)}}
}

// Caller is one purge. It acquires a permit for each of its attempts, one after the other.
type Caller struct {
	// Patience is how long the purge waits for a permit while the service accepts nothing.
	Patience time.Duration

	since   time.Time // when it asked first
	refused time.Time // when it was refused last; zero: never
	own     int       // refusals that were not about the pace
}

// waiter is a caller in Acquire.
type waiter struct {
	*Caller

	deadline time.Time     // zero: none
	wake     chan struct{} // receives when something has changed for this caller
	err      error         // why there is no permit
}

// Permit is the right to send one request.
type Permit struct {
	limiter *Limiter
	caller  *Caller
	place   int // -1: none
	granted time.Time
	ended   bool
}

// Acquire blocks until a request may be sent. It returns the error of ctx when ctx ends, and a [*LateError] as soon as it
// knows that the permit comes after the deadline of ctx. If the service refuses all purges while the caller waits, for
// longer than its patience, it returns a [*RefusedError]. The caller must end the permit with [Permit.End].
func (l *Limiter) Acquire(ctx context.Context, c *Caller) (*Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline() // a method of the user's, so under no lock
	w := l.enter(deadline, c)
	waits := true
	defer func() {
		if waits { // ctx has ended, or is the caller's own and panicked
			l.leave(w)
		}
	}()
	for {
		permit, wait, err := l.try(w, time.Now())
		if permit != nil || err != nil {
			waits = false
			return permit, err
		}
		if err := w.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// enter puts a caller into the queue: a new one at its end, one that was refused behind the last of its kind and one new
// caller. So purges that are refused again and again do not hold up the others, nor the others them.
func (l *Limiter) enter(deadline time.Time, c *Caller) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if c.since.IsZero() {
		c.since = now
	}
	if len(l.queue) == 0 && l.flying == 0 {
		l.forgive(now)
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
		l.wakeFirst() // nobody is late because of this one
	} else {
		l.drop(now)
	}
	return w
}

// leave takes a caller out who does not wait any longer; the next one moves up.
func (l *Limiter) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, w); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	l.wakeFirst()
}

// untilWoken is a wait that only a signal ends: for an earlier caller, or for a request on the way.
const untilWoken = time.Duration(math.MaxInt64)

// try returns a permit if it is the caller's turn and there is one. Otherwise it returns how long to wait for a change, or
// why there will be no permit.
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
		l.drop(now) // the next interval has been drawn
	}
	return permit, wait, nil
}

// take returns a permit, or how long there is none. The lock is held.
func (l *Limiter) take(c *Caller, now time.Time) (*Permit, time.Duration) {
	place, free := l.nextPlace()
	if free.Equal(onTheWay) {
		return nil, untilWoken
	}
	if wait := max(free.Sub(now), l.resume.Sub(now)); wait > 0 {
		return nil, wait
	}
	if wait := l.pass(now); wait > 0 {
		return nil, wait
	}
	l.setInterval(now, l.interval)
	l.active = now
	l.flying++
	if place >= 0 {
		l.places[place] = onTheWay
	}
	return &Permit{limiter: l, caller: c, place: place, granted: now}, 0
}

// nextPlace returns the place that is free first, and when that is; -1 if there are none.
func (l *Limiter) nextPlace() (place int, free time.Time) {
	place = -1
	for i, at := range l.places {
		if place < 0 || at.Before(free) {
			place, free = i, at
		}
	}
	return place, free
}

// End frees the permit's place. arrived is the latest moment at which the request may have reached the service, also in
// the future; the zero time means that nothing was sent. A second call does nothing.
func (p *Permit) End(arrived time.Time) {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	l.flying--
	if p.place < 0 {
		return
	}
	if !arrived.IsZero() {
		arrived = arrived.Add(Hold)
	}
	l.places[p.place] = arrived
	l.drop(time.Now())
}

// wakeFirst lets the first caller look again. The lock is held.
func (l *Limiter) wakeFirst() {
	if len(l.queue) > 0 {
		l.queue[0].signal()
	}
}

func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // it has not looked since the last signal
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
		return Ended(ctx)
	}
	return nil
}

// Ended is the error of a context whose Done is closed. It is never nil, also if that of a context of the user's is.
func Ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("the context is done without an error: %w", context.Canceled)
}
