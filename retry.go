package webdelivery

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// RetryPolicy says how often and how patiently a call is repeated. A zero field takes its default. Which calls are
// repeated at all is not a matter of policy: only those for which it is safe (see the package page). A field below 0, and
// a MinWait above MaxWait, are refused.
type RetryPolicy struct {
	// MaxAttempts counts the first attempt; 1 turns retrying off. Default 4. Logins make at most 2 attempts, and
	// writes that are no purge and no DELETE at most 3.
	MaxAttempts int
	// MinWait is the most that is waited before the second attempt. It doubles from attempt to attempt, and each wait
	// is drawn evenly between 0 and that ("full jitter"). Default 500 ms.
	MinWait time.Duration
	// MaxWait bounds every wait. A service that asks for more by Retry-After is not asked again: the call returns its
	// reply at once. Default 20 s. It does not bound a purge that the service refuses as too fast, which waits for its
	// next permit.
	MaxWait time.Duration
	// ThrottleTimeout bounds how long a purge is tried while the service answers that purges come too fast (429, or 503).
	// It counts from the first such answer since the service last accepted a purge, or from the call if that is later.
	// If Retry-After asks for more than is left of it, the call returns its response at once. These retries do not use up
	// MaxAttempts. Permits can be 20 s apart then, so a value below that may allow no retry. Default 5 minutes.
	ThrottleTimeout time.Duration
}

func (p RetryPolicy) withDefaults() (RetryPolicy, error) {
	if p.MaxAttempts < 0 || p.MinWait < 0 || p.MaxWait < 0 || p.ThrottleTimeout < 0 {
		return p, invalid("WithRetry", "a field is negative")
	}
	p.MaxAttempts = cmp.Or(p.MaxAttempts, 4)
	p.MaxWait = cmp.Or(p.MaxWait, 20*time.Second)
	p.ThrottleTimeout = cmp.Or(p.ThrottleTimeout, 5*time.Minute)
	p.MinWait = cmp.Or(p.MinWait, min(500*time.Millisecond, p.MaxWait))
	if p.MinWait > p.MaxWait {
		return p, invalid("WithRetry", "MinWait %v is above MaxWait %v", p.MinWait, p.MaxWait)
	}
	return p, nil
}

// attempts gives the bound for one kind of call.
func (p RetryPolicy) attempts(k kind) int {
	switch k {
	case login:
		return min(p.MaxAttempts, 2)
	case write:
		return min(p.MaxAttempts, 3)
	default:
		return p.MaxAttempts
	}
}

// backoff is the wait after the n-th attempt (from 1) of a call: full jitter under an exponential ceiling.
func (p RetryPolicy) backoff(n int) time.Duration {
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

// kind sorts calls by what repeating them does.
type kind int

const (
	read   kind = iota // GET, HEAD
	remove             // DELETE: by id, so repeating it is safe
	purge              // POST /cache/purge: gone twice is gone; takes a permit each time
	login              // POST /sessions: a second wrong password may lock the account
	write              // every other method: repeated only when it certainly was not processed
)

func kindOf(method, path string) kind {
	switch {
	case method == http.MethodGet || method == http.MethodHead:
		return read
	case method == http.MethodDelete:
		return remove
	case method == http.MethodPost && path == purgePath:
		return purge
	case method == http.MethodPost && path == sessionsPath:
		return login
	default:
		return write
	}
}

// processed says what the last attempt did at the service, as far as anybody can know.
func (x *exchange) processed() Outcome {
	if x.kind == purge && x.last.err == nil && x.last.severity() == http.StatusServiceUnavailable {
		return Unknown // too fast, or a fault inside: the same status means both
	}
	return x.last.processed()
}

// processed is what one attempt of a call did that is no purge.
func (a *attempt) processed() Outcome {
	switch {
	case a.err != nil && a.unsent:
		return NotApplied
	case a.err != nil:
		// A connection cut before and one cut after the service read the request look the same from here.
		return Unknown
	case a.severity() < http.StatusMultipleChoices:
		return Applied
	case a.severity() == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "":
		return NotApplied
	case a.severity() >= http.StatusBadRequest && a.severity() < http.StatusInternalServerError &&
		a.severity() != http.StatusRequestTimeout:
		return NotApplied
	default:
		return Unknown
	}
}

// passing: a fault of which it makes sense to believe that it will be gone soon.
func (a *attempt) passing() bool {
	if a.err != nil {
		return !lasting(a.err)
	}
	switch status := a.severity(); status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	default:
		return status >= http.StatusInternalServerError && status != http.StatusNotImplemented
	}
}

// lasting: an error that a second attempt would meet again.
func lasting(err error) bool {
	var (
		unsent   *unsentError
		panicked *usercode.Panic
		setup    *setupError
		dns      *net.DNSError
		cert     *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &unsent), errors.Is(err, ErrResponseTooLarge), errors.Is(err, ErrBadReply): // the status is none
		return true
	case errors.As(err, &panicked), errors.Is(err, usercode.ErrGoexit):
		return true
	case errors.As(err, &dns):
		return dns.IsNotFound
	default:
		return errors.As(err, &setup) || errors.As(err, &cert)
	}
}

// severity is the status by which an attempt is judged: the HTTP status, or a code of 400 or more in its envelope, where
// that is graver.
func (a *attempt) severity() int {
	if a.code < http.StatusBadRequest {
		return a.status
	}
	return max(a.status, a.code)
}

