package batch

import "context"

// Result is the result of one call of [Queue.PutFrom].
type Result[Receipt any] struct {
	Receipt Receipt
	Err     error // nil, or an *[Error]
}

// PutFrom acquires a permit, calls take, and sends the items of all calls that take returns in one request. The items
// are not those of Put, and the limits of the queue do not apply to them. It returns the results of the calls, in order.
// If there is no permit or take fails, it returns that error, and nothing was sent. If take returns no calls, the permit
// is returned. If ctx ends, PutFrom returns at once: with the error of Left if the request has not begun, and otherwise
// with results for all calls.
func (q *Queue[Item, Receipt]) PutFrom(ctx context.Context, take func(context.Context) ([][]Item, error)) ([]Result[Receipt], error) {
	ended := ctx.Done() // user code that may panic
	f := &from[Item, Receipt]{queue: q, take: take, begun: make(chan struct{})}
	if !f.start(ctx) {
		return nil, q.work.Closed
	}
	select {
	case <-f.begun:
	case <-ended:
	case <-q.deserted:
	}
	callers, waits, err := f.leave()
	if waits {
		err = q.work.Left(ctx)
	}
	if err != nil {
		return nil, err
	}
	results := make([]Result[Receipt], len(callers))
	for i, c := range callers {
		results[i].Receipt, results[i].Err = q.await(ctx, ended, c)
	}
	return results, nil
}

// from is one call of PutFrom.
type from[Item comparable, Receipt any] struct {
	queue *Queue[Item, Receipt]
	take  func(context.Context) ([][]Item, error)
	begun chan struct{} // closed when the request has begun, or never will

	// The lock of the queue guards these.
	callers []*caller[Item, Receipt] // one for each call, if the request has begun
	failed  *Failure
	gone    bool // PutFrom waits no longer for the request to begin, so it must not begin
}

// start begins to wait for a permit. It returns false if the queue is closed.
func (f *from[Item, Receipt]) start(ctx context.Context) bool {
	q := f.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.crew.closed() {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(q.ctx, cancel) //nolint:contextcheck // the queue's context is not the caller's
	number := q.reports.outage.begin()
	q.crew.startLocked(func() error { return f.run(ctx) }, func(failed *Failure) {
		if f.failed = failed; failed == nil || ctx.Err() != nil {
			q.reports.outage.forget(number)
		} else {
			q.reports.outage.fail(number, failed.Err)
			q.reports.changedLocked()
		}
		stop()
		cancel()
		close(f.begun)
	})
	return true
}

// run acquires a permit, and starts to send what take returns.
func (f *from[Item, Receipt]) run(ctx context.Context) error {
	q := f.queue
	permit, err := q.acquire(ctx)
	if err != nil {
		return err
	}
	sent := false
	defer func() {
		if !sent { // also if take panicked
			defer q.underWay.Release(1)
			permit.Return(q.ctx)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	calls, err := f.take(ctx)
	if err != nil || len(calls) == 0 {
		return err
	}
	sent = f.send(calls, permit)
	return nil
}

// send starts to send calls in one request. It returns false if PutFrom waits no longer.
func (f *from[Item, Receipt]) send(calls [][]Item, permit Permit) bool {
	q := f.queue
	all := load[Item]{size: q.work.Size, known: map[Item]bool{}}
	callers := make([]*caller[Item, Receipt], len(calls))
	for i, items := range calls {
		callers[i], _ = q.callerOf(items)
		all.put(callers[i].items)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if f.gone {
		return false
	}
	f.callers = callers
	q.sendLocked(callers, all.items, permit)
	return true
}

// leave returns the callers whose request has begun, or why none has. From now on none begins. waits means that nothing
// is known yet.
func (f *from[Item, Receipt]) leave() (callers []*caller[Item, Receipt], waits bool, err error) {
	q := f.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	f.gone = true
	switch {
	case f.callers != nil:
		return f.callers, false, nil
	case q.ctx.Err() != nil:
		return nil, false, q.work.Closed
	case f.failed != nil:
		return nil, false, f.failed.Err
	}
	select {
	case <-f.begun:
		return nil, false, nil
	default:
		return nil, true, nil
	}
}
