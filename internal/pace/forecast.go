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
	byPace, rate := latest(now.Add(l.waitByPace(now)), l.resume), 0.0
	if l.interval > 0 {
		rate = rateOf(l.interval) + recovery*float64(l.flying)
	}
	free := slices.Clone(l.places)
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
		if rate += recovery; rate < rateOf(shortest) && l.interval > 0 {
			byPace = byPace.Add(time.Duration(leastJitter * float64(intervalOf(rate))))
		}
		return at
	}
}

// waitByPace returns the shortest possible wait for the end of the interval, which is redrawn and becomes shorter when
// a purge on its way is accepted.
func (l *Limiter) waitByPace(now time.Time) time.Duration {
	if l.interval == 0 {
		return 0
	}
	reserved := l.rate.ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	reserved.CancelAt(now)
	if l.flying == 0 {
		return wait
	}
	rate := rateOf(l.interval) + recovery*float64(l.flying)
	if rate >= rateOf(shortest) {
		return 0
	}
	return min(wait, time.Duration(float64(wait)/float64(l.drawn)*leastJitter*float64(intervalOf(rate))))
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
			w.err = &LateError{Wait: at.Sub(now), Deadline: w.deadline.Sub(now), Refusing: l.interval > 0}
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
