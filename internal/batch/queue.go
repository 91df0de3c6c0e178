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
	linger     = 10 * time.Millisecond // how long an idle queue waits for further callers, and a leaving one for its response
	leastBytes = 64 << 10              // every gateway lets requests of this size pass
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

	mu         sync.Mutex // guards the fields below; functions whose names end with Locked are called with it
	pending    pending
	searching  []*request   // with parts that wait for permits; they take turns
	ahead      bool         // the last permit went to callers of hosts that are not suspect
	searched   bool         // of the others, the last one went to a refused request
	behind     [2]time.Time // of both lanes, see take
	hosts      hosts
	limits     Options   // the options, with fewer bytes if the service has refused a request as too large
	accepted   time.Time // when the service last accepted a request
	collecting bool      // a worker is acquiring permits
	deserted   signal    // all callers that waited for a permit have left
	unfinished int       // callers in requests that have no result and have not left
	dropped    int       // callers that had no result when the context of a Close ended
	stats      Stats     // without Pending and OldestAge
}

// New returns a queue.
func New(work Work, options Options) *Queue {
	return &Queue{
		work: work, options: options,
		underWay: semaphore.NewWeighted(int64(options.UnderWay)),
		closing:  newSignal(signal{}), gaveUp: newSignal(signal{}), abandoned: newSignal(signal{}), deserted: newSignal(signal{}),
		pending: pending{room: semaphore.NewWeighted(int64(options.MaxPending))}, hosts: hosts{known: map[string]host{}}, limits: options,
	}
}

// Put adds URIs to the queue and waits for their results. There must be at least one, no duplicates, and no more than
// MaxPending. They go into one request, usually with those of other callers. When ctx ends, Put returns within 10 ms,
// and URIs that were not sent are removed from the queue.
func (q *Queue) Put(ctx context.Context, uris []URI) Result {
	c := &caller{uris: uris, done: make(chan struct{})}
	for _, of := range byHost(uris) {
		c.hosts = append(c.hosts, of[0].Host)
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.closing, cancel)() // the queue's context is not the caller's
	if q.pending.room.Acquire(waiting, int64(len(uris))) != nil {
		return c.unsent(cmp.Or(ctx.Err(), ErrClosed))
	}
	q.mu.Lock()
	switch failures := q.hosts.failures(uris); {
	case q.closing.Err() != nil:
		c.end(c.unsent(ErrClosed))
	case failures != nil:
		q.stats.Refused += len(failures)
		c.end(Result{Failures: failures, Outcome: outcomes.NotApplied})
	default:
		c.since, c.element = time.Now(), q.pending.callers.PushBack(c)
		q.pending.uris += len(uris)
		q.collectLocked()
	}
	if c.ended {
		q.pending.room.Release(int64(len(uris)))
	}
	q.mu.Unlock()
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

// collectLocked starts a worker that acquires permits, unless there is one.
func (q *Queue) collectLocked() {
	if !q.collecting {
		q.collecting = true
		q.workers.Go(q.collect)
	}
}

// leave removes a caller that has stopped waiting, and returns its result. If its URIs are in a request under way, it
// waits a moment for the response: if the other callers leave as well, that says whether the request was sent.
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
	p := c.request.leave(c, reason)
	q.searchLocked(c.request)
	if p != nil {
		q.mu.Unlock()
		select {
		case <-p.over:
		case <-time.After(linger):
		}
		q.mu.Lock()
	}
	q.desertLocked(reason)
	return resultOf(c.uris, c.request.results, reason, q.work.Wait != nil)
}

