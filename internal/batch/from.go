package batch

import (
	"cmp"
	"context"
	"errors"
)

// PutFrom acquires a permit, calls take, and sends the URIs of all calls that take returns in one request, without URIs
// of Put. The limits of the queue do not apply to them. Calls with a host that may be refused wait like those of Put
// instead. No call may contain a URI twice. PutFrom calls ended once for each call, as soon as the results of its URIs
// are known. If there is no permit or take fails, it returns that error, and nothing was sent. If take returns no calls,
// the permit is not used. If ctx ends before take has returned, PutFrom returns the error of the permit or of Left;
// otherwise every call gets a result.
func (q *Queue) PutFrom(ctx context.Context, take func(context.Context) ([][]URI, error), ended func(call int, result Result)) error {
	callers, err := q.takeAndSend(ctx, take)
	results, next := make([]Result, len(callers)), make(chan int)
	for i, c := range callers {
		go func() {
			results[i] = q.await(ctx, c)
			next <- i
		}()
	}
	for range callers {
		i := <-next
		ended(i, results[i])
	}
	return err
}

// takeAndSend starts a request and returns its callers. There are none if take returned no calls.
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
	defer context.AfterFunc(q.gaveUp, cancel)() //nolint:contextcheck // the queue's context is not the caller's
	err = q.withPermit(taking, func(permit Permit) (used bool, err error) {
		calls, err := take(taking)
		if err = cmp.Or(err, taking.Err()); err == nil {
			callers, used = q.sendCalls(calls, permit) //nolint:contextcheck // the requests have the queue's context
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
		q.stats.fail(err)
		q.reportLocked()
	case err == ctx.Err(), !errors.Is(err, ctx.Err()): //nolint:errorlint // otherwise it says more
		err = q.work.Left(ctx, false)
	}
	return nil, err
}

// sendCalls starts a request with the URIs of the calls that can go ahead. The others wait for a permit, as those of Put
// do. It returns a caller for each call, and whether the request has begun.
func (q *Queue) sendCalls(calls [][]URI, permit Permit) (callers []*caller, sent bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, uris := []*caller(nil), newLoad()
	for _, call := range calls {
		c := newCaller(call)
		callers = append(callers, c)
		switch {
		case q.gaveUp.Err() != nil:
			c.end(c.unsent(ErrClosed))
		case len(q.parts) < maxParts && q.pending.hosts.lane(c.hosts) == ahead:
			uris.add(call)
			now = append(now, c)
		default:
			q.addLocked(c)
		}
	}
	if len(now) > 0 {
		q.sendLocked(now, uris, permit)
	}
	return callers, len(now) > 0
}
