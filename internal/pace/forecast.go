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

// forecast returns a function whose n-th call returns the earliest time at which the n-th caller in the queue can get
// its permit. It assumes that every request on its way arrives now, and that all are accepted. The caller holds the
// lock.
func (l *Limiter) forecast(now time.Time) (next func() time.Time) {
	byPace := latest(now, latest(l.next, l.resume))
	free := slices.Clone(l.slots)
	for i, at := range free {
		if at.Equal(onTheWay) {
			at = now.Add(Hold)
		}
		free[i] = latest(at, byPace)
	}
	slices.SortFunc(free, time.Time.Compare)
	position := 0
	return func() time.Time {
		at := byPace
		if n := len(free); n > 0 {
			at = latest(at, free[position%n].Add(time.Duration(position/n)*Hold))
		}
		position++
		if l.chance < 1 && byPace.Sub(l.refused) <= busy {
			byPace = l.timeOf(l.placeAt(byPace)+1, byPace)
		}
		return at
	}
}

// drop removes callers that cannot get a permit in time from the queue, and makes the first one try again. The caller
// holds the lock.
func (l *Limiter) drop(now time.Time) {
	next := l.forecast(now)
	kept := l.queue[:0]
	at := next()
	for _, w := range l.queue {
		switch {
		case !w.deadline.IsZero() && w.deadline.Before(at):
			w.err = &LateError{Wait: at.Sub(now), Deadline: w.deadline.Sub(now), Refusing: l.chance < 1}
		case !l.refusing.IsZero() && now.Sub(latest(l.refusing, w.since)) >= w.Patience:
			w.err = &RefusedError{w.Patience}
		default:
			kept = append(kept, w)
			at = next()
			continue
		}
		w.signal()
	}
	clear(l.queue[len(kept):])
	l.queue = kept
	l.wakeFirst()
}
