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
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// Options configures a [Queue]. A zero field selects its default. Processes with a different Prefix, Action or Wait
// have separate queues, which share only the permits. The other options must be the same in all processes of a queue.
type Options struct {
	Prefix string                  // prefix of all keys in Redis; default "webdelivery:queue"
	Action webdelivery.PurgeAction // action of all purges; default ActionPurge
	Wait   bool                    // whether purges wait for their transactions to end, not only to be accepted

	MaxURIs      int // maximum number of URIs per request and per call; default 10,000
	MaxBodyBytes int // maximum bytes of URIs per request and per call; default 4 MiB. A single URI may be longer
	MaxPending   int // maximum number of calls in Redis; above it, calls get [ErrFull]; default 1,000,000

	Lease time.Duration // how long the sender may be silent before another process takes over; from 1 s to 1 h; default 10 s
	Keep  time.Duration // how long calls wait to be sent, and results stay in Redis; 1 min to 30 days; default 1 h, or 6 leases
}

// Queue combines the purges of all processes of a fleet into few requests. Create it with [New], and close it when
// done. It is safe for concurrent use.
type Queue struct {
	options Options
	rdb     redis.UniversalClient
	client  *webdelivery.Client
	local   *webdelivery.PurgeQueue // sends the requests of the fleet while this process is the sender
	keys    string                  // prefix of the keys "calls" (a stream), "lease" (the last beat) and "result:" with an ID
	process string                  // random name of this process

	ctx    context.Context // ends when the first Close finishes waiting
	cancel context.CancelFunc
	all    sync.WaitGroup // purges of the fleet that this process sends
	ended  chan struct{}  // closed when the loop has ended
	wake   chan struct{}  // there is something to exchange

	mu      sync.Mutex       // methods that end with Locked are called while it is held
	closing time.Time        // when Close was called
	trouble error            // why Redis does not work; nil if it does
	heard   time.Time        // when Redis last responded
	called  time.Time        // when the last call began
	calls   map[string]*call // that have no result, by ID
	stores  []stored         // results to be stored
	length  int64            // of the stream, as last seen

	lastBeat string    // as stored
	beat     beat      // the same
	seen     time.Time // when this process first saw it
	rest     time.Time // until then, this process does not become the sender
	fails    int       // terms in a row in which it could not purge
	unsent   time.Time // since when there are calls and no sender
	term     *term     // nil if this process is not the sender
}

// call is a call of this process.
type call struct {
	id      string
	uris    []webdelivery.PurgeURI
	payload string        // the same as JSON
	since   time.Time     // when it was to be added
	added   bool          // it is in Redis
	stored  string        // what Redis has of it: the ID of its entry, and what the service has accepted
	ended   chan struct{} // closed when it has a result
	result  result
}

// awaited begins the IDs of Purge calls, whose results are soon read.
const awaited = "p"

// New returns a queue for this process. Processes with the same Redis, options, base URL and customer form a fleet. Give
// client a limiter that the fleet shares (package redislimit): two processes may send for a moment, and others may purge
// without the queue. The caller keeps ownership of rdb and client, and closes rdb after the queue. If an argument is
// invalid, New returns a [*webdelivery.ValidationError].
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
	refuse(client == nil, "client", "is nil")
	refuse(o.MaxPending < 0, "Options.MaxPending", "is below 0")
	refuse(o.Lease < time.Second || o.Lease > time.Hour, "Options.Lease", o.Lease.String()+" is not between 1s and 1h")
	refuse(o.Keep < time.Minute || o.Keep > 30*24*time.Hour, "Options.Keep", o.Keep.String()+" is not between 1m and 30 days")
	if len(bad) > 0 {
		return nil, fmt.Errorf(strings.Repeat("; %w", len(bad))[2:], bad...) // on one line
	}
	o.Keep = max(o.Keep, 6*o.Lease)
	local, err := client.Purge.NewQueue(webdelivery.QueueOptions{
		Action: o.Action, MaxURIs: o.MaxURIs, MaxBodyBytes: o.MaxBodyBytes, MaxPending: max(o.MaxURIs, 1_000_000),
	})
	if err != nil {
		return nil, err
	}
	// The braces keep the keys on one node of a cluster.
	keys := fmt.Sprintf("%s:{%s:%s:%t}:", o.Prefix, client.URL(), o.Action, o.Wait)
	q := &Queue{
		options: o, rdb: rdb, client: client, local: local,
		keys: keys, process: rand.Text()[:16],
		calls: map[string]*call{}, ended: make(chan struct{}), wake: make(chan struct{}, 1), heard: time.Now(),
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.loop()
	return q, nil
}