// tooFast: the service answers a purge that purges come too fast: 429, or 503 with or without Retry-After (open point 8).
func (a *attempt) tooFast() bool {
	return a.err == nil && (a.severity() == http.StatusTooManyRequests || a.severity() == http.StatusServiceUnavailable)
}

// retryAfter reads the wait that a reply asks for, in seconds or as a date; of several the longest. A date counts from
// the reply's own Date, so that a wrong clock on either side does no harm. 0: none, or nothing that can be read.
func retryAfter(h http.Header) time.Duration {
	const longest = 1<<63 - 1
	var wait time.Duration
	for _, value := range h.Values("Retry-After") {
		value = strings.TrimSpace(value)
		if value != "" && strings.Trim(value, "0123456789") == "" {
			seconds, err := strconv.ParseUint(value, 10, 64) // the only error left is that it is too long
			if err != nil || seconds > uint64(longest/time.Second) {
				return longest
			}
			wait = max(wait, time.Duration(seconds)*time.Second)
		} else if at, err := http.ParseTime(value); err == nil {
			now, err := http.ParseTime(h.Get("Date"))
			if err != nil {
				now = time.Now()
			}
			wait = max(wait, at.Sub(now))
		}
	}
	return wait
}

// budget bounds the retries of a whole client, so that a service in trouble is not asked four times as much by
// everybody at once: retries cost, successes give back.
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

// take pays for one retry; false when the budget is spent.
func (b *budget) take(cost int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < cost {
		return false
	}
	b.tokens -= cost
	return true
}

// give puts back what a success brings.
func (b *budget) give(tokens int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(budgetFull, b.tokens+tokens)
}

// decide judges the last attempt of a call: whether another follows, and after what wait.
func (x *exchange) decide() (again bool, wait time.Duration) {
	a := &x.last
	if x.succeeded() {
		x.client.budget.give(1 + x.paid)
		return false, 0
	}
	if x.ctx.Err() != nil {
		return false, 0
	}
	if x.sessionRefused() {
		// The service refused the session before it did anything else, so even a write is sent again: once.
		switch session := x.client.auth.session; {
		case x.resent && x.doubtful():
			session.refute(x.path)
			return false, 0
		case x.resent, x.doubtful() && !session.doubt(x.path), !x.doubtful() && !session.renew(a.generation):
			return false, 0
		}
		x.resent, x.newerThan = true, a.generation
		x.answered = attempt{} // what comes next has nothing to do with this refusal
		return true, 0
	}
	if x.kind == purge && a.tooFast() {
		return x.comesAgain()
	}
	if wait = retryAfter(a.header); wait <= 0 {
		wait = x.client.retry.backoff(x.faults + 1)
	}
	if !a.passing() || !x.repeatable() || wait > x.client.retry.MaxWait {
		return false, 0
	}
	x.faults++
	if x.faults >= x.client.retry.attempts(x.kind) {
		return false, 0
	}
	if deadline, bounded := x.ctx.Deadline(); bounded && time.Until(deadline) <= wait {
		return false, 0
	}
	cost := budgetRetry
	if isTimeout(a.err) {
		cost = budgetTimeout
	}
	if !x.client.budget.take(cost) {
		return false, 0
	}
	x.paid = cost
	return true, wait
}

// repeatable: sending the same again can do no harm.
func (x *exchange) repeatable() bool {
	return x.kind != write || x.processed() == NotApplied
}

// noteRefusal slows the pace down when the attempt was refused as too fast, and tells the user's limiter.
func (x *exchange) noteRefusal() {
	a := &x.last
	if x.kind != purge || a.refusal.Wait > 0 || !a.tooFast() {
		return
	}
	a.refusal = a.permit.paced.Refused(retryAfter(a.header))
	if x.giveUpAt.IsZero() {
		x.giveUpAt = a.refusal.Since.Add(x.client.retry.ThrottleTimeout)
	}
	if !a.refusal.Everybody {
		return
	}
	limiter, ok := x.client.gate.limiter.(pauser)
	if !ok {
		return
	}
	if err := limiter.Pause(x.ctx, a.refusal.Wait); err != nil {
		x.warn("webdelivery: purge limiter not paused", err)
	}
}

// comesAgain decides about a purge that was refused as too fast. It waits for its next permit; neither attempts nor the
// budget count here, because the pace already holds everybody back.
func (x *exchange) comesAgain() (again bool, own time.Duration) {
	now := time.Now()
	wait := max(x.last.refusal.Wait, retryAfter(x.last.header))
	deadline, bounded := x.ctx.Deadline()
	switch {
	case x.client.retry.MaxAttempts == 1:
		return false, 0
	case now.Add(wait).After(x.giveUpAt):
		x.why = x.client.retry.gaveUp()
		return false, 0
	case bounded && !now.Add(wait).Before(deadline):
		x.why = &pace.LateError{Wait: wait, Deadline: deadline.Sub(now), Refusing: true}
		return false, 0
	case x.last.refusal.Everybody:
		return true, 0 // the limiter waits
	default:
		return true, wait
	}
}

// gaveUp is the error of a purge that was refused as too fast until its time was over.
func (p RetryPolicy) gaveUp() error {
	return fmt.Errorf("refused as too fast, and not retried past the ThrottleTimeout of %v", p.ThrottleTimeout)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
