package webdelivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// The service takes 2 purge requests a second and any number of URIs in one (service-interface section 8), so callers
// who each wait for a request of their own wait for hours, and callers who share requests do not. Whenever the limiter
// gives a permit, the queue sends what is waiting then as one request. The permit comes first and the request is made
// of what has gathered meanwhile. A request that is refused because of some of its URIs is split until those stand
// alone.

// ErrQueueClosed means that the queue takes no more purges, or was closed before it could send this one.
var ErrQueueClosed = errors.New("webdelivery: purge queue closed")

// QueueOptions say how a queue works. A zero field takes its default; a number below 0 is a [*ValidationError] of every
// Purge.
type QueueOptions struct {
	Action       Action // of all its purges; default ActionPurge
	Wait         bool   // Purge returns when the transaction has ended, not when the service has accepted the purge
	MaxURIs      int    // URIs in one request, and in one call; default 10,000
	MaxBodyBytes int    // bytes in one request, and in one call; default 4 MiB. A single URI may be longer
	MaxPending   int    // URIs that wait to be sent; further callers wait for room; default 1,000,000
	// OnStats is called after each request, one call at a time, in a goroutine of the queue. It must not call the queue.
	// nil: nobody is told.
	OnStats func(QueueStats)
}

// QueueStats is the state of a queue, as [QueueOptions] OnStats is told of it.
type QueueStats struct {
	Pending  int           // URIs that wait to be sent
	Sent     int           // URIs that were sent and accepted so far; identical ones of one request count once
	Requests int           // requests so far
	Oldest   time.Duration // how long the oldest of the pending has waited; 0 when there is none
}

// QueueError is a purge of a queue that failed, with the URIs of the caller that are concerned. A request that the
// service refuses because of some URIs fails for those alone; the caller's others were purged. Where very many of one
// request are refused, they are not all told apart from their neighbours. [OutcomeOf] tells what became of the URIs:
// [Unknown] also when some of the call were purged and others not.
type QueueError struct {
	URIs []PurgeURI // those that failed, identical ones once; a copy
	Err  error      // what went wrong; Unwrap gives it

	outcome Outcome
}

// Error names the first five URIs, and what went wrong.
func (e *QueueError) Error() string {
	const shown = 5
	patterns := make([]string, 0, shown)
	for _, u := range e.URIs[:min(len(e.URIs), shown)] {
		patterns = append(patterns, printable(u.URIPattern))
	}
	more := ""
	if len(e.URIs) > shown {
		more = fmt.Sprintf(" and %d more", len(e.URIs)-shown)
	}
	return fmt.Sprintf("webdelivery: purge of %s%s: %v", strings.Join(patterns, ", "), more, e.Err)
}

// Unwrap gives what went wrong.
func (e *QueueError) Unwrap() error { return e.Err }

// LogValue gives the number of URIs, the outcome and what went wrong.
func (e *QueueError) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("uris", len(e.URIs)), slog.String("outcome", e.outcome.String()), slog.Any("error", e.Err))
}

func (e *QueueError) outcomeOfWrite() Outcome { return e.outcome }

// PurgeQueue gathers the purges of any number of goroutines into few requests (service-interface section 8: 2 requests
// a second, any number of URIs in one). Make it with [PurgeService.NewQueue], and Close it; the zero value is of no
// use. It is safe for concurrent use, and has no goroutine while it has nothing to do.
type PurgeQueue struct {
	client  *Client
	options QueueOptions
	invalid error // what is wrong with the options
	room    *semaphore.Weighted
	inWork  *semaphore.Weighted // requests under way
	ctx     context.Context     //nolint:containedctx // ends when Close gives up; no caller's context may end another's purge
	cancel  context.CancelFunc
	closing context.Context //nolint:containedctx // ends when Close begins
	refuse  context.CancelFunc

	mu      sync.Mutex
	pending []*purgeCall // oldest first; one that was abandoned stays as nothing until it is passed over
	stats   QueueStats
	running bool               // the goroutine that takes permits
	active  int                // all goroutines
	idle    chan struct{}      // closed when the queue is closed and nothing is left of it
	stop    context.CancelFunc // ends the wait for a permit that nobody needs any more
	report  sync.Mutex
}

