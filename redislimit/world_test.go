package redislimit_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redislimit"
)

const (
	user     = "purger"
	password = "correct-horse-battery"
	patience = 30 * time.Second // for what takes a moment on an idle machine
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // tests stop servers on purpose
	flag.Parse()
	_ = flag.Set("test.parallel", "20") // tests mostly wait for permits
	os.Exit(m.Run())
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// world is a Redis whose user may do what the package page says, and a service that counts purges.
type world struct {
	*testing.T

	redis   *redistest.Server
	admin   *redis.Client // may do everything
	service *httptest.Server

	mu       sync.Mutex
	arrivals []time.Time
	down     int               // purges without a permit, because Redis was unreachable
	waits    [][]time.Duration // of the purges of each process
}

// inWorld runs a test on each installed kind of server.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	redistest.OnServers(t, func(t *testing.T, s *redistest.Server) {
		w := &world{T: t, redis: s, admin: admin(t, s)}
		w.service = httptest.NewServer(http.HandlerFunc(w.purged))
		t.Cleanup(w.service.Close)
		test(w)
	}, acl(t)...)
}

// acl returns the arguments of a server for the user of the package page, also in a cluster.
func acl(t *testing.T) []string {
	t.Helper()
	return append([]string{"--repl-diskless-sync-delay", "0", "--user", user, "on", ">" + password, "+command", "+cluster|slots"}, redistest.Rights(t)...)
}

// purged is the service. A purge arrives when its header has been read. The time that it records is before that of the
// response, from which a slot is still taken for a while, so a busy machine makes intervals longer, never shorter.
func (w *world) purged(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.arrivals = append(w.arrivals, time.Now())
	w.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body)
	rw.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(rw, `{"code":201,"description":"request submitted","transaction_id":1,`+
		`"purge_response":{"transaction_status_uri":"/transactions/1"}}`)
}

func (w *world) arrived() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.arrivals)
}

// arrive waits until n more purges have arrived.
func (w *world) arrive(n int) {
	w.Helper()
	n += w.arrived()
	require.Eventually(w, func() bool { return w.arrived() >= n }, patience, 5*time.Millisecond, "%d purges", n)
}

// atMost checks how many purges have arrived within any second.
func (w *world) atMost(n int) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := n; i < len(w.arrivals); i++ {
		assert.GreaterOrEqual(w, w.arrivals[i].Sub(w.arrivals[i-n]), time.Second, "more than %d purges in a second", n)
	}
}

func options(addrs ...string) *redis.UniversalOptions {
	o := redislimit.ClientOptions(addrs...)
	o.Username, o.Password = user, password
	return o
}

// admin is a client that may do everything.
func admin(t *testing.T, s *redistest.Server) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// limiter returns a limiter of a process of its own.
func (w *world) limiter(o *redis.UniversalOptions, opts ...redislimit.Option) *redislimit.Limiter {
	return newLimiter(w, o, opts...)
}

func newLimiter(t testing.TB, o *redis.UniversalOptions, opts ...redislimit.Option) *redislimit.Limiter {
	t.Helper()
	rdb := redis.NewUniversalClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	l, err := redislimit.New(rdb, opts...)
	require.NoError(t, err)
	return l
}

// ofAcme is the limiter of a customer, for a test without a client.
type ofAcme struct{ *redislimit.Limiter }

func forAcme(l *redislimit.Limiter) ofAcme { return ofAcme{l} }

const acme = "https://api.example.com/acme"

func (l ofAcme) Acquire(ctx context.Context) (webdelivery.Permit, error) {
	return l.Limiter.Acquire(ctx, acme)
}

func (l ofAcme) Pause(ctx context.Context, d time.Duration) error {
	return l.Limiter.Pause(ctx, acme, d)
}

func (l ofAcme) Waiting() error { return l.Limiter.Waiting(acme) }

// Wait acquires a permit and ends it at once, as if the purge had just arrived.
func (l ofAcme) Wait(ctx context.Context) error {
	permit, err := l.Acquire(ctx)
	if err == nil && permit.Done != nil {
		permit.Done(ctx, time.Now(), 0)
	}
	return err
}

// within returns a context for one call.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

const keys = "webdelivery:purge:{https://api.example.com/acme}:"

func newClient(url string, limiter webdelivery.SharedLimiter) (*webdelivery.Client, error) {
	return webdelivery.NewClient(url, "acme", webdelivery.BasicAuth("alice", password), webdelivery.WithSharedLimiter(limiter))
}

func submit(ctx context.Context, client *webdelivery.Client) error {
	_, err := client.Purge.Submit(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/")},
	})
	return err
}

// purge purges from n processes of the fleet, each with its own client of Redis, until the test ends.
func (w *world) purge(n int, o *redis.UniversalOptions) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w.waits = make([][]time.Duration, n)
	for i := range n {
		client, err := newClient(w.service.URL, w.limiter(o))
		require.NoError(w, err)
		running.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				err := submit(ctx, client)
				var down *redislimit.UnavailableError
				switch {
				case err == nil:
					w.mu.Lock()
					w.waits[i] = append(w.waits[i], time.Since(began))
					w.mu.Unlock()
				case ctx.Err() != nil:
				case errors.As(err, &down):
					assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
					w.mu.Lock()
					w.down++
					w.mu.Unlock()
				default:
					assert.NoError(w, err)
				}
			}
		})
	}
	w.Cleanup(func() { stop(); running.Wait() })
}

// nobody returns an address at which nothing listens.
func nobody(t *testing.T) string {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}
