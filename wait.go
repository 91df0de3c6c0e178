package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// bulkConcurrency is the number of concurrent calls when the SDK sends many (open point 32).
const bulkConcurrency = 4

// Progress describes the last poll of a wait, for the function of [WaitProgress].
type Progress struct {
	ID       string // of the task or transaction
	Status   string // status in the response
	Percent  int    // progress of a task, or percent_received_responses of a transaction
	Complete bool   // it has ended; false if an error ends its polls
	Err      error  // error of this poll, or nil; after an error, Status and Percent come from the last successful poll
}

// WaitOption changes how a Wait works.
type WaitOption func(*waiter) error

// WaitInterval polls at a fixed interval, above 0. Default: the interval starts at 500 ms and grows by 1.5 with each
// poll, up to 5 s, with 20 % jitter.
func WaitInterval(interval time.Duration) WaitOption {
	return func(w *waiter) error {
		if interval <= 0 {
			return invalid("WaitInterval", "%v is not above 0", interval)
		}
		w.every = interval
		return nil
	}
}

// WaitMaxOutage ends the wait with the last error when every poll has failed for d, whatever Retry-After asks for: the
// last poll comes after d, and may take as long as its own retries ([WithRetry]). 0 means that an outage never ends the
// wait. Default 10 minutes.
func WaitMaxOutage(d time.Duration) WaitOption {
	return func(w *waiter) error {
		if d < 0 {
			return invalid("WaitMaxOutage", "%v is below 0", d)
		}
		w.outage = d
		return nil
	}
}

// WaitProgress calls f after each poll, including a failed one (see Progress.Err), but not after a poll cut off by the
// end of the context. f runs in the goroutine that waits, and the next poll comes after f has returned. WaitAll calls f
// with each task that it has polled, one after the other.
func WaitProgress(f func(Progress)) WaitOption {
	return func(w *waiter) error {
		if f == nil {
			return invalid("WaitProgress", "is nil")
		}
		w.report = f
		return nil
	}
}

// waiter holds the options of a wait.
type waiter struct {
	every  time.Duration // 0: growing
	outage time.Duration
	report func(Progress)

	exists    bool // what it waits for certainly exists, because a response has named it
	failsFast bool // the first item that fails ends the wait, as an Apply needs it
}

func newWaiter(options []WaitOption) (*waiter, error) {
	w := waiterFor(0)
	return w, configure(w, options)
}

// waiterFor returns a waiter for a MaxOutage, of which 0 means the default.
func waiterFor(outage time.Duration) *waiter {
	return &waiter{outage: cmp.Or(outage, 10*time.Minute), report: func(Progress) {}}
}

// item is a task or transaction that a wait polls.
type item struct {
	Progress                                         // ID, and what the last good poll showed
	kind     string                                  // "task" or "transaction"
	read     func(context.Context) (Progress, error) // returns Status, Percent and Complete
	err      error                                   // why the item failed, or cannot be read
}

func (i *item) name() string  { return i.kind + " " + redact.Line(i.ID) }
func (i *item) pending() bool { return !i.Complete && i.err == nil }

// polling is a wait in progress.
type polling struct {
	*waiter

	items, pending []*item   // pending: in the order of the next polls
	good           time.Time // when the last poll could read something
	polls          int
	failures       int   // polls that failed in a row
	last           error // why the last of them failed
}

// wait polls items until all have ended, or until the context, an outage or failed authentication ends the wait. It
// returns what ended it, joined with the errors of the items.
//
// It polls a few at a time, in their order, and then waits for the interval, unless all of these have ended. Those that
// have not come behind the others, so a task that never ends does not hide them.
func (w *waiter) wait(ctx context.Context, items ...*item) error {
	p := &polling{waiter: w, items: items, pending: slices.Clone(items), good: time.Now()}
	errs := []error{p.run(ctx)}
	for _, it := range items {
		errs = append(errs, it.err)
	}
	return join(errs...)
}

// run polls until all items have ended, or until an error, which it returns, ends the wait.
func (p *polling) run(ctx context.Context) error {
	for interval := 500 * time.Millisecond; len(p.pending) > 0; {
		polled, rest := p.pending[:min(bulkConcurrency, len(p.pending))], p.pending[min(bulkConcurrency, len(p.pending)):]
		failure, fatal := p.round(ctx, polled)
		if fatal != nil {
			return p.ended(fatal, endedBy(ctx, fatal))
		}
		if p.failsFast && slices.ContainsFunc(polled, func(it *item) bool { return it.err != nil }) {
			return nil
		}
		running := slices.DeleteFunc(slices.Clone(polled), func(it *item) bool { return !it.pending() })
		if p.pending = slices.Concat(rest, running); len(running) == 0 {
			continue
		}
		wait := cmp.Or(p.every, interval*4/5+rand.N(interval*2/5))
		if err := p.pause(ctx, wait, failure); err != nil {
			return p.ended(err, true)
		}
		interval = min(interval*3/2, 5*time.Second)
	}
	return nil
}

