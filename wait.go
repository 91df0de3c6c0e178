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
	"github.com/webdelivery/webdelivery-go/internal/waiting"
)

// Progress describes the last poll of a wait, for the function of [OnProgress].
type Progress struct {
	Kind     string        // what the wait waits for: "task", "transaction" or, for an Apply, "networklist"
	ID       string        // id of the task, transaction or list
	Status   string        // status in the response; for an Apply "adding", "removing" or "done"
	Percent  int           // progress of a task, percent_received_responses of a transaction, completed share of an Apply
	Complete bool          // it has ended; false if an error ends its polls
	Polls    int           // polls so far, including this one; for WaitAll rounds of polls, for an Apply calls of OnProgress
	Elapsed  time.Duration // time since the wait started
	Err      error         // error of this poll, or nil; after an error, Status and Percent come from the last successful poll
}

// WaitOption changes how a Wait works. If an option is invalid, the Wait returns a [*ValidationError] and sends
// nothing.
type WaitOption func(*waiter) error

// PollEvery polls at a fixed interval, above 0. Default: the interval starts at 500 ms and grows by 1.5 with each
// poll, up to 5 s, with 20 % jitter.
func PollEvery(interval time.Duration) WaitOption {
	return func(w *waiter) error {
		if interval <= 0 {
			return invalid("PollEvery", "%v is not above 0", interval)
		}
		w.every = interval
		return nil
	}
}

// WaitTimeout ends the wait after d, above 0, with an error that matches context.DeadlineExceeded. The task, purge or
// change goes on at the service. Default: only the context limits the wait.
func WaitTimeout(d time.Duration) WaitOption {
	return func(w *waiter) error {
		if d <= 0 {
			return invalid("WaitTimeout", "%v is not above 0", d)
		}
		w.timeout = d
		return nil
	}
}

// WaitMaxOutage ends the wait with the last error when every poll has failed for d, whatever a Retry-After asks. 0 means
// that an outage never ends the wait. Default 10 minutes.
func WaitMaxOutage(d time.Duration) WaitOption {
	return func(w *waiter) error {
		if d < 0 {
			return invalid("WaitMaxOutage", "%v is below 0", d)
		}
		w.outage = d
		return nil
	}
}

// OnProgress calls f after each poll, including a failed one (see Progress.Err), but not after a poll cut off by the
// end of the context. f runs in the goroutine that waits, and the next poll comes after f has returned. WaitAll calls f
// once for each task that it has read in a round, in the order of the ids. An Apply calls f after each change instead,
// one call at a time.
func OnProgress(f func(Progress)) WaitOption {
	return func(w *waiter) error {
		if f == nil {
			return invalid("OnProgress", "is nil")
		}
		w.report = f
		return nil
	}
}

// waiter holds the options of a wait.
type waiter struct {
	every   time.Duration // 0: growing
	timeout time.Duration
	outage  time.Duration
	report  func(Progress)
}

func newWaiter(options []WaitOption) (*waiter, error) {
	w := &waiter{outage: 10 * time.Minute, report: func(Progress) {}}
	return w, configure(w, options)
}

// loop returns the poll loop. known means that what it waits for certainly exists, because a response has named it.
func (w *waiter) loop(known bool) waiting.Loop {
	return waiting.Loop{Every: w.every, Timeout: w.timeout, Outage: w.outage, Known: known, Judge: judgePoll}
}

// poll calls state until it reports Complete. It reports a failed poll with the status of the last successful one.
func poll(ctx context.Context, kind, id string, known bool, options []WaitOption, state func(context.Context) (Progress, error)) error {
	w, err := newWaiter(options)
	if err != nil {
		return err
	}
	loop, began := w.loop(known), time.Now()
	last := Progress{Kind: kind, ID: id}
	err = loop.Run(ctx, func(ctx context.Context) (done, read bool, err error) {
		p, err := state(ctx)
		last.Polls++
		last.Elapsed, last.Err = time.Since(began), err
		if err == nil {
			last.Status, last.Percent, last.Complete = p.Status, p.Percent, p.Complete
		} else if ctx.Err() != nil {
			return false, false, err
		}
		w.report(last)
		return last.Complete, err == nil, err
	})
	if err == nil {
		return nil
	}
	pending := fmt.Sprintf("status %s, %d %%,", redact.Line(cmp.Or(last.Status, "not read yet")), last.Percent)
	return newWaitError(kind+" "+redact.Line(id), err, pending)
}

// judgePoll decides what the error of a poll means for the wait, see [TasksService.Wait].
func judgePoll(err error, known bool) (f waiting.Failure) {
	status := 0
	if e, ok := errors.AsType[*Error](err); ok {
		status = max(e.StatusCode, e.Code)
		f.After = transport.RetryAfter(e.Header)
	}
	redirected := status >= http.StatusMultipleChoices && status < http.StatusBadRequest
	switch {
	case errors.Is(err, ErrInvalid), errors.Is(err, ErrUnauthorized), !known && (redirected || transport.Misdirected(err)):
		f.EndsAll = true
	case transport.Final(status), errors.Is(err, ErrResponseTooLarge):
		f.EndsOne = true
	}
	return f
}

// waitError means that a wait ended too early. The task or purge may still succeed, so its outcome is OutcomeUnknown,
// whatever the outcome of the failed poll.
type waitError struct {
	text string
	err  error
}

// newWaitError describes the end of a wait. pending says what was pending if the wait ended early.
func newWaitError(what string, err error, pending string) *waitError {
	what = "webdelivery: waiting for " + what
	if end, ok := errors.AsType[*waiting.Ended](err); ok && end.Early {
		what += fmt.Sprintf(", still pending (%s %s)", pending, counted(end.Polls, "poll", "polls"))
	}
	return &waitError{what + ": " + within(err.Error()), err}
}

func (e *waitError) Error() string           { return e.text }
func (e *waitError) Unwrap() error           { return e.err }
func (e *waitError) outcomeOfWrite() Outcome { return OutcomeUnknown }
