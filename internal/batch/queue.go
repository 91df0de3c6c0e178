package batch

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// linger is how long an idle queue waits for further callers before it acquires a permit.
const linger = 10 * time.Millisecond

// Queue gathers the items of any number of goroutines into few requests. It is safe for concurrent use. An idle queue
// has no goroutine.
type Queue[Item comparable, Receipt any] struct {
	work     Work[Item, Receipt]
	options  Options
	underWay *semaphore.Weighted
	ctx      context.Context //nolint:containedctx // ends with the context of a Close, because no caller's context may end another's request
	cancel   context.CancelFunc

	mu      sync.Mutex
	crew    crew
	line    line[Item, Receipt]
	sent    map[*caller[Item, Receipt]]bool // callers whose items are in a request
	reports reporter
	running bool               // a goroutine acquires permits
	stop    context.CancelFunc // cancels the wait for a permit when all callers have left
	left    error              // why the last of these callers left
	dropped int                // items that had not ended when the context of a Close ended

	deserted chan struct{} // closed when a Close returns although user code still runs
}

// New returns a queue. Nothing is sent before its first Put.
func New[Item comparable, Receipt any](work Work[Item, Receipt], options Options) *Queue[Item, Receipt] {
	q := &Queue[Item, Receipt]{
		work: work, options: options,
		underWay: semaphore.NewWeighted(int64(options.UnderWay)),
		line:     line[Item, Receipt]{room: semaphore.NewWeighted(int64(options.MaxPending))},
		sent:     map[*caller[Item, Receipt]]bool{},
		deserted: make(chan struct{}),
	}
	q.ctx, q.cancel = context.WithCancel(context.Background()) //nolint:gosec // Close calls it when its context ends
	q.crew = newCrew(&q.mu, work.Catch)
	q.reports = reporter{
		crew: &q.crew, report: work.Report, outage: outage{open: map[int]int{}},
		state: func() Stats { return Stats{Pending: q.line.items, Oldest: q.line.oldest()} },
	}
	return q
}

// Put adds items, at least one, to the queue and waits until they have ended. The items of one call go into one
// request, together with those of other callers. Identical items of a request are sent once. Put returns the receipt of
// the request with the last accepted item. If items have failed, it also returns an [*Error]. If the items do not fit
// into one request, it returns a [*TooLargeError]. When ctx ends, Put returns at once, and items that were not sent
// leave the queue.
func (q *Queue[Item, Receipt]) Put(ctx context.Context, items []Item) (receipt Receipt, err error) {
	c, err := q.newCaller(items)
	if err != nil {
		return receipt, err
	}
	left := ctx.Done() // user code that may panic, so it runs before the queue knows the caller
	if err := q.makeRoom(ctx, c); err != nil {
		return receipt, err
	}
	if !q.enter(c) {
		return receipt, c.unsent(q.work.Closed)
	}
	return q.await(ctx, left, c)
}

// await waits until the items of a caller have ended, or until left is closed because the context has ended.
func (q *Queue[Item, Receipt]) await(ctx context.Context, left <-chan struct{}, c *caller[Item, Receipt]) (Receipt, error) {
	waits := true
	defer func() {
		if waits { // Left panicked, because the context is user code
			_, _ = q.abandon(c, q.work.Judge(context.Canceled))
		}
	}()
	select {
	case <-c.done:
		waits = false
		return c.receipt, c.err
	case <-left:
		reason := q.work.Judge(q.work.Left(ctx))
		waits = false
		return q.abandon(c, reason)
	}
}

// newCaller refuses items that do not fit into one request.
func (q *Queue[Item, Receipt]) newCaller(items []Item) (*caller[Item, Receipt], error) {
	c, bytes := q.callerOf(items)
	switch most := min(q.options.MaxItems, q.options.MaxPending); {
	case len(c.items) > most:
		return nil, &TooLargeError{Items: len(c.items), Most: most}
	case len(c.items) > 1 && bytes > q.options.MaxBytes:
		return nil, &TooLargeError{Items: len(c.items), Most: most, Bytes: bytes}
	}
	return c, nil
}

// callerOf returns a caller of these items, and their size.
func (q *Queue[Item, Receipt]) callerOf(items []Item) (c *caller[Item, Receipt], bytes int) {
	own := load[Item]{size: q.work.Size, known: make(map[Item]bool, len(items))}
	own.put(items)
	return &caller[Item, Receipt]{items: own.items, done: make(chan struct{})}, own.bytes
}

