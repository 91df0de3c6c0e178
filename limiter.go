package webdelivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/webdelivery/webdelivery-go/internal/pace"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Limiter hands out permits to submit a purge (service-interface section 8). It must be safe for concurrent use. A
// *rate.Limiter of golang.org/x/time/rate is one.
//
// Wait bounds departures alone: two requests that leave a second apart may arrive together, for example when the first
// one needs a new connection. A [PermitLimiter] bounds arrivals. The client may not use a permit of Wait, for example
// because its session has ended meanwhile; that permit is lost.
//
// A Limiter or PermitLimiter that also has
//
//	Pause(context.Context, time.Duration) error
//
// learns when the service answers that purges come too fast, and for how long no purge should be sent. The clients of
// this process wait by themselves; Pause is for other users of the limiter. It is called after each such answer, with
// the context of the call. The call waits for it, so it must return soon. Its error is logged and otherwise ignored.
type Limiter interface {
	// Wait blocks until there is a permit. It returns an error if there is none, and at once if ctx ends. The purge is
	// then not sent, and its error wraps the one of Wait.
	Wait(ctx context.Context) error
}

// PermitLimiter is a [Limiter] whose permits have an end, so that it can count the purges that are still on their way
// (service-interface section 8). The client calls Acquire and never Wait.
type PermitLimiter interface {
	Limiter
	// Acquire blocks like Wait, and returns the permit for one request. The client ends each permit by its Done.
	Acquire(ctx context.Context) (Permit, error)
}

// Permit is the right to send one purge request.
type Permit struct {
	// Expires is the last moment at which the request may begin. The client sends nothing with an expired permit: it ends
	// it and acquires another one, which counts as another attempt. The zero time means that the permit does not expire.
	Expires time.Time

	// Done ends the permit; the client calls it exactly once. arrived is the latest moment at which the request may have
	// reached the service: the time of the response, or 5 s after the request was written. It is in the future if the
	// request may still be on its way, and the zero time if nothing was sent. ctx is the context of the call, which waits
	// for Done: it must return soon, and must work with a ctx that has ended. If nil, nothing is called.
	Done func(ctx context.Context, arrived time.Time)
}

type pauser interface {
	Pause(ctx context.Context, d time.Duration) error
}

// purgePaces holds the one pace.Limiter of each origin and customer: the service counts by customer, so all clients of a
// process share it. It is the only state of this package.
var purgePaces sync.Map // address.Base.Key to *pace.Limiter

// newGate returns the gate of a client. In front of a limiter of the user's stands a pace that waits for nothing until the
// service refuses a purge as too fast.
func newGate(key string, limiter Limiter, policy RetryPolicy) *transport.Gate {
	create := pace.New
	if limiter != nil {
		key, create = "limited "+key, pace.NewPace
	}
	shared, known := purgePaces.Load(key)
	if !known {
		shared, _ = purgePaces.LoadOrStore(key, create())
	}
	return transport.NewGate(shared.(*pace.Limiter), adaptLimiter(limiter).Foreign(ownError), policy.ThrottleTimeout)
}

// adaptLimiter gives transport a limiter of the user's by what it can do; nil of nil.
func adaptLimiter(limiter Limiter) *transport.Limiter {
	if limiter == nil {
		return nil
	}
	adapted := &transport.Limiter{}
	switch l := limiter.(type) {
	case PermitLimiter:
		adapted.Acquire = func(ctx context.Context) (transport.Lease, error) {
			p, err := l.Acquire(ctx)
			return transport.Lease(p), err
		}
	case *rate.Limiter:
		adapted.Acquire = func(ctx context.Context) (transport.Lease, error) {
			return transport.Lease{}, permitError(ctx, l.Wait(ctx))
		}
	default:
		adapted.Acquire = func(ctx context.Context) (transport.Lease, error) { return transport.Lease{}, l.Wait(ctx) }
	}
	if p, ok := limiter.(pauser); ok {
		adapted.Pause = p.Pause
	}
	return adapted
}

// permitError makes rate.Limiter's refusal of a deadline that is too near match context.DeadlineExceeded: the limiter
// returns at once, with a text only.
func permitError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "exceed context deadline") {
		return fmt.Errorf("no permit before the deadline: %w", errors.Join(err, context.DeadlineExceeded))
	}
	return err
}
