package batch

import (
	"cmp"
	"context"
	"errors"
)

// PutFrom acquires a permit, calls take, and sends the URIs of all calls that take returns in one request, without URIs
// of Put. The limits of the queue do not apply to them. No call may contain a URI twice. PutFrom calls ended once for
// each call, as soon as the results of its URIs are known. If there is no permit or take fails, it returns that error,
// and nothing was sent. If take returns no calls, the permit is not used. If ctx ends before the request has begun,
// PutFrom returns the error of the permit or of Left; otherwise every call gets a result.
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
	q.workers++ // Close waits for it
	q.mu.Unlock()
	defer q.endWorker()
	taking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.gaveUp, cancel)() //nolint:contextcheck // the queue's context is not the caller's
	_, err = q.withPermit(taking, func(permit Permit) (bool, error) {
		calls, err := take(taking)
		if err = cmp.Or(err, taking.Err()); err != nil || len(calls) == 0 {
			return false, err
		}
		callers = q.sendCalls(calls, permit) //nolint:contextcheck // the requests have the queue's context
		return true, nil
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err == nil:
		return callers, nil
	case q.gaveUp.Err() != nil:
		return nil, ErrClosed
	case ctx.Err() != nil && err != ctx.Err() && errors.Is(err, ctx.Err()): //nolint:errorlint // err says more
		return nil, err
	case ctx.Err() != nil:
		return nil, q.work.Left(ctx, false)
	default:
		q.stats.fail(err)
		q.reportLocked()
		return nil, err
	}
}

// sendCalls starts a request with the URIs of the calls. It returns a caller for each call.
func (q *Queue) sendCalls(calls [][]URI, permit Permit) (callers []*caller) {
	all := newLoad()
	for _, uris := range calls {
		callers = append(callers, newCaller(uris))
		all.add(uris)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sendLocked(callers, all, permit)
	return callers
}
