package redisqueue

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// decided is an entry with its result. If the result is zero, another process tries the entry.
type decided struct {
	entry

	result result
}

// settle handles the results of a request as they arrive. If some URIs are left undecided, this process pauses.
func (q *Queue) settle(ended <-chan decided) {
	for first := range ended {
		some := []decided{first}
		for len(some) < atOnce && len(ended) > 0 {
			some = append(some, <-ended)
		}
		for i := range some {
			if unable := some[i].judge(); unable != nil && !q.note(unable) { // other processes go on
				q.mu.Lock()
				q.rest = time.Now().Add(q.options.Lease / 2)
				q.mu.Unlock()
			}
		}
		q.store(some)
	}
}

// judge returns the error of an entry unless the service has decided about each of its URIs. Up to mostTries processes
// try such an entry. Of what the service has not refused alone, the outcome is unknown: a process that died may have
// purged it.
func (d *decided) judge() (unable error) {
	failure, ok := errors.AsType[*webdelivery.QueueError](d.result.err)
	if !ok {
		return nil
	}
	for i, f := range failure.Failures {
		undecided := errors.As(f.Err, new(*webdelivery.UndecidedError))
		refused := errors.Is(f.Err, webdelivery.ErrBadRequest)
		if !refused {
			failure.Failures[i].Outcome, failure.Outcome = webdelivery.OutcomeUnknown, webdelivery.OutcomeUnknown
		}
		if !undecided && !refused && !errors.As(f.Err, new(*webdelivery.TransactionError)) { // a 401 or a lost connection
			unable = f.Err
		}
	}
	if unable != nil {
		if d.tries++; d.tries < mostTries {
			d.result = result{}
		}
	}
	return unable
}

// store writes results and deletes their entries. At the memory limit of Redis only the deletion succeeds, which makes
// room for the results of the next attempt. Writing a result twice does no harm.
func (q *Queue) store(some []decided) {
	ids := make([]string, len(some))
	for i, d := range some {
		ids[i] = d.id
		if number, own := strings.CutPrefix(d.reply, q.process+"/"); own && !d.result.zero() {
			q.end(number, d.result, false)
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
func (q *Queue) write(ctx context.Context, pipe redis.Pipeliner, some []decided) {
	lives := map[string]time.Duration{} // of streams
	for _, d := range some {
		switch process, number, _ := strings.Cut(d.reply, "/"); {
		case d.result.zero():
			pipe.XAdd(ctx, d.in(q.calls))
			lives[q.calls] = q.options.Keep
		case process == "":
			pipe.Set(ctx, q.resultOf(number), d.result.encode(""), q.options.Keep)
		case process != q.process:
			stream := q.resultsOf(process)
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []string{"r", d.result.encode(number)}})
			lives[stream] = time.Minute + 3*q.options.Lease
		}
	}
	for stream, life := range lives {
		pipe.PExpire(ctx, stream, life)
	}
}
