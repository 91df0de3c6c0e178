package batch

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// linger is how long an idle queue lets further callers gather before it acquires a permit.
const linger = 10 * time.Millisecond

// Queue gathers the URIs of any number of goroutines into few requests. It is safe for concurrent use. An idle queue
// has no goroutine.
type Queue struct {
	work      Work
	options   Options
	underWay  *semaphore.Weighted
	closing   signal // Close has begun
	gaveUp    signal // the context of a Close has ended
	idle      signal // Close has begun, and no worker runs
	abandoned signal // a Close has returned although a worker still runs

	mu         sync.Mutex // guards the fields below
	workers    int        // goroutines of the queue, and calls of PutFrom that have not begun a request
	pending    pending
	sent       map[*caller]bool // callers whose URIs are in a request, without those that have left
	collecting bool             // a worker acquires permits
	deserted   signal           // all callers have left the wait for a permit
	left       error            // why the last of them left
	dropped    int              // URIs that had not ended when the context of a Close ended
	stats      statistics
}

// New returns a queue. Nothing is sent before its first Put.
func New(work Work, options Options) *Queue {
	return &Queue{
		work: work, options: options,
		underWay: semaphore.NewWeighted(int64(options.UnderWay)),
		closing:  newSignal(signal{}), gaveUp: newSignal(signal{}), idle: newSignal(signal{}), abandoned: newSignal(signal{}), deserted: newSignal(signal{}),
		pending: pending{room: semaphore.NewWeighted(int64(options.MaxPending))},
		sent:    map[*caller]bool{},
	}
}

// Put adds URIs to the queue and waits until they have ended. There must be at least one, none twice, and not more than
// MaxPending. The URIs of one call go into one request, together with those of other callers. When ctx ends, Put
// returns at once, and URIs that were not sent leave the queue.
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

// await waits until the URIs of a caller have ended, or its context has.
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
	if c.ended { // at the same moment
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

// goLocked calls f in a goroutine. The lock is held.
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

// collect acquires permits and sends what waits, until nothing does.
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

// beginPermit returns the context of a wait for a permit. It returns false if no caller waits.
func (q *Queue) beginPermit() (deserted signal, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deserted.set() // that of the last wait
	if q.collecting = q.pending.uris > 0; !q.collecting {
		return signal{}, false
	}
	q.deserted = newSignal(q.gaveUp)
	return q.deserted, true
}

// withPermit waits until a request may be sent, and calls send with its permit. If send does not use the permit,
// withPermit returns it.
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

// sendPending starts to send what waits. It returns false if nothing does.
func (q *Queue) sendPending(permit Permit) (sent bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	callers, next := q.pending.take(q.options)
	if len(callers) > 0 {
		q.sendLocked(callers, next, permit)
	}
	return len(callers) > 0, nil
}

// failPermit counts a wait for a permit that was not used, and fails the waiting callers. If the permit failed because
// all callers had left, those that have come since then wait for the next one. If a Close gave up, it has failed the
// callers, and says nothing about the service.
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

// whyFailed joins the reason for which the last caller has left with the error of its work.
func whyFailed(left, err error) error {
	if err == context.Canceled { //nolint:errorlint // this very error says only that all callers have left
		return left
	}
	return errors.Join(left, err)
}
