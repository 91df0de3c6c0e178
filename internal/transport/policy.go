package transport

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// Policy says how often and for how long a call is retried. All fields are required.
type Policy struct {
	MaxAttempts     int           // including the first
	MinWait         time.Duration // upper bound of the first wait; doubles with each attempt
	MaxWait         time.Duration // upper bound of every wait; a longer Retry-After ends the retries
	ThrottleTimeout time.Duration // how long to retry a limited request that the service refuses as too fast
}

// attempts returns the maximum number of attempts for a class.
func (p Policy) attempts(c Class) int {
	switch c {
	case Once:
		return min(p.MaxAttempts, 3)
	default:
		return p.MaxAttempts
	}
}

// backoff returns a random wait after the n-th attempt (from 1): full jitter under an exponential bound.
func (p Policy) backoff(n int) time.Duration {
	ceiling := p.MaxWait
	if grown := math.Ldexp(float64(p.MinWait), n-1); grown < float64(p.MaxWait) { // floating point cannot overflow here
		ceiling = time.Duration(grown)
	}
	return rand.N(ceiling) //nolint:gosec // jitter need not be secure
}

// situation holds everything that the verdict on a failed attempt depends on.
type situation struct {
	class    Class
	limited  bool
	outcome  Outcome // of the attempt
	failures int     // transient failures of the call before this one

	ended     bool // the caller's context has ended
	transient bool
	tooFast   bool

	credentials credentials
	renewed     bool // the call has already renewed the session

	asked    time.Duration // from Retry-After; 0 if none
	backoff  time.Duration // random wait if asked is 0
	refusal  pace.Refusal  // of a limited request that came too fast
	giveUpAt time.Time     // end of the retries of such a request
	now      time.Time
	deadline time.Time // of the caller's context; zero if none
}

// credentials is what a response means for the credentials of its request.
type credentials int

const (
	taken    credentials = iota
	refused              // a new login helps
	doubtful             // a new login may help, but the status also has other meanings
)

// verdict is the decision after a failed attempt.
type verdict struct {
	action action
	wait   time.Duration // before the next attempt
	why    error         // why there is no next attempt, if the attempt's own error does not say
}

type action int

const (
	stop       action = iota
	retry             // retry after the wait
	comeAgain         // retry after the wait, without counting against the attempts
	renew             // retry with a new session, if a login is possible and the call has not yet renewed it
	renewDoubt        // the same, but other calls keep using the session
)

// decide returns the verdict on a failed attempt. It has no side effects. Whether a login is possible is left to carryOut.
func (p Policy) decide(s situation) verdict {
	switch {
	case s.ended:
		return verdict{}
	case s.credentials == refused:
		return verdict{action: renew} // nothing was done before, so even a write is retried
	case s.credentials == doubtful && s.renewed:
		return verdict{}
	case s.credentials == doubtful:
		return verdict{action: renewDoubt}
	case s.limited && s.tooFast:
		return p.decideTooFast(s)
	}
	wait := s.asked
	if wait <= 0 {
		wait = s.backoff
	}
	repeatable := s.class != Once || s.outcome == NotApplied // a retry can do no harm
	late := !s.deadline.IsZero() && s.deadline.Sub(s.now) <= wait
	if !s.transient || !repeatable || wait > p.MaxWait || s.failures+1 >= p.attempts(s.class) || late {
		return verdict{}
	}
	return verdict{action: retry, wait: wait}
}

// decideTooFast returns the verdict on a limited request that the service refused as too fast. Its retries do not count
// against the attempts, because the pace already slows down all requests.
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

// gaveUp returns the error of a limited request that was refused as too fast until the ThrottleTimeout.
func (p Policy) gaveUp() error {
	return fmt.Errorf("refused as too fast, or the service is down, and waiting longer would exceed the ThrottleTimeout of %v", p.ThrottleTimeout)
}
