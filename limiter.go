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

// Limiter hands out permits to submit a purge, see [WithPurgeLimiter]. It must be safe for concurrent use. The
// *rate.Limiter of golang.org/x/time/rate is one.
//
// It limits only when requests leave, so two that leave a second apart may arrive together. A [SharedLimiter] limits
// arrivals.
type Limiter interface {
	// Wait blocks until there is a permit. It returns an error if there will be none, and as soon as ctx ends. The
	// client then does not send the purge, and the error of the call wraps that of Wait.
	Wait(ctx context.Context) error
}

// SharedLimiter hands out permits to several processes and for several customers, see [WithSharedLimiter]. It must be
// safe for concurrent use. customer is the same for all clients that share a budget: origin and customer, such as
// "https://api.example.com/acme".
type SharedLimiter interface {
	// Acquire blocks until there is a permit for one request. Its errors are as those of [Limiter].
	Acquire(ctx context.Context, customer string) (Permit, error)
	// Pause is called when responses refuse purges as too fast: no process should send one for d. The call waits for
	// Pause; its error is only logged.
	Pause(ctx context.Context, customer string, d time.Duration) error
	// Waiting returns why callers of Acquire have no permit yet, or nil.
	Waiting(customer string) error
}

// Permit is the right to send one purge request.
type Permit struct {
	// Expires is the last moment at which the request may begin; the zero time means any. If it has passed, the client
	// sends nothing, and acquires another permit for its next attempt.
	Expires time.Time

	// Done, if not nil, is called once, at the end of the permit. arrived is the latest moment at which the request
	// may have reached the service, perhaps in the future; zero if nothing was sent. status is the HTTP status of the
	// response, or 0. The call waits for Done, which must work although ctx, that of the call, has ended.
	Done func(ctx context.Context, arrived time.Time, status int)
}

// WithPurgeLimiter replaces the default limiter of purges. Every purge waits for it, retries included. With any
// limiter, purges also slow down while the service refuses them as too fast. (Section 8.)
func WithPurgeLimiter(limiter Limiter) Option {
	return func(s *settings) error {
		if limiter == nil {
			return invalid("WithPurgeLimiter", "is nil")
		}
		s.limiter = func(string) *transport.Limiter {
			return &transport.Limiter{Acquire: func(ctx context.Context) (transport.LimiterPermit, error) {
				return transport.LimiterPermit{}, permitError(ctx, limiter.Wait(ctx))
			}}
		}
		return nil
	}
}

// WithSharedLimiter is WithPurgeLimiter for a limiter that several processes share, such as that of package redislimit.
func WithSharedLimiter(limiter SharedLimiter) Option {
	return func(s *settings) error {
		if limiter == nil {
			return invalid("WithSharedLimiter", "is nil")
		}
		s.limiter = func(customer string) *transport.Limiter {
			return &transport.Limiter{
				Acquire: func(ctx context.Context) (transport.LimiterPermit, error) {
					p, err := limiter.Acquire(ctx, customer)
					return transport.LimiterPermit(p), permitError(ctx, err)
				},
				Pause:   func(ctx context.Context, d time.Duration) error { return limiter.Pause(ctx, customer, d) },
				Waiting: func() error { return limiter.Waiting(customer) },
			}
		}
		return nil
	}
}

// purgePaces holds one pace.Limiter for each origin and customer. The service counts purges per customer, so all
// clients of a process share it. It is the only package-level state.
var purgePaces sync.Map // address.Base.Key to *pace.Limiter

// newPermits returns the permits of a client. The user's limiter gets a pace before it, which only waits after the
// service has refused a purge as too fast.
func newPermits(key string, s *settings) *transport.Permits {
	p, create := &transport.Permits{Patience: s.retry.ThrottleTimeout}, pace.New
	if s.limiter != nil {
		p.Limiter = s.limiter(strings.Replace(key, "\n", "/", 1))
		key, create = "limited "+key, pace.NewPace
	}
	shared, _ := purgePaces.LoadOrStore(key, create())
	p.Pace = shared.(*pace.Limiter)
	return p
}

// permitError makes an error of rate.Limiter, or of a wrapper, match context.DeadlineExceeded. If the next permit comes
// after the deadline, rate.Limiter returns an error at once that says so only in its text.
func permitError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "exceed context deadline") {
		return fmt.Errorf("no purge permit before the deadline: %w", join(err, context.DeadlineExceeded))
	}
	return err
}
