package transport

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// Policy says how often and for how long a call is retried. All fields are required.
type Policy struct {
	MaxAttempts     int           // including the first
	MinWait         time.Duration // upper bound of the first wait; doubles with each attempt
	MaxWait         time.Duration // upper bound of every wait; a longer Retry-After ends the retries
	ThrottleTimeout time.Duration // how long to retry a limited request that the service refuses as too fast
}

// backoff returns a random wait after the n-th attempt (from 1): full jitter under an exponential bound.
func (p Policy) backoff(n int) time.Duration {
	ceiling := p.MaxWait
	if grown := math.Ldexp(float64(p.MinWait), n-1); grown < float64(p.MaxWait) { // floating point cannot overflow here
		ceiling = time.Duration(grown)
	}
	return rand.N(ceiling)
}

// situation holds everything that the verdict on a failed attempt depends on.
type situation struct {
	class    Class
	single   bool             // a transient failure is not retried
	outcome  outcomes.Outcome // of the attempt
	failures int              // transient failures of the call before this one

	ended     bool // the caller's context has ended
	transient bool
	tooFast   bool // a limited request came too fast

	credentials credentials

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
	accepted credentials = iota
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
	retryFree         // retry after the wait, without counting against the attempts
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
	case s.credentials == doubtful:
		return verdict{action: renewDoubt}
	case s.tooFast:
		return p.decideTooFast(s)
	}
	wait := cmp.Or(s.asked, s.backoff)
	attempts := p.MaxAttempts
	if s.class == Once {
		attempts = min(attempts, 3)
	}
	repeatable := s.class != Once || s.outcome == outcomes.NotApplied // a retry can do no harm
	late := !s.deadline.IsZero() && s.deadline.Sub(s.now) <= wait
	if s.single || !s.transient || !repeatable || wait > p.MaxWait || s.failures+1 >= attempts || late {
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
	case s.refusal.Everybody && s.asked == 0:
		wait = 0 // the limiter waits
	}
	return verdict{action: retryFree, wait: wait}
}

// gaveUp returns the error of a limited request that was refused as too fast until the ThrottleTimeout.
func (p Policy) gaveUp() error {
	return fmt.Errorf("refused as too fast, or the service is down, and waiting longer would exceed the ThrottleTimeout of %v", p.ThrottleTimeout)
}

// attempt is the result of one attempt.
type attempt struct {
	status     int // 0 without a response
	header     http.Header
	body       []byte
	size       int64 // of the whole body, if body has only the beginning
	stream     *Stream
	code       int          // of the body's envelope; 0 without one
	err        error        // why no complete response arrived
	unsent     bool         // nothing reached the service
	generation uint64       // of the session that was used; 0 without one
	permit     *Permit      // of a limited request
	refusal    pace.Refusal // of a limited request that came too fast
}

// effectiveStatus returns the HTTP status, or the code of the envelope if that is at least 400 and higher than the
// status.
func (a *attempt) effectiveStatus() int {
	if a.code < http.StatusBadRequest {
		return a.status
	}
	return max(a.status, a.code)
}

// outcome returns whether the service processed the attempt, as far as the client can know.
func (a *attempt) outcome() outcomes.Outcome {
	status := a.effectiveStatus()
	switch {
	case a.err != nil && a.unsent:
		return outcomes.NotApplied
	case a.err != nil:
		return outcomes.Unknown
	case a.permit != nil && status == http.StatusServiceUnavailable:
		return outcomes.Unknown // the status means both too fast and an internal fault
	case status < http.StatusMultipleChoices:
		return outcomes.Applied
	case Final(status), status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "":
		return outcomes.NotApplied
	default:
		return outcomes.Unknown
	}
}

// tooFast reports whether the service refused a limited request because requests come too fast. The status is then 429,
// or 503 with or without Retry-After (open point 8).
func (a *attempt) tooFast() bool {
	status := a.effectiveStatus()
	return a.permit != nil && a.err == nil && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable)
}

// Final reports whether a status refuses a request for good: 4xx, except 408 and 429.
func Final(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError &&
		status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// transient reports whether a retry may succeed.
func (a *attempt) transient() bool {
	if a.err != nil {
		f, ok := errors.AsType[*failure](a.err)
		forGood := ok && f.unsent || errors.Is(a.err, ErrResponseTooLarge) || errors.Is(a.err, ErrBadResponse) || Misdirected(a.err)
		return !forGood
	}
	status := a.effectiveStatus()
	return status >= http.StatusBadRequest && !Final(status) && status != http.StatusNotImplemented
}

// RetryAfter returns the longest wait in the Retry-After headers of a response, or 0 if none can be parsed.
func RetryAfter(h http.Header) time.Duration {
	var wait time.Duration
	for _, value := range h.Values("Retry-After") {
		if at, err := http.ParseTime(strings.TrimSpace(value)); err == nil {
			now, err := http.ParseTime(h.Get("Date")) // by the sender's clock, so that a wrong clock on either side does no harm
			if err != nil {
				now = time.Now()
			}
			wait = max(wait, at.Sub(now))
			continue
		}
		for text := range strings.SplitSeq(value, ",") { // a proxy may have joined two headers
			seconds, _ := strconv.ParseUint(strings.TrimSpace(text), 10, 64) // 0 for no number, and the highest for one that is too large
			if seconds > uint64(math.MaxInt64/time.Second) {
				return math.MaxInt64
			}
			wait = max(wait, time.Duration(seconds)*time.Second)
		}
	}
	return wait
}

// Rules says how the service's responses to a request differ from plain HTTP. The zero value has no rules.
type Rules struct {
	Success       []int    // statuses that mean success, besides 2xx
	Refuse        []int    // statuses that refuse the credentials, besides 401
	MayRefuse     []int    // statuses that may refuse the credentials, or mean something else
	NotInEnvelope []string // members whose presence means that a code is not a refusal
}

func (r *Rules) isSuccess(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices || slices.Contains(r.Success, status)
}

func (r *Rules) refusesCredentials(status int) bool {
	return status == http.StatusUnauthorized || slices.Contains(r.Refuse, status)
}

// credentials returns what a status means for the credentials of its request.
func (r *Rules) credentials(status int) credentials {
	switch {
	case status == http.StatusUnauthorized:
		return refused
	case r.refusesCredentials(status), slices.Contains(r.MayRefuse, status):
		return doubtful // it may also be a missing permission
	default:
		return accepted
	}
}
