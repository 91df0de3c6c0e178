package batch

import (
	"cmp"
	"context"
	"errors"
)

// PutFrom acquires a permit, calls take, and sends the URIs of all calls that take returns in one request. They are not
// those of Put, and the limits of the queue do not apply to them. No call may have a URI twice. PutFrom calls ended once
// for each call, as soon as its URIs have ended. If there is no permit or take fails, it returns that error, and nothing
// was sent. If take returns no calls, the permit is returned. If ctx ends before the request has begun, PutFrom returns
// the error of the permit or of Left, and otherwise every call gets a result.
func (q *Queue) PutFrom(ctx context.Context, take func(context.Context) ([][]URI, error), ended func(call int, result Result)) error {
	callers, over, err := q.takeAndSend(ctx, take)
	if err != nil {
		return err
	}
	open := make(map[*caller]int, len(callers))
	for i, c := range callers {
		open[c] = i
	}
	for len(open) > 0 {
		select {
		case c := <-over:
			ended(open[c], c.result)
			delete(open, c)
			continue
		case <-ctx.Done():
			err = q.work.Left(ctx, true)
		case <-q.abandoned.Done():
			err = ErrClosed
		}
		for i, c := range callers {
			if _, waits := open[c]; waits {
				ended(i, q.leave(c, err))
			}
		}
		return nil
	}
	return nil
}

// takeAndSend returns the callers of the request that it has begun; none if take returned no calls.
func (q *Queue) takeAndSend(ctx context.Context, take func(context.Context) ([][]URI, error)) (callers []*caller, over <-chan *caller, err error) {
	q.mu.Lock()
	closed := q.closing.Err() != nil
	if !closed {
		q.workers++ // Close waits for it
	}
	q.mu.Unlock()
	if closed {
		return nil, nil, ErrClosed
	}
	defer q.endWorker()
	taking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.gaveUp, cancel)() //nolint:contextcheck // the queue's context is not the caller's
	_, err = q.withPermit(taking, func(permit Permit) (bool, error) {
		calls, err := take(taking)
		if err = cmp.Or(err, taking.Err()); err != nil || len(calls) == 0 {
			return false, err
		}
		callers, over = q.sendCalls(calls, permit) //nolint:contextcheck // the requests have the queue's context
		return true, nil
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err == nil:
		return callers, over, nil
	case q.gaveUp.Err() != nil:
		return nil, nil, ErrClosed
	case ctx.Err() != nil && err != ctx.Err() && errors.Is(err, ctx.Err()): //nolint:errorlint // it says more
		return nil, nil, err
	case ctx.Err() != nil:
		return nil, nil, q.work.Left(ctx, false)
	default:
		q.stats.fail(err)
		q.reportLocked()
		return nil, nil, err
	}
}

// sendCalls starts to send the URIs of some calls. It returns a caller for each, and a channel that gets each of them
// when it has a result.
func (q *Queue) sendCalls(calls [][]URI, permit Permit) (callers []*caller, over <-chan *caller) {
	all := newLoad()
	ended := make(chan *caller, len(calls))
	for _, uris := range calls {
		c := newCaller(uris)
		c.over = ended
		callers = append(callers, c)
		all.add(uris)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sendLocked(callers, all, permit)
	return callers, ended
}
