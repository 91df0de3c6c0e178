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
	again     = 100 * time.Millisecond // before a command is tried again
	forAWord  = 3 * time.Second        // time for a command that is not worth a second try
	readFor   = 2 * time.Second        // one blocking read
	group     = "fleet"                // one consumer for all processes: those of dead ones would pile up
	atFirst   = 64                     // calls in the first answer, which shows how large they are
	atOnce    = 1000                   // most entries per command or transaction
	linger    = 100 * time.Millisecond // for the calls of other processes that react to the same change
	spacing   = 500 * time.Millisecond // between the waits of the fleet for a permit
	turnFor   = 2 * time.Second        // after which another process may wait for a permit as well
	mostTries = 3                      // processes that may fail to purge a call
	finishFor = time.Minute            // how long a process tries to store results
)

// Queue gathers the purges of all processes of a fleet into few requests. Create it with [New], and close it at the
// end. It is safe for concurrent use.
type Queue struct {
	options Options
	rdb     redis.UniversalClient
	local   *webdelivery.PurgeQueue // sends the requests of this process
	keys    string                  // the beginning of all keys
	calls   string                  // key of the stream of calls
	process string                  // random, in the key of its results
	length  atomic.Int64            // calls in Redis when one was last added
	limiter webdelivery.Limiter     // of the client

	ctx    context.Context //nolint:containedctx // ends when a Close ends
	cancel context.CancelFunc
	all    sync.WaitGroup
	work   chan struct{} // there may be something to send

	mu      sync.Mutex
	closed  bool
	waiting map[string]*call
	held    map[string]struct{} // ids of the entries that this process has taken
	backlog []entry             // those of them that did not fit into their request
	rest    time.Time           // until then this process takes nothing, because it could not purge
	trouble error               // why there is no permit or no answer of Redis; nil if all is well
}

// New returns a queue of this process. The processes with the same Redis, options, base URL and customer are a fleet.
// client needs a limiter that the fleet shares, see package redislimit. The caller still owns rdb and client, and
// closes rdb after the queue. If an argument is invalid, New returns a [*webdelivery.ValidationError].
func New(rdb redis.UniversalClient, client *webdelivery.Client, options Options) (*Queue, error) {
	o, err := options.withDefaults(rdb, client)
	if err != nil {
		return nil, err
	}
	keys := fmt.Sprintf("%s:{%s:%s:%t}:", o.Prefix, client.URL(), o.Action, o.Wait) // the braces keep all on one node of a cluster
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

// Purge adds URIs, at least one, to the queue of the fleet. It returns when the service has accepted the request that
// carries them, or with Wait when its transaction has ended. Any process of the fleet may send it.
//
// The error is a [*webdelivery.ValidationError] if the URIs are invalid or too many for one request, and otherwise a
// [*webdelivery.QueueError]: with a [*RemoteError] if another process has sent the request, [ErrRedis] if Redis does not
// work, [ErrFull] if MaxPending calls are in it. If some of the URIs were accepted, it comes with a receipt. The outcome
// is not applied only if nothing was added to the queue, or if the service has refused each of the URIs by itself.
//
// If the context ends first, URIs that no process has read leave the queue. The outcome is unknown all the same, and
// the text of the error says what the call was waiting for.
func (q *Queue) Purge(ctx context.Context, uris ...webdelivery.PurgeURI) (*webdelivery.PurgeReceipt, error) {
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
	q.all.Go(func() { q.carry(ctx, c, payload) }) // so the caller can leave at any time
	q.mu.Unlock()
	select {
	case <-c.ended:
	case <-ctx.Done():
		q.leave(c, ctx.Err())
	}
	return c.result.receipt, c.result.err
}

// Enqueue adds URIs like Purge, and returns when Redis has them. The id is for [Queue.Result]. If this process ends,
// the others purge the URIs, as long as there is one with a queue.
func (q *Queue) Enqueue(ctx context.Context, uris ...webdelivery.PurgeURI) (id string, err error) {
	payload, err := q.payload(uris)
	if err != nil {
		return "", err
	}
	if q.ctx.Err() != nil {
		return "", failed(uris, webdelivery.ErrQueueClosed, webdelivery.OutcomeNotApplied)
	}
	id = rand.Text() // that of the stream would change if the call is added twice
	if _, err = q.put(ctx, "/"+id, uris, payload); err != nil {
		return "", err
	}
	q.wake()
	return id, nil
}

// Result returns the result of a call of Enqueue, as Purge would have returned it, from any process of the fleet. It
// does not wait: it returns [ErrPending] or [ErrUnknownID] if there is no result, and an error that matches [ErrRedis]
// if Redis does not work.
func (q *Queue) Result(ctx context.Context, id string) (*webdelivery.PurgeReceipt, error) {
	switch text, err := q.rdb.Get(ctx, q.resultOf(id)).Result(); {
	case errors.Is(err, redis.Nil):
		return nil, ErrUnknownID
	case err != nil:
		return nil, errors.Join(ctx.Err(), redisError(err))
	case text == "":
		return nil, ErrPending
	default:
		_, r := decode(text)
		return r.receipt, r.err
	}
}

// payload returns the URIs as they are stored in Redis.
func (q *Queue) payload(uris []webdelivery.PurgeURI) (string, error) {
	if err := (webdelivery.PurgeRequest{Action: q.options.Action, URIs: uris}).Validate(); err != nil {
		return "", err
	}
	payload, err := json.Marshal(uris)
	if err == nil && (len(uris) > q.options.MaxURIs || len(uris) > 1 && len(payload) > q.options.MaxBodyBytes) {
		err = &webdelivery.ValidationError{
			Field: "uris", Reason: fmt.Sprintf("%d URIs of %d bytes are too many for one request; call Purge with fewer", len(uris), len(payload)),
		}
	}
	return string(payload), err
}

// Stats returns how many calls of the fleet are in Redis, in Pending, and the age of the oldest; other fields are 0.
func (q *Queue) Stats(ctx context.Context) (webdelivery.QueueStats, error) {
	pipe := q.rdb.Pipeline()
	pending, first := pipe.XLen(ctx, q.calls), pipe.XRangeN(ctx, q.calls, "-", "+", 1)
	if _, err := pipe.Exec(ctx); err != nil {
		return webdelivery.QueueStats{}, errors.Join(ctx.Err(), redisError(err))
	}
	s := webdelivery.QueueStats{Pending: int(pending.Val())}
	for _, m := range first.Val() {
		var ms int64
		_, _ = fmt.Sscanf(m.ID, "%d-", &ms)
		s.OldestAge = max(0, time.Since(time.UnixMilli(ms)))
	}
	return s, nil
}

// Close refuses new calls, and waits until the calls of Purge of this process and its requests have ended. If ctx ends
// first, Close returns its error, the callers get webdelivery.ErrQueueClosed, and the others send what this process has
// taken. One goroutine, which reads from Redis, may outlive Close by 2 s, or until rdb is closed.
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

// note records why callers wait.
func (q *Queue) note(trouble error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trouble = trouble
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