// purgeCall is one caller of Purge.
type purgeCall struct {
	items []purgeItem
	since time.Time
	taken bool // into a request
	gone  bool // nobody waits for it any more
	done  chan struct{}
	waits int    // transactions that have not ended
	left  func() // tells the waits for them that this caller has left; the lock is held

	receipt *PurgeReceipt
	err     error
}

// purgeItem is a URI with its form on the wire, by which identical ones are found.
type purgeItem struct {
	uri  PurgeURI
	json string
}

const (
	// linger is how long an idle queue lets callers gather before it asks for a permit.
	linger = 10 * time.Millisecond
	// purgesUnderWay bounds the requests whose reply has not come yet.
	purgesUnderWay = 4
	// purgeFrame is what a request has beside its URIs, in bytes, with some to spare.
	purgeFrame = 100
)

// NewQueue makes a queue. Nothing is sent before its first Purge, which also tells of options that make no sense.
func (s *PurgeService) NewQueue(options QueueOptions) *PurgeQueue {
	q := &PurgeQueue{client: s.client, options: options, idle: make(chan struct{}), inWork: semaphore.NewWeighted(purgesUnderWay)}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.closing, q.refuse = context.WithCancel(context.Background())
	o := &q.options
	if o.MaxURIs < 0 || o.MaxBodyBytes < 0 || o.MaxPending < 0 {
		q.invalid = invalid("QueueOptions", "a limit is below 0")
	}
	setDefault(&o.Action, ActionPurge)
	setDefault(&o.MaxURIs, 10_000)
	setDefault(&o.MaxBodyBytes, 4<<20)
	setDefault(&o.MaxPending, 1_000_000)
	q.room = semaphore.NewWeighted(int64(o.MaxPending))
	return q
}

// Purge hands URIs, at least one, to the queue and waits for the request that carries them (service-interface section
// 4.4). All of one call go in one request, together with those of others; identical ones are sent once. It returns the
// receipt of that request when the service has accepted it, or with Wait when its transaction has ended; one that ended
// badly is a [*TransactionError] in the QueueError. Where a request had to be split, the receipt is that of the last of
// them, and Wait waits for all.
//
// What the service document calls invalid, and more URIs than fit into one request, are a [*ValidationError]. All other
// errors are a [*QueueError] that names the URIs: those that the service refuses ([ErrBadRequest]) do not touch others.
// A caller whose context ends takes his URIs out when they have not been sent; then the outcome is [NotApplied]. Purge
// does not return before the end of the context, even if the next permit comes later. When the service has accepted
// some of the call's URIs, the receipt is returned with the error. After Close it is [ErrQueueClosed].
func (q *PurgeQueue) Purge(ctx context.Context, uris ...PurgeURI) (*PurgeReceipt, error) {
	c, err := q.newCall(uris)
	if err != nil {
		return nil, err
	}
	if err := q.makeRoom(ctx, c); err != nil {
		return nil, err
	}
	if !q.enter(c) {
		q.room.Release(int64(len(c.items)))
		return nil, c.failed(ErrQueueClosed, NotApplied)
	}
	select {
	case <-c.done:
		return c.receipt, c.err
	case <-ctx.Done():
		return q.abandon(c, ctx.Err())
	}
}

// newCall validates what Submit would validate, and what would not fit into one request.
func (q *PurgeQueue) newCall(uris []PurgeURI) (*purgeCall, error) {
	if q.invalid != nil {
		return nil, q.invalid
	}
	if err := (PurgeRequest{q.options.Action, uris}).validate(); err != nil {
		return nil, err
	}
	c := &purgeCall{done: make(chan struct{}), left: func() {}}
	size := 0
	seen := make(map[string]bool, len(uris))
	for _, uri := range uris {
		if text := string(uri.appendJSON(nil)); !seen[text] {
			seen[text] = true
			c.items = append(c.items, purgeItem{uri, text})
			size += len(text) + 1
		}
	}
	switch most := min(q.options.MaxURIs, q.options.MaxPending); {
	case len(c.items) > most:
		return nil, invalid("uris", "%d are more than the %d of one request; hand them over in parts", len(c.items), most)
	case len(c.items) > 1 && size+purgeFrame > q.options.MaxBodyBytes:
		return nil, invalid("uris", "they take %d bytes, more than the %d of one request; hand them over in parts", size, q.options.MaxBodyBytes)
	}
	return c, nil
}

