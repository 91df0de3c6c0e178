package redisqueue_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// At its memory limit, Redis takes no new calls. Those that it has are purged, which frees memory.
func TestFullRedisIsEmptied(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		q, other := w.process(), w.process()
		w.pause(2 * time.Second)
		end := w.purges(w.Context(), q, object(0))
		w.stored(1)
		rdb := w.rdb()
		require.NoError(w, rdb.ConfigSet(w.Context(), "maxmemory", "1").Err())
		_, err := other.Purge(w.Context(), object(1))
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err), "%v", err)
		select {
		case e := <-end:
			assert.NoError(w, e.err)
		case <-time.After(15 * time.Second):
			assert.Fail(w, "the call is not purged")
		}
		assert.NoError(w, rdb.ConfigSet(w.Context(), "maxmemory", "0").Err())
	})
}

// Redis answers no more. Callers whose URIs it has fail after the time of a lease. The process may notice it later: it
// waits up to 5 s for each of two answers.
func TestStoppedRedisFailsCallers(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const lease = 2 * time.Second
		o := redisOptions(w.redis.Addr)
		o.ReadTimeout, o.DialTimeout = time.Minute, time.Minute
		rdb := redis.NewClient(o)
		w.Cleanup(func() { _ = rdb.Close() })
		q := w.queue(rdb, w.client(rdb), func(o *redisqueue.Options) { o.Lease = lease })
		w.pause(time.Minute)
		end := w.purges(w.Context(), q, object(0))
		w.stored(1)
		w.redis.Hang(w.T)
		began := time.Now()
		err := (<-end).err
		took := time.Since(began)
		w.redis.Wake(w.T)
		assert.ErrorContains(w, err, "no answer")
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		assert.Less(w, took, lease+12*time.Second)
		w.Logf("the caller failed after %v", took)
	})
}
