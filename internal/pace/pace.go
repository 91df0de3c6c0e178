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

const (
	// Hold is how long a place stays taken after its request has arrived: the second in which the service counts, and a
	// margin for clocks and timers.
	Hold = 1050 * time.Millisecond

	places = 2 // service document, section 8

	shortest = 500 * time.Millisecond // between two permits, on average, while nothing is refused
	longest  = 16 * time.Second       // between two permits, on average, however much is refused
	recovery = 0.02                   // permits a second that one accepted purge adds

	idle         = time.Minute     // without any purge, after which the interval halves
	longestPause = 5 * time.Minute // however long the service asks for
)

// onTheWay marks a place whose request has not arrived yet. It is later than every time at which a place is free.
var onTheWay = time.Unix(1<<40, 0)

// Limiter hands out permits in the order in which callers came. It is safe for concurrent use.
type Limiter struct {
	jitter func() float64 // between 0 and 1; tests replace it

	mu       sync.Mutex
	queue    []*waiter     // in the order of their turns
	turns    Turn          // handed out so far
	places   []time.Time   // when each of them is free; empty for a pace alone
	resume   time.Time     // no permit before this
	interval time.Duration // between two permits, on average; 0 while nothing is refused
	drawn    time.Duration // the interval under way: the average with jitter
	slowed   time.Time     // when the interval was doubled last
	refusing time.Time     // since when the service has accepted nothing; zero while it accepts
	active   time.Time     // the last sign of a purge
	rate     *rate.Limiter // spaces permits by the interval
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
	return &Limiter{jitter: rand.Float64, rate: rate.NewLimiter(rate.Inf, 1)}
}

// Turn is a position in the order of callers. A caller who acquires again with the turn of an earlier permit comes before
// all who came later, so a refused purge does not go back to the end of the queue. The zero value is the end.
type Turn uint64

// waiter is a caller in Acquire.
type waiter struct {
	turn     Turn
	since    time.Time
	deadline time.Time     // zero: none
	patience time.Duration // how long it waits while the service accepts nothing
	wake     chan struct{} // receives when something has changed for this caller
	err      error         // why there is no permit
}

// LateError says that the permit would come after the deadline of the caller. It matches [context.DeadlineExceeded].
type LateError struct {
	Wait     time.Duration // until the permit, at least
	Deadline time.Duration // until the deadline
	Refusing bool          // the service refuses purges as too fast
}

// Error says when the permit comes, and why so late.
func (e *LateError) Error() string {
	text := fmt.Sprintf("the next purge permit comes in %v or later, and the deadline is in %v",
		e.Wait.Round(time.Millisecond), e.Deadline.Round(time.Millisecond))
	if e.Refusing {
		text += "; the service refuses purges as too fast"
	}
	return text
}

// Is matches [context.DeadlineExceeded].
func (e *LateError) Is(target error) bool { return target == context.DeadlineExceeded }

// RefusedError says that the service has refused all purges as too fast for as long as the caller waits for that.
type RefusedError struct{ After time.Duration }

// Error says for how long.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the service has refused all purges as too fast for %v", e.After)
}

// Permit is the right to send one request. Its methods must be called on the limiter's own permits only.
type Permit struct {
	Turn  Turn      // of the caller
	Since time.Time // when the caller began to wait

	limiter *Limiter
	place   int // -1: none
	granted time.Time
}

// Acquire blocks until a request may be sent. It returns the error of ctx when ctx ends, and a [*LateError] as soon as it
// knows that the permit comes after the deadline of ctx. If the service refuses all purges while the caller waits, for
// longer than patience, it returns a [*RefusedError]. The caller must end the permit with [Permit.End].
func (l *Limiter) Acquire(ctx context.Context, turn Turn, patience time.Duration) (*Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := l.enter(ctx, turn, patience)
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

// enter puts a caller into the queue, behind all whose turn is earlier.
func (l *Limiter) enter(ctx context.Context, turn Turn, patience time.Duration) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.forgive(now)
	if turn == 0 {
		l.turns++
		turn = l.turns
	}
	w := &waiter{turn: turn, since: now, patience: patience, wake: make(chan struct{}, 1)}
	w.deadline, _ = ctx.Deadline()
	at := len(l.queue)
	for at > 0 && l.queue[at-1].turn > w.turn {
		at--
	}
	l.queue = slices.Insert(l.queue, at, w)
	l.drop(at, now)
	return w
}

// forgive shortens the interval after a time without any purge: trouble of yesterday does not slow today's purges down.
// The lock is held.
func (l *Limiter) forgive(now time.Time) {
	if len(l.queue) == 0 && l.interval > 0 {
		for unused := now.Sub(l.active); unused >= idle && l.interval > 0; unused -= idle {
			l.setInterval(now, l.interval/2)
		}
	}
	l.active = now
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
	permit, wait := l.take(now)
	if permit != nil {
		permit.Turn, permit.Since = w.turn, w.since
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.drop(0, now) // the next interval has been drawn
	}
	return permit, wait, nil
}