// makeRoom waits until the queue has room for a call.
func (q *PurgeQueue) makeRoom(ctx context.Context, c *purgeCall) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.closing, cancel)() //nolint:contextcheck // the end of the queue is not the caller's
	if q.closing.Err() != nil || q.room.Acquire(waiting, int64(len(c.items))) != nil {
		if err := ctx.Err(); err != nil {
			return c.failed(err, NotApplied)
		}
		return c.failed(ErrQueueClosed, NotApplied)
	}
	return nil
}

// enter puts a call at the end of the queue; false when it is closed.
func (q *PurgeQueue) enter(c *purgeCall) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing.Err() != nil {
		return false
	}
	c.since = time.Now()
	q.pending = append(q.pending, c)
	q.stats.Pending += len(c.items)
	if !q.running {
		q.running = true
		q.goLocked(q.run)
	}
	return true
}

// goLocked starts a goroutine of the queue. The lock is held.
func (q *PurgeQueue) goLocked(f func()) {
	q.active++
	go func() {
		f()
		q.mu.Lock()
		defer q.mu.Unlock()
		q.active--
		q.endLocked()
	}()
}

// endLocked notes that a closed queue has nothing left. The lock is held.
func (q *PurgeQueue) endLocked() {
	if q.closing.Err() != nil && q.active == 0 {
		select {
		case <-q.idle:
		default:
			close(q.idle)
		}
	}
}

// abandon takes a caller out who does not wait any longer.
func (q *PurgeQueue) abandon(c *purgeCall, reason error) (*PurgeReceipt, error) {
	if q.client.gate.pace.Refusing() {
		reason = fmt.Errorf("%w while the service refused purges as too fast", reason)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-c.done: // in the same instant
		return c.receipt, c.err
	default:
	}
	c.gone = true
	if c.taken {
		c.left()
		if c.receipt != nil {
			return c.receipt, c.failed(reason, Applied)
		}
		return nil, c.failed(reason, Unknown)
	}
	q.passLocked(c)
	if q.stats.Pending == 0 && q.stop != nil {
		q.stop()
	}
	return nil, c.failed(reason, NotApplied)
}

// passLocked counts a call out of the pending ones. The lock is held.
func (q *PurgeQueue) passLocked(c *purgeCall) {
	q.stats.Pending -= len(c.items)
	q.room.Release(int64(len(c.items)))
}

func (c *purgeCall) failed(err error, outcome Outcome) *QueueError {
	e := &QueueError{Err: err, outcome: outcome}
	for _, item := range c.items {
		e.URIs = append(e.URIs, item.uri)
	}
	return e
}

// run takes a permit and sends what is waiting, as long as anything is.
func (q *PurgeQueue) run() {
	for first := true; ; first = false {
		ctx, more := q.next()
		if !more {
			return
		}
		permit, err := q.permit(ctx, first)
		if err != nil {
			if ctx.Err() == nil || q.ctx.Err() != nil { // else everybody has left meanwhile
				q.failPending(err)
			}
			continue
		}
		calls := q.take()
		if len(calls) == 0 {
			permit.end(q.ctx, time.Time{})
			q.inWork.Release(1)
			continue
		}
		q.mu.Lock()
		q.goLocked(func() { q.deliver(calls, permit) })
		q.mu.Unlock()
	}
}

// next says whether anything is waiting, and gives a context that ends when nothing is any more.
func (q *PurgeQueue) next() (context.Context, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stop != nil {
		q.stop()
	}
	if q.stats.Pending == 0 {
		q.pending, q.stop, q.running = nil, nil, false
		return nil, false
	}
	var ctx context.Context
	ctx, q.stop = context.WithCancel(q.ctx)
	return ctx, true
}

// permit waits until a request may be sent. On success the caller holds a place among those under way. The session
// comes before the permit, as in every purge.
func (q *PurgeQueue) permit(ctx context.Context, first bool) (*permit, error) {
	if first {
		if err := sleep(ctx, linger); err != nil {
			return nil, err
		}
	}
	if err := q.inWork.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	_, err := q.client.auth.credential(ctx, purge, 0)
	var p *permit
	if err == nil {
		p, err = q.client.gate.acquire(ctx, q.client.newCaller())
	}
	if err != nil {
		q.inWork.Release(1)
	}
	return p, err
}

