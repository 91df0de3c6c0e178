package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
	"github.com/webdelivery/webdelivery-go/internal/waiting"
)

// Progress is what a wait has seen at its last poll. The function of [OnProgress] gets it.
type Progress struct {
	Kind     ProgressKind  // what is waited for
	ID       string        // of the task, transaction or list
	Status   string        // the service's word for it; of a list that is changed, "adding", "removing" or "done"
	Percent  int           // progress of a task, percent_received_responses of a transaction, part done of a change
	Complete bool          // this was the last poll
	Polls    int           // so far, this one included; of WaitAll the rounds, of an Apply the calls of OnProgress
	Elapsed  time.Duration // since the wait began
	Err      error         // of a poll that failed; Status and Percent are then those of the last poll before it that did not
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
// but that of the context. What is waited for goes on at the service.
func WaitTimeout(d time.Duration) WaitOption {
	return func(w *waiter) error {
		if d <= 0 {
			return invalid("WaitTimeout", "%v is not above 0", d)
		}
		w.timeout = d
		return nil
	}
}

// OnProgress calls f after each poll, in the goroutine that waits, also after one that failed (see Progress.Err), but
// not after one that the end of the context cut off. The next poll comes after f has returned. WaitAll calls f once for
// each task that it has read in a round, in the order of the ids. An Apply calls f after each change instead, one call
// at a time.
func OnProgress(f func(Progress)) WaitOption {
	return func(w *waiter) error {
		if f == nil {
			return invalid("OnProgress", "is nil")
		}
		w.report = f
		return nil
	}
}

// waiter is what the options say.
type waiter struct {
	interval func() time.Duration
	timeout  time.Duration
	report   func(Progress)
}

func newWaiter(options []WaitOption) (*waiter, error) {
	w := &waiter{interval: waiting.Growing(), report: func(Progress) {}}
	for i, option := range options {
		if option == nil {
			return nil, invalid(fmt.Sprintf("options[%d]", i), "is nil; remove it")
		}
		if err := option(w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// loop is the poll loop. known: what is waited for exists for certain, as the service has named it in a response.
func (w *waiter) loop(known bool) waiting.Loop {
	return waiting.Loop{Interval: w.interval, Timeout: w.timeout, Known: known, Judge: judgePoll}
}

// poll reads until what it reads is complete. A failed poll is reported with what the last one before it has shown.
func poll(ctx context.Context, kind ProgressKind, id string, known bool, options []WaitOption, read func(context.Context) (Progress, error)) error {
	w, err := newWaiter(options)
	if err != nil {
		return err
	}
	loop, began := w.loop(known), time.Now()
	last := Progress{Kind: kind, ID: id}
	err = loop.Run(ctx, func(ctx context.Context) (bool, error) {
		p, err := read(ctx)
		last.Polls++
		last.Elapsed, last.Err = time.Since(began), err
		if err == nil {
			last.Status, last.Percent, last.Complete = p.Status, p.Percent, p.Complete
		} else if ctx.Err() != nil {
			return false, err
		}
		w.report(last)
		return last.Complete, err
	})
	if err == nil {
		return nil
	}
	return newWaitError(string(kind)+" "+redact.Line(id), err, func(polls int) string {
		return fmt.Sprintf("status %s, %d %%, %d polls", redact.Line(cmp.Or(last.Status, "not looked at yet")), last.Percent, polls)
	})
}

// judgePoll says what the error of a poll means for the wait, see [TasksService.Wait].
func judgePoll(err error, known bool) waiting.Verdict {
	status := 0
	if e, ok := errors.AsType[*Error](err); ok {
		status = max(e.StatusCode, e.Code)
	}
	redirected := status >= http.StatusMultipleChoices && status < http.StatusBadRequest
	switch {
	case errors.Is(err, ErrInvalid), errors.Is(err, ErrUnauthorized), usercode.Caused(err), !known && (redirected || transport.Misdirected(err)):
		return waiting.EndsAll
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		return waiting.GoesOn
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError, errors.Is(err, ErrResponseTooLarge):
		return waiting.EndsOne
	default:
		return waiting.GoesOn
	}
}

// waitError is a wait that ended before what it waited for. That may still come about, so its outcome is
// OutcomeUnknown, whatever the outcome of the poll that failed.
type waitError struct {
	text string
	err  error
}

// newWaitError describes the end of a wait. pending says what was still waited for after so many polls, if the context
// ended it.
func newWaitError(what string, err error, pending func(polls int) string) *waitError {
	what = "webdelivery: waiting for " + what
	if end, ok := errors.AsType[*waiting.Ended](err); ok && end.Early {
		what += ", still pending (" + pending(end.Polls) + ")"
	}
	return &waitError{what + ": " + redact.Within(prefix, err.Error()), err}
}

func (e *waitError) Error() string           { return e.text }
func (e *waitError) Unwrap() error           { return e.err }
func (e *waitError) outcomeOfWrite() Outcome { return OutcomeUnknown }
