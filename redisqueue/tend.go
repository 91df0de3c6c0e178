package redisqueue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

const readFor = 2 * time.Second // one blocking read

// tend tells the others that this process works on what it has taken, and looks for calls that nobody sends.
func (q *Queue) tend() {
	for sleep(q.ctx, q.options.Lease/3); q.ctx.Err() == nil; sleep(q.ctx, q.options.Lease/3) {
		q.mu.Lock()
		ids := slices.Collect(maps.Keys(q.held))
		q.mu.Unlock()
		for some := range slices.Chunk(ids, atOnce) {
			q.rdb.XClaimJustID(q.ctx, &redis.XClaimArgs{Stream: q.calls, Group: group, Consumer: group, Messages: some})
		}
		if ready, err := q.ready(); err == nil && ready {
			q.wake()
		}
	}
}

// receive delivers the results that other processes have stored for this one. It reads the stream from its begin and
// deletes what it has read: then a lost answer loses no result, and neither does a failover to a Redis with another
// clock.
func (q *Queue) receive() {
	results := q.resultsOf(q.process)
	for q.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(q.ctx, readFor+forAWord)
		streams, err := q.rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{results, "0"}, Count: atOnce, Block: readFor}).Result()
		if err != nil && !errors.Is(err, redis.Nil) && q.ctx.Err() == nil {
			q.note(redisError(err))
			sleep(ctx, 2*again)
		}
		var ids []string
		for _, s := range streams {
			for _, m := range s.Messages {
				ids = append(ids, m.ID)
				number, r := decode(fmt.Sprint(m.Values["r"]))
				q.end(number, r, false)
			}
		}
		if len(ids) > 0 {
			q.rdb.XDel(ctx, results, ids...)
		}
		cancel()
	}
}
