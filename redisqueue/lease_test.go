package redisqueue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// purgeBegun waits until a purge has arrived at the service.
func (w *world) purgeBegun() {
	require.Eventually(w, func() bool { return len(w.service.Requests()) >= 1 }, 30*time.Second, 5*time.Millisecond)
}

// If a process with a batch is cut off, another one sends its URIs when the lease ends. All callers of living processes
// get their results.
func TestEndOfALease(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 1, Delay: time.Minute})
		w.pause(time.Second)
		rdb := w.rdb()
		dies, lives := w.queue(rdb, w.client(rdb)), w.process()
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		lost := w.purges(ctx, dies, object(1)) // this process gets the turn
		w.stored(1)
		end := w.purges(w.Context(), lives, object(2))
		w.purgeBegun()
		require.NoError(w, rdb.Close())
		e := <-end
		require.NoError(w, e.err)
		assert.Contains(w, w.purgedURIs(), object(1).URIPattern, "the other's URI as well")
		cancel()
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf((<-lost).err))
	})
}

// A process renews its lease as long as the service takes: no other process sends its URIs.
func TestLeasesAreRenewed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 1, Delay: 5 * time.Second})
		a, b := w.process(short), w.process(short)
		first := w.purges(w.Context(), a, object(1))
		w.purgeBegun()
		require.NoError(w, (<-w.purges(w.Context(), b, object(2))).err)
		require.NoError(w, (<-first).err)
		assert.Equal(w, map[string]int{object(1).URIPattern: 1, object(2).URIPattern: 1}, w.purgedURIs())
	})
}

func short(o *redisqueue.Options) { o.Lease = time.Second }

// impostor is a client whose password is wrong.
func (w *world) impostor(rdb redis.UniversalClient, auth func(user, password string) webdelivery.Auth) *webdelivery.Client {
	client, err := w.service.NewClient(auth(w.service.Username, "wrong"), webdelivery.WithPurgeLimiter(shared(rdb)))
	require.NoError(w, err)
	return client
}

var auths = map[string]func(user, password string) webdelivery.Auth{"basic": webdelivery.BasicAuth, "session": webdelivery.SessionAuth}

// If a process cannot purge, only its own callers fail. The others' URIs are sent by others.
func TestAProcessThatCannotPurge(t *testing.T) {
	t.Parallel()
	for name, auth := range auths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.pause(time.Second)
				rdb := w.rdb()
				want := map[string]int{object(1).URIPattern: 1, object(2).URIPattern: 1}
				bad, good := w.queue(rdb, w.impostor(rdb, auth)), w.process()
				fails := w.purges(w.Context(), bad, object(1)) // this process gets the turn
				if name == "basic" {
					w.stored(1) // a login fails before the permit comes
				}
				end := w.purges(w.Context(), good, object(2))
				e := <-fails
				if name == "basic" {
					require.ErrorIs(w, e.err, webdelivery.ErrUnauthorized)
				}
				if e.err != nil { // otherwise the good process had the turn
					require.ErrorIs(w, e.err, webdelivery.ErrUnauthorized)
					assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(e.err))
					delete(want, object(1).URIPattern)
				}
				e = <-end
				require.NoError(w, e.err)
				assert.Equal(w, want, w.purgedURIs())
			})
		})
	}
}

// A process that cannot purge, but goes on calling, keeps the URIs of others waiting only for a moment.
func TestAProcessThatGoesOnFailing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		rdb := w.rdb()
		bad, good := w.queue(rdb, w.impostor(rdb, webdelivery.BasicAuth), short), w.process(short)
		ctx, cancel := context.WithCancel(w.Context())
		var failing sync.WaitGroup
		defer failing.Wait()
		defer cancel()
		for i := range 5 {
			failing.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					_, err := bad.Purge(ctx, object(1_000_000*(i+1)+n))
					if err != nil && ctx.Err() == nil { // the good process may have sent it
						assert.ErrorIs(w, err, webdelivery.ErrUnauthorized)
					}
				}
			})
		}
		for i := range 5 {
			_, err := good.Purge(w.Context(), object(i))
			require.NoError(w, err)
		}
	})
}

// After three processes have failed to send a call, it fails.
func TestACallThatNoProcessCanSend(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		first := w.process(short)
		w.pause(time.Second)
		id, err := first.Enqueue(w.Context(), object(1))
		require.NoError(w, err)
		require.NoError(w, first.Close(w.Context()))
		for range 3 {
			rdb := w.rdb()
			w.queue(rdb, w.impostor(rdb, webdelivery.BasicAuth), short)
		}
		w.stored(0)
		_, err = w.process(short).Result(w.Context(), id)
		require.ErrorIs(w, err, webdelivery.ErrUnauthorized)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		assert.Empty(w, w.purgedURIs())
	})
}

// All keys lie in one slot of a cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.redis.Kill()
		w.redis.Args = []string{"--cluster-enabled", "yes"}
		require.NoError(w, w.redis.Start())
		single := w.rdb()
		require.NoError(w, single.Do(w.Context(), "CLUSTER", "ADDSLOTSRANGE", "0", "16383").Err())
		require.Eventually(w, func() bool {
			info, err := single.ClusterInfo(w.Context()).Result()
			return err == nil && len(info) > 16 && info[:16] == "cluster_state:ok"
		}, 20*time.Second, 20*time.Millisecond)
		w.ranForLong()
		var queues []*redisqueue.Queue
		for range 2 {
			rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{w.redis.Addr}, MaxRedirects: -1, ContextTimeoutEnabled: true})
			w.Cleanup(func() { _ = rdb.Close() })
			queues = append(queues, w.queue(rdb, w.client(rdb)))
		}
		w.pause(time.Second)
		ends := []<-chan ended{w.purges(w.Context(), queues[0], object(1)), w.purges(w.Context(), queues[1], object(2), foreign)}
		id, err := queues[0].Enqueue(w.Context(), object(3))
		require.NoError(w, err)
		require.NoError(w, (<-ends[0]).err)
		require.ErrorIs(w, (<-ends[1]).err, webdelivery.ErrBadRequest)
		w.stored(0)
		_, err = queues[1].Result(w.Context(), id)
		require.NoError(w, err)
	})
}
