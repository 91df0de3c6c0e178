// Package waiting polls until something has ended, and continues through outages. A [Loop] waits for one thing, a
// [Group] for many. The package must not depend on HTTP, tasks or transactions, nor know what an error means.
package waiting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Loop polls at once and then at intervals. Judge is required.
type Loop struct {
	Every   time.Duration // poll interval; 0 means from 500 ms, growing by 50 % up to 5 s, with 20 % jitter
	Timeout time.Duration // of the whole wait; 0 means none
	Outage  time.Duration // the wait ends when nothing could be read for this long; 0 means never
	Known   bool          // the polled thing is known to exist; the first successful poll sets it
	// Judge returns what the error of a poll means. It is not called for the end of the context.
	Judge func(err error, known bool) Failure
}

// Failure is the meaning of a poll's error. The zero value is an outage, after which the wait polls again.
type Failure struct {
	EndsOne bool          // this thing cannot be read; a Group keeps waiting for the others
	EndsAll bool          // nothing can be read
	After   time.Duration // wait that the service asked for before the next poll
}

func (f Failure) ends() bool { return f.EndsOne || f.EndsAll }

// Run polls until done is true, or until an error of poll, the context, the timeout or an outage ends the wait. read
// reports whether a poll has read anything, which a Group may have done despite an error. Run's error is an [*Ended].
func (l *Loop) Run(ctx context.Context, poll func(context.Context) (done, read bool, err error)) error {
	if l.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Timeout)
		defer cancel()
	}
	var end Ended
	since := time.Now() // start of an outage
	for interval := 500 * time.Millisecond; ; interval = min(interval*3/2, 5*time.Second) {
		done, read, err := poll(ctx)
		if read {
			l.Known, since = true, time.Now()
		}
		switch {
		case done:
			return nil
		case err == nil:
			end = Ended{Polls: end.Polls + 1}
		case endedBy(ctx, err):
			end.Polls, end.Err, end.Early = end.Polls+1, err, true
			return &end
		case l.Judge(err, l.Known).ends():
			return &Ended{Polls: end.Polls + 1, Err: err}
		default:
			end = Ended{Polls: end.Polls + 1, Failed: end.Failed + 1, Last: err}
		}
		wait := cmp.Or(l.Every, interval*4/5+rand.N(interval*2/5)) //nolint:gosec // jitter need not be secure
		if err != nil {
			asked, left := l.Judge(err, l.Known).After, l.Outage-time.Since(since)
			if l.Outage > 0 && left <= 0 {
				end.Err, end.Early = outageOf(l.Outage-left, asked), true
				return &end
			}
			if wait = max(wait, asked); l.Outage > 0 {
				wait = min(wait, left) // one more poll at the end
			}
		}
		if err := Sleep(ctx, wait); err != nil {
			end.Err, end.Early = err, true
			return &end
		}
	}
}

// outageOf returns why an outage ends a wait. asked is the wait that the service asked for last.
func outageOf(d, asked time.Duration) error {
	text := fmt.Sprintf("nothing could be read for %v", d.Round(time.Second))
	if asked > 0 {
		text += fmt.Sprintf(", and the service asked to wait for another %v", asked.Round(time.Second))
	}
	return errors.New(text)
}

// endedBy reports whether err is the end of the context, rather than a failure at the same moment.
func endedBy(ctx context.Context, err error) bool {
	ended := ctx.Err()
	return ended != nil && errors.Is(err, ended)
}

// Sleep waits for d or until the context ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Ended means that a wait ended early.
type Ended struct {
	Err    error // error of the context, or of the poll that ended the wait
	Early  bool  // the context, the timeout or an outage has ended the wait
	Polls  int   // number of polls, or of rounds of a Group, including the last
	Failed int   // number of polls that failed in a row before that
	Last   error // error of the last of these; nil if none failed
}

// Error returns why the wait ended, and how the last polls failed.
func (e *Ended) Error() string {
	switch {
	case e.Failed > 1:
		return fmt.Sprintf("%v; the last %d polls failed: %v", e.Err, e.Failed, e.Last)
	case e.Failed == 1:
		return fmt.Sprintf("%v; the last poll failed: %v", e.Err, e.Last)
	default:
		return e.Err.Error()
	}
}

// Unwrap returns the cause of the end and the error of the last failed poll.
func (e *Ended) Unwrap() []error {
	if e.Last == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Last}
}
