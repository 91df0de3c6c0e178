package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// Permits gives permits to limited requests. They are subject to the pace and to the user's limiter, if there is one.
type Permits struct {
	Pace     *pace.Limiter // with a Limiter, waits only after the service has refused a request as too fast
	Limiter  *Limiter      // the user's; nil if Pace alone limits arrivals
	Patience time.Duration // how long a request waits while the service accepts none
}

// Limiter adapts the user's limiter.
type Limiter struct {
	Acquire func(context.Context) (LimiterPermit, error)
	Pause   func(context.Context, time.Duration) error // nil if it cannot pause
	Waiting func() error                               // returns why its callers wait; nil if it cannot tell
}

// LimiterPermit is a permit of the user's limiter.
type LimiterPermit struct {
	Expires time.Time                                                // the request must begin before this time; zero means at any time
	Done    func(ctx context.Context, arrived time.Time, status int) // ends the permit; may be nil
}

// Permit allows one limited request. Only the first call of End counts.
type Permit struct {
	caller  *pace.Caller
	paced   *pace.Permit
	granted LimiterPermit
	once    sync.Once
}

// Acquire waits for a permit for a new call.
func (g *Permits) Acquire(ctx context.Context) (*Permit, error) {
	return g.acquire(ctx, &pace.Caller{Patience: g.Patience})
}

func (g *Permits) acquire(ctx context.Context, caller *pace.Caller) (*Permit, error) {
	p, err := g.try(ctx, caller)
	for err == nil && g.Limiter != nil && g.Pace.Pausing() {
		p.End(ctx, time.Time{}) // the service refused another request meanwhile
		p, err = g.try(ctx, caller)
	}
	if err != nil {
		return nil, unsent("waiting for a purge permit", err)
	}
	return p, nil
}

// try waits for the pace, and then for the user's limiter.
func (g *Permits) try(ctx context.Context, caller *pace.Caller) (*Permit, error) {
	paced, err := g.Pace.Acquire(ctx, caller)
	if _, refused := errors.AsType[*pace.RefusedError](err); refused {
		return nil, fmt.Errorf("%w: %w", ErrRateLimited, err)
	}
	if err != nil {
		return nil, err
	}
	p := &Permit{caller: caller, paced: paced}
	if g.Limiter == nil {
		return p, nil
	}
	lent := false
	defer func() {
		if !lent {
			p.End(ctx, time.Time{}) // even if the limiter panics
		}
	}()
	p.granted, err = g.Limiter.Acquire(ctx)
	lent = err == nil
	return p, err
}

// End releases the permit. arrived is the latest time at which its request may have reached the service; the zero time
// means that nothing was sent. If another goroutine is ending the permit, End waits for it.
func (p *Permit) End(ctx context.Context, arrived time.Time) { p.end(ctx, arrived, 0) }

// end is End with the status of the response, or 0 if there is none.
func (p *Permit) end(ctx context.Context, arrived time.Time, status int) {
	p.once.Do(func() {
		p.paced.End(arrived)
		if p.granted.Done != nil {
			p.granted.Done(ctx, arrived, status)
		}
	})
}

// expired reports whether it is too late to begin the request.
func (p *Permit) expired() bool {
	return !p.granted.Expires.IsZero() && !time.Now().Before(p.granted.Expires)
}
