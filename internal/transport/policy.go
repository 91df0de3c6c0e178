package transport

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// Policy says how often and for how long a call is retried. All fields are set.
type Policy struct {
	MaxAttempts     int           // the first included
	MinWait         time.Duration // ceiling of the first wait; it doubles with each attempt
	MaxWait         time.Duration // bounds every wait, also that of Retry-After
	ThrottleTimeout time.Duration // how long to retry a limited request that the service refuses as too fast
}

// attempts is the bound for requests of a class.
func (p Policy) attempts(c Class) int {
	switch c {
	case Login:
		return min(p.MaxAttempts, 2)
	case Once:
		return min(p.MaxAttempts, 3)
	default:
		return p.MaxAttempts
	}
}

// backoff draws the wait after the n-th attempt (from 1) of a call: full jitter under an exponential ceiling.
func (p Policy) backoff(n int) time.Duration {
	ceiling := p.MaxWait
	if grown := math.Ldexp(float64(p.MinWait), n-1); grown < float64(p.MaxWait) { // a float does not overflow
		ceiling = time.Duration(grown)
	}
	return rand.N(ceiling) //nolint:gosec // jitter is no secret
}

// situation holds what a verdict on a failed attempt depends on.
type situation struct {
	class    Class
	limited  bool
	outcome  Outcome // of the attempt
	failures int     // transient failures of the call before this one

	ended     bool // the caller's context
	transient bool
	tooFast   bool

	credentials credentials
	renewed     bool // the session was renewed for this call before

	asked    time.Duration // by Retry-After; 0: nothing
	backoff  time.Duration // drawn for this wait
	refusal  pace.Refusal  // of a limited request that came too fast
	giveUpAt time.Time     // until when to retry such a request
	now      time.Time
	deadline time.Time // of the caller's context; zero: none
}

// credentials is what a response says of the credentials of its request.
type credentials int

const (
	taken    credentials = iota
	refused              // a new login helps
	doubtful             // a new login may help; the status has other meanings too
)

// verdict is what follows a failed attempt.
type verdict struct {
	action action
	wait   time.Duration // before the next attempt
	why    error         // there is none
}

type action int

const (
	stop       action = iota
	retry             // after the wait, if the budget allows it
	comeAgain         // after the wait, and with a permit: neither attempts nor the budget count
	renew             // with a new session, if a login is possible and this call has not renewed it before
	renewDoubt        // the same, while the session stays in use for others
	refute            // stop: a new session was refused in the same way, so it is not about the session
)

// decide judges a failed attempt. It changes nothing. A verdict may also need a possible login, or a budget that is not
// spent: carryOut checks that.
func (p Policy) decide(s situation) verdict {
	switch {
	case s.ended:
		return verdict{}
	case s.credentials == refused:
		return verdict{action: renew} // the service refused the session before it did anything else, so even a write is retried
	case s.credentials == doubtful && s.renewed:
		return verdict{action: refute}
	case s.credentials == doubtful:
		return verdict{action: renewDoubt}
	case s.limited && s.tooFast:
		return p.decideTooFast(s)
	}
	wait := s.asked
	if wait <= 0 {
		wait = s.backoff
	}
	repeatable := s.class != Once || s.outcome == NotApplied // a retry does no harm
	late := !s.deadline.IsZero() && s.deadline.Sub(s.now) <= wait
	if !s.transient || !repeatable || wait > p.MaxWait || s.failures+1 >= p.attempts(s.class) || late {
		return verdict{}
	}
	return verdict{action: retry, wait: wait}
}

// decideTooFast judges a limited request that the service refused as too fast. The request waits for its next permit.
// Neither attempts nor the budget count here, because the pace already slows down all requests.
func (p Policy) decideTooFast(s situation) verdict {
	wait := max(s.refusal.Wait, s.asked)
	switch {
	case p.MaxAttempts == 1:
		return verdict{}
	case s.now.Add(wait).After(s.giveUpAt):
		return verdict{why: p.gaveUp()}
	case !s.deadline.IsZero() && !s.now.Add(wait).Before(s.deadline):
		return verdict{why: &pace.LateError{Wait: wait, Deadline: s.deadline.Sub(s.now), Refusing: true}}
	case s.refusal.Everybody:
		wait = 0 // the limiter waits
	}
	return verdict{action: comeAgain, wait: wait}
}

// gaveUp is the error of a limited request that the service refused as too fast until the ThrottleTimeout ended.
func (p Policy) gaveUp() error {
	return fmt.Errorf("refused as too fast, and waiting longer would exceed the ThrottleTimeout of %v", p.ThrottleTimeout)
}
