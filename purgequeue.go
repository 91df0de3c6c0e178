package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// The service takes 2 purge requests a second and any number of URIs in one (service-interface section 8), so callers
// who each wait for a request of their own wait for hours, and callers who share requests do not. Whenever the limiter
// gives a permit, the queue sends what is waiting then as one request. The permit comes first and the request is made
// of what has gathered meanwhile. A request that is refused because of some of its URIs is split until those stand
// alone.

// ErrQueueClosed means that the queue takes no more purges, or that a Close gave up before this one had ended. [OutcomeOf]
// tells whether the purge may have been sent.
var ErrQueueClosed = errors.New("webdelivery: purge queue closed")

// ErrRefusedTogether means that the service refused URIs together with others, and that the queue did not send them alone,
// because too many of one request were refused. Nobody knows whether the service would take them: purge them again. It
// does not match [ErrBadRequest].
var ErrRefusedTogether = errors.New("webdelivery: refused together with others and not sent alone; purge it again")

// QueueOptions say how a queue works. A zero field takes its default; a number below 0 is a [*ValidationError] of every
// Purge.
type QueueOptions struct {
	Action       Action // of all its purges; default ActionPurge
	Wait         bool   // Purge returns when the transaction has ended, not when the service has accepted the purge
	MaxURIs      int    // URIs in one request, and in one call; default 10,000
	MaxBodyBytes int    // bytes in one request, and in one call; default 4 MiB. A single URI may be longer
	MaxPending   int    // URIs that wait to be sent; further callers wait for room; default 1,000,000
	// OnStats is called after each request, in a goroutine of its own, one call at a time and with ever newer statistics.
	// Of requests that end while it runs it learns together, with the newest. It holds up nothing but Close, which waits
	// for it until its context ends. If nil, nothing is reported.
	OnStats func(QueueStats)
}

// QueueStats is the state of a queue, as [QueueOptions] OnStats is told of it.
type QueueStats struct {
	Pending  int           // URIs that wait to be put into a request; not those of one that is under way or being split
	Sent     int           // URIs that were sent and accepted so far; identical ones of one request count once
	Requests int           // requests so far
	Oldest   time.Duration // how long the oldest of the pending has waited; 0 when there is none
}

// QueueError is a purge of a queue that failed, with the URIs of the caller that are concerned: those that the service
// refused, that may not have reached it, or whose transaction ended badly or has not ended. The caller's others were
// purged. [OutcomeOf] tells what became of the call: [Unknown] also when some of its URIs were purged and others not, and
// with Wait when a transaction has not ended.
//
// A request in which the service refuses URIs is split until they stand alone: k of n take about k*log2(n/k) + 2k more
// requests. A request of n URIs is split into 1 + 16*log2(n) requests at most (log2 rounded up), which is enough for 20
// refused ones of 200. What is left then matches [ErrRefusedTogether].
type QueueError struct {
	URIs []PurgeURI // those that failed, identical ones once; a copy
	Err  error      // what went wrong, all of it joined where URIs failed in several ways; Unwrap gives it

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
	polls   *semaphore.Weighted // of transactions, under way
	ctx     context.Context     //nolint:containedctx // ends when Close gives up; no caller's context may end another's purge
	cancel  context.CancelFunc
	closing context.Context //nolint:containedctx // ends when Close begins
	refuse  context.CancelFunc

	mu      sync.Mutex
	pending []*purgeCall // oldest first; one that was abandoned stays until it is passed over, or too many are
	left    int          // of those, how many were abandoned
	taken   map[*purgeCall]bool
	stats   QueueStats
	running bool               // the goroutine that takes permits
	active  int                // all goroutines
	idle    chan struct{}      // closed when the queue is closed and nothing is left of it
	stop    context.CancelFunc // ends the wait for a permit that nobody needs any more
	untold  bool               // the statistics have changed since OnStats was called
	telling bool               // OnStats is being called
	broken  error              // what OnStats did in place of returning, the first time
	dropped int                // URIs that had not ended when a Close gave up
}