// makeRoom waits until the queue has room for a caller.
func (q *Queue[Item, Receipt]) makeRoom(ctx context.Context, c *caller[Item, Receipt]) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.crew.closing, cancel)() //nolint:contextcheck // the queue's context is not the caller's
	if q.line.room.Acquire(waiting, int64(len(c.items))) != nil {
		if err := ctx.Err(); err != nil {
			return c.unsent(err)
		}
		return c.unsent(q.work.Closed)
	}
	return nil
}

// enter appends a caller to the line. It returns false if the queue is closed.
func (q *Queue[Item, Receipt]) enter(c *caller[Item, Receipt]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.crew.closed() {
		q.line.room.Release(int64(len(c.items)))
		return false
	}
	c.since = time.Now()
	q.line.add(c)
	if !q.running {
		q.running = true
		q.runLocked(true)
	}
	return true
}

// abandon removes a caller that has stopped waiting, and returns its result.
func (q *Queue[Item, Receipt]) abandon(c *caller[Item, Receipt], reason *Failure) (receipt Receipt, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-c.done: // the caller ended at the same moment
		return c.receipt, c.err
	default:
	}
	c.gone = true
	if c.request != nil {
		c.leaveLocked(reason.Err)
		return c.resultLocked(reason)
	}
	err = c.unsent(reason.Err)
	if q.line.leave(c); q.line.items == 0 {
		q.left = reason.Err
		q.stop()
	}
	return receipt, err
}

// runLocked acquires a permit and sends the waiting items, and repeats this while items wait. Each round has its own
// goroutine, because user code may end it. The lock is held.
func (q *Queue[Item, Receipt]) runLocked(first bool) {
	if q.line.items == 0 {
		q.line.clear()
		q.stop, q.running = nil, false
		return
	}
	ctx, cancel := context.WithCancel(q.ctx)
	q.stop = cancel
	now := round{number: q.reports.outage.begin(), ctx: ctx}
	q.crew.startLocked(func() error {
		if first && !gather(ctx) {
			return ctx.Err()
		}
		now.asked = true
		permit, err := q.acquire(ctx)
		if err == nil {
			now.sent = q.dispatch(permit)
		}
		return err
	}, func(failed *Failure) {
		q.endRoundLocked(&now, failed)
		cancel()
		q.runLocked(false)
	})
}

// round is one wait for a permit.
type round struct {
	number int             // of the outage
	ctx    context.Context //nolint:containedctx // ends when all callers have left, or the context of a Close ends
	asked  bool            // callers have gathered, so a permit is acquired
	sent   bool            // the permit was used
}

// endRoundLocked fails the waiting callers if a round got no permit. A round that all callers have left counts as a
// failure, too, but the round of a Close that gave up does not. The lock is held.
func (q *Queue[Item, Receipt]) endRoundLocked(r *round, failed *Failure) {
	closed := q.ctx.Err() != nil
	left := r.ctx.Err() != nil && !closed
	if failed != nil && !left {
		q.failLocked(failed.Err)
	}
	switch {
	case left && r.asked && !r.sent:
		q.reports.outage.fail(r.number, whyFailed(q.left, failed))
	case failed != nil && !left && !closed:
		q.reports.outage.fail(r.number, failed.Err)
	default:
		q.reports.outage.forget(r.number)
		return
	}
	q.reports.changedLocked()
}

// whyFailed joins the reason for which the last caller has left with the error of its work. [errors.Join] calls no method
// of an error, which may be user code.
func whyFailed(left error, failed *Failure) error {
	if failed == nil || failed.Err == context.Canceled { //nolint:errorlint // this very error says only that all callers have left
		return left
	}
	return errors.Join(left, failed.Err)
}

