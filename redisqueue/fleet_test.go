package redisqueue_test

import (
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// Many processes react to the same change: one to three requests carry all, and each caller gets the receipt of its own.
func TestOneChange(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const processes = 40
		var all sync.WaitGroup
		var receipts [processes][]*webdelivery.PurgeReceipt
		for p := range processes {
			q := w.process()
			all.Go(func() { receipts[p], _ = q.Purge(w.soon(), object(p), object(p/2)) })
		}
		all.Wait()
		requests := w.service.Purged()
		assert.LessOrEqual(w, len(requests), 3)
		for p, r := range receipts {
			require.Len(w, r, 1)
			assert.True(w, slices.ContainsFunc(requests, func(sent webdeliverytest.Purge) bool {
				return sent.TransactionID == r[0].TransactionID && slices.Contains(sent.URIs, object(p))
			}))
		}
	})
}

// dead is the network of a process that dies as soon as the service has answered it.
type dead struct{ proxy *redistest.Proxy }

func (d dead) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		_ = response.Body.Close()
	}
	d.proxy.Close()
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A sender dies with a request that the service has answered and nobody else knows of. The next one sends its URIs again,
// so that each caller of a living process gets a true result.
func TestADeadSender(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		proxy := redistest.NewProxy(w.T, w.redis.Addr, 0)
		rdb := redis.NewClient(redisOptions(proxy.Addr))
		defer rdb.Close()
		client := w.client(w.rdb(), webdelivery.WithHTTPClient(&http.Client{Transport: dead{proxy}}))
		w.enqueue(w.queue(rdb, client, brief), object(1))
		living := w.process(brief)
		wait := w.purging(w.soon(), living, living, living)
		w.queued(4)
		w.goOn()
		w.allGood(wait())
		w.until("the other one, too", func() bool { return w.pending(living) == 0 })
		assert.Equal(w, map[string]int{pattern(0): 2, pattern(1): 2, pattern(2): 2}, w.purged())
	})
}

// A minute of 200 URIs a second from 20 processes: beside Redis, 75 ms away from it each way, and with a restart of Redis.
func TestSteadyLoad(t *testing.T) {
	t.Parallel()
	if os.Getenv("REDISQUEUE_FLEET") == "" {
		t.Skip("make fleet runs it")
	}
	for _, l := range []load{{name: "near"}, {name: "far", delay: 75 * time.Millisecond}, {name: "restart", restart: true}} {
		inWorld(t, func(w *world) { w.steady(l) })
	}
}

type load struct {
	name    string
	delay   time.Duration // of Redis, each way
	restart bool          // Redis is killed in the middle, and starts without its data
}

// steady purges a load, whose good calls must not fail.
func (w *world) steady(l load) {
	const processes, seconds, perSecond = 20, 60, 10
	var calls sync.WaitGroup
	var mu sync.Mutex
	var took []time.Duration
	addr := redistest.NewProxy(w.T, w.redis.Addr, l.delay).Addr
	for p := range processes {
		rdb := redis.NewClient(redisOptions(addr))
		defer rdb.Close()
		q := w.queue(rdb, w.client(w.rdb()))
		calls.Go(func() {
			for i := range seconds * perSecond {
				time.Sleep(time.Second / perSecond)
				calls.Go(func() {
					began := time.Now()
					_, err := q.Purge(w.within(2*time.Minute), object(i*processes+p))
					mu.Lock()
					defer mu.Unlock()
					assert.NoError(w, err)
					took = append(took, time.Since(began))
				})
			}
		})
	}
	if time.Sleep(seconds * time.Second / 2); l.restart {
		w.redis.Kill()
		assert.NoError(w, w.redis.Start())
	}
	calls.Wait()
	slices.Sort(took)
	w.Logf("%s: %d with p50 %v, p99 %v, longest %v; %d requests", l.name, len(took), took[len(took)/2],
		took[len(took)*99/100], took[len(took)-1], len(w.service.Purged()))
}
