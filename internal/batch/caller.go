package batch

import (
	"cmp"
	"container/list"
	"context"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

// caller is a call of Put. The queue's lock guards its fields, except uris and done. result does not change after done is
// closed.
type caller struct {
	uris    []URI // without duplicates
	hosts   []string
	since   time.Time
	element *list.Element // in pending.callers
	request *request      // the request with the URIs; nil while they are pending

	ended  bool // it has a result, or has left
	result Result
	done   chan struct{} // closed when there is a result
}

// unsent returns the result of a caller whose URIs were not sent.
func (c *caller) unsent(err error) Result {
	failures := make([]Failure, len(c.uris))
	for i, uri := range c.uris {
		failures[i] = Failure{URI: uri, Err: err, Outcome: outcomes.NotApplied}
	}
	return Result{Failures: failures, Outcome: outcomes.NotApplied}
}

// end ends a caller. It must be called only once.
func (c *caller) end(result Result) {
	c.ended, c.result = true, result
	close(c.done)
}

// signal is a context that ends when set is called. set may be called several times; the first cause counts.
type signal struct {
	context.Context // no caller's context may end another's work

	set context.CancelCauseFunc
}

// newSignal returns a signal that is also set when with is set. The zero signal is never set.
func newSignal(with signal) signal {
	ctx, cancel := context.WithCancelCause(cmp.Or(with.Context, context.Background()))
	return signal{ctx, cancel}
}