// purgeCall is one caller of Purge.
type purgeCall struct {
	items    []purgeItem
	since    time.Time
	delivery *delivery // that carries it; nil while it waits
	gone     bool      // nobody waits for it any more
	shares   []*share  // what is done for this call, and maybe for others
	waits    int       // transactions that have not ended

	done    chan struct{}
	receipt *PurgeReceipt
	err     error
}

// share is work for some callers. It ends when they have all left.
type share struct {
	staying int
	cancel  context.CancelFunc
}

// purgeItem is a URI with its form on the wire, by which identical ones are found.
type purgeItem struct {
	uri  PurgeURI
	json string
}

const (
	// linger is how long an idle queue lets callers gather before it asks for a permit.
	linger = 10 * time.Millisecond
	// purgesUnderWay bounds the requests whose response has not come yet, and separately the polls of transactions.
	purgesUnderWay = 4
	// closeGrace is how long a Close that gives up waits for the goroutines of the queue. They end at once, unless a
	// function of the user's ignores its context.
	closeGrace = 100 * time.Millisecond
	// purgeFrame is what a request has beside its URIs, in bytes, with some to spare.
	purgeFrame = 100
)

// NewQueue makes a queue. Nothing is sent before its first Purge, which also tells of options that make no sense.
func (s *PurgeService) NewQueue(options QueueOptions) *PurgeQueue {
	q := &PurgeQueue{
		client: s.client, options: options, idle: make(chan struct{}), taken: map[*purgeCall]bool{},
		inWork: semaphore.NewWeighted(purgesUnderWay), polls: semaphore.NewWeighted(purgesUnderWay),
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.closing, q.refuse = context.WithCancel(context.Background())
	o := &q.options
	if o.MaxURIs < 0 || o.MaxBodyBytes < 0 || o.MaxPending < 0 {
		q.invalid = invalid("QueueOptions", "a limit is below 0")
	}
	o.Action = cmp.Or(o.Action, ActionPurge)
	o.MaxURIs = cmp.Or(o.MaxURIs, 10_000)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 4<<20)
	o.MaxPending = cmp.Or(o.MaxPending, 1_000_000)
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
// errors are a [*QueueError] that names the URIs: those that the service refuses ([ErrBadRequest]) do not touch others, as
// long as they are few. Where too many of one request are refused, others fail with [ErrRefusedTogether] and the outcome
// [NotApplied].
// A caller whose context ends takes his URIs out when they have not been sent; then the outcome is [NotApplied]. A request
// that all its callers have left ends, as a Submit does when its context ends. Purge does not return before the end of
// the context, even if the next permit comes later. When the service has accepted some of the call's URIs, the receipt is
// returned with the error. After Close it is [ErrQueueClosed].
//
// If a transport, limiter or log handler of yours panics or ends its goroutine, Purge returns an error that says so.
func (q *PurgeQueue) Purge(ctx context.Context, uris ...PurgeURI) (*PurgeReceipt, error) {
	c, err := q.newCall(uris)
	if err != nil {
		return nil, err
	}
	left := ctx.Done() // asked before the queue has anything of this call
	if err := q.makeRoom(ctx, c); err != nil {
		return nil, err
	}
	if !q.enter(c) { //nolint:contextcheck // no caller's context may end another's purge
		q.room.Release(int64(len(c.items)))
		return nil, c.unsent(ErrQueueClosed)
	}
	waits := true
	defer func() {
		if waits { // the context panicked when it was asked why it has ended
			_, _ = q.abandon(c, judge(context.Canceled))
		}
	}()
	select {
	case <-c.done:
		waits = false
		return c.receipt, c.err
	case <-left:
		reason := q.whyLeft(ctx)
		waits = false
		return q.abandon(c, reason)
	}
}

// whyLeft is why a caller does not wait any longer.
func (q *PurgeQueue) whyLeft(ctx context.Context) *failure {
	reason := pace.Ended(ctx)
	if q.client.gate.pace.Refusing() {
		reason = fmt.Errorf("%w while the service refused purges as too fast", reason)
	}
	return judge(reason)
}

// newCall validates what Submit would validate, and what would not fit into one request.
func (q *PurgeQueue) newCall(uris []PurgeURI) (*purgeCall, error) {
	if q.invalid != nil {
		return nil, q.invalid
	}
	if err := (PurgeRequest{q.options.Action, uris}).validate(); err != nil {
		return nil, err
	}
	c := &purgeCall{done: make(chan struct{})}
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
			return c.unsent(err)
		}
		return c.unsent(ErrQueueClosed)
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
		q.runLocked(true)
	}
	return true
}

