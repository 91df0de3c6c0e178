package webdelivery

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Limiter hands out permits to submit a purge. It must be safe for concurrent use. The *rate.Limiter of
// golang.org/x/time/rate is one. (Service document, [section 8].)
//
// Wait limits only when requests leave. Two that leave a second apart may arrive together, for example if the first one
// needs a new connection; a [PermitLimiter] limits arrivals. A permit of Wait may go unused, for example because the
// session ends before the purge is sent.
//
// A Limiter may also be a [Pauser], a [CustomerLimiter] or an [Explainer].
//
// [section 8]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#8-limits
type Limiter interface {
	// Wait blocks until there is a permit. It returns an error if there will be none, and as soon as ctx ends. The
	// client then does not send the purge, and the error of the call wraps that of Wait.
	Wait(ctx context.Context) error
}

// PermitLimiter is a [Limiter] that learns when each permit ends, so it can count the purges that have not arrived yet.
// The client calls Acquire and never Wait.
type PermitLimiter interface {
	Limiter
	// Acquire blocks like Wait, and returns the permit for one request. The client calls Done on each permit.
	Acquire(ctx context.Context) (Permit, error)
}

// Permit is the right to send one purge request.
type Permit struct {
	// Expires is the last moment at which the request may begin. If the permit has expired, the client sends nothing,
	// calls Done, and acquires another permit; that counts as another attempt. The zero time means that it never
	// expires.
	Expires time.Time

	// Done ends the permit; the client calls it exactly once. arrived is the latest moment at which the request may
	// have reached the service: the time of the response or, without one, 5 s after the request was written. It is in
	// the future if the request may still be on its way, and zero if nothing was sent. status is the HTTP status of the
	// response, or 0 without one: 429 and 503 mean that purges come too fast. ctx is the context of the call, which
	// waits for Done, so Done must return soon, and it must also work if ctx has ended. Done may be nil.
	Done func(ctx context.Context, arrived time.Time, status int)
}

// Pauser is a [Limiter] that other programs use, too. The client calls Pause after each response that refuses a purge
// as too fast: no purge should be sent for d. The clients of this process wait anyway. ctx is that of the call, which
// waits for Pause, so it must return soon. The client logs its error and otherwise ignores it.
type Pauser interface {
	Pause(ctx context.Context, d time.Duration) error
}

// CustomerLimiter is a [Limiter] with a budget for each customer. [NewClient] calls ForCustomer and uses the Limiter
// that it returns, so the customer need not be named twice. key is the same for all clients that share a budget: origin
// and customer, such as "https://api.example.com/acme". A type that embeds such a limiter needs its own ForCustomer,
// because the promoted one bypasses the type.
type CustomerLimiter interface {
	ForCustomer(key string) Limiter
}

// Explainer is a [Limiter] whose Waiting returns why its callers have no permit yet, or nil if none waits. A
// [PurgeQueue] waits for permits on behalf of its callers, and adds this reason to the error of a caller whose context
// ends meanwhile.
type Explainer interface {
	Waiting() error
}

// limiterFor returns the user's limiter for the customer of a client.
func limiterFor(key string, limiter Limiter) (Limiter, error) {
	many, ok := limiter.(CustomerLimiter)
	if !ok {
		return limiter, nil
	}
	key = strings.Replace(key, "\n", "/", 1)
	if limiter = many.ForCustomer(key); limiter == nil {
		return nil, invalid("WithPurgeLimiter", "its ForCustomer returns nil for %s", key)
	}
	return limiter, nil
}

// purgePaces holds one pace.Limiter for each origin and customer. The service counts purges per customer, so all
// clients of a process share it. It is the only package-level state.
var purgePaces sync.Map // address.Base.Key to *pace.Limiter

// newPermits returns the permits of a client. The user's limiter gets a pace before it, which only waits after the
// service has refused a purge as too fast.
func newPermits(key string, limiter Limiter, policy RetryPolicy) *transport.Permits {
	create := pace.New
	if limiter != nil {
		key, create = "limited "+key, pace.NewPace
	}
	shared, known := purgePaces.Load(key)
	if !known {
		shared, _ = purgePaces.LoadOrStore(key, create())
	}
	return &transport.Permits{Pace: shared.(*pace.Limiter), Limiter: adaptLimiter(limiter), Patience: policy.ThrottleTimeout}
}

// adaptLimiter adapts the user's limiter to transport. It returns nil for nil.
func adaptLimiter(limiter Limiter) *transport.Limiter {
	if limiter == nil {
		return nil
	}
	adapted := &transport.Limiter{}
	switch l := limiter.(type) {
	case PermitLimiter:
		adapted.Acquire = func(ctx context.Context) (transport.LimiterPermit, error) {
			p, err := l.Acquire(ctx)
			return transport.LimiterPermit(p), err
		}
	default:
		adapted.Acquire = func(ctx context.Context) (transport.LimiterPermit, error) {
			return transport.LimiterPermit{}, permitError(ctx, l.Wait(ctx))
		}
	}
	if p, ok := limiter.(Pauser); ok {
		adapted.Pause = p.Pause
	}
	if e, ok := limiter.(Explainer); ok {
		adapted.Waiting = e.Waiting
	}
	return adapted
}

// permitError makes an error of rate.Limiter, or of a wrapper, match context.DeadlineExceeded. If the next permit comes
// after the deadline, rate.Limiter returns an error at once that says so only in its text.
func permitError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "exceed context deadline") {
		return fmt.Errorf("no purge permit before the deadline: %w", join(err, context.DeadlineExceeded))
	}
	return err
}
