package redisqueue

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	noGroup   = "NOGROUP"              // prefix of the error of a stream that is new or gone
	atFirst   = 64                     // calls in the first reply, which shows how large they are
	atOnce    = 1000                   // maximum entries per command or transaction
	shortTurn = 8                      // in so many requests that leave entries behind, one takes the shortest first
	linger    = 100 * time.Millisecond // time for calls of other processes that react to the same change
	spacing   = 500 * time.Millisecond // between two requests of the fleet for a permit
	turnFor   = 2 * time.Second        // after which another process may also request a permit
	mostTries = 3                      // how many processes may fail to purge a call
	finishFor = time.Minute            // how long a process tries to store results
	restFor   = 3 * time.Second        // how long a process to which Redis refuses a command takes no calls
	longest   = 30 * 24 * time.Hour    // how long Redis knows that a call of Enqueue has no result
)

// Options configures a [Queue]. A zero field selects its default. Processes with a different Prefix, Action or Wait
// have separate queues, which share only the permits.
type Options struct {
	Prefix string                  // prefix of all keys in Redis; default "webdelivery:queue"
	Action webdelivery.PurgeAction // action of all purges; default ActionPurge
	Wait   bool                    // whether purges wait for their transactions to end, not only to be accepted

	MaxURIs      int // maximum number of URIs per request and per call; default 10,000
	MaxBodyBytes int // maximum bytes of URIs per request and per call; default 4 MiB. A single URI may be longer
	MaxPending   int // approximate maximum number of calls in Redis; above it, calls get [ErrFull]; default 1,000,000

	Lease time.Duration // how long a process may be silent before others send its calls; from 1 s to 1 h; default 10 s
	Keep  time.Duration // how long calls wait and results stay in Redis; 6 leases or more, 1 min to 30 days; default 1 h
}

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
	rest    atomic.Int64            // when this process may take calls again, in Unix milliseconds
	limiter webdelivery.Limiter     // the client's

	ctx    context.Context // ends when the first Close finishes waiting
	cancel context.CancelFunc
	all    sync.WaitGroup
	work   chan struct{} // there may be something to send

	mu      sync.Mutex
	closed  bool
	waiting map[string]*call
	held    map[string]struct{} // IDs of the entries that this process has taken
	backlog []entry             // taken entries that did not fit into a request
	passed  int                 // requests that left entries behind since the shortest came first
	trouble error               // why there is no permit or no reply from Redis; nil if all is well
}

// call is a Purge call of this process.
type call struct {
	number string
	uris   []webdelivery.PurgeURI
	ended  chan struct{}
	result result
}

// New returns a queue for this process. Processes with the same Redis, options, base URL and customer form a fleet. The
// client needs a limiter that the fleet shares; see package redislimit. The caller keeps ownership of rdb and client,
// and closes rdb after the queue. If an argument is invalid, New returns a [*webdelivery.ValidationError].
func New(rdb redis.UniversalClient, client *webdelivery.Client, options Options) (*Queue, error) {
	var bad []any
	refuse := func(wrong bool, field, reason string) {
		if wrong {
			bad = append(bad, &webdelivery.ValidationError{Field: field, Reason: reason})
		}
	}
	o := options
	o.Prefix, o.Action = cmp.Or(o.Prefix, "webdelivery:queue"), cmp.Or(o.Action, webdelivery.ActionPurge)
	o.MaxURIs, o.MaxBodyBytes = cmp.Or(o.MaxURIs, 10_000), cmp.Or(o.MaxBodyBytes, 4<<20)
	o.MaxPending = cmp.Or(o.MaxPending, 1_000_000)
	o.Lease, o.Keep = cmp.Or(o.Lease, 10*time.Second), cmp.Or(o.Keep, time.Hour)
	refuse(rdb == nil, "rdb", "is nil")
	refuse(client == nil || client.PurgeLimiter() == nil, "client", "is nil or has no limiter that the processes share; "+
		"create it with webdelivery.WithPurgeLimiter and a limiter of package redislimit")
	refuse(o.Lease < time.Second || o.Lease > time.Hour, "Options.Lease", o.Lease.String()+" is not between 1s and 1h")
	refuse(o.Keep < time.Minute || o.Keep > longest, "Options.Keep", o.Keep.String()+" is not between 1m and 30 days")
	if len(bad) > 0 {
		return nil, fmt.Errorf(strings.Repeat("; %w", len(bad))[2:], bad...) // on one line
	}
	o.Keep = max(o.Keep, 6*o.Lease)
	local, err := client.Purge.NewQueue(webdelivery.QueueOptions{
		Action: o.Action, Wait: o.Wait, MaxURIs: o.MaxURIs, MaxBodyBytes: o.MaxBodyBytes, MaxPending: o.MaxPending,
	})
	if err != nil {
		return nil, err
	}
	// The braces keep the keys on one node of a cluster.
	keys := fmt.Sprintf("%s:{%s:%s:%t}:", o.Prefix, client.URL(), o.Action, o.Wait)
	q := &Queue{
		options: o, rdb: rdb, local: local, limiter: client.PurgeLimiter(),
		keys: keys, calls: keys + "calls", process: rand.Text()[:16],
		work: make(chan struct{}, 1), waiting: map[string]*call{}, held: map[string]struct{}{},
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
		return nil, err
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
		const reason = "%d URIs of %d bytes are too many for one request; call Purge with fewer"
		err = &webdelivery.ValidationError{Field: "uris", Reason: fmt.Sprintf(reason, len(uris), len(payload))}
	}
	return string(payload), err
}

