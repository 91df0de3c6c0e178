package webdelivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// Limiter hands out permits to submit a purge (service-interface section 8). It must be safe for concurrent use. A
// *rate.Limiter of golang.org/x/time/rate is one.
//
// Wait bounds departures alone: two requests that leave a second apart may arrive together, for example when the first
// one needs a new connection. A [PermitLimiter] bounds arrivals.
//
// A Limiter that also has
//
//	Pause(context.Context, time.Duration) error
//
// learns when the service answers that purges come too fast, and for how long no purge should be sent. An error of Pause
// is logged and otherwise ignored.
type Limiter interface {
	// Wait blocks until there is a permit. It returns an error if there is none, and at once if ctx ends. The purge is
	// then not sent, and its error wraps the one of Wait.
	Wait(ctx context.Context) error
}

// PermitLimiter is a [Limiter] whose permits have an end, so that it can count the purges that are still on their way
// (service-interface section 8). The client calls Acquire instead of Wait.
type PermitLimiter interface {
	Limiter
	// Acquire blocks like Wait, and returns the permit for one request. The client ends each permit by its Done.
	Acquire(ctx context.Context) (Permit, error)
}

// Permit is the right to send one purge request.
type Permit struct {
	// Expires is the last moment at which the request may begin. The client sends nothing with an expired permit; it
	// acquires another one. The zero time means that the permit does not expire.
	Expires time.Time

	// Done ends the permit; the client calls it exactly once. arrived is the latest moment at which the request may have
	// reached the service. It is in the future if the request may still be on its way, and the zero time if nothing was
	// sent. Done must return soon after ctx ends, and must work with a ctx that has ended. If nil, nothing is called.
	Done func(ctx context.Context, arrived time.Time)
}

type pauser interface {
	Pause(ctx context.Context, d time.Duration) error
}

// purgeInterval is what lies between two permits. The service takes 2 purges a second (service-interface section 8);
// three arrivals span two intervals, so 500 ms has no room for one request being slower than the next. 550 ms has
// 100 ms of it.
const purgeInterval = 550 * time.Millisecond

// purgeLimiters holds the one limiter of each origin and customer: the service counts by customer, so all clients of
// a process share it. It is the only state of this package.
var purgeLimiters sync.Map // base.limiterKey to *purgeLimiter

func sharedPurgeLimiter(key string) Limiter {
	limiter, _ := purgeLimiters.LoadOrStore(key, newPurgeLimiter())
	return limiter.(*purgeLimiter)
}

// purgeLimiter gives permits one by one, in order of arrival. Only the caller whose turn it is waits on the rate
// limiter, so one who gives up leaves no hole behind: the next moves up.
type purgeLimiter struct {
	turn *semaphore.Weighted
	rate *rate.Limiter

	mu     sync.Mutex
	resume time.Time // no permit before this
}

func newPurgeLimiter() *purgeLimiter {
	return &purgeLimiter{
		turn: semaphore.NewWeighted(1),
		rate: rate.NewLimiter(rate.Every(purgeInterval), 1),
	}
}

// Wait blocks until a purge may be sent. Its only error is the context's.
func (l *purgeLimiter) Wait(ctx context.Context) error {
	if err := l.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer l.turn.Release(1)
	for {
		if err := sleep(ctx, time.Until(l.resumeAt())); err != nil {
			return err
		}
		wait := l.take(time.Now())
		if wait <= 0 {
			return nil
		}
		if deadline, bounded := ctx.Deadline(); bounded && time.Until(deadline) < wait {
			return fmt.Errorf("no permit before the deadline: %w", context.DeadlineExceeded)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// take takes the permit, or tells how long there is none. The interval counts from when a permit was taken, not from
// when it was due: a goroutine that wakes late on a busy machine does not bring the next purge closer to its own. Nobody
// reserves a permit of the future, so the limiter never counts one that came early.
func (l *purgeLimiter) take(now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait = l.resume.Sub(now); wait > 0 {
		return wait // a pause that began meanwhile
	}
	permit := l.rate.ReserveN(now, 1)
	if wait = permit.DelayFrom(now); wait > 0 {
		permit.CancelAt(now)
	}
	return wait
}

// Pause gives no permit for d from now on. A longer pause that is under way stays.
func (l *purgeLimiter) Pause(_ context.Context, d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := time.Now().Add(d); until.After(l.resume) {
		l.resume = until
	}
	return nil
}

func (l *purgeLimiter) resumeAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resume
}

// permitError makes rate.Limiter's refusal of a deadline that is too near match context.DeadlineExceeded: the limiter
// returns at once, with a text only.
func permitError(ctx context.Context, err error) error {
	if ctx.Err() == nil && strings.Contains(err.Error(), "exceed context deadline") {
		return fmt.Errorf("no permit before the deadline: %w", errors.Join(err, context.DeadlineExceeded))
	}
	return err
}

// takePermit waits on any limiter and tells what it says as an error of this package.
func takePermit(ctx context.Context, l Limiter) error {
	err := l.Wait(ctx)
	if err == nil {
		return nil
	}
	if _, plain := l.(*rate.Limiter); plain {
		err = permitError(ctx, err)
	}
	return &unsentError{what: "waiting for a purge permit", err: err}
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
		return ctx.Err()
	}
}
