package redislimit_test

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/redistest"
)

// What happens to Redis while four processes purge, and how many purges may arrive within a second then.
func TestFaultsOfRedis(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault func(w *world)
		most  int
	}{
		"stopped": {func(w *world) {
			w.redis.Hang(w.T)
			require.Eventually(w, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.down > 0 }, patience, 5*time.Millisecond)
			w.redis.Wake(w.T)
		}, 2},
		"full": {func(w *world) {
			require.NoError(w, w.admin.ConfigSet(w.Context(), "maxmemory", "1").Err())
		}, 2},
		"without scripts": {func(w *world) { require.NoError(w, w.admin.ScriptFlush(w.Context()).Err()) }, 2},
		"a replica for a moment": {func(w *world) {
			require.NoError(w, w.admin.ReplicaOf(w.Context(), "127.0.0.1", "1").Err())
			time.Sleep(time.Second)
			require.NoError(w, w.admin.ReplicaOf(w.Context(), "NO", "ONE").Err())
		}, 2},
		"emptied": {func(w *world) { require.NoError(w, w.admin.FlushAll(w.Context()).Err()) }, 4},
		"restarted from a snapshot": {func(w *world) {
			require.NoError(w, w.admin.Save(w.Context()).Err())
			w.arrive(1)
			w.redis.Kill()
			require.NoError(w, w.redis.Start())
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.purge(4, options(w.redis.Addr))
				w.arrive(2)
				tt.fault(w)
				w.arrive(5)
				w.atMost(tt.most)
			})
		})
	}
}

// All keys of a customer are on one node of a cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		node := w.redis.Another(w.T, append(acl(w.T), "--cluster-enabled", "yes")...)
		rdb := admin(w.T, node)
		require.NoError(w, rdb.ClusterAddSlotsRange(w.Context(), 0, 16383).Err())
		require.Eventually(w, func() bool { return strings.Contains(rdb.ClusterInfo(w.Context()).Val(), "cluster_state:ok") }, patience, 5*time.Millisecond)
		o := options(node.Addr)
		o.IsClusterMode = true
		w.purge(3, o)
		w.arrive(5)
		w.atMost(2)
	})
}

var load = flag.Duration("load", 0, "how long TestLoad purges from 40 processes; 0 skips it")

// 40 processes that purge one URI after the other, near Redis and far from it. make fleet runs it for a minute.
func TestLoad(t *testing.T) { //nolint:paralleltest // nothing else may take its time
	if *load == 0 {
		t.Skip("-load is not set")
	}
	for away, least := range map[time.Duration]float64{0: 1.8, 75 * time.Millisecond: 1.5} { // one way, and permits a second
		inWorld(t, func(w *world) {
			w.purge(40, options(redistest.NewProxy(w.T, w.redis.Addr, away).Addr))
			w.arrive(1)
			time.Sleep(*load)
			w.atMost(2)
			w.mu.Lock()
			defer w.mu.Unlock()
			rate, waits := float64(len(w.arrivals))/load.Seconds(), slices.Concat(w.waits...)
			for i, of := range w.waits {
				assert.NotEmpty(w, of, "process %d got no permit", i)
			}
			slices.Sort(waits)
			median, longest := waits[len(waits)/2], waits[len(waits)-1]
			w.Logf("%v away: %.2f permits a second; waits: median %v, longest %v", away, rate, median, longest)
			assert.GreaterOrEqual(w, rate, least)
			assert.LessOrEqual(w, longest, 4*median)
		})
	}
}
