package redisqueue

import (
	"context"
	"crypto/rand"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// Queue gathers the purges of all processes of a fleet into few requests. Create it with [New], and close it at the
// end. It is safe for concurrent use. The methods of the zero value and of a nil pointer return a
// [*webdelivery.ValidationError].
type Queue struct {
	options Options
	invalid error
	store   *store
	local   *webdelivery.PurgeQueue // sends requests, and purges alone while Redis is down
	door    chan struct{}           // held by the caller that waits for room; the others of the process queue for it
	crowd   atomic.Int64            // callers that wait for room

	holdFor time.Duration // how long a request may take until others send its URIs as well

	ctx     context.Context //nolint:containedctx // ends when a Close ends, so that no goroutine outlives it
	cancel  context.CancelFunc
	closing chan struct{} // closed when Close begins
	quiet   chan struct{} // closed when nothing is left for Close
	idle    chan struct{} // closed when no goroutine is left after Close

	mu         sync.Mutex
	closed     bool
	stopped    bool                 // no goroutine may begin
	active     int                  // goroutines
	dropped    int                  // URIs that had not ended when the context of a Close ended
	calls      uint64               // calls so far
	waiting    map[string]*call     // calls of Purge, by their numbers
	batches    map[string]time.Time // batches that this process holds, and since when
	alone      map[string]*alone    // calls of Enqueue that this process purged alone, by their ids
	purging    int                  // those of them that have not ended
	sending    bool                 // a goroutine acquires permits
	sendMore   bool                 // there is more for it
	reading    bool                 // a goroutine reads the results
	turnFrom   time.Time            // since when this process has the turn and has taken nothing
	resting    time.Time            // until then this process rests
	answered   time.Time            // when the service last answered a request of this process
	trouble    time.Time            // since when Redis does not look for work; zero if it does
	noPermit   time.Time            // since when this process gets no permit or no calls because of Redis; zero if it does
	noPermitAt time.Time            // when that last happened
	leavers    leavers              // callers whose contexts have ended
	lookAt     time.Time            // when to look for work
	stir       chan struct{}        // lookAt has changed

	counted webdelivery.QueueStats // statistics of the local queue that Redis knows; only OnStats uses them
	fleet   webdelivery.QueueStats // the last known ones
}

// call is one call of Purge or Enqueue.
type call struct {
	entry entry // id is "" while Redis does not have it
	uris  []webdelivery.PurgeURI
	done  chan result // of a call of Purge; has room for it

	checked time.Time // when Redis last knew the entry
	doubt   bool      // Redis has lost an earlier entry, which may have been carried out
}

// New returns a queue of this process. The processes with the same Redis, options, base URL and customer are a fleet.
// client must have a limiter that the fleet shares, see redislimit.New. The caller still owns rdb and client, and
// closes rdb after the queue.
//
// New sends nothing, and starts a goroutine that checks for URIs of processes that died. It returns no error. If an
// argument is invalid, it starts nothing, and every method returns a [*webdelivery.ValidationError].
func New(rdb redis.UniversalClient, client *webdelivery.Client, options Options) *Queue {
	q := &Queue{holdFor: holdFor}
	if q.options, q.invalid = withDefaults(options, rdb, client); q.invalid != nil {
		return q
	}
	q.store = newStore(rdb, client, q.options, rand.Text())
	q.door, q.stir = make(chan struct{}, 1), make(chan struct{}, 1)
	q.closing, q.quiet, q.idle = make(chan struct{}), make(chan struct{}), make(chan struct{})
	q.waiting, q.batches, q.alone = map[string]*call{}, map[string]time.Time{}, map[string]*alone{}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.local = client.Purge.NewQueue(webdelivery.QueueOptions{
		Action: q.options.Action, Wait: q.options.Wait, MaxURIs: q.options.MaxURIs, MaxBodyBytes: q.options.MaxBodyBytes,
		MaxPending: q.options.MaxPending, OnStats: q.report,
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lookAt = time.Now().Add(q.seldom())
	q.goLocked(q.tend)
	return q
}

// Purge adds URIs, at least one, to the queue of the fleet. It returns when the service has accepted the request that
// carries them, or with Wait when its transaction has ended. Any process of the fleet may send it. All URIs of a call
// go in one request, together with those of other calls; identical ones are sent once. If the service refuses some
// URIs, the request is split, which takes further permits. Then all its callers wait longer, and the receipt is that
// of the last part.
//
// Purge returns the errors of [webdelivery.PurgeQueue.Purge]. If another process has sent the request, the cause in
// the [*webdelivery.QueueError] is a [*RemoteError]. Causes of this package:
//
//   - [*UnavailableError] if Redis is down, unless FallbackLocal is set. The outcome is not applied if Redis did not
//     get the URIs, and unknown otherwise.
//   - [ErrFull], not applied, with RefuseWhenFull.
//   - webdelivery.ErrQueueClosed after Close.
//
// If the context ends before a process has taken the URIs, they leave the queue, and the outcome is not applied.
func (q *Queue) Purge(ctx context.Context, uris ...webdelivery.PurgeURI) (*webdelivery.PurgeReceipt, error) {
	c, err := q.newCall(ctx, waits, uris)
	if err != nil {
		return nil, err
	}
	if q.rests() && !q.isClosed() {
		return q.purgeAlone(ctx, c)
	}
	if !q.await(c) {
		return nil, failed(c.uris, webdelivery.ErrQueueClosed, webdelivery.OutcomeNotApplied)
	}
	if unsent, err := q.put(ctx, c); err != nil {
		q.forget(c)
		return q.instead(ctx, c, err, unsent)
	}
	select {
	case r := <-c.done:
		return q.ended(ctx, c, r)
	case <-ctx.Done():
		return q.abandon(ctx, c)
	}
}

// Enqueue adds URIs like Purge, and returns when Redis has them. The id is for [Queue.Result]. If this process ends,
// the others purge the URIs, as long as there is one with a queue. Enqueue returns the errors of [Queue.Purge] that
// concern Redis. If the only processes of a fleet cannot purge, the call fails after some minutes, see the package
// page.
//
// With FallbackLocal and without Redis, this process purges the URIs alone, in the background. Then the id begins
// with local-, and only this process knows it, as long as it runs.
func (q *Queue) Enqueue(ctx context.Context, uris ...webdelivery.PurgeURI) (id string, err error) {
	c, err := q.newCall(ctx, keeps, uris)
	if err != nil {
		return "", err
	}
	if q.isClosed() {
		return "", failed(c.uris, webdelivery.ErrQueueClosed, webdelivery.OutcomeNotApplied)
	}
	unsent, err := q.put(ctx, c)
	if err == nil {
		return c.entry.id, nil
	}
	if q.options.FallbackLocal && isUnavailable(err) {
		return q.enqueueAlone(c)
	}
	return "", failed(c.uris, err, outcomeUnless(unsent))
}

var validID = regexp.MustCompile(`^\d{1,20}-\d{1,20}$`)

// Result returns the result of a call of Enqueue, as Purge would have returned it, from any process of the fleet. It
// does not wait. It returns:
//
//   - [ErrPending] if the purge has not ended.
//   - [ErrUnknownID] if Redis does not know the id: it forgets a result after Options.Keep, or its data are lost. The
//     same holds for an id that begins with local- and is that of another process.
//   - [*UnavailableError] if Redis is down.
//   - [*webdelivery.ValidationError] if id is no id of Enqueue.
//
// A failed call is a [*webdelivery.QueueError], whose cause is a [*RemoteError]. A process needs a queue for Result,
// and so takes part in sending.
func (q *Queue) Result(ctx context.Context, id string) (*webdelivery.PurgeReceipt, error) {
	if err := q.usable(ctx); err != nil {
		return nil, err
	}
	if r, known := q.resultAlone(id); known {
		return r.receipt, r.err
	}
	if strings.HasPrefix(id, localID) {
		return nil, ErrUnknownID
	}
	if !validID.MatchString(id) {
		return nil, invalid("id", "%.100q is no id of Enqueue", id)
	}
	switch state, text, err := q.store.result(ctx, id); {
	case err != nil:
		return nil, err
	case state == "pending":
		return nil, ErrPending
	case state != "ended":
		return nil, ErrUnknownID
	default:
		_, r := decode(text)
		return r.receipt, r.err
	}
}

func (q *Queue) usable(ctx context.Context) error {
	switch {
	case q == nil || q.store == nil && q.invalid == nil:
		return invalid("Queue", "this is a zero value or nil; create a queue with New")
	case q.invalid != nil:
		return q.invalid
	case ctx == nil:
		return invalid("context", "is nil; pass context.Background() if there is no other")
	default:
		return nil
	}
}

func (q *Queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// await adds a call to those that wait for their results. It returns false if the queue is closed.
func (q *Queue) await(c *call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.calls++
	c.entry.number = strconv.FormatUint(q.calls, 36)
	q.waiting[c.entry.number] = c
	if !q.reading {
		q.reading = true
		q.goLocked(q.read)
	}
	return true
}

// goLocked starts a goroutine, unless Close has ended them. The lock is held.
func (q *Queue) goLocked(f func()) {
	if q.stopped {
		return
	}
	q.active++
	go func() {
		defer func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.active--
			q.idleLocked()
		}()
		f()
	}()
}

// idleLocked closes idle if no goroutine is left. The lock is held.
func (q *Queue) idleLocked() {
	if q.stopped && q.active == 0 {
		close(q.idle)
	}
}

// forget removes a call that waits no longer.
func (q *Queue) forget(c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, c.entry.number)
	q.restLocked()
}

// deliver ends a call. Only its first result counts.
func (q *Queue) deliver(number string, r result) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.waiting[number]; c != nil {
		delete(q.waiting, number)
		if failure, ok := errors.AsType[*webdelivery.QueueError](r.err); ok {
			if len(failure.URIs) == 0 {
				failure.URIs = c.uris // the message was unreadable
			}
			if c.doubt && failure.Outcome == webdelivery.OutcomeNotApplied {
				failure.Outcome = webdelivery.OutcomeUnknown
			}
		}
		c.done <- r
		q.restLocked()
	}
}

// ended returns the result of a call. If Redis was down for too long, the process purges alone, if it may.
func (q *Queue) ended(ctx context.Context, c *call, r result) (*webdelivery.PurgeReceipt, error) {
	var down *UnavailableError
	if errors.As(r.err, &down) {
		return q.instead(ctx, c, down, false)
	}
	return r.receipt, r.err
}

// instead is what becomes of a call that Redis does not take, or whose result it does not give.
func (q *Queue) instead(ctx context.Context, c *call, cause error, unsent bool) (*webdelivery.PurgeReceipt, error) {
	before := outcomeUnless(unsent)
	if !q.options.FallbackLocal || !isUnavailable(cause) {
		return nil, failed(c.uris, cause, before)
	}
	receipt, err := q.purgeAlone(ctx, c)
	if own, ok := errors.AsType[*webdelivery.QueueError](err); ok && own.Outcome == webdelivery.OutcomeNotApplied {
		own.Outcome = before // another process may have sent them
	}
	return receipt, err
}

// purgeAlone purges the URIs of a call without the fleet.
func (q *Queue) purgeAlone(ctx context.Context, c *call) (*webdelivery.PurgeReceipt, error) {
	receipt, err := q.local.Purge(ctx, c.uris...)
	if err == nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.resting = time.Time{}
	}
	return receipt, err
}