// take gathers the oldest calls that fit into one request.
func (q *PurgeQueue) take() (calls []*purgeCall) {
	q.mu.Lock()
	defer q.mu.Unlock()
	uris, size := map[string]bool{}, purgeFrame
	for len(q.pending) > 0 {
		c := q.pending[0]
		if !c.gone {
			added, grown := 0, 0
			for _, item := range c.items {
				if !uris[item.json] {
					added, grown = added+1, grown+len(item.json)+1
				}
			}
			if len(calls) > 0 && (len(uris)+added > q.options.MaxURIs || size+grown > q.options.MaxBodyBytes) {
				break
			}
			for _, item := range c.items {
				uris[item.json] = true
			}
			size += grown
			c.taken = true
			q.passLocked(c)
			calls = append(calls, c)
		}
		q.pending[0] = nil
		q.pending = q.pending[1:]
	}
	return calls
}

// failPending tells all who wait that there is no permit to be had. Nothing of theirs was sent.
func (q *PurgeQueue) failPending(err error) {
	if q.ctx.Err() != nil {
		err = ErrQueueClosed
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.pending {
		if c != nil && !c.gone {
			q.passLocked(c)
			q.settleLocked(c, nil, c.failed(err, NotApplied))
		}
	}
	q.pending = nil
}

// settleLocked ends a call. The lock is held.
func (q *PurgeQueue) settleLocked(c *purgeCall, receipt *PurgeReceipt, err error) {
	c.taken, c.receipt, c.err = true, receipt, err
	close(c.done)
}

// fate is what became of one URI.
type fate struct {
	receipt *PurgeReceipt
	err     error
	unsure  bool // a request before the last one may have purged it
}

// deliver sends the URIs of some calls, split as far as need be, and tells each caller what became of his.
func (q *PurgeQueue) deliver(calls []*purgeCall, first *permit) {
	var items []purgeItem
	fates := map[string]fate{}
	for _, c := range calls {
		for _, item := range c.items {
			if _, known := fates[item.json]; !known {
				fates[item.json] = fate{}
				items = append(items, item)
			}
		}
	}
	s := &splitting{queue: q, fates: fates, left: maxSplits(len(items))}
	s.send(items, first)
	q.inWork.Release(1)

	carried := map[int64][]*purgeCall{}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range calls {
		receipt, err := c.fate(fates)
		if err != nil || !q.options.Wait || c.gone {
			q.settleLocked(c, receipt, err)
			continue
		}
		c.receipt = receipt
		for id := range c.transactions(fates) {
			carried[id] = append(carried[id], c)
			c.waits++
		}
	}
	for id, waiting := range carried {
		q.awaitLocked(id, waiting)
	}
}

// transactions are those that carry the URIs of a call: one, unless a request was split.
func (c *purgeCall) transactions(fates map[string]fate) map[int64]bool {
	ids := map[int64]bool{}
	for _, item := range c.items {
		ids[fates[item.json].receipt.TransactionID] = true
	}
	return ids
}

// fate is what became of a call: the receipt of the request that carried its last URI, or an error with those that
// failed.
func (c *purgeCall) fate(fates map[string]fate) (receipt *PurgeReceipt, err error) {
	failed := &QueueError{outcome: NotApplied}
	for _, item := range c.items {
		f := fates[item.json]
		if f.err == nil {
			receipt = f.receipt
			continue
		}
		failed.URIs = append(failed.URIs, item.uri)
		failed.Err = f.err
		if f.unsure || OutcomeOf(f.err) != NotApplied {
			failed.outcome = Unknown
		}
	}
	if failed.Err == nil {
		return receipt, nil
	}
	if receipt != nil {
		failed.outcome = Unknown // some of the call's URIs were purged
	}
	return receipt, failed
}

// awaitLocked looks at one transaction for all callers whose URIs it carries, until it has ended or they have all left.
// The lock is held.
func (q *PurgeQueue) awaitLocked(id int64, calls []*purgeCall) {
	ctx, cancel := context.WithCancel(q.ctx)
	staying := len(calls)
	for _, c := range calls {
		others := c.left
		c.left = func() {
			others()
			if staying--; staying == 0 {
				cancel()
			}
		}
	}
	q.goLocked(func() {
		defer cancel()
		_, err := q.client.Purge.Wait(ctx, id)
		if err != nil && q.ctx.Err() != nil {
			err = errors.Join(ErrQueueClosed, err)
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, c := range calls {
			if err != nil && c.err == nil {
				c.err = c.failed(err, Unknown)
			}
			if c.waits--; c.waits == 0 {
				q.settleLocked(c, c.receipt, c.err)
			}
		}
	})
}

// splitting sends URIs, and again in halves those that the service refuses, until the refused ones stand alone.
type splitting struct {
	queue *PurgeQueue
	fates map[string]fate
	left  int // requests that may still be made

	refusal error // the last one
}

// maxSplits bounds the requests for n URIs: enough to find a few refused ones among many; when there are more of them,
// splitting on would take all the permits of everybody.
func maxSplits(n int) int { return 1 + 6*bits.Len(uint(n)) }

// send sends some URIs, with a permit or, if nil, one of its own. It says whether the service took all of them.
func (s *splitting) send(items []purgeItem, p *permit) bool {
	if s.left == 0 {
		s.note(items, fate{err: s.refusal})
		return false
	}
	s.left--
	receipt, err := s.queue.submit(items, p)
	if err == nil || !errors.Is(err, ErrBadRequest) {
		s.note(items, fate{receipt: receipt, err: err})
		return err == nil
	}
	s.refusal = err
	if OutcomeOf(err) != NotApplied {
		s.note(items, fate{err: err, unsure: true})
	}
	s.split(items)
	return false
}

// split finds out which of the URIs are refused; at least one is. When the first half is taken, the refused ones are in
// the other half, which need not be sent whole to know that.
func (s *splitting) split(items []purgeItem) {
	if len(items) == 1 || s.left == 0 {
		s.note(items, fate{err: s.refusal})
		return
	}
	first, second := items[:len(items)/2], items[len(items)/2:]
	switch {
	case !s.send(first, nil):
		s.send(second, nil)
	case len(second) == 1:
		s.send(second, nil) // for its own words
	default:
		s.split(second)
	}
}

func (s *splitting) note(items []purgeItem, f fate) {
	for _, item := range items {
		kept := f
		kept.unsure = f.unsure || s.fates[item.json].unsure
		s.fates[item.json] = kept
	}
}

// submit sends one request.
func (q *PurgeQueue) submit(items []purgeItem, p *permit) (*PurgeReceipt, error) {
	r, err := q.client.send(q.ctx, call{
		method: http.MethodPost, path: purgePath, purge: q.bodyOf(items), permit: p,
	})
	var receipt *PurgeReceipt
	if err == nil {
		receipt, err = r.receipt()
	}
	if err != nil && q.ctx.Err() != nil {
		err = errors.Join(ErrQueueClosed, err)
	}
	q.count(len(items), err)
	return receipt, err
}

// bodyOf is the body of a request for these.
func (q *PurgeQueue) bodyOf(items []purgeItem) *purgeBody {
	size := 0
	for _, item := range items {
		size += len(item.json)
	}
	return newPurgeBody(q.options.Action, len(items), size, func(b []byte, i int) []byte {
		return append(b, items[i].json...)
	})
}

// count keeps the statistics and tells them.
func (q *PurgeQueue) count(uris int, err error) {
	q.mu.Lock()
	q.stats.Requests++
	if err == nil {
		q.stats.Sent += uris
	}
	now := q.stats
	for _, c := range q.pending {
		if !c.gone {
			now.Oldest = time.Since(c.since)
			break
		}
	}
	q.mu.Unlock()
	if q.options.OnStats != nil {
		q.report.Lock()
		defer q.report.Unlock()
		q.options.OnStats(now)
	}
}

// Close refuses new purges and sends the rest. When ctx ends before all of it is sent (with Wait: before its
// transactions have ended), every caller whose URIs were not sent gets [ErrQueueClosed] with the outcome [NotApplied],
// what is under way is given up, and the context's error is returned. When Close returns, nothing of the queue runs. It
// may be called again. Give it a context of its own: that of a job may have ended when the job closes its queue.
func (q *PurgeQueue) Close(ctx context.Context) error {
	q.mu.Lock()
	q.refuse()
	q.endLocked()
	q.mu.Unlock()
	select {
	case <-q.idle:
		return nil
	case <-ctx.Done():
	}
	q.cancel()
	<-q.idle
	return ctx.Err()
}
