package redisqueue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
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

	ctx        context.Context //nolint:containedctx // ends when a Close ends
	cancel     context.CancelFunc
	all        sync.WaitGroup
	work, read chan struct{} // there may be something to send; a caller waits

	mu      sync.Mutex
	closed  bool
	quiet   chan struct{} // closed when a Close has nothing to wait for
	number  uint64        // of the last call
	waiting map[string]*call
	until   time.Time           // latest deadline of those that wait
	held    map[string]struct{} // ids of the entries that this process has taken
	backlog []entry             // those of them that did not fit into their request
	needed  bool                // there is more to send than the calls that wait
	asks    context.CancelFunc  // ends the wait for a permit; nil if there is none
	rest    time.Time           // until then this process takes nothing, because it could not purge
	faults  int                 // how often in a row it could not
	trouble error               // why there is no permit or no answer of Redis; nil if all is well
	stats   webdelivery.QueueStats
}

// New returns a queue of this process. The processes with the same Redis, options, base URL and customer are a fleet.
// client needs a limiter that the fleet shares, see package redislimit. The caller still owns rdb and client, and
// closes rdb after the queue. If an argument is invalid, New returns a [*webdelivery.ValidationError].
func New(rdb redis.UniversalClient, client *webdelivery.Client, options Options) (*Queue, error) {
	o, err := options.withDefaults(rdb, client)
	if err != nil {
		return nil, err
	}
	kind := string(o.Action)
	if o.Wait {
		kind += "-wait"
	}
	q := &Queue{
		options: o, rdb: rdb, process: rand.Text()[:16],
		keys: fmt.Sprintf("%s:{%s:%s}:", o.Prefix, client.URL(), kind), // the braces keep all keys on one node of a cluster
		work: make(chan struct{}, 1), read: make(chan struct{}, 1), quiet: make(chan struct{}),
		waiting: map[string]*call{}, held: map[string]struct{}{},
	}
	q.calls = q.keys + "calls"
	q.local, err = client.Purge.NewQueue(webdelivery.QueueOptions{Action: o.Action, Wait: o.Wait, OnStats: func(s webdelivery.QueueStats) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.stats = s
	}})
	if err != nil {
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

// Stats returns how many calls of the fleet are in Redis, in Pending, also those under way, and the age of the oldest.
// The other statistics are those of the requests of this process.
func (q *Queue) Stats(ctx context.Context) (webdelivery.QueueStats, error) {
	pipe := q.rdb.Pipeline()
	pending, first := pipe.XLen(ctx, q.calls), pipe.XRangeN(ctx, q.calls, "-", "+", 1)
	if _, err := pipe.Exec(ctx); err != nil {
		return webdelivery.QueueStats{}, errors.Join(ctx.Err(), redisError(err))
	}
	q.mu.Lock()
	s := q.stats
	q.mu.Unlock()
	s.Pending, s.OldestAge = int(pending.Val()), 0
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
	q.mu.Lock()
	q.closed = true
	q.restLocked()
	q.mu.Unlock()
	select {
	case <-q.quiet:
	case <-ctx.Done():
		err = ctx.Err()
		q.mu.Lock()
		q.failLocked(webdelivery.ErrQueueClosed, 0)
		q.mu.Unlock()
	}
	q.cancel()
	_ = q.local.Close(ctx)
	q.all.Wait()
	return err
}

// restLocked ends a wait for a permit that nobody needs any more, because others wait for permits too, and the wait of
// a Close. The lock is held.
func (q *Queue) restLocked() {
	if len(q.waiting) > 0 {
		return
	}
	if q.asks != nil && !q.needed && len(q.backlog) == 0 {
		q.asks()
	}
	if q.closed && len(q.held) == 0 {
		select {
		case <-q.quiet:
		default:
			close(q.quiet)
		}
	}
}

// note records why callers wait.
func (q *Queue) note(trouble error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trouble = trouble
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
