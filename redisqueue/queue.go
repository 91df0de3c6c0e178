package redisqueue

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

const (
	again     = 100 * time.Millisecond // before a command is retried
	forAWord  = 3 * time.Second        // timeout of a command that is not retried
	readFor   = 2 * time.Second        // how long one read blocks
	group     = "fleet"                // one consumer for all processes: consumers of dead processes would pile up
	atFirst   = 64                     // calls in the first reply, which shows how large they are
	atOnce    = 1000                   // maximum entries per command or transaction
	linger    = 100 * time.Millisecond // time for calls of other processes that react to the same change
	spacing   = 500 * time.Millisecond // between two requests of the fleet for a permit
	turnFor   = 2 * time.Second        // after which another process may also request a permit
	mostTries = 3                      // how many processes may fail to purge a call
	finishFor = time.Minute            // how long a process tries to store results
	restFor   = 3 * time.Second        // how long a process to which Redis refuses a command takes no calls
	longest   = 30 * 24 * time.Hour    // how long Redis knows that a call of Enqueue has no result
)

// Queue combines the purges of all processes of a fleet into few requests. Create it with [New], and close it when
// done. It is safe for concurrent use.
type Queue struct {
	options Options
	rdb     redis.UniversalClient
	local   *webdelivery.PurgeQueue // sends the requests of this process
	keys    string                  // prefix of all keys
	calls   string                  // key of the stream of calls
	process string                  // random name of this process, part of the key of its results
	length  atomic.Int64            // of the stream, when a call was last added
	ahead   atomic.Int64            // how far the clock of Redis is ahead of this process's, in ms
	limiter webdelivery.Limiter     // the client's

	ctx    context.Context //nolint:containedctx // ends when the first Close finishes waiting
	cancel context.CancelFunc
	all    sync.WaitGroup
	work   chan struct{} // there may be something to send

	mu      sync.Mutex
	closed  bool
	waiting map[string]*call
	held    map[string]struct{} // IDs of the entries that this process has taken
	backlog []entry             // taken entries that did not fit into a request
	rest    time.Time           // this process takes nothing before this time, because it could not purge
	trouble error               // why there is no permit or no reply from Redis; nil if all is well
}

