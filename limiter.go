package webdelivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/webdelivery/webdelivery-go/internal/pace"
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

// gate is what every purge of a client passes before it is sent.
type gate struct {
	pace    *pace.Limiter
	limiter Limiter // the user's; nil if the pace bounds arrivals by itself
}

// newGate returns the gate of a client. In front of a limiter of the user's stands a pace that waits for nothing until the
// service refuses a purge as too fast.
func newGate(key string, limiter Limiter) *gate {
	create := pace.New
	if limiter != nil {
		key, create = "limited "+key, pace.NewPace
	}
	shared, known := purgePaces.Load(key)
	if !known {
		shared, _ = purgePaces.LoadOrStore(key, create())
	}
	return &gate{shared.(*pace.Limiter), limiter}
}

// permit is the right to send one purge request. However often it is ended, the first time counts.
type permit struct {
	caller *pace.Caller
	paced  *pace.Permit
	lent   Permit // of the user's limiter
	ended  atomic.Bool
}

// acquire waits for a permit.
func (g *gate) acquire(ctx context.Context, caller *pace.Caller) (*permit, error) {
	for {
		paced, err := g.pace.Acquire(ctx, caller)
		if refused := (*pace.RefusedError)(nil); errors.As(err, &refused) {
			err = fmt.Errorf("%w: %w", ErrRateLimited, err)
		}
		if err != nil {
			return nil, &unsentError{"waiting for a purge permit", err}
		}
		p := &permit{caller: caller, paced: paced}
		if g.limiter == nil {
			return p, nil
		}
		if err = p.borrow(ctx, g.limiter); err != nil {
			return nil, &unsentError{"waiting for a purge permit", err}
		}
		if !g.pace.Pausing() {
			return p, nil
		}
		p.end(ctx, time.Time{}) // the service refused another purge meanwhile
	}
}

// borrow takes a permit of the user's limiter. Without one, also if the limiter panics, the place is given back.
func (p *permit) borrow(ctx context.Context, l Limiter) (err error) {
	lent := false
	defer func() {
		if !lent {
			p.end(ctx, time.Time{})
		}
	}()
	if permits, ok := l.(PermitLimiter); ok {
		p.lent, err = permits.Acquire(ctx)
	} else {
		err = l.Wait(ctx)
	}
	if _, plain := l.(*rate.Limiter); plain && err != nil {
		err = permitError(ctx, err)
	}
	lent = err == nil
	return err
}

// end frees what the permit holds. arrived is the latest moment at which its request may have reached the service; the
// zero time means that nothing was sent.
func (p *permit) end(ctx context.Context, arrived time.Time) {
	if p.ended.Swap(true) {
		return
	}
	p.paced.End(arrived)
	if p.lent.Done != nil {
		p.lent.Done(ctx, arrived)
	}
}

// expired: it is too late to begin the request.
func (p *permit) expired() bool {
	return !p.lent.Expires.IsZero() && !time.Now().Before(p.lent.Expires)
}

// permitError makes rate.Limiter's refusal of a deadline that is too near match context.DeadlineExceeded: the limiter
// returns at once, with a text only.
func permitError(ctx context.Context, err error) error {
	if ctx.Err() == nil && strings.Contains(err.Error(), "exceed context deadline") {
		return fmt.Errorf("no permit before the deadline: %w", errors.Join(err, context.DeadlineExceeded))
	}
	return err
}

// sleep waits for d or until the context ends; a d of 0 or less only looks at the context.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return pace.Ended(ctx)
	}
}
