package redislimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	answerWithin = time.Second      // the time that Redis has to answer a script
	sendWithin   = 10 * time.Second // from the question to the expiry of its permit
	networkStall = 5 * time.Second  // the longest time from the start of a request to its arrival
	promiseGrace = 2 * time.Second  // a caller that asks later than this after its time loses its ticket
	askOften     = 5 * time.Second  // a caller that waits asks at least this often
)

// UnavailableError says that there is no permit because Redis could not be asked: Redis is unreachable, does not answer
// within a second, rejects the script, or returns a malformed answer. Nothing may be sent.
type UnavailableError struct{ cause error }

// Error returns the cause on one line.
func (e *UnavailableError) Error() string {
	return fmt.Sprint("redislimit: no permit without Redis: ", e.cause)
}

// Unwrap returns the error of go-redis. An error of go-redis that matches the error of a context is replaced by one with
// the same text, because it was not the caller's context that ended.
func (e *UnavailableError) Unwrap() error { return e.cause }

func unavailable(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		cause = errors.New(cause.Error())
	}
	return &UnavailableError{cause}
}

// budget runs the scripts on one key.
type budget struct {
	rdb  redis.UniversalClient
	keys []string // the one key

	hold       time.Duration // how long a slot is taken after its purge has arrived
	sendWithin time.Duration
	stall      time.Duration
	grace      time.Duration
	often      time.Duration
}

// longest is how long a lease holds its slot if nobody ends it.
func (b *budget) longest() time.Duration { return b.sendWithin + b.stall + b.hold }

// answer says whether the caller has a lease. If it has none, the answer says how long to wait.
type answer struct {
	granted bool
	refused bool // the wait would pass the deadline; nothing was taken
	wait    time.Duration
}

// ask asks for a lease. The same id never gets a second lease.
func (b *budget) ask(ctx context.Context, id string) (answer, error) {
	patience := int64(-1)
	if deadline, ok := ctx.Deadline(); ok {
		patience = max(0, time.Until(deadline).Microseconds())
	}
	reply, err := b.run(ctx, askScript, id, micros(b.hold), patience, micros(b.grace), micros(b.often))
	if err != nil {
		return answer{}, err
	}
	if len(reply) != 2 || reply[0] < answerWait || reply[0] > answerRefused || reply[1] < 0 {
		return answer{}, unavailable(fmt.Errorf("it answers %d", reply))
	}
	return answer{
		granted: reply[0] == answerGranted,
		refused: reply[0] == answerRefused,
		wait:    time.Duration(min(reply[1], math.MaxInt64/1000)) * time.Microsecond,
	}, nil
}

// tell sends leases in the form of ledger.open.
func (b *budget) tell(ctx context.Context, leases []any) error {
	return b.order(ctx, tellScript, leases...)
}

// pause gives no permit to anybody for d, which is above 0.
func (b *budget) pause(ctx context.Context, d time.Duration) error {
	return b.order(ctx, pauseScript, micros(d))
}

// order runs a script that has nothing to answer.
func (b *budget) order(ctx context.Context, script *redis.Script, args ...any) error {
	reply, err := b.run(ctx, script, args...)
	if err == nil && (len(reply) != 1 || reply[0] != 1) {
		err = unavailable(fmt.Errorf("it answers %d", reply))
	}
	return err
}

// run returns when ctx ends, and within a second, whatever the options of go-redis are. By default, go-redis ignores the
// context while it waits for an answer, so run waits in another goroutine.
func (b *budget) run(ctx context.Context, script *redis.Script, args ...any) ([]int64, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	type answer struct {
		reply []int64
		err   error
	}
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		reply, err := script.Run(bounded, b.rdb, b.keys, append([]any{micros(b.longest())}, args...)...).Int64Slice()
		answers <- answer{reply, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case <-bounded.Done():
		a.err = fmt.Errorf("no answer within %v", answerWithin)
	}
	if a.err == nil {
		return a.reply, nil
	}
	if err := ended(ctx); err != nil {
		return nil, fmt.Errorf("redislimit: Redis has not answered: %w", err)
	}
	return nil, unavailable(a.err)
}

// micros rounds up to microseconds.
func micros(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return (d - 1).Microseconds() + 1
}

// ended returns the error of a context that has ended. If the deadline has passed, it has ended even if its timer is
// late.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// tooLate refuses a wait that would pass the caller's deadline.
func tooLate(wait time.Duration) error {
	return fmt.Errorf("redislimit: the next permit comes in %v, after the deadline: %w", wait, context.DeadlineExceeded)
}
