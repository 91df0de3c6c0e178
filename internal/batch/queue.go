package batch

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

const (
	linger   = 10 * time.Millisecond // how long an idle queue waits for further callers before it acquires a permit
	maxParts = 8                     // so many waiting parts of refused requests hold back lane apart, twice as many all callers
)

// Queue combines the URIs of any number of goroutines into few requests. It is safe for concurrent use. An idle queue
// has no goroutine.
type Queue struct {
	work      Work
	options   Options
	underWay  *semaphore.Weighted // requests and parts without a response
	closing   signal              // Close has been called
	gaveUp    signal              // the context of a Close has ended
	abandoned signal              // a Close has returned although a worker is still running
	workers   sync.WaitGroup      // goroutines of the queue

	mu         sync.Mutex // guards the fields below
	pending    pending
	parts      []*part // of refused requests, waiting for permits
	behind     bool    // the last permit did not go to lane ahead
	collecting bool    // a worker is acquiring permits
	deserted   signal  // all callers that waited for a permit have left
	unfinished int     // callers in requests that have no result and have not left
	dropped    int     // callers that had no result when the context of a Close ended
	stats      Stats   // without Pending and OldestAge
}

// part is a part of a refused request that waits for its permit.
type part struct {
	since   time.Time
	granted chan struct{} // closed when the permit or the error is there
	permit  Permit
	err     error
}

// New returns a queue.
func New(work Work, options Options) *Queue {
	return &Queue{
		work: work, options: options,
		underWay: semaphore.NewWeighted(int64(options.UnderWay)),
		closing:  newSignal(signal{}), gaveUp: newSignal(signal{}), abandoned: newSignal(signal{}), deserted: newSignal(signal{}),
		pending: pending{room: semaphore.NewWeighted(int64(options.MaxPending)), hosts: hosts{known: map[string]host{}}},
	}
}

// Put adds URIs to the queue and waits for their results. There must be at least one, no duplicates, and no more than
// MaxPending. They go into one request, usually with those of other callers. When ctx ends, Put returns at once, and
// URIs that were not sent are removed from the queue.
func (q *Queue) Put(ctx context.Context, uris []URI) Result {
	c := newCaller(uris)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.closing, cancel)() // the queue's context is not the caller's
	room := int64(len(uris))
	if q.pending.room.Acquire(waiting, room) != nil {
		return c.unsent(cmp.Or(ctx.Err(), ErrClosed))
	}
	q.mu.Lock()
	if q.closing.Err() != nil {
		q.mu.Unlock()
		q.pending.room.Release(room)
		return c.unsent(ErrClosed)
	}
	c.room = room
	q.addLocked(c)
	q.mu.Unlock()
	return q.await(ctx, c)
}

// addLocked adds a caller. The caller of addLocked holds the lock.
func (q *Queue) addLocked(c *caller) {
	if failures := q.pending.hosts.failures(c); failures != nil {
		q.stats.Refused += len(failures)
		q.pending.room.Release(c.room)
		c.end(Result{Failures: failures, Outcome: outcomes.NotApplied})
		return
	}
	c.since, c.element = time.Now(), q.pending.callers.PushBack(c)
	q.pending.uris += len(c.uris)
	q.collectLocked()
}

// collectLocked starts a worker that acquires permits if something can be sent, unless there is one. The caller holds
// the lock.
func (q *Queue) collectLocked() {
	if !q.collecting {
		q.collecting = true
		q.workers.Go(q.collect)
	}
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
		q.pending.remove(c)
		q.desertLocked(reason)
		return c.unsent(reason)
	}
	c.request.leaveLocked(reason)
	return resultOf(c.uris, c.request.results, reason, q.work.Wait != nil)
}

// desertLocked cancels the wait for a permit if nobody waits for one any more. The caller holds the lock.
func (q *Queue) desertLocked(reason error) {
	if q.pending.uris == 0 && len(q.parts) == 0 {
		q.deserted.set(reason)
	}
}

// collect acquires permits and uses them until nothing can be sent.
func (q *Queue) collect() {
	time.Sleep(linger)
	for deserted, ok := q.beginPermit(); ok; deserted, ok = q.beginPermit() {
		if err := q.withPermit(deserted); err != nil {
			q.failPermit(deserted, err)
		}
	}
}

// beginPermit returns the context for a wait for a permit. It returns false if nothing can be sent.
func (q *Queue) beginPermit() (deserted signal, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deserted.set(nil) // releases the signal of the last wait
	q.deserted = newSignal(q.gaveUp)
	q.collecting = q.nextLocked() != none
	return q.deserted, q.collecting
}

// withPermit waits until a request may be sent, and sends what comes next. If there is nothing, it ends the permit.
func (q *Queue) withPermit(ctx context.Context) error {
	if err := q.underWay.Acquire(ctx, 1); err != nil {
		return err
	}
	var permit Permit
	var err error
	used := false
	defer func() {
		if !used {
			q.underWay.Release(1)
		}
		if !used && permit != nil {
			permit.End(ctx, time.Time{})
		}
	}()
	if permit, err = q.work.Acquire(ctx); err == nil {
		used = q.usePermit(permit)
	}
	return err
}

// nextLocked returns the lane that gets the next permit: ahead, unless it got the last one; or a part of a refused request
// or the callers in lane apart, whichever have waited longer. The caller holds the lock.
func (q *Queue) nextLocked() lane {
	next := none
	if len(q.parts) > 0 {
		next = search
	}
	if c := q.pending.first(apart); c != nil && len(q.parts) < maxParts && (next == none || c.since.Before(q.parts[0].since)) {
		next = apart
	}
	if (next == none || q.behind) && len(q.parts) < 2*maxParts && q.pending.first(ahead) != nil {
		next = ahead
	}
	return next
}

// usePermit uses a permit for what comes next. It returns false if there is nothing.
func (q *Queue) usePermit(permit Permit) (used bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	next := q.nextLocked()
	switch q.behind = next != ahead; next {
	case ahead, apart:
		q.sendLocked(q.pending.take(next, q.options), permit)
	case search:
		q.parts[0].grant(permit, nil)
		q.parts = q.parts[1:]
	case none:
	}
	return next != none
}

// acquirePart waits for a permit for a part of a request, until the request is canceled.
func (q *Queue) acquirePart(canceled signal) (Permit, error) {
	p := &part{since: time.Now(), granted: make(chan struct{})}
	q.mu.Lock()
	q.parts = append(q.parts, p)
	q.collectLocked()
	q.mu.Unlock()
	select {
	case <-p.granted:
	case <-canceled.Done():
		q.mu.Lock()
		if i := slices.Index(q.parts, p); i >= 0 { // otherwise it has its permit by now
			q.parts = slices.Delete(q.parts, i, i+1)
			p.grant(nil, canceled.Err())
			q.desertLocked(context.Cause(canceled))
		}
		q.mu.Unlock()
		<-p.granted
	}
	return p.permit, p.err
}

func (p *part) grant(permit Permit, err error) {
	p.permit, p.err = permit, err
	close(p.granted)
}

// failPermit records a failed wait for a permit, and fails whatever waits for one, except those that have come after all
// others had left. If a Close gave up, it has failed the callers already, and the failure says nothing of the service.
func (q *Queue) failPermit(deserted signal, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.gaveUp.Err() != nil:
		return
	case deserted.Err() != nil:
		err = context.Cause(deserted)
	default:
		q.pending.fail(err)
		for _, p := range q.parts {
			p.grant(nil, err)
		}
		q.parts = nil
	}
	q.stats.Failures++
	q.stats.Err = err
}
