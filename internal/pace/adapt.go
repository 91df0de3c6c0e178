package pace

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	shortest = 500 * time.Millisecond // between two permits, on average, while nothing is refused
	longest  = 16 * time.Second       // between two permits, on average, however much is refused
	recovery = 0.02                   // permits a second that one accepted purge adds

	// An interval is drawn evenly from its average, a quarter less or more. More jitter costs two processes a part of
	// their rate, less lets many of them meet again.
	leastJitter = 0.75

	idle         = time.Minute     // without any purge, after which the interval halves
	longestPause = 5 * time.Minute // however long the service asks for
)

// pace is the interval between permits. The limiter's lock guards it.
type pace struct {
	jitter   func() float64 // between 0 and 1; tests replace it
	interval time.Duration  // between two permits, on average; 0 while nothing is refused
	drawn    time.Duration  // the interval under way: the average with jitter
	rate     *rate.Limiter  // spaces permits by it
	slowed   time.Time      // when the interval was doubled last
	accepted time.Time      // when a purge was accepted last
	refusing time.Time      // since when the service has accepted nothing; zero while it accepts
	active   time.Time      // the last sign of a purge
}

// pass takes a permit of the rate, or returns how long there is none. A permit is taken when it is used and never reserved
// ahead: a caller that wakes late does not bring the next one closer to its own.
func (p *pace) pass(now time.Time) time.Duration {
	reserved := p.rate.ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	if wait > 0 {
		reserved.CancelAt(now)
	}
	return wait
}

// setInterval sets the average interval, and draws the next one. Jitter keeps processes from meeting again and again.
func (p *pace) setInterval(now time.Time, average time.Duration) {
	if p.interval = average; average <= shortest {
		p.interval = 0
	}
	if p.drawn = 0; p.interval > 0 {
		p.drawn = time.Duration(float64(p.interval) * (leastJitter + 2*(1-leastJitter)*p.jitter()))
	}
	p.rate.SetLimitAt(now, rate.Every(p.drawn)) // of 0: no limit
}

// forgive shortens the interval after a time without any purge: trouble of yesterday does not slow today's purges down.
func (p *pace) forgive(now time.Time) {
	for unused := now.Sub(p.active); unused >= idle && p.interval > 0; unused -= idle {
		p.setInterval(now, p.interval/2)
	}
}

// Refusal is what follows when the service refuses a purge as too fast.
type Refusal struct {
	Wait      time.Duration // until the purge may be sent again, at least
	Everybody bool          // all purges wait as long: the limiter sees to that
	Since     time.Time     // the service has accepted nothing since then, or the purge asked for its first permit then
}

// Refused notes that the service refused the request as too fast, and asked for a wait of after (0: it did not say). The
// interval doubles, and nobody gets a permit during the wait.
//
// If other purges were accepted since this one was refused last, the refusal is not about the pace: the status of "too
// fast" is that of a fault, too. Then the purge alone waits, each time longer.
func (p *Permit) Refused(after time.Duration) Refusal {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	return p.limiter.refuse(p, time.Now(), min(after, longestPause))
}

// refuse must be called with the lock held.
func (l *Limiter) refuse(p *Permit, now time.Time, after time.Duration) Refusal {
	c := p.caller
	own := !c.refused.IsZero() && l.accepted.After(c.refused)
	c.refused, l.active = now, now
	if l.refusing.IsZero() {
		l.refusing = now
	}
	// A request that left before the interval was doubled says nothing about the present pace.
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

// Accepted notes that the service accepted the request.
func (p *Permit) Accepted() {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.limiter.accept(time.Now())
}

// accept must be called with the lock held.
func (l *Limiter) accept(now time.Time) {
	l.accepted, l.refusing = now, time.Time{}
	if l.interval > 0 {
		l.setInterval(now, intervalOf(rateOf(l.interval)+recovery))
	}
}

// rateOf is permits a second; 0 stands for no limit.
func rateOf(interval time.Duration) float64 { return float64(time.Second) / float64(interval) }

func intervalOf(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }

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

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
