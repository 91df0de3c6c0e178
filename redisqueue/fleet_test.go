package redisqueue_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// Many processes react to the same change: few requests carry all, on an idle machine one to three, and each caller gets the
// receipt of its own.
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
		assert.Less(w, len(requests), processes/2)
		for p, r := range receipts {
			require.Len(w, r, 1)
			assert.True(w, slices.ContainsFunc(requests, func(sent webdeliverytest.Purge) bool {
				return sent.TransactionID == r[0].TransactionID && slices.Contains(sent.URIs, object(p))
			}))
		}
	})
}

// dead is the network of a process that dies as soon as the service has answered it.
type dead struct {
	proxy *redistest.Proxy
	sent  chan []byte // what the service has answered
}

func (d dead) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	copied := r.Clone(r.Context())
	copied.Body = io.NopCloser(bytes.NewReader(body))
	if response, err := http.DefaultTransport.RoundTrip(copied); err == nil {
		_ = response.Body.Close()
		d.proxy.Close()
		d.sent <- body
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A sender dies with a request that the service has answered and nobody else knows of. The next one sends its URIs again,
// so that each caller of a living process gets a true result.
func TestADeadSender(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Hour)
		proxy, sent := redistest.NewProxy(w.T, w.redis.Addr, 0), make(chan []byte, 100)
		rdb := redis.NewClient(redisOptions(proxy.Addr))
		defer rdb.Close()
		client := w.client(w.rdb(), webdelivery.WithHTTPClient(&http.Client{Transport: dead{proxy, sent}}))
		short := func(o *redisqueue.Options) { o.Lease = 5 * time.Second }
		w.enqueue(w.queue(rdb, client, short), object(1))
		living := w.process(short)
		wait := w.purging(w.soon(), living, living, living)
		w.queued(4)
		w.goOn()
		lost := string(<-sent)
		w.allGood(wait())
		w.until("the other one, too", func() bool { return w.pending(living) == 0 })
		for i := range 3 {
			if strings.Contains(lost, pattern(i)+`"`) {
				assert.GreaterOrEqual(w, w.purged()[pattern(i)], 2)
			}
		}
	}, webdeliverytest.WithUnlimitedPurges())
}

// A minute of 200 URIs a second from 20 processes: beside Redis, 75 ms away from it each way, and with a restart of Redis.
func TestSteadyLoad(t *testing.T) {
	t.Parallel()
	if os.Getenv("REDISQUEUE_FLEET") == "" {
		t.Skip("make fleet runs it")
	}
	for name, away := range map[string]time.Duration{"near": 0, "far": 75 * time.Millisecond, "restart": 0} {
		inWorld(t, func(w *world) {
			const processes, seconds, perSecond = 20, 60, 10
			var calls sync.WaitGroup
			took := make([]time.Duration, processes*seconds*perSecond)
			addr := redistest.NewProxy(w.T, w.redis.Addr, away).Addr
			for p := range processes {
				rdb := redis.NewClient(redisOptions(addr))
				defer rdb.Close()
				q := w.queue(rdb, w.client(w.rdb()))
				for i := p; i < len(took); i += processes {
					calls.Go(func() {
						time.Sleep(time.Duration(i) * time.Second / processes / perSecond)
						began := time.Now()
						_, err := q.Purge(w.within(2*time.Minute), object(i))
						assert.NoError(w, err)
						took[i] = time.Since(began)
					})
				}
			}
			if time.Sleep(seconds * time.Second / 2); name == "restart" {
				w.redis.Kill() // its data are lost
				assert.NoError(w, w.redis.Start())
			}
			calls.Wait()
			slices.Sort(took)
			w.Logf("%s: p50 %v, p99 %v, longest %v; %d requests", name, took[len(took)/2], took[len(took)*99/100], took[len(took)-1], len(w.service.Purged()))
		})
	}
}
