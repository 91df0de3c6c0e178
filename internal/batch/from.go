package batch

import (
	"cmp"
	"context"
	"errors"
)

// PutFrom acquires a permit, calls take, and sends the URIs of all calls that take returns in one request; those with a
// host that may be refused wait like callers of Put. The limits of the queue do not apply. No call may contain a URI
// twice. PutFrom calls ended once for each call, as soon as its results are known. If there is no permit, take fails, or
// ctx ends before it has returned, PutFrom returns the error of the permit, of take or of Left, and nothing was sent.
func (q *Queue) PutFrom(ctx context.Context, take func(context.Context) ([][]URI, error), ended func(call int, result Result)) error {
	callers, err := q.takeAndSend(ctx, take)
	next := make(chan func())
	for i, c := range callers {
		go func() {
			result := q.await(ctx, c)
			next <- func() { ended(i, result) }
		}()
	}
	for range callers {
		(<-next)()
	}
	return err
}

// takeAndSend starts a request and returns its callers.
func (q *Queue) takeAndSend(ctx context.Context, take func(context.Context) ([][]URI, error)) (callers []*caller, err error) {
	q.mu.Lock()
	if q.closing.Err() != nil {
		q.mu.Unlock()
		return nil, ErrClosed
	}
	q.workers.Add(1) // Close waits for it
	q.mu.Unlock()
	defer q.workers.Done()
	taking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.gaveUp, cancel)() // the queue's context is not the caller's
	err = q.withPermit(taking, func(permit Permit) (used bool, err error) {
		calls, err := take(taking)
		if err = cmp.Or(err, taking.Err()); err == nil {
			callers, used = q.sendCalls(calls, permit)
		}
		return used, err
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err == nil:
		return callers, nil
	case q.gaveUp.Err() != nil:
		return nil, ErrClosed
	case ctx.Err() == nil:
		q.stats.Failures++
		q.stats.Err = err
	case err == ctx.Err(), !errors.Is(err, ctx.Err()): //nolint:errorlint // otherwise it says more
		err = q.work.Left(ctx, false)
	}
	return nil, err
}

// sendCalls starts a request with the calls that can go ahead. It returns a caller for each call, and whether there is a
// request.
func (q *Queue) sendCalls(calls [][]URI, permit Permit) (callers []*caller, sent bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var now []*caller
	for _, call := range calls {
		c := newCaller(call)
		callers = append(callers, c)
		switch {
		case q.gaveUp.Err() != nil:
			c.end(c.unsent(ErrClosed))
		case len(q.parts) < 2*maxParts && q.pending.hosts.lane(c.hosts) == ahead:
			now = append(now, c)
		default:
			q.addLocked(c)
		}
	}
	if len(now) > 0 {
		q.sendLocked(now, permit)
	}
	return callers, len(now) > 0
}
