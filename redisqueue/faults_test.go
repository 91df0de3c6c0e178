package redisqueue_test

import (
	"context"
	"net"
	"os"
	"strconv"
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
	for i, err := range errs {
		assert.NoError(w, err)
		assert.NotZero(w, w.purged()[pattern(i)])
	}
}

func (w *world) queued(n int) {
	w.Helper()
	rdb := w.admin()
	w.until("the calls are in Redis", func() bool { return w.hasCalls(rdb, int64(n)) })
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

func (w *world) hasCalls(rdb *redis.Client, n int64) bool {
	for _, key := range rdb.Keys(w.Context(), "*:calls").Val() {
		return rdb.XLen(w.Context(), key).Val() == n
	}
	return false
}

// All keys of a queue are on one node of a cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var addrs []string
		for i := range 2 {
			node := w.redis.Another(w.T, clusterArgs(w.T)...)
			addrs = append(addrs, node.Addr)
			rdb := redis.NewClient(&redis.Options{Addr: node.Addr})
			defer rdb.Close()
			require.NoError(w, rdb.ClusterAddSlotsRange(w.Context(), 8192*i, 8192*i+8191).Err())
			if i > 0 {
				host, port, _ := net.SplitHostPort(addrs[0])
				require.NoError(w, rdb.ClusterMeet(w.Context(), host, port).Err())
			}
			w.until("the cluster works", func() bool {
				info, _ := rdb.ClusterInfo(w.Context()).Result()
				return i == 0 || strings.Contains(info, "cluster_state:ok")
			})
		}
		process := func() *redisqueue.Queue {
			rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Username: "queue", Password: "secret"})
			w.Cleanup(func() { _ = rdb.Close() })
			return w.queue(rdb, w.client(rdb))
		}
		one, other := process(), process()
		w.allGood(w.purging(w.soon(), one, other)())
		_, err := w.result(other, w.enqueue(one, object(3)))
		require.NoError(w, err)
	})
}

func clusterArgs(t *testing.T) []string {
	t.Helper()
	return append(asUser(t), "+command", "+cluster|slots", "--cluster-enabled", "yes",
		"--cluster-config-file", "nodes-"+strconv.Itoa(os.Getpid())+".conf")
}
