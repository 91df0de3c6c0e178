package pace

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// LateError says that the permit would come after the deadline of the caller. It matches [context.DeadlineExceeded].
type LateError struct {
	Wait     time.Duration // until the permit, at least
	Deadline time.Duration // until the deadline
	Refusing bool          // the service refuses purges as too fast
}

// Error says when the permit comes, and why so late.
func (e *LateError) Error() string {
	text := fmt.Sprintf("the next purge permit comes in %v or later, and the deadline is in %v",
		e.Wait.Round(time.Millisecond), e.Deadline.Round(time.Millisecond))
	if e.Refusing {
		text += "; the service refuses purges as too fast"
	}
	return text
}

// Is matches [context.DeadlineExceeded].
func (e *LateError) Is(target error) bool { return target == context.DeadlineExceeded }

// RefusedError says that the service has refused all purges as too fast for as long as the caller waits for that.
type RefusedError struct{ After time.Duration }

// Error says for how long.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the service has refused all purges as too fast for %v", e.After)
}

// forecast tells for one caller of the queue after the other when its permit comes at the earliest: everybody in front
// takes one, every request on the way arrives now, and all are accepted. The lock is held.
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

// waitByPace is how long the interval allows no permit, at least: a purge on the way may be accepted, and the interval
// drawn anew.
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

// drop takes callers out of the queue who need not wait any longer, and lets the first one look again. The lock is held.
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
