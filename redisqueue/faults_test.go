package redisqueue_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// purging calls Purge of several queues with one URI each, and returns a function that waits for their errors.
func (w *world) purging(ctx context.Context, queues ...*redisqueue.Queue) (wait func() []error) {
	var all sync.WaitGroup
	errs := make([]error, len(queues))
	for i, q := range queues {
		all.Go(func() { _, errs[i] = q.Purge(ctx, object(i)) })
	}
	return func() []error {
		all.Wait()
		return errs
	}
}

func (w *world) allGood(errs []error) {
	w.Helper()
	purged := w.purged()
	for i, err := range errs {
		assert.NoError(w, err)
		assert.NotZero(w, purged[pattern(i)])
	}
}

func (w *world) queued(n int) {
	w.Helper()
	rdb := w.admin()
	w.until("the calls are in Redis", func() bool {
		keys := rdb.Keys(w.Context(), "*:calls").Val()
		return len(keys) > 0 && rdb.XLen(w.Context(), keys[0]).Val() == int64(n)
	})
}

// Redis is killed and restarted without its data, before calls come and while they wait. No caller notices.
func TestRedisIsRestarted(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		one, other := w.process(brief), w.process(brief)
		w.pause(time.Hour)
		wait := w.purging(w.soon(), one, other)
		w.queued(2)
		w.redis.Kill()
		later := w.process(brief)
		waitLater := w.purging(w.soon(), later)
		require.NoError(w, w.redis.Start())
		w.allGood(wait())
		w.allGood(waitLater())
	})
}

// While Redis hangs, callers leave with their contexts or fail, and all goes on when it wakes up.
func TestRedisHangs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		q, other := w.process(brief), w.process(brief)
		w.pause(time.Hour)
		wait := w.purging(w.soon(), q)
		w.queued(1)
		w.redis.Hang(w.T)
		_, err := other.Purge(w.within(500*time.Millisecond), object(5))
		require.ErrorIs(w, err, context.DeadlineExceeded)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		err = wait()[0]
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		assert.NotErrorIs(w, err, context.DeadlineExceeded)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		w.redis.Wake(w.T)
		w.goOn()
		w.allGood(w.purging(w.soon(), q, other)())
	})
}

// If Redis is down for good, callers get an error that says so.
func TestRedisIsDown(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		q := w.process(brief)
		w.redis.Kill()
		_, err := q.Purge(w.soon(), object(1))
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		require.ErrorContains(w, err, w.redis.Addr)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		_, err = q.Enqueue(w.soon(), object(1))
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		_, err = q.Result(w.soon(), "1")
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		_, err = q.Stats(w.soon())
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		_, err = q.Purge(w.within(500*time.Millisecond), object(1))
		require.ErrorIs(w, err, context.DeadlineExceeded)
		require.ErrorContains(w, err, w.redis.Addr)
	})
}

// All keys of a queue are on one node of a cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		node := w.redis.Another(w.T, append(asUser(w.T), "+command", "+cluster|slots", "--cluster-enabled", "yes")...)
		admin := redis.NewClient(&redis.Options{Addr: node.Addr})
		defer admin.Close()
		require.NoError(w, admin.ClusterAddSlotsRange(w.Context(), 0, 16383).Err())
		w.until("the cluster works", func() bool { return strings.Contains(admin.ClusterInfo(w.Context()).Val(), "cluster_state:ok") })
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{node.Addr}, Username: "queue", Password: "secret"})
		defer rdb.Close()
		q := w.queue(rdb, w.client(rdb))
		w.purge(q, object(1))
		_, err := w.result(q, w.enqueue(q, object(3)))
		require.NoError(w, err)
		require.NoError(w, q.Close(w.soon()))
	})
}
