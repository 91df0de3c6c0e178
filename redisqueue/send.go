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

// turn waits until this process may request a permit. Only one process at a time may, once per spacing, so that each
// request takes what has come meanwhile, and a process that searches for refused URIs gets every other permit. It
// returns false if there is nothing to send, because an unused permit would keep others waiting.
func (q *Queue) turn() bool {
	for q.ctx.Err() == nil {
		if sleep(q.ctx, time.Until(time.UnixMilli(q.rest.Load()))); !q.ready() {
			return false
		}
		pipe := q.rdb.Pipeline()
		mine, life := pipe.SetNX(q.ctx, q.keys+"turn", q.process, turnFor), pipe.PTTL(q.ctx, q.keys+"turn")
		if err := exec(q.ctx, pipe); err != nil || mine.Val() { // a full Redis refuses the key: permits alone must do
			return !q.note(err) && q.ctx.Err() == nil
		}
		spread := time.Duration(mathrand.Int64N(int64(again / 5))) //nolint:gosec // it hides nothing
		sleep(q.ctx, min(max(0, life.Val()), spacing/3)+spread)
	}
	return false
}

// ready reports whether there is an entry that no process has read, or whose process has been silent for a lease. It
// also renews the lifetime of the stream and reads the clock of Redis. If Redis does not respond, or would refuse a
// command that ends a taken call, which keeps others waiting, ready returns false, and tend tries again.
func (q *Queue) ready() bool {
	pipe := q.rdb.Pipeline()
	all, taken := pipe.XLen(q.ctx, q.calls), pipe.XPending(q.ctx, q.calls, group)
	stale := redis.XPendingExtArgs{Stream: q.calls, Group: group, Idle: q.options.Lease, Start: "-", End: "+", Count: 1}
	silent := pipe.XPendingExt(q.ctx, &stale)
	pipe.PExpire(q.ctx, q.calls, q.options.Keep)
	clock := pipe.XAdd(q.ctx, &redis.XAddArgs{Stream: q.keys + "clock", MaxLen: 1, Values: []string{"", ""}})
	pipe.PExpire(q.ctx, q.keys+"clock", time.Millisecond)
	none := "0-1" // no entry has this ID
	pipe.XClaimJustID(q.ctx, &redis.XClaimArgs{Stream: q.calls, Group: group, Consumer: group, Messages: []string{none}})
	pipe.XAck(q.ctx, q.calls, group, none)
	pipe.XDel(q.ctx, q.calls, none)
	pipe.PTTL(q.ctx, q.calls) // turn needs it
	if err := exec(q.ctx, pipe); err != nil && !isNoGroup(err) && !redis.IsOOMError(err) {
		q.note(err)
		return false
	}
	if clock.Err() == nil {
		q.ahead.Add(-q.age(clock.Val()).Milliseconds())
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if errors.Is(q.trouble, ErrRedis) {
		q.trouble = nil
	}
	unread := all.Val()
	if p := taken.Val(); p != nil {
		unread -= p.Count
	}
	return unread > 0 || len(silent.Val()) > 0 || len(q.backlog) > 0
}

func isNoGroup(err error) bool { return redis.HasErrorPrefix(err, "NOGROUP") }

// request waits for a permit, and sends what is queued by then. It returns once the entries are taken from Redis.
func (q *Queue) request() {
	began, taken := time.Now(), make(chan struct{})
	begun := sync.OnceFunc(func() { close(taken) })
	q.all.Go(func() {
		defer begun()
		var entries []entry
		ended := make(chan entry, atOnce)
		q.all.Go(func() { q.settle(ended) })
		defer close(ended)
		take := func(context.Context) (calls [][]webdelivery.PurgeURI, err error) {
			defer begun()
			entries, err = q.take() //nolint:contextcheck // what is taken is settled, even if the request has ended
			for _, e := range entries {
				calls = append(calls, e.uris)
			}
			return calls, err
		}
		err := q.local.PurgeFrom(q.ctx, take, func(i int, r webdelivery.PurgeResult) {
			ended <- q.judge(entries[i], result{r.Receipts, r.Err})
		})
		if err == nil || q.ctx.Err() != nil {
			return
		}
		if errors.As(err, new(*webdelivery.Error)) { // the service refuses this process, which counts as a try
			_, _ = take(q.ctx)
			for _, e := range entries {
				ended <- q.judge(e, result{err: failed(e.uris, err, webdelivery.OutcomeUnknown)})
			}
		}
		q.note(err)
		sleep(q.ctx, spacing)
	})
	<-taken
	if took := time.Since(began); took < turnFor { // otherwise the key may belong to another process
		q.rdb.PExpire(q.ctx, q.keys+"turn", max(time.Millisecond, spacing-took))
	}
}

// settle stores the results of a request as they arrive.
func (q *Queue) settle(ended <-chan entry) {
	for first := range ended {
		some := []entry{first}
		for len(some) < atOnce && len(ended) > 0 {
			some = append(some, <-ended)
		}
		q.store(some)
	}
}

// judge sets the result of an entry if the service has decided about each of its URIs, or if mostTries processes could
// not purge them. Otherwise another process tries it, and this one rests. Of what the service has not refused alone, the
// outcome is unknown: a process that died may have purged it.
func (q *Queue) judge(e entry, r result) entry {
	var unable error
	if failure, ok := errors.AsType[*webdelivery.QueueError](r.err); ok {
		for i, f := range failure.Failures {
			if errors.Is(f.Err, webdelivery.ErrBadRequest) {
				continue
			}
			failure.Failures[i].Outcome, failure.Outcome = webdelivery.OutcomeUnknown, webdelivery.OutcomeUnknown
			undecided := errors.As(f.Err, new(*webdelivery.UndecidedError))
			if !undecided && !errors.As(f.Err, new(*webdelivery.TransactionError)) { // a 401 or a lost connection
				unable = f.Err
			}
		}
	}
	if unable != nil && !q.note(unable) {
		q.rest.Store(time.Now().Add(q.options.Lease / 2).UnixMilli())
	}
	if e.tries++; unable == nil || e.tries >= mostTries {
		e.result = &r
	}
	return e
}

// store writes results and deletes their entries. At the memory limit of Redis only the deletion succeeds, which makes
// room for the results of the next attempt. Writing a result twice does no harm.
func (q *Queue) store(some []entry) {
	ids := make([]string, len(some))
	for i, e := range some {
		ids[i] = e.id
		if number, own := strings.CutPrefix(e.reply, q.process+"/"); own && e.result != nil {
			q.end(number, *e.result, false)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishFor)
	defer cancel()
	for pause := again / 2; ctx.Err() == nil; pause = min(2*pause, time.Second) {
		pipe := q.rdb.Pipeline()
		q.write(ctx, pipe, some)
		pipe.XAck(ctx, q.calls, group, ids...)
		pipe.XDel(ctx, q.calls, ids...)
		err := exec(ctx, pipe)
		if err == nil || q.ctx.Err() != nil || q.note(err) {
			break
		}
		sleep(q.ctx, pause)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range ids {
		delete(q.held, id)
	}
}

// write adds results for other processes to a pipeline. It adds entries that another process is to try as new ones.
func (q *Queue) write(ctx context.Context, pipe redis.Pipeliner, some []entry) {
	lives := map[string]time.Duration{} // of streams
	for _, e := range some {
		switch process, number, _ := strings.Cut(e.reply, "/"); {
		case e.result == nil:
			pipe.XAdd(ctx, e.in(q.calls))
			lives[q.calls] = q.options.Keep
		case process == "":
			pipe.Set(ctx, q.resultOf(number), e.result.encode(""), q.options.Keep)
		case process != q.process:
			stream := q.resultsOf(process)
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []string{"r", e.result.encode(number)}})
			lives[stream] = time.Minute + 3*q.options.Lease
		}
	}
	for stream, life := range lives {
		pipe.PExpire(ctx, stream, life)
	}
}
