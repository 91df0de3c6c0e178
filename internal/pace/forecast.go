package pace

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// LateError means that the permit would come after the caller's deadline. It matches [context.DeadlineExceeded].
type LateError struct {
	Wait     time.Duration // shortest wait for the permit
	Deadline time.Duration // time until the deadline
	Refusing bool          // the service refuses purges as too fast
}

// Error returns when the permit would come, and why so late.
func (e *LateError) Error() string {
	text := fmt.Sprintf("the next purge permit comes in %v or later, but the deadline is in %v",
		e.Wait.Round(time.Millisecond), e.Deadline.Round(time.Millisecond))
	if e.Refusing {
		text += "; the service refuses purges as too fast"
	}
	return text
}

// Is reports whether target is [context.DeadlineExceeded].
func (e *LateError) Is(target error) bool { return target == context.DeadlineExceeded }

// RefusedError means that the service has refused all purges as too fast for longer than the caller's patience.
type RefusedError struct{ After time.Duration }

// Error returns how long the service has refused all purges.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the service has refused all purges as too fast for %v", e.After)
}

// failLate removes the callers that cannot get a permit in time from the queue. Its forecast is the earliest possible:
// every request on its way arrives now, and no other is refused. The caller holds the lock.
func (l *Limiter) failLate(now time.Time) {
	first := latest(now, latest(l.next, l.resume))
	free := slices.Clone(l.slots)
	for i, at := range free {
		if at.Equal(onTheWay) {
			at = now.Add(Hold)
		}
		free[i] = latest(at, first)
	}
	slices.SortFunc(free, time.Time.Compare)
	kept := l.queue[:0]
	for _, w := range l.queue {
		at := first
		if n := len(free); n > 0 {
			at = free[len(kept)%n].Add(time.Duration(len(kept)/n) * Hold)
		}
		switch {
		case !w.deadline.IsZero() && w.deadline.Before(at):
			w.decide(nil, &LateError{Wait: at.Sub(now), Deadline: w.deadline.Sub(now), Refusing: l.rate > 0})
		case !l.refusing.IsZero() && now.Sub(latest(l.refusing, w.since)) >= w.Patience:
			w.decide(nil, &RefusedError{w.Patience})
		default:
			kept = append(kept, w)
		}
	}
	clear(l.queue[len(kept):])
	l.queue = kept
}