// Purge adds one or more URIs to the fleet's queue. It returns when the service has accepted the request with the URIs
// or, with Options.Wait, when the transaction has ended. Any process of the fleet may send them.
//
// The error is a [*webdelivery.ValidationError] if the URIs are invalid or too many for one request, and otherwise a
// [*webdelivery.QueueError]. That wraps a [*RemoteError] if a request failed, [ErrRedis] if Redis does not work, and
// [ErrFull] if the queue is full. If only some of the URIs were accepted, Purge returns both a receipt and an error. The
// outcome is OutcomeNotApplied only if nothing was queued, or if the service refused each URI alone.
//
// If the context ends first, the URIs are removed from the queue, unless they are part of a request. The outcome is
// unknown even so, and the error says what the call was waiting for.
func (q *Queue) Purge(ctx context.Context, uris ...webdelivery.PurgeURI) ([]*webdelivery.PurgeReceipt, error) {
	r := q.call(ctx, awaited+rand.Text(), uris)
	return r.receipts, r.err
}

// Enqueue adds URIs like Purge, but returns as soon as Redis has stored them. Pass the ID to [Queue.Result]. If this
// process ends, any other process of the fleet purges the URIs.
func (q *Queue) Enqueue(ctx context.Context, uris ...webdelivery.PurgeURI) (id string, err error) {
	id = rand.Text()
	if r := q.call(ctx, id, uris); r.err != nil {
		return "", r.err
	}
	return id, nil
}

// Result returns the result of an Enqueue call, as Purge would have returned it. Any process with a queue of the same
// Prefix, Action and Wait can call it. It does not wait: it returns [ErrPending] if there is no result yet, however long
// the call is queued, [ErrUnknownID] if Redis does not know the ID, and an error that matches [ErrRedis] if Redis does
// not work.
func (q *Queue) Result(ctx context.Context, id string) ([]*webdelivery.PurgeReceipt, error) {
	switch text, err := q.rdb.Get(ctx, q.keys+"result:"+id).Result(); {
	case errors.Is(err, redis.Nil):
		return nil, ErrUnknownID
	case err != nil:
		return nil, askedError(ctx, err)
	case !strings.HasPrefix(text, "{"):
		return nil, ErrPending
	default:
		r := decode(text)
		return r.receipts, r.err
	}
}

// Stats returns how many calls of the fleet are in Redis, as Pending, and the age of the oldest. Other fields are 0.
func (q *Queue) Stats(ctx context.Context) (s webdelivery.QueueStats, err error) {
	pipe := q.rdb.Pipeline()
	pending, first, now := pipe.XLen(ctx, q.keys+"calls"), pipe.XRangeN(ctx, q.keys+"calls", "-", "+", 1), pipe.Time(ctx)
	if _, err = pipe.Exec(ctx); err != nil {
		return s, askedError(ctx, err)
	}
	s.Pending = int(pending.Val())
	for _, m := range first.Val() {
		var ms int64
		_, _ = fmt.Sscanf(m.ID, "%d-", &ms)
		s.OldestAge = max(0, now.Val().Sub(time.UnixMilli(ms)))
	}
	return s, nil
}

