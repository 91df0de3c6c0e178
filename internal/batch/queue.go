package batch

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// linger is how long an idle queue waits for further callers before it acquires a permit.
const linger = 10 * time.Millisecond

// Queue combines the URIs of any number of goroutines into few requests. It is safe for concurrent use. An idle queue
// has no goroutine.
type Queue struct {
	work      Work
	options   Options
	underWay  *semaphore.Weighted
	closing   signal // Close has been called
	gaveUp    signal // the context of a Close has ended
	idle      signal // Close has been called, and no worker is running
	abandoned signal // a Close has returned although a worker is still running

	mu         sync.Mutex // guards the fields below
	workers    int        // goroutines of the queue, and PutFrom calls that have not begun a request
	pending    pending
	sent       map[*caller]bool // callers whose URIs are in a request, except those that have left
	collecting bool             // a worker is acquiring permits
	deserted   signal           // all callers that waited for a permit have left
	left       error            // why the last of them left
	dropped    int              // URIs that had not ended when the context of a Close ended
	stats      statistics
}

// New returns a queue.
func New(work Work, options Options) *Queue {
	return &Queue{
		work: work, options: options,
		underWay: semaphore.NewWeighted(int64(options.UnderWay)),
		closing:  newSignal(signal{}), gaveUp: newSignal(signal{}), idle: newSignal(signal{}), abandoned: newSignal(signal{}), deserted: newSignal(signal{}),
		pending: pending{room: semaphore.NewWeighted(int64(options.MaxPending))},
		sent:    map[*caller]bool{},
	}
}

// Put adds URIs to the queue and waits for their results. There must be at least one, no duplicates, and no more than
// MaxPending. The URIs of one call go into one request, possibly with those of other callers. When ctx ends, Put
// returns at once, and URIs that were not sent are removed from the queue.
func (q *Queue) Put(ctx context.Context, uris []URI) Result {
	c := newCaller(uris)
	if err := q.enter(ctx, c); err != nil {
		return c.unsent(err)
	}
	return q.await(ctx, c)
}

// enter waits until the queue has room for a caller, and adds it.
func (q *Queue) enter(ctx context.Context, c *caller) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.closing, cancel)() //nolint:contextcheck // the queue's context is not the caller's
	if q.pending.room.Acquire(waiting, int64(len(c.uris))) != nil {
		return cmp.Or(ctx.Err(), ErrClosed)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing.Err() != nil {
		q.pending.room.Release(int64(len(c.uris)))
		return ErrClosed
	}
	c.since = time.Now()
	q.pending.add(c)
	if !q.collecting {
		q.collecting = true
		q.goLocked(q.collect)
	}
	return nil
}

// await waits for the result of a caller, or for the end of its context.
func (q *Queue) await(ctx context.Context, c *caller) Result {
	select {
	case <-c.done:
		return c.result
	case <-ctx.Done():
		q.mu.Lock()
		sent := c.request != nil
		q.mu.Unlock()
		return q.leave(c, q.work.Left(ctx, sent))
	case <-q.abandoned.Done():
		return q.leave(c, ErrClosed)
	}
}

// leave removes a caller that has stopped waiting, and returns its result.
func (q *Queue) leave(c *caller, reason error) Result {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.ended { // concurrently
		return c.result
	}
	c.ended = true
	if c.request == nil {
		if q.pending.remove(c); q.pending.uris == 0 {
			q.left = reason
			q.deserted.set()
		}
		return c.unsent(reason)
	}
	delete(q.sent, c)
	for _, j := range c.jobs {
		j.leave(reason)
	}
	return q.resultLocked(c, reason)
}

// goLocked calls f in a new goroutine. The caller holds the lock.
func (q *Queue) goLocked(f func()) {
	q.workers++
	go func() {
		defer q.endWorker()
		f()
	}()
}

func (q *Queue) endWorker() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.workers--
	q.checkIdleLocked()
}

// collect acquires permits and sends pending URIs until there are none.
func (q *Queue) collect() {
	time.Sleep(linger)
	for {
		deserted, ok := q.beginPermit()
		if !ok {
			return
		}
		if sent, err := q.withPermit(deserted, q.sendPending); !sent {
			q.failPermit(deserted, err)
		}
	}
}

// beginPermit returns the context for a wait for a permit. It returns false if no caller is pending.
func (q *Queue) beginPermit() (deserted signal, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deserted.set() // releases the signal of the last wait
	if q.collecting = q.pending.uris > 0; !q.collecting {
		return signal{}, false
	}
	q.deserted = newSignal(q.gaveUp)
	return q.deserted, true
}

// withPermit waits until a request may be sent, and calls send with its permit. If send does not use the permit,
// withPermit ends it.
func (q *Queue) withPermit(ctx context.Context, send func(Permit) (sent bool, err error)) (sent bool, err error) {
	if err := q.underWay.Acquire(ctx, 1); err != nil {
		return false, err
	}
	var permit Permit
	defer func() {
		if sent {
			return
		}
		q.underWay.Release(1)
		if permit != nil {
			permit.End(ctx, time.Time{})
		}
	}()
	if permit, err = q.work.Acquire(ctx); err != nil {
		return false, err
	}
	return send(permit)
}

// sendPending starts a request with pending URIs. It returns false if there are none.
func (q *Queue) sendPending(permit Permit) (sent bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	callers, next := q.pending.take(q.options)
	if len(callers) > 0 {
		q.sendLocked(callers, next, permit)
	}
	return len(callers) > 0, nil
}

// failPermit records a failed wait for a permit, and fails the pending callers. If it failed because all callers had
// left, those that have come since then wait for the next permit. If a Close gave up, it has failed the callers
// already, and the failure says nothing about the service.
func (q *Queue) failPermit(deserted signal, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.gaveUp.Err() != nil:
		return
	case deserted.Err() != nil:
		err = whyFailed(q.left, err)
	default:
		q.pending.fail(err)
	}
	q.stats.fail(err)
	q.reportLocked()
}

// whyFailed joins the reason why the last caller left with the error of its work.
func whyFailed(left, err error) error {
	if err == context.Canceled { //nolint:errorlint // alone, it only means that all callers have left
		return left
	}
	return errors.Join(left, err)
}
