package redisqueue_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // tests stop servers on purpose
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

// inWorld runs a test on each kind of server. Its processes log in as a user with the rights of the package page.
func inWorld(t *testing.T, test func(w *world), options ...webdeliverytest.Option) {
	t.Helper()
	redistest.OnServers(t, func(t *testing.T, s *redistest.Server) {
		test(&world{T: t, redis: s, service: webdeliverytest.NewServer(t, options...)})
	}, asUser(t)...)
}

// asUser returns the arguments of a server that knows the user of the package page. The limiter of the tests needs one
// more key.
func asUser(t *testing.T) []string {
	t.Helper()
	return append([]string{"--user", "queue", "on", ">secret", "~webdelivery:purge", "+pttl"}, redistest.Rights(t)...)
}

func redisOptions(addr string) *redis.Options {
	return &redis.Options{Addr: addr, Username: "queue", Password: "secret", ContextTimeoutEnabled: true, MaxRetries: -1, PoolSize: 20}
}

func (w *world) rdb() *redis.Client {
	rdb := redis.NewClient(redisOptions(w.redis.Addr))
	w.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// admin may do what the processes may not.
func (w *world) admin() *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: w.redis.Addr, MaxRetries: -1})
	w.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// interval gives a permit each 525 ms to all processes together. Package redislimit does more.
type interval struct{ redis.UniversalClient }

func (i interval) Wait(ctx context.Context) error {
	for {
		const key = "webdelivery:purge"
		pipe := i.Pipeline()
		mine, life := pipe.SetNX(ctx, key, "", 525*time.Millisecond), pipe.PTTL(ctx, key)
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("no permit of Redis: %w", err)
		}
		if mine.Val() {
			return nil
		}
		select {
		case <-time.After(min(life.Val(), 50*time.Millisecond) + time.Millisecond): // a test may end a pause
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// client is the client of one process.
func (w *world) client(rdb redis.UniversalClient, options ...webdelivery.Option) *webdelivery.Client {
	return w.clientWith(w.service.Password, append([]webdelivery.Option{webdelivery.WithPurgeLimiter(interval{rdb})}, options...)...)
}

func (w *world) clientWith(password string, options ...webdelivery.Option) *webdelivery.Client {
	client, err := w.service.NewClient(webdelivery.BasicAuth(w.service.Username, password), options...)
	require.NoError(w, err)
	return client
}

// brief is for tests in which a lease must end. On a busy machine, one may end too early.
func brief(o *redisqueue.Options) { o.Lease = time.Second }

// process is a queue that shares nothing with the others but Redis, as that of another process does.
func (w *world) process(change ...func(*redisqueue.Options)) *redisqueue.Queue {
	rdb := w.rdb()
	return w.queue(rdb, w.client(rdb), change...)
}

func (w *world) queue(rdb redis.UniversalClient, client *webdelivery.Client, change ...func(*redisqueue.Options)) *redisqueue.Queue {
	var o redisqueue.Options
	for _, c := range change {
		c(&o)
	}
	q, err := redisqueue.New(rdb, client, o)
	require.NoError(w, err)
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = q.Close(ctx) // the test may have closed it, or stopped Redis
	})
	return q
}

// purge purges what no fault prevents.
func (w *world) purge(q *redisqueue.Queue, uris ...webdelivery.PurgeURI) {
	w.Helper()
	_, err := q.Purge(w.soon(), uris...)
	require.NoError(w, err)
}

func (w *world) enqueue(q *redisqueue.Queue, uris ...webdelivery.PurgeURI) (id string) {
	w.Helper()
	id, err := q.Enqueue(w.soon(), uris...)
	require.NoError(w, err)
	return id
}

// within returns a context for one call.
func (w *world) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), d)
	w.Cleanup(cancel)
	return ctx
}

// soon is more than anything in these tests takes.
func (w *world) soon() context.Context { return w.within(time.Minute) }

// until waits for a condition.
func (w *world) until(what string, condition func() bool) {
	w.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		require.True(w, time.Now().Before(end), what)
	}
}

// purged returns how often the service accepted each pattern.
func (w *world) purged() map[string]int {
	all := map[string]int{}
	for _, p := range w.service.Purged() {
		for _, u := range p.URIs {
			all[u.URIPattern]++
		}
	}
	return all
}

// stream returns the key of the only stream of calls.
func (w *world) stream() string {
	keys, err := w.admin().Keys(w.Context(), "webdelivery:queue:*:calls").Result()
	require.NoError(w, err)
	require.Len(w, keys, 1)
	return keys[0]
}

// pause makes all permits wait.
func (w *world) pause(d time.Duration) {
	require.NoError(w, w.admin().Set(w.Context(), "webdelivery:purge", "", d).Err())
}

// goOn ends a pause.
func (w *world) goOn() { require.NoError(w, w.admin().Del(w.Context(), "webdelivery:purge").Err()) }

// pattern returns the i-th of many URIs.
func pattern(i int) string { return fmt.Sprintf("https://www.example.com/%d", i) }

func object(i int) webdelivery.PurgeURI { return webdelivery.Exact(pattern(i)) }

// refused is a URI that the service refuses.
var refused = webdelivery.Exact("https://www.example.org/not-ours")
