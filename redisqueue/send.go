package redisqueue

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

const (
	linger  = 100 * time.Millisecond // for the calls of other processes that react to the same change
	spacing = 500 * time.Millisecond // between the waits of the fleet for a permit
	turnFor = 2 * time.Second        // after which another process may wait for a permit as well
)

// send sends requests whenever there may be something to send.
func (q *Queue) send() {
	for {
		select {
		case <-q.work:
		case <-q.ctx.Done():
			return
		}
		for sleep(q.ctx, linger); q.turn(); {
			q.request()
		}
	}
}

// turn waits until this process may ask for a permit. One process at a time does, once per spacing, so that each request
// takes what came meanwhile, and a process that searches for refused URIs gets every other permit. It returns false if
// there is nothing to send: a permit for nothing would keep others waiting.
func (q *Queue) turn() bool {
	for {
		q.mu.Lock()
		wants := time.Now().After(q.rest) && (q.needed || len(q.waiting) > 0 || len(q.backlog) > 0)
		q.mu.Unlock()
		if !wants || q.ctx.Err() != nil {
			return false
		}
		ready, err := q.ready()
		if err != nil {
			q.note(redisError(err))
			sleep(q.ctx, spacing)
			continue
		}
		if !ready {
			return false
		}
		pipe := q.rdb.Pipeline()
		mine, life := pipe.SetNX(q.ctx, q.keys+"turn", q.process, turnFor), pipe.PTTL(q.ctx, q.keys+"turn")
		if _, err := pipe.Exec(q.ctx); err != nil || mine.Val() { // at the memory limit, the permits alone must do
			return q.ctx.Err() == nil
		}
		sleep(q.ctx, min(max(0, life.Val()), spacing/3)+time.Duration(mathrand.Int64N(int64(again/5)))) //nolint:gosec // it spreads processes
	}
}

// ready reports whether there is an entry that no process has read, or whose process is silent. It also keeps the
// stream alive.
func (q *Queue) ready() (bool, error) {
	pipe := q.rdb.Pipeline()
	all, taken := pipe.XLen(q.ctx, q.calls), pipe.XPending(q.ctx, q.calls, group)
	silent := pipe.XPendingExt(q.ctx, &redis.XPendingExtArgs{
		Stream: q.calls, Group: group, Idle: q.options.Lease, Start: "-", End: "+", Count: 1,
	})
	pipe.PExpire(q.ctx, q.calls, q.options.Keep)
	if _, err := pipe.Exec(q.ctx); err != nil && !isNoGroup(err) {
		return false, err
	}
	unread := all.Val()
	if p := taken.Val(); p != nil {
		unread -= p.Count
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if errors.Is(q.trouble, ErrRedis) || errors.Is(q.trouble, ErrFull) {
		q.trouble = nil
	}
	ready := unread > 0 || len(silent.Val()) > 0 || len(q.backlog) > 0
	q.needed = q.needed && ready
	return ready, nil
}

func isNoGroup(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOGROUP") }

// request waits for a permit, and sends what waits then. It returns when that is taken from Redis.
func (q *Queue) request() {
	ctx, cancel := context.WithCancel(q.ctx)
	began := time.Now()
	q.mu.Lock()
	q.asks = cancel
	waiting := patience{ctx, q.until}
	if len(q.waiting) == 0 { // for calls of Enqueue, or of other processes
		waiting.until = time.Time{}
	}
	q.mu.Unlock()
	taken := make(chan struct{})
	begun := sync.OnceFunc(func() { close(taken) })
	q.all.Go(func() {
		defer cancel()
		defer begun()
		var entries []entry
		ended := make(chan decided, atOnce)
		q.all.Go(func() { q.settle(ended) }) //nolint:contextcheck // results outlive the request
		defer close(ended)
		err := q.local.PurgeFrom(waiting, func(context.Context) (calls [][]webdelivery.PurgeURI, err error) { //nolint:contextcheck // see patience
			defer begun()
			entries, err = q.take(ctx)
			for _, e := range entries {
				calls = append(calls, e.uris)
			}
			return calls, err
		}, func(i int, r webdelivery.PurgeResult) { ended <- decided{entries[i], result{r.Receipt, r.Err}} })
		if err != nil && ctx.Err() == nil {
			q.noPermit(err)
		}
	})
	<-taken
	q.mu.Lock()
	q.asks = nil
	q.mu.Unlock()
	if took := time.Since(began); took < turnFor { // otherwise it may be the turn of another process
		q.rdb.PExpire(q.ctx, q.keys+"turn", max(time.Millisecond, spacing-took))
	}
}

// patience is a context that tells a limiter when the last caller leaves, so that the limiter can say at once that the
// next permit comes later. It does not end then.
type patience struct {
	context.Context //nolint:containedctx // it is one

	until time.Time
}

func (p patience) Deadline() (time.Time, bool) { return p.until, !p.until.IsZero() }

// noPermit handles an error before anything was taken. If the service is the reason, for example because it refuses
// the login, others may have more luck: this process rests, and its callers fail after some tries.
func (q *Queue) noPermit(err error) {
	q.mu.Lock()
	q.trouble = err
	if errors.As(err, new(*webdelivery.Error)) {
		q.restLocked(err)
		for _, c := range q.waiting {
			c.faults++
		}
		q.failLocked(err, mostTries)
	}
	q.mu.Unlock()
	sleep(q.ctx, spacing)
}

// restLocked makes this process take nothing for a while, because it could not purge: others look for work in that time.
// The lock is held.
func (q *Queue) restLocked(trouble error) {
	q.trouble, q.rest = trouble, time.Now().Add(q.options.Lease/2)
	time.AfterFunc(q.options.Lease/2+time.Millisecond, q.wake)
}
