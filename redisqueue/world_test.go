package redisqueue_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// TestMain runs the tests, or becomes one of the processes that a test starts.
func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // tests stop servers on purpose
	if os.Getenv(roleOf) != "" {
		if err := runChild(os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // tests mostly wait for permits
	os.Exit(m.Run())
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// world is a service, a server of Redis, and processes of a fleet.
type world struct {
	*testing.T

	redis   *redistest.Server
	service *webdeliverytest.Server
}

// inWorld runs a test on each kind of server. The permits of redislimit are free from the beginning.
func inWorld(t *testing.T, test func(w *world), options ...webdeliverytest.Option) {
	t.Helper()
	redistest.OnServers(t, func(t *testing.T, s *redistest.Server) {
		w := &world{T: t, redis: s, service: webdeliverytest.NewServer(t, options...)}
		w.ranForLong()
		test(w)
	})
}

// ranForLong makes the server count as one that has run for long, so that no permit waits for the end of lost leases.
func (w *world) ranForLong() {
	rdb := w.rdb()
	info, err := rdb.InfoMap(w.Context(), "server", "replication").Result()
	require.NoError(w, err)
	run := info["Server"]["run_id"] + ":" + info["Replication"]["master_replid"]
	require.NoError(w, rdb.HSet(w.Context(), "webdelivery:purge:"+w.service.Customer, "run", run).Err())
}

// redisOptions are the recommended options, with more time for a busy machine.
func redisOptions(addr string) *redis.Options {
	return &redis.Options{
		Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1,
		DialTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
	}
}

func (w *world) rdb() *redis.Client {
	rdb := redis.NewClient(redisOptions(w.redis.Addr))
	w.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// client is the client of one process.
func (w *world) client(rdb redis.UniversalClient, options ...redislimit.Option) *webdelivery.Client {
	client, err := w.service.NewClient(webdelivery.BasicAuth(w.service.Username, w.service.Password),
		webdelivery.WithPurgeLimiter(shared(rdb, options...)))
	require.NoError(w, err)
	return client
}

// shared is the limiter of a fleet.
func shared(rdb redis.UniversalClient, options ...redislimit.Option) *redislimit.Limiter {
	limiter, err := redislimit.New(rdb, options...)
	if err != nil {
		panic(err)
	}
	return limiter
}

// process is a queue that shares nothing with the others but Redis, as that of another process does.
func (w *world) process(change ...func(*redisqueue.Options)) *redisqueue.Queue {
	rdb := w.rdb()
	return w.queue(rdb, w.client(rdb), change...)
}

func (w *world) queue(rdb redis.UniversalClient, client *webdelivery.Client, change ...func(*redisqueue.Options)) *redisqueue.Queue {
	o := redisqueue.Options{Name: "acme", Lease: 2 * time.Second}
	for _, c := range change {
		c(&o)
	}
	q := redisqueue.New(rdb, client, o)
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = q.Close(ctx) // the test may have closed it, or stopped Redis
	})
	return q
}

// base returns the beginning of the keys of the only queue in Redis.
func (w *world) base() string {
	keys, err := w.rdb().Keys(w.Context(), "webdelivery:queue:*:state").Result()
	require.NoError(w, err)
	require.Len(w, keys, 1)
	return strings.TrimSuffix(keys[0], "state")
}

// purgedURIs returns the patterns that the service accepted, and how often.
func (w *world) purgedURIs() map[string]int {
	all := map[string]int{}
	for _, p := range w.service.Purged() {
		for _, u := range p.URIs {
			all[u.URIPattern]++
		}
	}
	return all
}

// carriers returns the transaction that carries out the last accepted purge of each pattern.
func (w *world) carriers() map[string]int64 {
	all := map[string]int64{}
	for _, p := range w.service.Purged() {
		for _, u := range p.URIs {
			all[u.URIPattern] = p.TransactionID
		}
	}
	return all
}

// object returns the i-th of many URIs.
func object(i int) webdelivery.PurgeURI {
	return webdelivery.Exact(fmt.Sprintf("https://www.example.com/%d", i))
}

// asRemote returns whether an error was sent by another process.
func asRemote(err error, to **redisqueue.RemoteError) bool { return errors.As(err, to) }
