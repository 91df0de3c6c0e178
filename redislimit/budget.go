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
	answerWithin = time.Second      // the time that a caller waits for the answer to a script
	finishWithin = 5 * time.Second  // the time after which a question is canceled, with the connection that it set up
	underWay     = 4                // how many newcomers of a Limiter ask at the same time, and how many callers with a ticket
	sendWithin   = 10 * time.Second // from the question to the expiry of its permit
	networkStall = 5 * time.Second  // the longest time from the start of a request to its arrival
	promiseGrace = 2 * time.Second  // a caller that asks later than this after its time loses its ticket
	askOften     = 5 * time.Second  // a waiting caller asks at least this often
)

// UnavailableError reports that Redis can give no permit: it is unreachable, does not answer within a second, rejects
// the script, or returns a malformed answer. The caller must not send its purge.
type UnavailableError struct{ cause error }

// Error returns the cause on one line.
func (e *UnavailableError) Error() string {
	return fmt.Sprint("redislimit: no permit without Redis: ", e.cause)
}

// Unwrap returns the error of go-redis. The result never matches the error of a context, because the caller's context has
// not ended. If the error of go-redis does match, Unwrap returns one with the same text instead.
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
	changed func()                 // called when another run answers

	turns   chan struct{}   // held by the callers that ask; the others queue for it, not for a connection of go-redis
	again   chan struct{}   // the same for callers with a ticket, so that newcomers do not make them lose it
	answers atomic.Int64    // how many questions were answered
	late    func(id string) // called if an answer comes after its caller has left

	hold       time.Duration // how long a slot stays taken after its purge has arrived
	sendWithin time.Duration
	stall      time.Duration
	grace      time.Duration
	often      time.Duration
}

// longest is how long a lease holds its slot if no one ends it earlier.
func (b *budget) longest() time.Duration { return b.sendWithin + b.stall + b.hold }

// answer says whether the caller has a lease. If it has none, the answer says how long to wait.
type answer struct {
	granted bool
	refused bool // the wait would pass the deadline; nothing was taken
	wait    time.Duration
	sent    time.Time // zero: nothing was sent
}

// ask asks for a lease for the first time.
func (b *budget) ask(ctx context.Context, id string) (answer, error) {
	return b.askIn(ctx, b.turns, id)
}

// askIn asks for a lease when it is the caller's turn. The same id never gets a second lease.
func (b *budget) askIn(ctx context.Context, turns chan struct{}, id string) (answer, error) {
	if err := b.turn(ctx, turns); err != nil {
		return answer{}, err
	}
	a := answer{sent: time.Now()}
	patience := int64(-1)
	if deadline, ok := ctx.Deadline(); ok {
		patience = max(0, time.Until(deadline).Microseconds())
	}
	args := []any{id, micros(b.hold), patience, micros(b.grace), micros(b.often)}
	response, err := b.run(ctx, func() { <-turns }, func() { b.late(id) }, askScript, args)
	if err == nil && (response.code < answerWait || response.code > answerRefused) {
		err = unavailable(fmt.Errorf("malformed answer %d", response.code))
	}
	if err != nil {
		return a, err
	}
	a.granted, a.refused = response.code == answerGranted, response.code == answerRefused
	a.wait = time.Duration(min(response.wait, math.MaxInt64/1000)) * time.Microsecond
	return a, nil
}

// turn waits until turns has room. A long queue of callers does not mean that Redis is down: turn returns an error only
// if Redis answers no caller for answerWithin.
func (b *budget) turn(ctx context.Context, turns chan struct{}) error {
	silence := time.NewTicker(answerWithin)
	defer silence.Stop()
	for {
		answers := b.answers.Load()
		select {
		case turns <- struct{}{}:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("redislimit: Redis has not answered: %w", ctx.Err())
		case <-silence.C:
			if b.answers.Load() == answers {
				return unavailable(errNoAnswer)
			}
		}
	}
}

var errNoAnswer = fmt.Errorf("no answer within %v", answerWithin)

// report sends leases to Redis, in the form of ledger.open.
func (b *budget) report(ctx context.Context, leases []any) error {
	return b.order(ctx, reportScript, leases...)
}

// pause makes Redis give no permit for d, which is above 0.
func (b *budget) pause(ctx context.Context, d time.Duration) error {
	return b.order(ctx, pauseScript, micros(d))
}

// order runs a script without a result.
func (b *budget) order(ctx context.Context, script *redis.Script, args ...any) error {
	response, err := b.run(ctx, func() {}, func() {}, script, args)
	if err == nil && response.code != answerGranted {
		err = unavailable(fmt.Errorf("malformed answer %d", response.code))
	}
	return err
}

// response is the answer of any script.
type response struct {
	code, wait int64
	run        string
}

// read reads the response to a question.
func read(values []any, question string) (r response, err error) {
	if len(values) == 4 {
		code, isCode := values[0].(int64)
		wait, isWait := values[1].(int64)
		run, isRun := values[3].(string)
		if isCode && isWait && isRun && wait >= 0 && values[2] == question {
			return response{code, wait, run}, nil
		}
	}
	return response{}, fmt.Errorf("malformed answer %.200q", fmt.Sprint(values))
}

// run returns when ctx ends, and within a second, whatever the options of go-redis are. The question then goes on in
// its goroutine, for finishWithin at most. It may be setting up a connection, which takes several round trips and
// serves the next question. run calls release when the question has ended or that time is over. If an answer comes
// after run has returned, run calls late.
func (b *budget) run(ctx context.Context, release, late func(), script *redis.Script, args []any) (response, error) {
	if err := ended(ctx); err != nil {
		release()
		return response{}, err
	}
	type answer struct {
		response response
		err      error
	}
	background, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
	context.AfterFunc(background, release) // also if go-redis ignores the context
	answers := make(chan answer, 1)
	var left atomic.Bool // set by the one that comes first: the answer, or the end of the wait for it
	go func() {
		defer cancel()
		var a answer
		question := rand.Text()
		var values []any
		values, a.err = script.Run(background, b.rdb, b.keys, append([]any{micros(b.longest()), question}, args...)...).Slice()
		if a.err == nil {
			b.answers.Add(1)
			a.response, a.err = read(values, question)
		}
		if alone := left.Swap(true); alone && a.err == nil {
			late()
		}
		answers <- a
	}()
	timer := time.NewTimer(answerWithin)
	defer timer.Stop()
	a := answer{err: errNoAnswer}
	select {
	case a = <-answers:
	case <-ctx.Done():
	case <-timer.C:
	}
	if errors.Is(a.err, errNoAnswer) && left.Swap(true) {
		a = <-answers // it came at the same time
	}
	if a.err == nil {
		b.meet(a.response.run)
		return a.response, nil
	}
	if err := ended(ctx); err != nil {
		return response{}, fmt.Errorf("redislimit: Redis has not answered: %w", err)
	}
	return response{}, unavailable(a.err)
}

// meet records which run of Redis has answered. A new run may not know the leases of this process.
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

// beyond returns whether a wait would pass the caller's deadline.
func beyond(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && wait > time.Until(deadline)
}

// tooLate refuses a wait that would pass the caller's deadline.
func tooLate(wait time.Duration) error {
	return fmt.Errorf("redislimit: the next permit comes in %v, after the deadline: %w", wait, context.DeadlineExceeded)
}
