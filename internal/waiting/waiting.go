// Package waiting polls until something has ended, and continues through outages: a [Loop] one thing, a [Group] many. It
// knows time, contexts and errors. It must not know HTTP, tasks, transactions, or what an error means.
package waiting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Loop polls at once and then after each interval. Judge is set.
type Loop struct {
	Every   time.Duration // poll interval; 0: from 500 ms, growing by 1.5 up to 5 s, with 20 % jitter
	Timeout time.Duration // of the whole wait; 0: only the context limits it
	Outage  time.Duration // the wait ends when nothing could be read for this time; 0: never
	Known   bool          // the polled thing certainly exists; set by the first successful poll
	// Judge says what the error of a poll means. It is not called for the end of the context.
	Judge func(err error, known bool) Failure
}

// Failure is what the error of a poll means: an outage, after which the wait polls again, unless it ends something. The
// time that the service has asked to wait does not count as an outage.
type Failure struct {
	EndsOne bool          // this thing cannot be read; a Group continues to wait for the others
	EndsAll bool          // nothing can be read
	After   time.Duration // the service has asked to wait so long before the next poll
	Within  time.Duration // it has asked to wait so long before retries within the poll
}

func (f Failure) ends() bool { return f.EndsOne || f.EndsAll }

// Run polls until poll returns true, its error ends the wait, or the context, the timeout or an outage ends it. read
// reports whether a poll has read anything, which a Group may have done despite an error. The error is an [*Ended].
func (l *Loop) Run(ctx context.Context, poll func(context.Context) (done, read bool, err error)) error {
	if l.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Timeout)
		defer cancel()
	}
	var end Ended
	since, announced := time.Now(), time.Duration(0) // of an outage
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
		wait := cmp.Or(l.Every, interval*4/5+rand.N(interval*2/5)) //nolint:gosec // jitter is no secret
		if err != nil {
			failure := l.Judge(err, l.Known)
			announced += failure.Within
			if out := time.Since(since) - announced; l.Outage > 0 && out >= l.Outage {
				text := fmt.Sprintf("nothing could be read for %v", out.Round(time.Second))
				if announced > 0 {
					text += ", beside the waits that the service asked for"
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

// endedBy reports whether err is the end of the context, and not a failure that came at the same moment.
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
	Err    error // that of the context, or of the poll that ended the wait
	Early  bool  // the context, the timeout or an outage has ended the wait
	Polls  int   // or rounds of a Group, the last included
	Failed int   // number of polls in a row that failed before that
	Last   error // of the last of these; nil if none failed
}

// Error says why the wait ended, and how the last polls failed.
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