// Stats returns how many calls of the fleet are in Redis, as Pending, and the age of the oldest. Other fields are 0.
func (q *Queue) Stats(ctx context.Context) (webdelivery.QueueStats, error) {
	pipe := q.rdb.Pipeline()
	pending, first := pipe.XLen(ctx, q.calls), pipe.XRangeN(ctx, q.calls, "-", "+", 1)
	if err := exec(ctx, pipe); err != nil {
		return webdelivery.QueueStats{}, err
	}
	s := webdelivery.QueueStats{Pending: int(pending.Val())}
	for _, m := range first.Val() {
		s.OldestAge = max(0, q.age(m.ID))
	}
	return s, nil
}

// Close refuses new calls, and waits for this process's Purge calls and requests to end. If ctx ends first, Close
// returns its error, the callers get webdelivery.ErrQueueClosed, and other processes send what is left. A goroutine
// that reads from Redis may outlive Close by up to 2 s, or until rdb is closed.
func (q *Queue) Close(ctx context.Context) (err error) {
	for busy := true; busy && err == nil; sleep(ctx, again/5) {
		q.mu.Lock()
		q.closed = true
		if busy, err = len(q.waiting) > 0 || len(q.held) > 0, ctx.Err(); err != nil {
			q.endAllLocked(webdelivery.ErrQueueClosed)
		}
		q.mu.Unlock()
	}
	q.cancel()
	_ = q.local.Close(ctx)
	q.all.Wait()
	return err
}

// carry adds a call to Redis, and checks once per lease that its entry is still there. If two checks in a row do not
// find it, Redis has lost data, and the call is added again. If Redis does not respond, the call fails.
func (q *Queue) carry(ctx context.Context, c *call, payload string) {
	id, doubts := "", 2
	for {
		if doubts == 2 {
			added, err := q.put(ctx, q.process+"/"+c.number, c.uris, payload)
			if err != nil {
				if ctx.Err() == nil { // otherwise leave reports the error
					q.end(c.number, result{err: err})
				}
				return
			}
			id, doubts = added, 0
		}
		select {
		case <-c.ended:
			if ctx.Err() != nil { // the caller has left
				q.takeBack(id) // its context has ended
			}
			return
		case <-time.After(q.options.Lease):
		}
		found, err := q.rdb.XRangeN(ctx, q.calls, id, id, 1).Result()
		if doubts++; len(found) > 0 {
			doubts = 0
		} else if err != nil && doubts == 2 || refused(err) {
			q.end(c.number, result{err: redisError(err)})
			return
		}
	}
}