// rests returns whether this process could not purge a short time ago. Then it takes no turn and purges its own URIs
// alone, so that it does not keep those of others waiting.
func (q *Queue) rests() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.restsLocked()
}

func (q *Queue) restsLocked() bool { return time.Now().Before(q.resting) }

// abandon ends a call whose context has ended.
func (q *Queue) abandon(ctx context.Context, c *call) (*webdelivery.PurgeReceipt, error) {
	q.mu.Lock()
	delete(q.waiting, c.entry.number)
	id, unsent := c.entry.id, outcomeUnless(!c.doubt)
	q.restLocked()
	q.mu.Unlock()
	select {
	case r := <-c.done: // it ended at the same moment
		return r.receipt, r.err
	default:
	}
	outcome := webdelivery.OutcomeUnknown
	if id != "" && q.leave(id) {
		outcome = unsent
	}
	return nil, failed(c.uris, ctx.Err(), outcome)
}

func outcomeUnless(unsent bool) webdelivery.Outcome {
	if unsent {
		return webdelivery.OutcomeNotApplied
	}
	return webdelivery.OutcomeUnknown
}

func isUnavailable(err error) bool {
	_, ok := errors.AsType[*UnavailableError](err)
	return ok
}

// restLocked closes quiet if nothing is left for Close. The lock is held.
func (q *Queue) restLocked() {
	if q.closed && len(q.waiting) == 0 && len(q.batches) == 0 && q.purging == 0 {
		select {
		case <-q.quiet:
		default:
			close(q.quiet)
		}
	}
}
