package webdelivery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Progress is what a wait has seen at its last poll. The function of [OnProgress] gets it.
type Progress struct {
	Kind     ProgressKind  // what is waited for
	ID       string        // of the task, transaction or list
	Status   string        // the service's word for it; of a list that is changed, "adding", "removing" or "done"
	Percent  int           // progress of a task, percent_received_responses of a transaction, part done of a change
	Complete bool          // this was the last poll
	Polls    int           // so far, this one included; of an Apply the calls of OnProgress
	Elapsed  time.Duration // since the wait began
}

// ProgressKind is what a wait waits for.
type ProgressKind string

// What a wait waits for.
const (
	ProgressTask        ProgressKind = "task"        // a long-running operation
	ProgressTransaction ProgressKind = "transaction" // a purge
	ProgressNetworkList ProgressKind = "networklist" // the changes of a plan
)

// WaitOption changes how a Wait works. If an option is invalid, the Wait returns a [*ValidationError] and sends
// nothing.
type WaitOption func(*waiter) error

// PollEvery polls at a fixed interval, above 0. Default: the interval starts at 500 ms and grows by 1.5 with each poll,
// up to 5 s, with 20 % jitter.
func PollEvery(interval time.Duration) WaitOption {
	return func(w *waiter) error {
		if interval <= 0 {
			return invalid("PollEvery", "%v is not above 0", interval)
		}
		w.interval = func() time.Duration { return interval }
		return nil
	}
}

// WaitTimeout ends the wait after d, above 0, with an error that matches context.DeadlineExceeded. Default: no limit
// but that of the context. What is waited for goes on at the service. A poll that fails ends the wait earlier, with its
// error.
func WaitTimeout(d time.Duration) WaitOption {
	return func(w *waiter) error {
		if d <= 0 {
			return invalid("WaitTimeout", "%v is not above 0", d)
		}
		w.timeout = d
		return nil
	}
}

// OnProgress calls f after each poll, in the goroutine that waits. The next poll comes after f has returned. An Apply
// calls f after each change instead, one call at a time.
func OnProgress(f func(Progress)) WaitOption {
	return func(w *waiter) error {
		if f == nil {
			return invalid("OnProgress", "is nil")
		}
		w.report = f
		return nil
	}
}

// waiter is the one poll loop.
type waiter struct {
	interval func() time.Duration
	timeout  time.Duration
	report   func(Progress)
}

const (
	firstPoll   = 500 * time.Millisecond
	slowestPoll = 5 * time.Second
)

// growing gives the default intervals.
func growing() func() time.Duration {
	next := firstPoll
	return func() time.Duration {
		d := next
		next = min(next*3/2, slowestPoll)
		return d*4/5 + rand.N(d*2/5) //nolint:gosec // jitter is no secret
	}
}

func newWaiter(options []WaitOption) (*waiter, error) {
	w := &waiter{interval: growing(), report: func(Progress) {}}
	for _, option := range options {
		if option == nil {
			return nil, invalid("options", "one is nil")
		}
		if err := option(w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// poll reads until what it reads is complete: at once, then after each interval. An error of read ends it. One that
// comes from the context says what is still pending.
func poll(ctx context.Context, kind ProgressKind, id string, options []WaitOption, read func(context.Context) (Progress, error)) error {
	w, err := newWaiter(options)
	if err != nil {
		return err
	}
	if w.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	began := time.Now()
	last := Progress{Status: "not looked at yet"}
	for polls := 1; ; polls++ {
		p, err := read(ctx)
		if err == nil {
			p.Kind, p.ID, p.Polls, p.Elapsed = kind, id, polls, time.Since(began)
			last = p
			w.report(p)
			if p.Complete {
				return nil
			}
			err = sleep(ctx, w.interval())
		}
		if err != nil {
			return &waitError{kind, id, last, err}
		}
	}
}

// waitError is a wait that ended before what it waited for. That may still come about, so its outcome is
// OutcomeUnknown, whatever the outcome of the poll that failed.
type waitError struct {
	kind ProgressKind
	id   string
	last Progress
	err  error
}

func (e *waitError) Error() string {
	what := "waiting for " + string(e.kind) + " " + redact.Line(e.id)
	if errors.Is(e.err, context.Canceled) || errors.Is(e.err, context.DeadlineExceeded) {
		what += fmt.Sprintf(", still pending (status %s, %d %%, %d polls)", redact.Line(e.last.Status), e.last.Percent, e.last.Polls)
	}
	return "webdelivery: " + what + ": " + e.err.Error()
}

func (e *waitError) Unwrap() error { return e.err }

func (e *waitError) outcomeOfWrite() Outcome { return OutcomeUnknown }

// redactWait takes the secrets out of what an error of poll says of the last poll.
func redactWait(secrets *transport.Secrets, err error) error {
	var ended *waitError
	if errors.As(err, &ended) {
		secrets.Texts(&ended.last.Status)
	}
	return err
}

// sleep waits for d or until the context ends; with a d of 0 or less it only asks the context.
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
		return pace.Ended(ctx)
	}
}
