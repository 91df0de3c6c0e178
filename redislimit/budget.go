package redislimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
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

	met     atomic.Pointer[string] // the run of Redis that answered last
	changed func()                 // another run has answered

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
	if reply.code < answerWait || reply.code > answerRefused {
		return answer{}, unavailable(fmt.Errorf("it answers %d", reply.code))
	}
	return answer{
		granted: reply.code == answerGranted,
		refused: reply.code == answerRefused,
		wait:    time.Duration(min(reply.wait, math.MaxInt64/1000)) * time.Microsecond,
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
	if err == nil && reply.code != answerGranted {
		err = unavailable(fmt.Errorf("it answers %d", reply.code))
	}
	return err
}

// reply is the answer of any script.
type reply struct {
	code, wait int64
	run        string
}

// read reads the reply to a question.
func read(values []any, question string) (r reply, err error) {
	if len(values) == 4 {
		code, isCode := values[0].(int64)
		wait, isWait := values[1].(int64)
		run, isRun := values[3].(string)
		if isCode && isWait && isRun && wait >= 0 && values[2] == question {
			return reply{code, wait, run}, nil
		}
	}
	return reply{}, fmt.Errorf("it answers %.200q", fmt.Sprint(values))
}

// run returns when ctx ends, and within a second, whatever the options of go-redis are. By default, go-redis ignores the
// context while it waits for an answer, so run waits in another goroutine.
func (b *budget) run(ctx context.Context, script *redis.Script, args ...any) (reply, error) {
	if err := ended(ctx); err != nil {
		return reply{}, err
	}
	type answer struct {
		reply reply
		err   error
	}
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		var a answer
		question := rand.Text()
		var values []any
		values, a.err = script.Run(bounded, b.rdb, b.keys, append([]any{micros(b.longest()), question}, args...)...).Slice()
		if a.err == nil {
			a.reply, a.err = read(values, question)
		}
		answers <- a
	}()
	var a answer
	select {
	case a = <-answers:
	case <-bounded.Done():
		a.err = fmt.Errorf("no answer within %v", answerWithin)
	}
	if a.err == nil {
		b.meet(a.reply.run)
		return a.reply, nil
	}
	if err := ended(ctx); err != nil {
		return reply{}, fmt.Errorf("redislimit: Redis has not answered: %w", err)
	}
	return reply{}, unavailable(a.err)
}

// meet notes which run of Redis has answered. Another one than before may not know the leases of this process.
func (b *budget) meet(run string) {
	if met := b.met.Swap(&run); met != nil && *met != run {
		b.changed()
	}
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
