package transport

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// Gate gives permits to limited requests: by the pace, and by the user's limiter if there is one.
type Gate struct {
	pace     *pace.Limiter
	limiter  *Limiter      // the user's; nil if the pace bounds arrivals by itself
	patience time.Duration // how long a request waits while the service accepts no request
}

// Limiter is a limiter of the user's.
type Limiter struct {
	Acquire func(context.Context) (Lease, error)
	Pause   func(context.Context, time.Duration) error // nil: it cannot pause
}

// Lease is what such a limiter lends for one request.
type Lease struct {
	Expires time.Time                                    // the request begins before that; zero: at any time
	Done    func(ctx context.Context, arrived time.Time) // ends it; nil: nothing is called
}

// NewGate returns a gate with a pace. If there is a limiter, the pace should not wait before the service refuses a
// request as too fast. patience bounds how long a request waits while the service accepts no request.
func NewGate(p *pace.Limiter, limiter *Limiter, patience time.Duration) *Gate {
	return &Gate{pace: p, limiter: limiter, patience: patience}
}

// Permit allows one limited request. Only the first call of End counts.
type Permit struct {
	caller *pace.Caller
	paced  *pace.Permit
	lease  Lease
	ended  atomic.Bool
}

// Acquire waits for a permit for a call that begins now.
func (g *Gate) Acquire(ctx context.Context) (*Permit, error) { return g.acquire(ctx, g.newCaller()) }

func (g *Gate) newCaller() *pace.Caller { return &pace.Caller{Patience: g.patience} }

func (g *Gate) acquire(ctx context.Context, caller *pace.Caller) (*Permit, error) {
	for {
		paced, err := g.pace.Acquire(ctx, caller)
		if refused := (*pace.RefusedError)(nil); errors.As(err, &refused) {
			err = fmt.Errorf("%w: %w", ErrRateLimited, err)
		}
		if err != nil {
			return nil, &unsentError{"waiting for a purge permit", err}
		}
		p := &Permit{caller: caller, paced: paced}
		if g.limiter == nil {
			return p, nil
		}
		if err = p.borrow(ctx, g.limiter); err != nil {
			return nil, &unsentError{"waiting for a purge permit", err}
		}
		if !g.pace.Pausing() {
			return p, nil
		}
		p.End(ctx, time.Time{}) // the service refused another request meanwhile
	}
}

// borrow acquires a lease of the user's limiter. If it gets none, it ends the permit, also if the limiter panics.
func (p *Permit) borrow(ctx context.Context, l *Limiter) (err error) {
	lent := false
	defer func() {
		if !lent {
			p.End(ctx, time.Time{})
		}
	}()
	p.lease, err = l.Acquire(ctx)
	lent = err == nil
	return err
}

// End releases what the permit holds. arrived is the latest time at which its request may have reached the service. The
// zero time means that nothing was sent.
func (p *Permit) End(ctx context.Context, arrived time.Time) {
	if p.ended.Swap(true) {
		return
	}
	p.paced.End(arrived)
	if p.lease.Done != nil {
		p.lease.Done(ctx, arrived)
	}
}

// expired: it is too late to begin the request.
func (p *Permit) expired() bool {
	return !p.lease.Expires.IsZero() && !time.Now().Before(p.lease.Expires)
}

// Refusing reports whether the service has refused all requests as too fast since it last accepted one.
func (g *Gate) Refusing() bool { return g.pace.Refusing() }