// desertLocked cancels the wait for a permit if nobody waits for one any more.
func (q *Queue) desertLocked(reason error) {
	if q.pending.uris == 0 && len(q.searching) == 0 {
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
	q.collecting = q.pending.uris > 0 || len(q.searching) > 0
	return q.deserted, q.collecting
}

// withPermit waits until a request may be sent, and sends what comes next. If there is nothing, it ends the permit.
func (q *Queue) withPermit(ctx context.Context) error {
	if err := q.underWay.Acquire(ctx, 1); err != nil {
		return err
	}
	permit, err := q.work.Acquire(ctx)
	if err != nil || !q.usePermit(permit) {
		q.underWay.Release(1)
		if err == nil {
			permit.End(ctx, time.Time{})
		}
	}
	return err
}

// usePermit sends what comes next. It returns false if there is nothing.
func (q *Queue) usePermit(permit Permit) (used bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !used && (q.pending.uris > 0 || len(q.searching) > 0) {
		r := q.nextLocked()
		p := r.nextPart()
		if used = p != nil; used {
			q.workers.Go(func() { r.send(p, permit) })
		}
		q.searchLocked(r)
	}
	return used
}

// nextLocked returns the request that gets the permit. Every second one goes to callers of hosts that are not suspect. The
// others go in turn to a refused request and to callers of suspect hosts, but these wait for a while if URIs of their
// hosts are already part of a refused request.
func (q *Queue) nextLocked() *request {
	searched := map[string]bool{}
	for _, r := range q.searching {
		for _, uri := range r.waiting() {
			searched[uri.Host] = true
		}
	}
	suspect := func(c *caller) bool { return slices.ContainsFunc(c.hosts, q.hosts.suspect) }
	ahead := func(c *caller) bool { return !suspect(c) }
	alone := func(c *caller) bool {
		searchedNow := time.Since(c.since) < lately && slices.ContainsFunc(c.hosts, func(name string) bool { return searched[name] })
		return !searchedNow && suspect(c)
	}
	searching, waiting := len(q.searching) > 0, q.pending.first(alone) != nil
	if q.ahead = q.pending.first(ahead) != nil && (!q.ahead || !searching && !waiting); q.ahead {
		return q.newRequestLocked(q.pending.take(q.limits, ahead, &q.behind[0]))
	}
	if q.searched = searching && (!waiting || !q.searched); !q.searched {
		return q.newRequestLocked(q.pending.take(q.limits, alone, &q.behind[1]))
	}
	r := q.searching[0]
	q.searching = q.searching[1:]
	return r
}

// searchLocked puts a request behind all others if somebody waits for parts of it.
func (q *Queue) searchLocked(r *request) {
	if len(r.open) == 0 {
		r.nextPart() // forgets them
	}
	switch i := slices.Index(q.searching, r); {
	case len(r.parts) == 0 && i >= 0:
		q.searching = slices.Delete(q.searching, i, i+1)
	case len(r.parts) > 0 && i < 0:
		q.searching = append(q.searching, r)
		q.collectLocked()
	}
}

// learnSizeLocked learns from a response which size a gateway lets pass. It grows again with each request that has it.
func (q *Queue) learnSizeLocked(bytes int, response Response) {
	limit := &q.limits.MaxBytes
	if response.TooLarge {
		*limit = min(*limit, max(bytes/2, leastBytes))
	} else if response.Err == nil && bytes > *limit-*limit/16 {
		*limit = min(*limit+*limit/16, q.options.MaxBytes)
	}
}

func (q *Queue) noteFailureLocked(err error) {
	if q.stats.Failures++; q.stats.Failures == 1 {
		q.stats.Since = time.Now()
	}
	q.stats.Err = err
}

// failPermit records a failed wait for a permit, and fails whatever waits for one, except those that have come after all
// others had left. If a Close gave up, the failure says nothing of the service.
func (q *Queue) failPermit(deserted signal, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.gaveUp.Err() != nil:
		q.failLocked(ErrClosed) // of requests that were under way
	case deserted.Err() == nil:
		q.failLocked(err)
		q.noteFailureLocked(err)
	}
}

// failLocked fails whatever waits for a permit.
func (q *Queue) failLocked(err error) {
	for c := range q.pending.in(anybody) {
		q.pending.remove(c)
		c.end(c.unsent(err))
	}
	for _, r := range q.searching {
		r.decide(Response{Err: err, Outcome: outcomes.NotApplied}, r.waiting()...)
		r.parts = nil
		r.endCallers()
	}
	q.searching = nil
}

// Stats returns the present state of the queue.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.stats
	now.Pending = q.pending.uris
	if oldest := q.pending.callers.Front(); oldest != nil {
		now.OldestAge = time.Since(oldest.Value.(*caller).since)
	}
	return now
}
