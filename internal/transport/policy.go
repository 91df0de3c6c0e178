package transport

import (
	"fmt"
	"math/rand/v2"
	"sync"
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
	ceiling := p.MinWait
	for range n - 1 {
		if ceiling >= p.MaxWait/2 {
			ceiling = p.MaxWait
			break
		}
		ceiling *= 2
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
	renewed     bool // the session was renewed for this call before, or no login helps

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
	renew             // with a new session, if a login is possible
	renewDoubt        // the same, while the session stays in use for others
	refute            // stop: a new session was refused in the same way, so it is not about the session
)

// decide judges a failed attempt. It changes nothing. A verdict may also need a possible login, or a budget that is not
// spent: carryOut checks that.
func (p Policy) decide(s situation) verdict {
	switch {
	case s.ended:
		return verdict{}
	case s.credentials != taken:
		// The service refused the session before it did anything else, so even a write is retried, once.
		switch {
		case s.renewed && s.credentials == doubtful:
			return verdict{action: refute}
		case s.renewed:
			return verdict{}
		case s.credentials == doubtful:
			return verdict{action: renewDoubt}
		default:
			return verdict{action: renew}
		}
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
		return verdict{action: comeAgain} // the limiter waits
	default:
		return verdict{action: comeAgain, wait: wait}
	}
}

// gaveUp is the error of a limited request that the service refused as too fast until the ThrottleTimeout ended.
func (p Policy) gaveUp() error {
	return fmt.Errorf("refused as too fast, and not retried past the ThrottleTimeout of %v", p.ThrottleTimeout)
}

// budget bounds the retries of a whole client. Otherwise a service in trouble would get four times as many requests
// from all callers at once. Each retry takes tokens, and each success puts some back.
type budget struct {
	mu     sync.Mutex
	tokens int
}

const (
	budgetFull    = 500
	budgetRetry   = 5
	budgetTimeout = 10
)

func newBudget() *budget { return &budget{tokens: budgetFull} }

// take pays for one retry. It returns false when the budget is spent.
func (b *budget) take(cost int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < cost {
		return false
	}
	b.tokens -= cost
	return true
}

// give puts back the tokens of a success.
func (b *budget) give(tokens int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(budgetFull, b.tokens+tokens)
}