// goLocked starts a goroutine of the queue: f, and then done with its error, also if code of the user's panics or ends
// the goroutine. The lock is held.
func (q *PurgeQueue) goLocked(f func() error, done func(*failure)) {
	q.active++
	go func() {
		defer func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.active--
			q.endLocked()
		}()
		q.client.caught(f, done)
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
func (q *PurgeQueue) abandon(c *purgeCall, reason *failure) (*PurgeReceipt, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-c.done: // in the same instant
		return c.receipt, c.err
	default:
	}
	c.gone = true
	if c.delivery != nil {
		for _, s := range c.shares {
			if s.staying--; s.staying == 0 {
				s.cancel()
			}
		}
		return c.result(reason)
	}
	err := c.unsent(reason.err)
	q.passLocked(c)
	c.items = nil // a permit may be long in coming
	if q.left++; 2*q.left > len(q.pending) {
		q.pending = slices.DeleteFunc(q.pending, func(c *purgeCall) bool { return c.gone })
		q.left = 0
	}
	if q.stats.Pending == 0 {
		q.pending = nil
		q.stop()
	}
	return nil, err
}

// passLocked counts a call out of the pending ones. The lock is held.
func (q *PurgeQueue) passLocked(c *purgeCall) {
	q.stats.Pending -= len(c.items)
	q.room.Release(int64(len(c.items)))
}

// unsent is the error of a call of which nothing was sent.
func (c *purgeCall) unsent(err error) *QueueError {
	e := &QueueError{Err: err, outcome: NotApplied}
	for _, item := range c.items {
		e.URIs = append(e.URIs, item.uri)
	}
	return e
}

// runLocked takes permits and sends what is waiting, as long as anything is. The lock is held.
func (q *PurgeQueue) runLocked(first bool) {
	if q.stats.Pending == 0 {
		q.pending, q.left, q.stop, q.running = nil, 0, nil, false
		return
	}
	ctx, cancel := context.WithCancel(q.ctx)
	q.stop = cancel
	q.goLocked(func() error {
		permit, err := q.permit(ctx, first)
		if err == nil {
			q.dispatch(permit) //nolint:contextcheck // what is sent outlives the wait for its permit
		}
		return err
	}, func(failed *failure) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if failed != nil && (ctx.Err() == nil || q.ctx.Err() != nil) { // else everybody has left meanwhile
			q.failLocked(failed.err)
		}
		cancel()
		q.runLocked(false) //nolint:contextcheck // the wait for the next permit has a context of its own
	})
}

// dispatch sends what is waiting.
func (q *PurgeQueue) dispatch(permit *permit) {
	q.mu.Lock()
	calls := q.takeLocked()
	if len(calls) > 0 {
		q.deliverLocked(calls, permit)
	}
	q.mu.Unlock()
	if len(calls) == 0 {
		defer q.inWork.Release(1)
		permit.end(q.ctx, time.Time{})
	}
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
	var p *permit
	defer func() {
		if p == nil { // also if the limiter panicked
			q.inWork.Release(1)
		}
	}()
	_, err := q.client.auth.credential(ctx, purge, 0)
	if err == nil {
		p, err = q.client.gate.acquire(ctx, q.client.newCaller())
	}
	return p, err
}

// takeLocked gathers the oldest calls that fit into one request. The lock is held.
func (q *PurgeQueue) takeLocked() (calls []*purgeCall) {
	uris, size := map[string]bool{}, purgeFrame
	for len(q.pending) > 0 {
		c := q.pending[0]
		if c.gone {
			q.left--
		} else {
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
			q.passLocked(c)
			calls = append(calls, c)
		}
		q.pending[0] = nil
		q.pending = q.pending[1:]
	}
	return calls
}

