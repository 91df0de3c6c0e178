package redislimit

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

const (
	defaultInterval = 525 * time.Millisecond
	defaultPrefix   = "webdelivery:purge"
)

var _ webdelivery.PermitLimiter = (*Limiter)(nil)

// Limiter gives permits to submit a purge to all processes that share its budget. It is a [webdelivery.PermitLimiter].
// Create it with [New]; the zero value is not usable. It is safe for concurrent use, and needs no closing.
//
// A Limiter asks Redis a few questions at a time, each in its own goroutine. If Redis does not answer, the goroutine
// may outlive its call by up to 5 s: it completes the connection for the next question. If a late answer is a permit,
// the Limiter returns it to Redis.
type Limiter struct {
	budget   budget
	ledger   ledger
	leavers  leavers
	settling chan struct{} // held by the caller that settles
	fallback *share        // nil: fail closed
	invalid  error         // New was given invalid arguments
}

// New returns a limiter for the purges of one customer, named as for webdelivery.NewClient. The caller still owns rdb and
// closes it. Nothing is sent to Redis before the first [Limiter.Acquire], [Limiter.Wait] or [Limiter.Pause].
//
// New returns no error, so that a limiter can be created where it is used. If rdb is nil, customer is empty, or an option
// is invalid, every method returns an [*OptionError], and there is never a permit.
func New(rdb redis.UniversalClient, customer string, opts ...Option) *Limiter {
	s := settings{interval: defaultInterval, prefix: defaultPrefix}
	l := &Limiter{invalid: s.apply(rdb, customer, opts)}
	if l.invalid != nil {
		return l
	}
	b := &l.budget
	b.rdb = rdb
	// Escaped, the customer has no colon: no two pairs of prefix and customer share a key.
	b.keys = []string{s.prefix + ":" + url.QueryEscape(customer)}
	b.changed = l.ledger.outage
	b.late = func(id string) { l.withdraw(context.Background(), id, nil) }
	b.turns, b.again, l.settling = make(chan struct{}, underWay), make(chan struct{}, underWay), make(chan struct{}, 1)
	b.hold, b.sendWithin, b.stall, b.grace, b.often = 2*s.interval, sendWithin, networkStall, promiseGrace, askOften
	if s.processes > 0 {
		l.fallback = newShare(s.interval * time.Duration(s.processes))
	}
	return l
}

// Acquire blocks until a purge may be sent, and returns the permit for it. The request must begin before the permit
// expires, 10 s after the last question to Redis. The caller must call the permit's Done once the purge has arrived. If
// Done is never called, the permit is lost to all processes for 16.05 s.
//
// Acquire returns
//   - the error of ctx if it ends; nothing is taken;
//   - an error that matches context.DeadlineExceeded, at once, if the permit would come after the deadline of ctx;
//     nothing is taken;
//   - [*UnavailableError] if Redis is down and there is no [FallbackLocal];
//   - [*OptionError] if New was given invalid arguments.
func (l *Limiter) Acquire(ctx context.Context) (webdelivery.Permit, error) {
	if l.invalid != nil {
		return webdelivery.Permit{}, l.invalid
	}
	for {
		if l.fallback.rules() {
			again, err := l.fallback.wait(ctx)
			if err != nil {
				return webdelivery.Permit{}, err
			}
			if !again {
				l.fallback.granted()
				return l.local(), nil
			}
		}
		permit, err := l.lease(ctx)
		if l.fallback == nil || !isUnavailable(err) {
			return permit, err
		}
	}
}

// Wait blocks until a purge may be sent. It acquires a permit and ends it at once, as if the purge had just arrived.
// Wait therefore limits only departures: of any three, the first and the third are twice the interval apart. Use
// [Limiter.Acquire] to bound arrivals. Wait returns the errors of Acquire.
//
// Wait does not wait until Redis knows that the permit has ended. If the process ends at once, the slot is free after
// 16.05 s.
func (l *Limiter) Wait(ctx context.Context) error {
	permit, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	// Done takes a round trip to Redis. If Wait waited for it, the purge would leave later than the time from which
	// Redis counts.
	over, cancel := context.WithCancel(ctx)
	cancel()
	permit.Done(over, time.Now())
	return nil
}

// Pause stops the permits of all processes for d from now on. It never shortens an earlier pause. If d is 0 or less,
// Pause does nothing.
//
// If Redis is down, Pause returns an [*UnavailableError]. This process then gets no permit during the pause. As soon as
// Redis is reachable, the process reports to it what is left of the pause. If New was given invalid arguments, Pause
// returns an [*OptionError].
func (l *Limiter) Pause(ctx context.Context, d time.Duration) error {
	switch {
	case l.invalid != nil:
		return l.invalid
	case d <= 0:
		return nil
	}
	l.ledger.owe(time.Now().Add(d))
	l.fallback.hold(d)
	return l.settle(ctx)
}

// heard records whether Redis is reachable.
func (l *Limiter) heard(err error) {
	switch {
	case err == nil:
		l.fallback.retire()
	case isUnavailable(err): // other errors come from the caller's context and say nothing about Redis
		l.fallback.takeOver()
		l.ledger.outage()
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