// take returns a permit, or how long there is none. The lock is held.
func (l *Limiter) take(now time.Time) (*Permit, time.Duration) {
	place, free := l.nextPlace()
	if free.Equal(onTheWay) {
		return nil, untilWoken
	}
	if wait := max(free.Sub(now), l.resume.Sub(now)); wait > 0 {
		return nil, wait
	}
	// A permit is taken when it is used and never reserved ahead: a caller that wakes late does not bring the next one
	// closer to its own.
	reserved := l.rate.ReserveN(now, 1)
	if wait := reserved.DelayFrom(now); wait > 0 {
		reserved.CancelAt(now)
		return nil, wait
	}
	l.setInterval(now, l.interval)
	l.active = now
	if place >= 0 {
		l.places[place] = onTheWay
	}
	return &Permit{limiter: l, place: place, granted: now}, 0
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

// setInterval sets the average interval, and draws the next one. Jitter keeps processes from meeting again and again. The
// lock is held.
func (l *Limiter) setInterval(now time.Time, average time.Duration) {
	if l.interval = average; average <= shortest {
		l.interval = 0
	}
	if l.drawn = 0; l.interval > 0 {
		l.drawn = time.Duration(float64(l.interval) * (leastJitter + 2*(1-leastJitter)*l.jitter()))
	}
	l.rate.SetLimitAt(now, rate.Every(l.drawn)) // of 0: no limit
}

// An interval is drawn evenly from its average, a quarter less or more. More jitter costs two processes a part of their
// rate, less lets many of them meet again.
const leastJitter = 0.75

// forecast tells when callers get their permits at the earliest: everybody in front of them takes one, and every request
// on the way arrives now.
type forecast struct {
	start time.Time
	gap   time.Duration // the shortest interval that can be drawn
	free  []time.Time   // when the places are free, ascending
}

// forecast must be called with the lock held.
func (l *Limiter) forecast(now time.Time) forecast {
	f := forecast{start: now, gap: time.Duration(leastJitter * float64(l.interval)), free: slices.Clone(l.places)}
	if next := l.nextByRate(now); next.After(f.start) {
		f.start = next
	}
	if l.resume.After(f.start) {
		f.start = l.resume
	}
	for i, at := range f.free {
		switch {
		case at.Equal(onTheWay):
			f.free[i] = now.Add(Hold)
		case at.Before(f.start):
			f.free[i] = f.start
		}
	}
	slices.SortFunc(f.free, time.Time.Compare)
	return f
}

// nextByRate returns when the interval allows the next permit. The lock is held.
func (l *Limiter) nextByRate(now time.Time) time.Time {
	reserved := l.rate.ReserveN(now, 1)
	defer reserved.CancelAt(now)
	return now.Add(reserved.DelayFrom(now))
}

// at is the forecast for a position in the queue.
func (f forecast) at(position int) time.Time {
	at := f.start.Add(time.Duration(position) * f.gap)
	if n := len(f.free); n > 0 {
		if free := f.free[position%n].Add(time.Duration(position/n) * Hold); free.After(at) {
			return free
		}
	}
	return at
}

// drop takes callers out who need not wait any longer, from a position of the queue on. The lock is held.
func (l *Limiter) drop(from int, now time.Time) {
	forecast := l.forecast(now)
	kept := l.queue[:from]
	for _, w := range l.queue[from:] {
		at := forecast.at(len(kept))
		switch {
		case !w.deadline.IsZero() && w.deadline.Before(at):
			w.err = &LateError{Wait: at.Sub(now), Deadline: w.deadline.Sub(now), Refusing: l.interval > 0}
		case !l.refusing.IsZero() && now.Sub(latest(l.refusing, w.since)) >= w.patience:
			w.err = &RefusedError{w.patience}
		default:
			kept = append(kept, w)
			continue
		}
		w.signal()
	}
	clear(l.queue[len(kept):])
	l.queue = kept
	l.wakeFirst()
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
		return ctx.Err()
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Refusing reports whether the service has accepted nothing since it last refused a purge as too fast.
func (l *Limiter) Refusing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.refusing.IsZero()
}

// Pausing reports whether a pause is under way, in which no permit is given.
func (l *Limiter) Pausing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resume.After(time.Now())
}

// End frees the permit's place. arrived is the latest moment at which the request may have reached the service, also in
// the future; the zero time means that nothing was sent.
func (p *Permit) End(arrived time.Time) {
	if p.place < 0 {
		return
	}
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	if !arrived.IsZero() {
		arrived = arrived.Add(Hold)
	}
	p.limiter.places[p.place] = arrived
	p.limiter.wakeFirst()
}

// Refused notes that the service refused the request as too fast, and asked for a wait of after (0: it did not say). The
// interval doubles, and nobody gets a permit during the pause that Refused returns. The service has accepted nothing
// since the other time.
func (p *Permit) Refused(after time.Duration) (pause time.Duration, since time.Time) {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	pause = p.limiter.refused(p.granted, time.Now(), after)
	return pause, p.limiter.refusing
}

// refused doubles the interval, unless the request left before the interval was doubled last: such a refusal says
// nothing about the present pace. The lock is held.
func (l *Limiter) refused(granted, now time.Time, after time.Duration) (pause time.Duration) {
	l.active = now
	if l.refusing.IsZero() {
		l.refusing = now
	}
	if !granted.Before(l.slowed) {
		l.slowed = now
		l.setInterval(now, min(2*max(l.interval, shortest), longest))
	}
	pause = max(min(after, longestPause), l.drawn)
	if resume := now.Add(pause); resume.After(l.resume) {
		l.resume = resume
	}
	l.drop(0, now)
	return pause
}

// Accepted notes that the service accepted the request.
func (p *Permit) Accepted() {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.limiter.accepted(time.Now())
}

// accepted shortens the interval. The lock is held.
func (l *Limiter) accepted(now time.Time) {
	l.refusing = time.Time{}
	if l.interval > 0 {
		l.setInterval(now, time.Duration(float64(time.Second)/(float64(time.Second)/float64(l.interval)+recovery)))
	}
}