// Close refuses new calls, and waits for the Purge calls of this process to end. What it has enqueued stays, and if it
// is the sender, another process takes over. If ctx ends first, Close returns its error, the callers get
// webdelivery.ErrQueueClosed, and other processes send what is left. A goroutine that waits for Redis may outlive Close
// until its command times out, or until rdb is closed.
func (q *Queue) Close(ctx context.Context) (err error) {
	q.mu.Lock()
	q.closing = cmp.Or(q.closing, time.Now())
	q.wakeUp()
	q.mu.Unlock()
	select {
	case <-q.ended:
	case <-ctx.Done():
		err = ctx.Err()
		q.mu.Lock()
		for _, c := range q.calls {
			q.endLocked(c, result{err: webdelivery.ErrQueueClosed})
		}
		q.mu.Unlock()
	}
	q.cancel()
	_ = q.local.Close(ctx)
	select {
	case <-q.ended:
	case <-time.After(2 * tick): // Redis does not respond
	}
	return err
}

// call validates the URIs of a call, has the loop add it to Redis, and waits for its result.
func (q *Queue) call(ctx context.Context, id string, uris []webdelivery.PurgeURI) result {
	if err := (webdelivery.PurgeRequest{Action: q.options.Action, URIs: uris}).Validate(); err != nil {
		return result{err: err}
	}
	payload, _ := json.Marshal(uris) //nolint:errchkjson // strings do not fail
	if size := len(payload) + 100; len(uris) > q.options.MaxURIs || len(uris) > 1 && size > q.options.MaxBodyBytes {
		reason := fmt.Sprintf("%d URIs of %d bytes are too many for one request; call Purge with fewer", len(uris), size)
		return result{err: &webdelivery.ValidationError{Field: "uris", Reason: reason}}
	}
	c := &call{id: id, uris: slices.Clone(uris), payload: string(payload), since: time.Now(), ended: make(chan struct{})}
	q.mu.Lock()
	if !q.closing.IsZero() || ctx.Err() != nil {
		q.mu.Unlock()
		return result{err: failed(uris, cmp.Or(ctx.Err(), webdelivery.ErrQueueClosed), webdelivery.OutcomeNotApplied)}
	}
	q.called, q.calls[id] = c.since, c
	q.wakeUp()
	q.mu.Unlock()
	select {
	case <-c.ended:
	case <-ctx.Done():
		q.leave(ctx, c)
	}
	return c.result
}

// leave removes a call whose context has ended from Redis, unless it has a result. The error says what it waited for.
func (q *Queue) leave(ctx context.Context, c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	why := cmp.Or(q.beat.Why, "the call waits for a purge permit or for the response to its request")
	_, accepted, _ := strings.Cut(c.stored, " ")
	receipts := decode(accepted).receipts
	if q.trouble != nil {
		why = q.trouble.Error() // as a text: it may match another caller's context
	} else if receipts != nil {
		why = fmt.Sprintf("the service has accepted transaction %d, which has not ended", receipts[0].TransactionID)
	}
	if q.calls[c.id] == c {
		q.stores = append(q.stores, stored{Call: c.id, Life: -1})
		q.endLocked(c, result{receipts, fmt.Errorf("%w before the purge had a result: %s", ctx.Err(), why)})
		q.wakeUp()
	}
}

// why returns what the purges of this process wait for, if it knows.
func (q *Queue) why() (text string) {
	now := q.local.Stats()
	err := now.Err
	if errors.Is(err, context.Canceled) { // by the end of a term
		err = nil
	}
	if err == nil && now.InFlight > 0 {
		err = errors.New("a request is under way")
	}
	if err = cmp.Or(now.Waiting, err); err != nil {
		text = oneLine(err)
	}
	return text
}

// endLocked ends a call, unless it has ended.
func (q *Queue) endLocked(c *call, r result) {
	if q.calls[c.id] == c {
		delete(q.calls, c.id)
		c.result = result{r.receipts, failed(c.uris, r.err, webdelivery.OutcomeUnknown)}
		close(c.ended)
	}
}

func (q *Queue) wakeUp() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
