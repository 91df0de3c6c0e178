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

// Failure is the meaning of a poll's error. The zero value is an outage, after which the wait polls again. Waits that
// the service asked for do not count as an outage.
type Failure struct {
	EndsOne bool          // this thing cannot be read; a Group keeps waiting for the others
	EndsAll bool          // nothing can be read
	After   time.Duration // wait that the service asked for before the next poll
	Within  time.Duration // waits that it asked for before retries within the poll
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
	since, announced := time.Now(), time.Duration(0) // start of an outage, and the waits asked for in it
	for interval := 500 * time.Millisecond; ; interval = min(interval*3/2, 5*time.Second) {
		done, read, err := poll(ctx)
		if read {
			l.Known, since, announced = true, time.Now(), 0
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
			failure := l.Judge(err, l.Known)
			announced += failure.Within
			if out := time.Since(since) - announced; l.Outage > 0 && out >= l.Outage {
				text := fmt.Sprintf("nothing could be read for %v", out.Round(time.Second))
				if announced > 0 {
					text += ", not counting the waits that the service asked for"
				}
				end.Err, end.Early = errors.New(text), true
				return &end
			}
			announced += failure.After
			wait = max(wait, failure.After)
		}
		if err := Sleep(ctx, wait); err != nil {
			end.Err, end.Early = err, true
			return &end
		}
	}
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
