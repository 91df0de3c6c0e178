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

// Progress is what a wait has seen at its last look. It is given to the function of [OnProgress].
type Progress struct {
	Kind     ProgressKind  // what is waited for
	ID       string        // of the task, transaction or list
	Status   string        // the service's word for it; of a list that is changed, "adding", "removing" or "done"
	Percent  int           // progress of a task, percent_received_responses of a transaction, part done of a change
	Complete bool          // this was the last look
	Polls    int           // so far, this one included
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

// WaitOption changes how a Wait works. One that makes no sense is a [*ValidationError] of the Wait, which then does not
// look at all.
type WaitOption func(*waiter) error

// PollEvery looks at a fixed interval, above 0. Default: 500 ms, growing by half from look to look up to 5 s, 20 % more
// or less at random.
func PollEvery(interval time.Duration) WaitOption {
	return func(w *waiter) error {
		if interval <= 0 {
			return invalid("PollEvery", "%v is not above 0", interval)
		}
		w.interval = func() time.Duration { return interval }
		return nil
	}
}

// WaitTimeout ends the wait after d, above 0, with an error that matches context.DeadlineExceeded. Default: no limit but
// the context's. What is waited for goes on at the service. A look that fails ends the wait earlier, with its own error.
func WaitTimeout(d time.Duration) WaitOption {
	return func(w *waiter) error {
		if d <= 0 {
			return invalid("WaitTimeout", "%v is not above 0", d)
		}
		w.timeout = d
		return nil
	}
}

// OnProgress calls f after each look, in the goroutine that waits; the next look comes after f has returned. An Apply
// calls it after each change instead, one call at a time.
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

// poll looks until a look is complete. It looks at once, then after each interval. An error of look ends it; one that
// comes from the context tells what is still pending.
func poll(ctx context.Context, kind ProgressKind, id string, options []WaitOption, look func(context.Context) (Progress, error)) error {
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
	for looks := 1; ; looks++ {
		p, err := look(ctx)
		if err == nil {
			p.Kind, p.ID, p.Polls, p.Elapsed = kind, id, looks, time.Since(began)
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

// waitError is a wait that ended before what it waited for. That may still come about, so its outcome is Unknown,
// whatever that of the look that failed.
type waitError struct {
	kind ProgressKind
	id   string
	last Progress
	err  error
}

func (e *waitError) Error() string {
	what := "waiting for " + string(e.kind) + " " + redact.Line(e.id)
	if errors.Is(e.err, context.Canceled) || errors.Is(e.err, context.DeadlineExceeded) {
		what += fmt.Sprintf(", still pending (status %s, %d %%, %d looks)", redact.Line(e.last.Status), e.last.Percent, e.last.Polls)
	}
	return "webdelivery: " + what + ": " + e.err.Error()
}

func (e *waitError) Unwrap() error { return e.err }

func (e *waitError) outcomeOfWrite() Outcome { return OutcomeUnknown }

// redactWait takes the secrets out of what an error of poll says of the last look.
func redactWait(secrets *transport.Secrets, err error) error {
	var ended *waitError
	if errors.As(err, &ended) {
		secrets.Texts(&ended.last.Status)
	}
	return err
}

// sleep waits for d or until the context ends; a d of 0 or less only looks at the context.
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
