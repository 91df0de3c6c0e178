package redisqueue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// call is a Purge call that is waiting. The queue's lock guards it until it ends.
type call struct {
	number string
	uris   []webdelivery.PurgeURI
	ended  chan struct{}
	left   bool // it ended without a result from the fleet
	result result
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
					q.end(c.number, result{err: err}, true)
				}
				return
			}
			id, doubts = added, 0
			q.wake()
		}
		select {
		case <-c.ended:
			if c.left {
				q.takeBack(id) //nolint:contextcheck // the caller's context has ended
			}
			return
		case <-time.After(q.options.Lease):
		}
		found, err := q.rdb.XRangeN(ctx, q.calls, id, id, 1).Result()
		if doubts++; len(found) > 0 {
			doubts = 0
		} else if err != nil && doubts == 2 || refused(err) {
			q.end(c.number, result{err: failed(c.uris, redisError(err), webdelivery.OutcomeUnknown)}, true)
			return
		}
	}
}

// put adds a call to the stream. It retries for up to a lease, because Redis may restart or fail over. A retry may add
// the call twice, which does no harm.
func (q *Queue) put(ctx context.Context, reply string, uris []webdelivery.PurgeURI, payload string) (id string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ctx, cancel)() //nolint:contextcheck // the queue's context is not the caller's
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
		if err = exec(ctx, pipe); err == nil {
			q.length.Store(length.Val())
			return add.Val(), nil
		}
		if ctx.Err() == nil { // otherwise the error says less than the one before
			q.note(err)
		}
		if sleep(ctx, again); refused(err) || time.Since(began) > q.options.Lease || ctx.Err() != nil {
			return "", failed(uris, errors.Join(ctx.Err(), err), webdelivery.OutcomeUnknown)
		}
	}
}

// takeBack deletes an entry that nobody waits for, unless a process has already read it, which then settles it. If an
// entry is read between the two commands, it is sent.
func (q *Queue) takeBack(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), forAWord)
	defer cancel()
	read, err := q.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: q.calls, Group: group, Start: id, End: id, Count: 1}).Result()
	if err == nil && len(read) == 0 || isNoGroup(err) {
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
	why := fmt.Errorf("%w: no result yet; the call, or a process that has taken it, waits for a permit or for the response", cause)
	if trouble != nil {
		why = fmt.Errorf("%w: no purge permit yet: %s", cause, trouble.Error()) // it may match another caller's context
	}
	q.endLocked(c.number, result{err: failed(c.uris, why, webdelivery.OutcomeUnknown)}, true)
}

func (q *Queue) end(number string, r result, left bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endLocked(number, r, left)
}

// endLocked ends a call. Only its first result counts. The caller holds the lock.
func (q *Queue) endLocked(number string, r result, left bool) {
	c := q.waiting[number]
	if c == nil {
		return
	}
	if _, ok := errors.AsType[*webdelivery.QueueError](r.err); !ok && r.err != nil {
		r.err = failed(c.uris, r.err, webdelivery.OutcomeUnknown)
	}
	c.result, c.left = r, left
	close(c.ended)
	delete(q.waiting, number)
}

// receive delivers the results that other processes have stored for this one. It always reads the stream from its start
// and deletes what it has read, so that no result is lost with a reply, or in a failover to a Redis with another clock.
func (q *Queue) receive() {
	results := q.resultsOf(q.process)
	for q.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(q.ctx, readFor+forAWord)
		streams, err := q.rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{results, "0"}, Count: atOnce, Block: readFor}).Result()
		var ids []string
		for _, s := range streams {
			for _, m := range s.Messages {
				ids = append(ids, m.ID)
				number, r := decode(fmt.Sprint(m.Values["r"]))
				q.end(number, r, false)
			}
		}
		if len(ids) > 0 {
			err = q.rdb.XDel(ctx, results, ids...).Err()
		}
		if err = redisError(err); err != nil && q.ctx.Err() == nil {
			q.note(err)
			sleep(ctx, 2*again)
		}
		cancel()
	}
}
