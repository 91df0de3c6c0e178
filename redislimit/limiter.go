package redislimit

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	defaultInterval = 550 * time.Millisecond
	defaultPrefix   = "webdelivery:purge"
)

// Limiter gives permits to submit a purge, one by one to all processes that share its budget. [New] makes one; the zero
// value is of no use. It is safe for concurrent use, and nothing of it needs to be closed.
type Limiter struct {
	budget   budget
	interval time.Duration
	fallback *share // nil: fail closed
	invalid  error  // what New was given is nonsense

	mu   sync.Mutex
	last time.Time // when this process was given its last permit
	owed time.Time // no permit before this; Redis has not been told yet
}

// New makes a limiter for the purges of one customer, by the name that webdelivery.NewClient is given. The client of Redis
// remains the caller's, who closes it. Nothing is sent to Redis before the first [Limiter.Wait].
//
// New has no error, so that a limiter can be made where it is used: a nil client, an empty customer or an option that
// makes no sense is an [*OptionError] of every Wait and Pause, and no permit is ever given.
func New(rdb redis.UniversalClient, customer string, opts ...Option) *Limiter {
	s := settings{interval: defaultInterval, prefix: defaultPrefix}
	l := &Limiter{invalid: s.apply(rdb, customer, opts)}
	if l.invalid != nil {
		return l
	}
	l.interval = s.interval
	// Escaped, the customer has no colon: no two pairs of prefix and customer share a key.
	l.budget = budget{rdb: rdb, keys: []string{s.prefix + ":" + url.QueryEscape(customer)}, interval: s.interval}
	if s.processes > 0 {
		l.fallback = newShare(s.interval * time.Duration(s.processes))
	}
	return l
}

// Wait blocks until a purge may be sent, or returns why none may:
//   - the context's error when it ended; a reservation that was made is lost;
//   - an error that matches context.DeadlineExceeded, at once, when the permit would come after the context's deadline;
//     nothing is taken from the budget;
//   - [*UnavailableError] without Redis, unless there is a [FallbackLocal];
//   - [*OptionError] when New was given nonsense.
func (l *Limiter) Wait(ctx context.Context) error {
	if l.invalid != nil {
		return l.invalid
	}
	for {
		if l.fallback.rules() {
			again, err := l.fallback.wait(ctx)
			if err != nil {
				return err
			}
			if !again {
				l.granted()
				l.owe(time.Now().Add(l.interval)) // the first permit of Redis comes after this one
				return nil
			}
		}
		_, err := l.permit(ctx)
		if l.fallback == nil || !isUnavailable(err) {
			return err
		}
	}
}

// Pause gives no permit to anybody for d from now on: callers who wait already, in whatever process, wait as much
// longer, in the same order. It never shortens a pause that is under way. A d of 0 or less does nothing.
//
// Without Redis it is an [*UnavailableError]. Then this process alone holds back, and passes the rest of the pause on
// when it reaches Redis again.
func (l *Limiter) Pause(ctx context.Context, d time.Duration) error {
	switch {
	case l.invalid != nil:
		return l.invalid
	case d <= 0:
		return nil
	}
	l.owe(time.Now().Add(d))
	l.fallback.hold(d)
	return l.settle(ctx)
}

// permit waits for a permit of Redis, and returns the reservation that became it.
func (l *Limiter) permit(ctx context.Context) (reservation, error) {
	var held reservation
	for {
		if err := l.settle(ctx); err != nil {
			return held, err
		}
		next, wait, err := l.budget.reserve(ctx, held)
		l.heard(err)
		if err != nil {
			return held, err
		}
		if next == (reservation{}) {
			return held, tooLate(wait)
		}
		held = next
		if wait <= 0 {
			l.granted()
			return held, nil
		}
		if err := sleep(ctx, wait); err != nil {
			return held, err
		}
	}
}

// settle tells Redis of a pause that it does not know.
func (l *Limiter) settle(ctx context.Context) error {
	l.mu.Lock()
	owed := l.owed
	l.mu.Unlock()
	d := time.Until(owed)
	if d <= 0 {
		return nil
	}
	err := l.budget.pause(ctx, d)
	l.heard(err)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owed.Equal(owed) {
		l.owed = time.Time{}
	}
	return nil
}

// heard notes whether Redis is there. One that comes back may have forgotten the last permit of this process.
func (l *Limiter) heard(err error) {
	if err == nil {
		l.fallback.retire()
	}
	if !isUnavailable(err) {
		return // the caller's context ended first, which says nothing
	}
	l.fallback.takeOver()
	l.mu.Lock()
	last := l.last
	l.mu.Unlock()
	if !last.IsZero() {
		l.owe(last.Add(l.interval))
	}
}

func (l *Limiter) granted() {
	l.mu.Lock()
	l.last = time.Now()
	l.mu.Unlock()
	l.fallback.granted()
}

func (l *Limiter) owe(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.owed) {
		l.owed = until
	}
}

// sleep waits for d, which is above 0, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func isUnavailable(err error) bool {
	var unavailable *UnavailableError
	return errors.As(err, &unavailable)
}
