package pace

import "time"

// Waits of a purge that is refused for a reason of its own.
const shortest, longest = 500 * time.Millisecond, 16 * time.Second

// Refusal says how to react when the service refuses a purge as too fast.
type Refusal struct {
	Wait      time.Duration // shortest wait before the next attempt of the purge
	Everybody bool          // the limiter makes all purges wait that long
	Since     time.Time     // when the refusals began, or the purge's first request for a permit if that was later
}

// Refused records that the service refused the request as too fast. after is the wait that the service asked for, or
// 0. The limiter grants no permit during the wait, or before the next place if none was asked for. A refusal stops other
// purges for no longer than this one would wait: a fault may be over long before a Retry-After of hours.
//
// The status for "too fast" can also mean a fault. If the service has accepted other purges since it last refused this
// one, the refusal is not about the pace. Then only this purge waits, longer after each such refusal. At a place that was
// only tried, nobody knows, so the refusal counts there as well, but stops no other purge.
func (p *Permit) Refused(after time.Duration) Refusal {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	return p.limiter.refuse(p, time.Now(), min(after, p.caller.Patience))
}

// refuse implements Refused. The caller holds the lock.
func (l *Limiter) refuse(p *Permit, now time.Time, after time.Duration) Refusal {
	c := p.caller
	own := !c.refused.IsZero() && l.accepted.After(c.refused)
	c.refused, l.active = now, now
	if l.refusing.IsZero() {
		l.refusing = now
	}
	l.lead = min(now.Sub(p.granted), apart) / 2
	if !own || l.chance < 1 && !l.owns(p.place) {
		l.lost(p.place, now)
	}
	r := Refusal{Wait: max(after, l.next.Sub(now)), Everybody: !own || after > 0, Since: latest(l.refusing, c.since)}
	if own && after == 0 {
		r.Wait = time.Duration(float64(min(shortest<<min(c.own, 10), longest)) * (0.5 + l.jitter()/2))
		c.own++
	}
	if resume := now.Add(r.Wait); r.Everybody && resume.After(l.resume) {
		l.resume = resume
	}
	l.drop(now)
	return r
}

// Accepted records that the service accepted the request.
func (p *Permit) Accepted() {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted, l.refusing = time.Now(), time.Time{}
	l.won(p.place)
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