// New returns a queue for this process. Processes with the same Redis, options, base URL and customer form a fleet. The
// client needs a limiter that the fleet shares; see package redislimit. The caller keeps ownership of rdb and client,
// and closes rdb after the queue. If an argument is invalid, New returns a [*webdelivery.ValidationError].
func New(rdb redis.UniversalClient, client *webdelivery.Client, options Options) (*Queue, error) {
	o, err := options.withDefaults(rdb, client)
	if err != nil {
		return nil, err
	}
	keys := fmt.Sprintf("%s:{%s:%s:%t}:", o.Prefix, client.URL(), o.Action, o.Wait) // the braces keep the keys on one cluster node
	q := &Queue{
		options: o, rdb: rdb, limiter: client.PurgeLimiter(), keys: keys, calls: keys + "calls", process: rand.Text()[:16],
		work: make(chan struct{}, 1), waiting: map[string]*call{}, held: map[string]struct{}{},
	}
	if q.local, err = client.Purge.NewQueue(webdelivery.QueueOptions{Action: o.Action, Wait: o.Wait}); err != nil {
		return nil, err
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.all.Go(q.send)
	q.all.Go(q.tend)
	go q.receive()
	return q, nil
}

func (q *Queue) resultsOf(process string) string { return q.keys + "to:" + process }
func (q *Queue) resultOf(id string) string       { return q.keys + "result:" + id }

// Purge adds one or more URIs to the fleet's queue. It returns when the service has accepted the request with the URIs
// or, with Options.Wait, when the transaction has ended. Any process of the fleet may send them.
//
// The error is a [*webdelivery.ValidationError] if the URIs are invalid or too many for one request, and otherwise a
// [*webdelivery.QueueError]. That wraps a [*RemoteError] if another process sent the request, [ErrRedis] if Redis does
// not work, and [ErrFull] if the queue is full. If only some of the URIs were accepted, Purge returns both a receipt
// and an error. The outcome is OutcomeNotApplied only if nothing was queued, or if the service refused each URI alone.
//
// If the context ends first, URIs that no process has taken yet are removed from the queue. The outcome is unknown even
// so, and the error says what the call was waiting for.
func (q *Queue) Purge(ctx context.Context, uris ...webdelivery.PurgeURI) ([]*webdelivery.PurgeReceipt, error) {
	payload, err := q.payload(uris)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	if q.closed || ctx.Err() != nil {
		q.mu.Unlock()
		return nil, failed(uris, cmp.Or(ctx.Err(), webdelivery.ErrQueueClosed), webdelivery.OutcomeNotApplied)
	}
	c := &call{number: rand.Text()[:12], uris: slices.Clone(uris), ended: make(chan struct{})}
	q.waiting[c.number] = c
	q.all.Go(func() { q.carry(ctx, c, payload) }) // in a goroutine, so that the caller can leave at any time
	q.mu.Unlock()
	select {
	case <-c.ended:
	case <-ctx.Done():
		q.leave(c, ctx.Err())
	}
	return c.result.receipts, c.result.err
}

// Enqueue adds URIs like Purge, but returns as soon as Redis has stored them. Pass the ID to [Queue.Result]. If this
// process ends, any other process of the fleet purges the URIs.
func (q *Queue) Enqueue(ctx context.Context, uris ...webdelivery.PurgeURI) (id string, err error) {
	payload, err := q.payload(uris)
	if err != nil {
		return "", err
	}
	if q.ctx.Err() != nil {
		return "", failed(uris, webdelivery.ErrQueueClosed, webdelivery.OutcomeNotApplied)
	}
	id = rand.Text() // the ID in the stream changes if the call is added twice
	if _, err = q.put(ctx, "/"+id, uris, payload); err != nil {
		return "", err
	}
	q.wake()
	return id, nil
}

// Result returns the result of an Enqueue call, as Purge would have returned it. Any process of the fleet can call it.
// It does not wait: it returns [ErrPending] if there is no result yet, however long the call is queued, [ErrUnknownID]
// if Redis does not know the ID, and an error that matches [ErrRedis] if Redis does not work.
func (q *Queue) Result(ctx context.Context, id string) ([]*webdelivery.PurgeReceipt, error) {
	pipe := q.rdb.Pipeline() // in this order, because a call leaves the stream after its result was stored
	queued, text, life := pipe.XLen(ctx, q.calls), pipe.Get(ctx, q.resultOf(id)), pipe.PTTL(ctx, q.resultOf(id))
	switch err := exec(ctx, pipe); {
	case err != nil:
		return nil, errors.Join(ctx.Err(), err)
	case text.Err() != nil, text.Val() == "" && queued.Val() == 0 && life.Val() < longest-q.options.Keep:
		return nil, ErrUnknownID
	case text.Val() == "":
		return nil, ErrPending
	default:
		_, r := decode(text.Val())
		return r.receipts, r.err
	}
}

// payload validates the URIs and returns them as they are stored in Redis.
func (q *Queue) payload(uris []webdelivery.PurgeURI) (string, error) {
	if err := (webdelivery.PurgeRequest{Action: q.options.Action, URIs: uris}).Validate(); err != nil {
		return "", err
	}
	payload, err := json.Marshal(uris)
	if err == nil && (len(uris) > q.options.MaxURIs || len(uris) > 1 && len(payload) > q.options.MaxBodyBytes) {
		reason := fmt.Sprintf("%d URIs of %d bytes are too many for one request; call Purge with fewer", len(uris), len(payload))
		err = &webdelivery.ValidationError{Field: "uris", Reason: reason}
	}
	return string(payload), err
}

// Stats returns how many calls of the fleet are in Redis, as Pending, and the age of the oldest. Other fields are 0.
func (q *Queue) Stats(ctx context.Context) (webdelivery.QueueStats, error) {
	pipe := q.rdb.Pipeline()
	pending, first := pipe.XLen(ctx, q.calls), pipe.XRangeN(ctx, q.calls, "-", "+", 1)
	if err := exec(ctx, pipe); err != nil {
		return webdelivery.QueueStats{}, errors.Join(ctx.Err(), err)
	}
	s := webdelivery.QueueStats{Pending: int(pending.Val())}
	for _, m := range first.Val() {
		s.OldestAge = max(0, q.age(m.ID))
	}
	return s, nil
}

// Close refuses new calls, and waits for this process's Purge calls and requests to end. If ctx ends first, Close
// returns its error, the callers get webdelivery.ErrQueueClosed, and other processes send what this one has taken. A
// goroutine that reads from Redis may outlive Close by up to 2 s, or until rdb is closed.
func (q *Queue) Close(ctx context.Context) (err error) {
	for busy := true; busy && err == nil; sleep(ctx, again/5) {
		q.mu.Lock()
		q.closed = true
		busy, err = len(q.waiting) > 0 || len(q.held) > 0, ctx.Err()
		for _, c := range q.waiting {
			if err != nil {
				q.endLocked(c.number, result{err: failed(c.uris, webdelivery.ErrQueueClosed, webdelivery.OutcomeUnknown)}, true)
			}
		}
		q.mu.Unlock()
	}
	q.cancel()
	_ = q.local.Close(ctx)
	q.all.Wait()
	return err
}

// age returns the time since an entry was added, by the clock of Redis.
func (q *Queue) age(id string) time.Duration {
	var ms int64
	_, _ = fmt.Sscanf(id, "%d-", &ms)
	return time.Since(time.UnixMilli(ms - q.ahead.Load()))
}

// note records why callers are waiting. It reports whether Redis refuses a command, so that waiting does not help: then
// this process's calls have ended, and it takes none for a while, so that others have the permits.
func (q *Queue) note(trouble error) (ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ended = refused(trouble); ended && !errors.Is(trouble, ErrRedis) { // it is the limiter's
		trouble = fmt.Errorf("%w: %w", ErrRedis, trouble)
	}
	if q.trouble = trouble; ended {
		q.rest = time.Now().Add(restFor)
		for _, c := range q.waiting {
			q.endLocked(c.number, result{err: failed(c.uris, trouble, webdelivery.OutcomeUnknown)}, true)
		}
	}
	return ended
}

// wake makes this process look for something to send.
func (q *Queue) wake() {
	select {
	case q.work <- struct{}{}:
	default:
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
