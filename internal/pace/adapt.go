package pace

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	shortest = 500 * time.Millisecond // shortest average interval between two permits
	longest  = 16 * time.Second       // longest average interval between two permits
	recovery = 0.02                   // permits per second that an accepted purge adds

	// Each interval is random, up to a quarter below or above the average. More jitter lowers the rate of two processes;
	// with less, many processes keep colliding.
	leastJitter = 0.75

	idle = time.Minute // after this time without a purge, the interval halves
)

// pace is the interval between permits. The limiter's lock guards it.
type pace struct {
	jitter   func() float64 // returns a number between 0 and 1; tests replace it
	interval time.Duration  // average between two permits; 0 if there is no limit
	drawn    time.Duration  // the current interval: the average with jitter
	rate     *rate.Limiter  // enforces drawn
	slowed   time.Time      // when the interval was last doubled
	accepted time.Time      // when a purge was last accepted
	refusing time.Time      // when the service began to refuse purges; zero while it accepts them
	active   time.Time      // last activity of any purge
}

func newPace(jitter func() float64) pace {
	return pace{jitter: jitter, rate: rate.NewLimiter(rate.Inf, 1)}
}

// pass takes a token from the rate limiter, or returns how long to wait for one. It does not reserve tokens in advance:
// if a caller woke up late, the next one would follow it too closely.
func (p *pace) pass(now time.Time) time.Duration {
	reserved := p.rate.ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	if wait > 0 {
		reserved.CancelAt(now)
	}
	return wait
}

// setInterval sets the average interval and draws the next one with jitter, so that processes do not keep colliding.
func (p *pace) setInterval(now time.Time, average time.Duration) {
	if p.interval = average; average <= shortest {
		p.interval = 0
	}
	if p.drawn = 0; p.interval > 0 {
		p.drawn = time.Duration(float64(p.interval) * (leastJitter + 2*(1-leastJitter)*p.jitter()))
	}
	p.rate.SetLimitAt(now, rate.Every(p.drawn)) // rate.Every(0) is no limit
}

// forgive shortens the interval after a time without purges, so that old refusals do not slow down new purges.
func (p *pace) forgive(now time.Time) {
	for unused := now.Sub(p.active); unused >= idle && p.interval > 0; unused -= idle {
		p.setInterval(now, p.interval/2)
	}
}

// Refusal says how to react when the service refuses a purge as too fast.
type Refusal struct {
	Wait      time.Duration // shortest wait before the next attempt of the purge
	Everybody bool          // the limiter makes all purges wait that long
	Since     time.Time     // when the refusals began, or the purge's first request for a permit if that was later
}

// Refused records that the service refused the request as too fast. after is the wait that the service asked for, or
// 0. The interval doubles, and the limiter grants no permit during the wait. A refusal stops other purges for no longer
// than this one would wait: a fault may be over long before a Retry-After of hours.
//
// The status for "too fast" can also mean a fault. If the service has accepted other purges since it last refused this
// one, the refusal is not about the pace. Then only this purge waits, longer after each such refusal.
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
	// A request that was sent before the last doubling says nothing about the current pace.
	if !own && !p.granted.Before(l.slowed) {
		l.slowed = now
		l.setInterval(now, min(2*max(l.interval, shortest), longest))
	}
	r := Refusal{Wait: max(after, l.drawn), Everybody: !own || after > 0, Since: latest(l.refusing, c.since)}
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
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.limiter.accept(time.Now())
}

// accept implements Accepted. The caller holds the lock.
func (l *Limiter) accept(now time.Time) {
	l.accepted, l.refusing = now, time.Time{}
	if l.interval > 0 {
		l.setInterval(now, intervalOf(rateOf(l.interval)+recovery))
	}
}

// rateOf converts an interval to permits per second.
func rateOf(interval time.Duration) float64 { return float64(time.Second) / float64(interval) }

func intervalOf(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }

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
