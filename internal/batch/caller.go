package batch

import (
	"cmp"
	"container/list"
	"context"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// caller is a call of Put, or one of the calls in PutFrom. The queue's lock guards its fields, except uris and done.
// result does not change after done is closed.
type caller struct {
	uris    []URI // without duplicates
	since   time.Time
	place   *list.Element // its element in pending.callers
	request *request      // the request with the URIs; nil while they are pending
	jobs    []*job        // work done for this caller, possibly shared with others
	waits   int           // number of transactions to wait for

	ended  bool // it has a result, or has left
	result Result
	done   chan struct{} // closed when there is a result
}

func newCaller(uris []URI) *caller { return &caller{uris: uris, done: make(chan struct{})} }

// unsent returns the result of a caller whose URIs were not sent.
func (c *caller) unsent(err error) Result {
	return Result{Failed: c.uris, Err: err, Outcome: transport.NotApplied}
}

// end ends a caller. It must be called only once.
func (c *caller) end(result Result) {
	c.ended, c.result = true, result
	close(c.done)
}

// signal is a context that ends when set is called. set may be called several times.
type signal struct {
	context.Context //nolint:containedctx // no caller's context may end another's work

	set context.CancelFunc
}

// newSignal returns a signal that is also set when with is set. The zero signal is never set.
func newSignal(with signal) signal {
	ctx, cancel := context.WithCancel(cmp.Or(with.Context, context.Background()))
	return signal{ctx, cancel}
}

// job is work that several callers share. It is canceled when all of them have left.
type job struct {
	canceled signal
	callers  int   // number of callers that have not left
	left     error // why the last caller left; nil while there is one
}

func (j *job) add(c *caller) {
	j.callers++
	c.jobs = append(c.jobs, j)
}

func (j *job) leave(reason error) {
	if j.callers--; j.callers == 0 {
		j.left = reason
		j.canceled.set()
	}
}
