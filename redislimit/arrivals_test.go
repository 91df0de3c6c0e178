package redislimit_test

import (
	"context"
	"flag"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/redistest"
)

// Processes that are stopped and killed while they purge, in a Redis that has just started: never do three purges
// arrive within a second.
func TestProcesses(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var children []*child
		for range 4 {
			children = append(children, w.start(w.redis.Addr))
		}
		w.arrive(2)
		require.NoError(w, children[0].Process.Kill())
		redistest.Suspend(w.T, children[1].Process)
		w.arrive(3) // by the others
		redistest.Resume(w.T, children[1].Process)
		for _, c := range children[1:] {
			for range 2 {
				select {
				case <-c.waits:
				case <-time.After(patience):
					require.Fail(w, "a process gets no permit")
				}
			}
		}
		w.atMost(2)
	})
}

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
		"emptied":         {func(w *world) { require.NoError(w, w.admin.FlushAll(w.Context()).Err()) }, 4},
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

// A failover to a replica that has missed the last purges.
func TestFailover(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		host, port, _ := net.SplitHostPort(w.redis.Addr)
		replica := w.redis.Another(w.T, append(acl(w.T), "--replicaof", host, port)...)
		promoted := admin(w.T, replica)
		require.Eventually(w, func() bool {
			info, err := promoted.InfoMap(w.Context(), "replication").Result()
			return err == nil && info["Replication"]["master_link_status"] == "up"
		}, patience, 5*time.Millisecond)
		var master atomic.Value
		master.Store(w.redis.Addr)
		o := options("redis.example.com:6379")
		o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, master.Load().(string))
		}
		w.purge(4, o)
		w.arrive(2)
		require.NoError(w, promoted.ReplicaOf(w.Context(), "NO", "ONE").Err())
		w.arrive(1)
		w.redis.Kill()
		master.Store(replica.Addr)
		w.arrive(5)
		w.atMost(4)
	})
}

func TestCluster(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var addrs []string
		var nodes []*redis.Client
		for i := range 3 {
			node := w.redis.Another(w.T, append(acl(w.T), "--cluster-enabled", "yes")...)
			addrs, nodes = append(addrs, node.Addr), append(nodes, admin(w.T, node))
			require.NoError(w, nodes[i].ClusterAddSlotsRange(w.Context(), i*16384/3, (i+1)*16384/3-1).Err())
			host, port, _ := net.SplitHostPort(addrs[0])
			require.NoError(w, nodes[i].ClusterMeet(w.Context(), host, port).Err())
		}
		for _, node := range nodes {
			require.Eventually(w, func() bool {
				info, err := node.ClusterInfo(w.Context()).Result()
				return err == nil && len(info) > 0 && info[:len("cluster_state:ok")] == "cluster_state:ok"
			}, patience, 5*time.Millisecond)
		}
		w.purge(3, options(addrs...))
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
	for name, tt := range map[string]struct { //nolint:paralleltest // as above
		away  time.Duration // one way
		least float64       // permits a second
	}{"near": {0, 1.8}, "75ms": {75 * time.Millisecond, 1.5}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				addr := w.redis.Addr
				if tt.away > 0 {
					addr = redistest.NewProxy(w.T, addr, tt.away).Addr
				}
				var children []*child
				for range 40 {
					children = append(children, w.start(addr))
				}
				w.arrive(1)
				time.Sleep(*load)
				rate := float64(w.arrived()) / load.Seconds()
				var waits []time.Duration
				for i, c := range children {
					before := len(waits)
					for len(c.waits) > 0 {
						waits = append(waits, <-c.waits)
					}
					assert.Greater(w, len(waits), before, "process %d got no permit", i)
				}
				slices.Sort(waits)
				median, longest := waits[len(waits)/2], waits[len(waits)-1]
				w.Logf("%.2f permits a second; waits: median %v, longest %v", rate, median, longest)
				assert.GreaterOrEqual(w, rate, tt.least)
				assert.LessOrEqual(w, longest, 4*median)
				w.atMost(2)
			})
		})
	}
}