// gather waits for further callers. It returns false if the context ends first.
func gather(ctx context.Context) bool {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// acquire waits until a request may be sent. On success it has also acquired one unit of underWay.
func (q *Queue[Item, Receipt]) acquire(ctx context.Context) (permit Permit, err error) {
	if err := q.underWay.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer func() {
		if permit == nil { // also if the limiter panicked
			q.underWay.Release(1)
		}
	}()
	return q.work.Acquire(ctx)
}

// failLocked ends all callers in the line with an error, because the queue got no permit. The lock is held.
func (q *Queue[Item, Receipt]) failLocked(err error) {
	if q.ctx.Err() != nil {
		err = q.work.Closed
	}
	for _, c := range q.line.clear() {
		var none Receipt
		c.endLocked(none, c.unsent(err))
	}
}

// dispatch sends the waiting items. If there are none left, it returns the permit, and false.
func (q *Queue[Item, Receipt]) dispatch(permit Permit) bool {
	q.mu.Lock()
	next := load[Item]{maxItems: q.options.MaxItems, maxBytes: q.options.MaxBytes, size: q.work.Size, known: map[Item]bool{}}
	callers := q.line.take(&next)
	if len(callers) > 0 {
		q.sendLocked(callers, next.items, permit)
	}
	q.mu.Unlock()
	if len(callers) == 0 {
		defer q.underWay.Release(1)
		permit.Return(q.ctx)
	}
	return len(callers) > 0
}

// sendLocked starts to send the items of some callers. When they are sent, it continues with followLocked. The lock is
// held.
func (q *Queue[Item, Receipt]) sendLocked(callers []*caller[Item, Receipt], items []Item, permit Permit) {
	ctx, cancel := context.WithCancel(q.ctx)
	r := &request[Item, Receipt]{
		ctx: ctx, work: &q.work, items: items,
		mu: &q.mu, fates: make(map[Item]*fate[Receipt], len(items)),
	}
	for _, item := range items {
		r.fates[item] = &fate[Receipt]{}
	}
	shared := &share{staying: len(callers), cancel: cancel}
	r.send = func(permit Permit, items []Item) (Receipt, error) { return q.send(r, shared, permit, items) }
	for _, c := range callers {
		q.sent[c] = true
		c.request, c.shares = r, []*share{shared}
	}
	q.crew.startLocked(func() error {
		r.deliver(permit)
		return nil
	}, func(failed *Failure) {
		cancel()
		q.underWay.Release(1)
		if r.endLocked(failed); failed != nil && q.ctx.Err() == nil {
			q.reports.outage.fail(r.number, failed.Err) // Send did not return
			q.reports.changedLocked()
		}
		q.followLocked(callers)
	})
}

// send sends one request, and counts it. A failure counts also if all callers have left, but not if a Close gave up.
func (q *Queue[Item, Receipt]) send(r *request[Item, Receipt], callers *share, permit Permit, items []Item) (Receipt, error) {
	q.mu.Lock()
	r.number = q.reports.outage.begin()
	forNobody := callers.left != nil // a part of a refused request, after all callers have left
	q.mu.Unlock()
	receipt, err := q.work.Send(r.ctx, permit, items)
	err = q.endedByClose(err)
	answered := err == nil || q.work.Refused(err)
	q.mu.Lock()
	defer q.mu.Unlock()
	accepted := 0
	if err == nil {
		accepted = len(items)
	}
	q.reports.countLocked(accepted)
	switch {
	case answered:
		q.reports.outage.answer(r.number)
	case q.ctx.Err() != nil, forNobody:
		q.reports.outage.forget(r.number)
	case callers.left != nil:
		q.reports.outage.fail(r.number, whyFailed(callers.left, &Failure{Err: err}))
	default:
		q.reports.outage.fail(r.number, err)
	}
	q.reports.changedLocked()
	return receipt, err
}

// endedByClose wraps the error of a request or wait that the end of a Close's context has canceled.
func (q *Queue[Item, Receipt]) endedByClose(err error) error {
	if q.ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return q.work.ClosedBy(err)
}

// followLocked ends the callers of a request, or starts to wait for the transactions of their items. The lock is held.
func (q *Queue[Item, Receipt]) followLocked(callers []*caller[Item, Receipt]) {
	waits := waitsLocked(callers, q.work.Transaction)
	for _, c := range callers {
		if c.waits == 0 {
			q.settleLocked(c, nil)
		}
	}
	for id, w := range waits {
		q.awaitLocked(id, w)
	}
}

// awaitLocked starts to wait until a transaction has ended or all its callers have left. The lock is held.
func (q *Queue[Item, Receipt]) awaitLocked(id int64, w *transactionWait[Item, Receipt]) {
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(q.ctx)
	q.crew.startLocked(func() error {
		return q.endedByClose(q.work.Wait(ctx, id))
	}, func(failed *Failure) {
		w.cancel()
		for _, c := range w.endLocked(failed) {
			q.settleLocked(c, nil)
		}
	})
}

// settleLocked ends a caller whose items are in a request. open is the failure of items that have not ended. The lock
// is held.
func (q *Queue[Item, Receipt]) settleLocked(c *caller[Item, Receipt], open *Failure) {
	delete(q.sent, c)
	c.endLocked(c.resultLocked(open))
}