// failLocked ends all calls that wait: there is no permit to be had. Nothing of theirs was sent. The lock is held.
func (q *PurgeQueue) failLocked(err error) {
	if q.ctx.Err() != nil {
		err = ErrQueueClosed
	}
	for _, c := range q.pending {
		if !c.gone {
			q.passLocked(c)
			q.settleLocked(c, nil, c.unsent(err))
		}
	}
	q.pending, q.left = nil, 0
}

// settleLocked ends a call, unless it has ended. The lock is held.
func (q *PurgeQueue) settleLocked(c *purgeCall, receipt *PurgeReceipt, err error) {
	delete(q.taken, c)
	select {
	case <-c.done:
	default:
		c.receipt, c.err = receipt, err
		close(c.done)
	}
}

// count keeps the statistics, and has OnStats called with them.
func (q *PurgeQueue) count(uris int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.Requests++
	if err == nil {
		q.stats.Sent += uris
	}
	if q.untold = q.options.OnStats != nil; q.untold && !q.telling {
		q.telling = true
		q.tellLocked()
	}
}

// tellLocked calls OnStats until it knows the newest statistics. It has a goroutine of its own, so that a function that
// takes long holds up nothing else. The lock is held.
func (q *PurgeQueue) tellLocked() {
	q.untold = false
	now := q.stats
	for _, c := range q.pending {
		if !c.gone {
			now.Oldest = time.Since(c.since)
			break
		}
	}
	q.goLocked(func() error {
		q.options.OnStats(now)
		return nil
	}, func(failed *failure) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if failed != nil && q.broken == nil {
			q.broken = fmt.Errorf("webdelivery: OnStats: %w", failed.err)
		}
		if q.telling = q.untold; q.telling {
			q.tellLocked()
		}
	})
}

// Close refuses new purges and sends the rest. When ctx ends before all of it is sent (with Wait: before its
// transactions have ended), every caller whose URIs were not sent gets [ErrQueueClosed] with the outcome [NotApplied],
// what is under way is given up, and the context's error is returned. When Close returns, nothing of the queue runs,
// unless a transport, limiter, log handler or OnStats of yours ignores the end of its context: 100 ms later Close
// returns, and so does every Purge. Give it a context of its own: that of a job may have ended when the job closes its
// queue.
//
// Close may be called again, and by several goroutines. If one of them gives up on URIs, all others return an error that
// matches ErrQueueClosed and says how many.
//
// If OnStats has panicked or ended its goroutine, or has not returned when ctx ends, Close returns an error that says so,
// although everything was sent.
func (q *PurgeQueue) Close(ctx context.Context) error {
	q.mu.Lock()
	q.refuse()
	q.endLocked()
	q.mu.Unlock()
	select {
	case <-q.idle:
		return q.closed()
	default:
	}
	select {
	case <-q.idle:
		return q.closed()
	case <-ctx.Done():
	}
	sent := q.giveUp()
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-q.idle:
	case <-grace.C:
		q.mu.Lock()
		for c := range q.taken {
			receipt, err := c.result(judge(ErrQueueClosed))
			q.settleLocked(c, receipt, err)
		}
		q.mu.Unlock()
	}
	if sent {
		return fmt.Errorf("webdelivery: everything was sent, and OnStats has not returned: %w", pace.Ended(ctx))
	}
	return pace.Ended(ctx)
}

// closed is what a Close returns that did not give up.
func (q *PurgeQueue) closed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dropped > 0 {
		return fmt.Errorf("%w: a Close gave up on %d URIs", ErrQueueClosed, q.dropped)
	}
	return q.broken
}

// giveUp ends all that waits and all that is under way. It tells whether nothing was left but OnStats.
func (q *PurgeQueue) giveUp() (sent bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ctx.Err() == nil {
		q.dropped = q.openLocked()
	}
	q.cancel()
	q.failLocked(ErrQueueClosed)
	return q.dropped == 0 && q.telling
}

// openLocked counts the URIs of callers who still wait for what becomes of them. The lock is held.
func (q *PurgeQueue) openLocked() int {
	open := q.stats.Pending
	for c := range q.taken {
		for _, item := range c.items {
			if !c.gone && !c.delivery.fates[item.json].ended {
				open++
			}
		}
	}
	return open
}