// put adds a call to the stream, and retries for up to a lease. Adding a call twice does no harm.
func (q *Queue) put(ctx context.Context, reply string, uris []webdelivery.PurgeURI, payload string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ctx, cancel)() // the queue's context is not the caller's
	if q.length.Load() >= int64(q.options.MaxPending) {
		length, err := q.rdb.XLen(ctx, q.calls).Result()
		if q.length.Store(length); err == nil && length >= int64(q.options.MaxPending) {
			return "", failed(uris, ErrFull, webdelivery.OutcomeNotApplied)
		}
	}
	for began := time.Now(); ; {
		pipe := q.rdb.Pipeline()
		if id, ok := strings.CutPrefix(reply, "/"); ok { // an Enqueue call
			pipe.Set(ctx, q.resultOf(id), "", longest)
		}
		add, length := pipe.XAdd(ctx, (&entry{reply: reply, payload: payload}).in(q.calls)), pipe.XLen(ctx, q.calls)
		pipe.PExpire(ctx, q.calls, q.options.Keep)
		err := exec(ctx, pipe)
		if err == nil {
			q.length.Store(length.Val())
			q.wake()
			return add.Val(), nil
		}
		if ctx.Err() == nil { // otherwise the error says less than the one before
			q.note(err)
		}
		if sleep(ctx, again); refused(err) || time.Since(began) > q.options.Lease || ctx.Err() != nil {
			return "", failed(uris, err, webdelivery.OutcomeUnknown)
		}
	}
}

// takeBack deletes an entry unless a process has already read it, which then settles it.
func (q *Queue) takeBack(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), forAWord)
	defer cancel()
	mine := redis.XPendingExtArgs{Stream: q.calls, Group: group, Start: id, End: id, Count: 1}
	read, err := q.rdb.XPendingExt(ctx, &mine).Result()
	if err == nil && len(read) == 0 || redis.HasErrorPrefix(err, noGroup) {
		q.rdb.XDel(ctx, q.calls, id)
	}
}

// leave ends a call whose context has ended, with an error that says what it was waiting for.
func (q *Queue) leave(c *call, cause error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	trouble := q.trouble
	if limiter, ok := q.limiter.(interface{ Waiting() error }); ok && trouble == nil {
		trouble = limiter.Waiting()
	}
	why := "no result yet; the call, or a process that has taken it, waits for a permit or for the response"
	if trouble != nil {
		why = "no purge permit yet: " + trouble.Error() // as a text: it may match another caller's context
	}
	q.endLocked(c.number, result{err: fmt.Errorf("%w: %s", cause, why)})
}

func (q *Queue) end(number string, r result) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endLocked(number, r)
}

// endLocked ends a call. Only its first result counts. The caller holds the lock.
func (q *Queue) endLocked(number string, r result) {
	c := q.waiting[number]
	if c == nil {
		return
	}
	if _, ok := errors.AsType[*webdelivery.QueueError](r.err); !ok && r.err != nil {
		r.err = failed(c.uris, r.err, webdelivery.OutcomeUnknown)
	}
	c.result = r
	close(c.ended)
	delete(q.waiting, number)
}

// endAllLocked ends all calls of this process with an error. The caller holds the lock.
func (q *Queue) endAllLocked(err error) {
	for number := range q.waiting {
		q.endLocked(number, result{err: err})
	}
}

// receive delivers the results that other processes have stored for this one. It always reads the stream from its start
// and deletes what it has read, so that no result is lost with a reply, or in a failover to a Redis with another clock.
func (q *Queue) receive() {
	to := q.resultsOf(q.process)
	for q.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(q.ctx, readFor+forAWord)
		streams, err := q.rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{to, "0"}, Count: atOnce, Block: readFor}).Result()
		var ids []string
		for _, s := range streams {
			for _, m := range s.Messages {
				ids = append(ids, m.ID)
				number, r := decode(fmt.Sprint(m.Values["r"]))
				q.end(number, r)
			}
		}
		if len(ids) > 0 {
			err = q.rdb.XDel(ctx, to, ids...).Err()
		}
		if err = redisError(err); err != nil && q.ctx.Err() == nil {
			q.note(err)
			sleep(ctx, 2*again)
		}
		cancel()
	}
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
		q.rest.Store(time.Now().Add(restFor).UnixMilli())
		q.endAllLocked(trouble)
	}
	return ended
}

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