// pause waits for d, or after a failure for as long as the service asks, but not beyond the end of the outage. It returns
// an error if the outage or the context ends the wait.
func (p *polling) pause(ctx context.Context, d time.Duration, failure error) error {
	asked, text := time.Duration(0), ""
	if e, ok := errors.AsType[*Error](failure); ok {
		asked = transport.RetryAfter(e.Header)
	}
	if d = max(d, asked); asked > 0 {
		text = fmt.Sprintf(", and the service asks to wait for %v", asked)
	}
	if out := time.Since(p.good); failure != nil && p.outage > 0 {
		if d = min(d, p.outage-out); d <= 0 {
			return fmt.Errorf("nothing could be read for %v%s", out.Round(time.Second), text)
		}
	}
	return sleep(ctx, d)
}

// round polls items at once, and reports each. It returns a failure that may pass, and an error that ends the wait.
func (p *polling) round(ctx context.Context, polled []*item) (failure, fatal error) {
	states, errs := make([]Progress, len(polled)), make([]error, len(polled))
	var others sync.WaitGroup
	for i, it := range polled[1:] {
		ctx, _ := branch(ctx) // the first one tells what a poll was like
		others.Go(func() { states[i+1], errs[i+1] = it.read(ctx) })
	}
	states[0], errs[0] = polled[0].read(ctx)
	others.Wait()
	for i, it := range polled {
		err, cut := errs[i], errs[i] != nil && ctx.Err() != nil // by the context, so not reported
		p.polls++
		if err == nil {
			it.Status, it.Percent, it.Complete = states[i].Status, states[i].Percent, states[i].Complete
			p.exists, p.good, p.failures, p.last = true, time.Now(), 0, nil
		} else if one, all := judgePoll(err, p.exists); all || endedBy(ctx, err) {
			fatal = err
		} else if one {
			it.err = &waitError{"webdelivery: waiting for " + it.name() + ": " + within(err.Error()), []error{err}}
		} else {
			p.failures, p.last, failure = p.failures+1, err, err
		}
		if !cut {
			shown := it.Progress
			shown.Err = err
			p.report(shown)
		}
	}
	return failure, fatal
}

// ended returns the error of a wait that err has ended, early if anything may still be running.
func (p *polling) ended(err error, early bool) error {
	text, only, causes := "webdelivery: waiting for ", p.items[0], []error{err}
	state := fmt.Sprintf("status %s, %d %%, ", redact.Line(cmp.Or(only.Status, "not read yet")), only.Percent)
	if len(p.items) == 1 {
		text += only.name()
	} else {
		text += fmt.Sprintf("%d %ss", len(p.items), only.kind)
		var names []string
		for _, it := range p.items {
			if it.pending() {
				names = append(names, redact.Line(it.ID))
			}
		}
		state = fmt.Sprintf("%d: %s; ", len(names), firstOf(names, ", "))
	}
	if early {
		text += fmt.Sprintf(", still pending (%s%s)", state, counted(p.polls, "poll", "polls"))
	}
	text += ": " + within(err.Error())
	if early && p.last != nil {
		causes = append(causes, p.last)
		failed := strings.TrimPrefix(counted(p.failures, "poll", "polls"), "1 ")
		text += fmt.Sprintf("; the last %s failed: %s", failed, within(p.last.Error()))
	}
	return &waitError{text, causes}
}

// judgePoll reports whether the error of a poll means that this item cannot be read, or that nothing can, see
// [TasksService.Wait]. Otherwise the next poll may succeed.
func judgePoll(err error, exists bool) (endsOne, endsAll bool) {
	status, redirected := 0, false
	if e, ok := errors.AsType[*Error](err); ok {
		status, redirected = e.status(), e.redirected()
	}
	endsAll = errors.Is(err, ErrInvalid) || errors.Is(err, ErrUnauthorized) || !exists && (redirected || transport.Misdirected(err))
	return transport.Final(status) || errors.Is(err, ErrResponseTooLarge), endsAll
}

// endedBy reports whether err is the end of the context, rather than a failure at the same moment.
func endedBy(ctx context.Context, err error) bool {
	ended := ctx.Err()
	return ended != nil && errors.Is(err, ended)
}

// sleep waits for d or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// waitError means that a wait ended too early. The task or purge may still succeed, so its outcome is OutcomeUnknown,
// whatever the outcome of the failed poll.
type waitError struct {
	text   string
	causes []error
}

func (e *waitError) Error() string           { return e.text }
func (e *waitError) Unwrap() []error         { return e.causes }
func (e *waitError) outcomeOfWrite() Outcome { return OutcomeUnknown }
