package pace

import "time"

// The rate after a refusal, in purges per second. As in TCP, each refusal lowers it by a part and each accepted purge
// raises it by a fixed amount, so that of two processes that share the limit, the slower one catches up. They try at
// random moments, so if they want more than the limit, many of their requests are refused.
const (
	first   = 1.       // after the first refusal
	keep    = 12. / 13 // of the rate, with each further refusal
	gain    = 1. / 16  // with each accepted purge
	lowest  = 1. / 6
	highest = 3. / 2 // less than the service's limit, so that others find gaps

	busy = time.Minute     // after this time without a refusal, only the slots limit
	rest = 2 * time.Second // a process with nothing to send for so long uses less than its share, and may begin with the most
)

// Waits of a purge that is refused for a reason of its own.
const shortest, longest = 500 * time.Millisecond, 16 * time.Second

// pace spreads the purges after a refusal. The limiter's lock guards it.
type pace struct {
	random   func() float64 // returns a number between 0 and 1; tests replace it
	rate     float64        // purges per second; 0 if only the slots limit
	next     time.Time      // no permit before this time
	refused  time.Time      // when a purge was last refused because of the pace
	accepted time.Time      // when a purge was last accepted
	refusing time.Time      // when the service began to refuse purges; zero while it accepts them
}

// spread sets the time of the permit after the one at now: at random, so that two processes do not stay in step.
func (p *pace) spread(now time.Time) {
	if now.Sub(p.refused) > busy {
		p.rate = 0
	}
	if p.rate > 0 {
		p.next = now.Add(seconds((0.5 + p.random()) / p.rate))
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Refusal says how to react when the service refuses a purge as too fast.
type Refusal struct {
	Wait      time.Duration // shortest wait before the next attempt of the purge
	Everybody bool          // the limiter makes all purges wait that long
	Since     time.Time     // when the refusals began, or the purge's first request for a permit if that was later
}

// Refused records that the service refused the request as too fast. after is the wait that the service asked for, or
// 0. The limiter grants no permit during the wait, or for a short time if none was asked for, until the service accepts
// a purge. A refusal stops other purges for no longer than this one would wait: a fault may be over long before a
// Retry-After of hours.
//
// The status for "too fast" can also mean a fault. If the service has accepted other purges since it last refused this
// one, only this purge waits, longer after each such refusal, and the others continue.
func (p *Permit) Refused(after time.Duration) Refusal {
	l, c, now := p.limiter, p.caller, time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	after = min(after, c.Patience)
	alone := !c.refused.IsZero() && l.accepted.After(c.refused)
	c.refused, l.active = now, now
	if l.refusing.IsZero() {
		l.refusing = now
	}
	switch {
	case l.rate > 0:
		l.rate = max(lowest, l.rate*keep) // even if alone: it may be about the pace
		l.refused = now
	case !alone:
		l.rate, l.refused = first, now
	}
	l.spread(now)
	r := Refusal{Wait: max(after, l.next.Sub(now)), Everybody: !alone, Since: latest(l.refusing, c.since)}
	switch {
	case !alone:
		l.resume = latest(l.resume, now.Add(r.Wait))
	case after == 0:
		r.Wait = seconds(min(shortest<<min(c.refusals, 10), longest).Seconds() * (0.5 + l.random()/2))
		c.refusals++
	}
	l.serve(now)
	return r
}

// Accepted records that the service accepted the request.
func (p *Permit) Accepted() {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.accepted, l.refusing = now, time.Time{}
	if l.rate > 0 {
		l.rate = min(highest, l.rate+gain)
	}
	if l.resume.After(now) {
		l.resume = time.Time{} // so the service did not mean everybody
		l.serve(now)
	}
}

// Refusing reports whether the service has accepted no purge since it last refused one as too fast.
func (l *Limiter) Refusing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.refusing.IsZero()
}

// Pausing reports whether the limiter currently grants no permits because of a refusal.
func (l *Limiter) Pausing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resume.After(time.Now())
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
