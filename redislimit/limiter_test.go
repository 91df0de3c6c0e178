package redislimit_test

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func TestMain(m *testing.M) {
	logging.Disable()                   // tests stop servers on purpose
	_ = flag.Set("test.parallel", "20") // tests mostly wait for permits
	m.Run()
}

// world has a service that counts purges. The time of one is before that of its response, from which a slot is still
// taken for a while, so a busy machine makes intervals longer, never shorter.
type world struct {
	*redistest.World

	down atomic.Int64 // purges without a permit, because Redis was unreachable
}

func inWorld(t *testing.T, test func(w *world)) {
	redistest.InWorld(t, func(w *redistest.World) { test(&world{World: w}) }, webdeliverytest.WithUnlimitedPurges())
}

func options(addr string) *redis.UniversalOptions {
	o := redislimit.ClientOptions(addr)
	o.Username, o.Password = redistest.User, redistest.User
	return o
}

// process is a process of a customer, for a test without clients.
type process struct{ *redislimit.Limiter }

func (w *world) process(o *redis.UniversalOptions, opts ...redislimit.Option) process {
	rdb := redis.NewUniversalClient(o)
	w.Cleanup(func() { _ = rdb.Close() })
	l, err := redislimit.New(rdb, opts...)
	require.NoError(w, err)
	return process{l}
}

const (
	acme = "https://api.example.com/acme"
	keys = "webdelivery:purge:{" + acme + "}:"
)

func (p process) acquire(w *world) webdelivery.Permit {
	w.Helper()
	permit, err := p.Acquire(w.Within(12*time.Second), acme) // before a slot that nobody frees is free
	require.NoError(w, err)
	return permit
}

func (p process) pause(ctx context.Context, d time.Duration) error { return p.Pause(ctx, acme, d) }

// wait acquires a permit and ends it at once, as if the purge had just arrived.
func (p process) wait(ctx context.Context) error {
	permit, err := p.Acquire(ctx, acme)
	if err == nil {
		permit.Done(ctx, time.Now(), 0)
	}
	return err
}

// slots returns how many slots are taken.
func (w *world) slots() string { return w.Do("EXISTS " + keys + "1 " + keys + "2") }

// taken waits until so many slots are taken, not as long as one would be that nobody frees.
func (w *world) taken(slots string) {
	w.Helper()
	began := time.Now()
	w.Until(slots+" slots", func() bool { return w.slots() == slots })
	assert.Less(w, time.Since(began), 12*time.Second)
}

var page = webdelivery.PurgeRequest{
	Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/")},
}

// purge purges from n processes of the fleet, each with its own client of Redis, until the test ends.
func (w *world) purge(n int, o *redis.UniversalOptions) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for range n {
		client := w.Service.Client(w, webdelivery.WithSharedLimiter(w.process(o)))
		running.Go(func() {
			for ctx.Err() == nil {
				_, err := client.Purge.Submit(ctx, page)
				if errors.As(err, new(*redislimit.UnavailableError)) {
					assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
					w.down.Add(1)
				} else if ctx.Err() == nil {
					assert.NoError(w, err)
				}
			}
		})
	}
	w.Cleanup(running.Wait)
	w.Cleanup(stop)
}

// arrive waits until n more purges have arrived.
func (w *world) arrive(n int) {
	w.Helper()
	n += len(w.Service.Purged())
	w.Until("more purges", func() bool { return len(w.Service.Purged()) >= n })
}

// atMost checks how many purges have arrived within any second.
func (w *world) atMost(n int) {
	w.Helper()
	for i, all := n, w.Service.Purged(); i < len(all); i++ {
		assert.GreaterOrEqual(w, all[i].Time.Sub(all[i-n].Time), time.Second, "more than %d purges in a second", n)
	}
}

// What happens to Redis while four processes purge, and how many purges may arrive within a second then.
func TestFaultsOfRedis(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault func(w *world)
		most  int
	}{
		"stopped": {func(w *world) {
			w.Redis.Signal(w.T, "STOP")
			w.Until("a purge has no permit", func() bool { return w.down.Load() > 0 })
			w.Redis.Signal(w.T, "CONT")
		}, 2},
		"full":            {func(w *world) { w.Do("CONFIG SET maxmemory 1") }, 2},
		"without scripts": {func(w *world) { w.Do("SCRIPT FLUSH") }, 2},
		"a replica for a moment": {func(w *world) {
			w.Do("REPLICAOF 127.0.0.1 1")
			time.Sleep(time.Second)
			w.Do("REPLICAOF NO ONE")
		}, 2},
		"emptied": {func(w *world) { w.Do("FLUSHALL") }, 4},
		"restarted from a snapshot": {func(w *world) {
			w.Do("SAVE")
			w.arrive(1)
			w.Redis.Kill()
			w.Redis.Start(w.T)
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.purge(4, options(w.Redis.Addr))
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
		w.Cluster()
		o := options(w.Redis.Addr)
		o.IsClusterMode = true
		w.purge(3, o)
		w.arrive(5)
		w.atMost(2)
	})
}

func TestNewChecksItsArguments(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: redistest.Nobody(t)})
	defer rdb.Close()
	for text, option := range map[string]redislimit.Option{
		"WithInterval: 9ms is not between 10ms and 1h":  redislimit.WithInterval(9 * time.Millisecond),
		"WithInterval: 1h0m0.000000001s is not between": redislimit.WithInterval(time.Hour + 1),
		"WithKeyPrefix: is empty":                       redislimit.WithKeyPrefix(""),
		"FallbackLocal: 0 is not between 1 and 10,000":  redislimit.FallbackLocal(0),
		"FallbackLocal: 10001 is not between":           redislimit.FallbackLocal(10_001),
	} {
		_, err := redislimit.New(rdb, option)
		require.ErrorIs(t, err, webdelivery.ErrInvalid)
		assert.Contains(t, err.Error()+" ", "webdelivery: invalid redislimit."+text)
	}
	_, err := redislimit.New(nil)
	require.ErrorContains(t, err, "redislimit.New: rdb is nil")
	_, err = redislimit.New(rdb, redislimit.WithInterval(time.Hour), redislimit.WithKeyPrefix("p"), redislimit.FallbackLocal(10_000))
	require.NoError(t, err)
}

// An error of a purge without a permit says why there was none, also that of a queue, and matches the context's.
func TestWhyThereIsNoPermit(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		slow, gone := redistest.NewProxy(w.T, w.Redis.Addr, time.Minute).Addr, redistest.Nobody(w.T)
		for addr, tt := range map[string]struct {
			until time.Duration
			why   string
		}{
			gone:         {2 * time.Second, "Redis at " + gone + " is unreachable: dial tcp"},
			slow:         {2 * time.Second, "Redis at " + slow + " is unreachable: no reply for "},
			w.Redis.Addr: {5 * time.Second, "the next permit comes in "},
		} {
			w.Run(tt.why, func(t *testing.T) {
				t.Parallel()
				limiter := w.process(options(addr))
				client := w.Service.Client(t, webdelivery.WithSharedLimiter(limiter))
				queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{})
				require.NoError(t, err)
				if addr == w.Redis.Addr {
					require.NoError(t, limiter.Pause(t.Context(), w.Service.URL+"/acme", time.Hour))
				}
				_, ofQueue := queue.Purge(w.Within(tt.until), page.URIs...)
				_, err = client.Purge.Submit(w.Within(tt.until), page)
				for _, err := range []error{ofQueue, err} {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.ErrorContains(t, err, tt.why)
					assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				}
			})
		}
	})
}

// Without a deadline, all callers that wait for a Redis that does not reply get an error after 3 s, not one after the other.
func TestRedisIsDown(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		limiter := w.process(options(redistest.NewProxy(w.T, w.Redis.Addr, time.Minute).Addr))
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(30*time.Second, cancel) // 20 times 3 s are more
		errs := make(chan error, 20)
		for range cap(errs) {
			go func() { errs <- limiter.wait(ctx) }()
		}
		for range cap(errs) {
			err, down := <-errs, new(redislimit.UnavailableError)
			require.ErrorAs(w, err, &down)
			require.NotErrorIs(w, err, context.Canceled)
			require.NotErrorIs(w, err, context.DeadlineExceeded)
			require.Error(w, down.Unwrap())
		}
		require.NoError(w, limiter.Waiting(acme))
		require.ErrorAs(w, limiter.pause(w.Context(), time.Second), new(*redislimit.UnavailableError))
	})
}

// refusing is an error of a Redis that refuses a command, from a call that asks once. Asking again takes 3 s each time, and
// a busy machine is not so slow ten times in a row.
func refusing(w *world, call func(context.Context) error, whys ...string) {
	w.Helper()
	for range 10 {
		began := time.Now()
		err := call(w.Soon())
		require.ErrorAs(w, err, new(*redislimit.UnavailableError))
		for _, why := range whys {
			require.ErrorContains(w, err, why)
		}
		if time.Since(began) < 3*time.Second {
			return
		}
	}
	require.Fail(w, "it asks again")
}

// A Redis that refuses a command is not asked again: a user that lacks any one permission learns which, or a password
// is wrong. Such a process takes no slot from the others.
func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		poor := options(w.Redis.Addr)
		for _, right := range redistest.Rights(w.T) {
			var name string
			poor.Username, name = w.Without(right)
			w.Do("SCRIPT FLUSH") // so that EVAL is needed, too
			limiter := w.process(poor)
			if name == "hello" || name == "ping" { // go-redis does without
				require.NoError(w, limiter.wait(w.Context()), right)
				continue
			}
			w.taken("0")
			refusing(w, limiter.wait, "NOPERM", name)
			refusing(w, func(ctx context.Context) error { return limiter.pause(ctx, time.Second) }, "NOPERM")
			assert.Equal(w, "0", w.slots(), right)
		}

		poor.Password = "wrong"
		refusing(w, w.process(poor).wait, "Redis at "+w.Redis.Addr+" refuses a command: WRONGPASS")
	})
}

// With FallbackLocal, purges go on at the rate of a share, and come from Redis again as soon as it replies.
func TestFallbackLocal(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		limiter := w.process(options(w.Redis.Addr), redislimit.FallbackLocal(2), redislimit.WithInterval(100*time.Millisecond))
		w.Redis.Kill()
		began := time.Now()
		for range 3 {
			assert.Nil(w, limiter.acquire(w).Done)
		}
		assert.GreaterOrEqual(w, time.Since(began), 600*time.Millisecond)
		w.Redis.Start(w.T)
		w.Until("Redis gives permits", func() bool { return limiter.acquire(w).Done != nil })
	})
}

// Two purges that are on their way hold both slots, for a second and more after their arrival, however long they take. A slot
// whose purge never leaves is free again: if nothing was sent, if the caller leaves during the question, if the reply is lost.
func TestSlots(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		limiter, began := w.process(options(w.Redis.Addr)), time.Now()
		permit := limiter.acquire(w)
		assert.WithinRange(w, permit.Expires, began.Add(5*time.Second), time.Now().Add(15*time.Second))
		require.Equal(w, "1", w.slots())
		permit.Done(w.Context(), time.Time{}, 0)
		require.Equal(w, "0", w.slots())

		permits := []webdelivery.Permit{limiter.acquire(w), limiter.acquire(w)}
		require.ErrorIs(w, limiter.wait(w.Within(2*time.Second)), context.DeadlineExceeded)
		arrived := time.Now()
		for _, permit := range permits {
			permit.Done(w.Context(), arrived, 0)
		}
		require.NoError(w, limiter.wait(w.Context()))
		assert.GreaterOrEqual(w, time.Since(arrived), time.Second)

		began = time.Now()
		for range 2 { // by processes that are killed
			limiter.acquire(w)
		}
		require.NoError(w, limiter.wait(w.Within(35*time.Second)))
		assert.GreaterOrEqual(w, time.Since(began), 15*time.Second, "a slot that nobody frees is free after 16 s")

		proxy := redistest.NewProxy(w.T, w.Redis.Addr, 300*time.Millisecond)
		limiter = w.process(options(proxy.Addr))
		require.NoError(w, limiter.wait(w.Context()))
		left := make(chan error, 1)
		var err error
		for err == nil { // a busy machine may cancel too late
			w.taken("0")
			ctx, cancel := context.WithCancel(w.Context())
			go func() { left <- limiter.wait(ctx) }()
			w.taken("1")
			cancel() // the reply is on its way
			err = <-left
		}
		require.ErrorIs(w, err, context.Canceled)
		w.taken("0")

		proxy = redistest.NewProxy(w.T, w.Redis.Addr, 0)
		limiter = w.process(options(proxy.Addr))
		require.NoError(w, limiter.pause(w.Context(), time.Millisecond)) // sets up the connection
		w.Until("the pause is over", func() bool { return w.Do("EXISTS "+keys+"turn") == "0" })
		proxy.Lost.Store(1)
		go func() { left <- limiter.wait(w.Context()) }()
		w.taken("1")
		require.ErrorAs(w, <-left, new(*redislimit.UnavailableError))
		w.taken("0")
	})
}

// If the clock of Redis is set back, keys live for too long. They get the longest time that they can have: 1.05 s for a
// slot whose purge has arrived, and half a second for a turn.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		set := w.Redis.Clock(w.T)
		limiter := w.process(options(w.Redis.Addr))
		for _, back := range []time.Duration{-20 * time.Second, -2 * time.Hour} {
			for range 2 {
				limiter.acquire(w).Done(w.Context(), time.Now(), http.StatusCreated)
			}
			set(back)
			require.NoError(w, limiter.wait(w.Within(12*time.Second)), "both slots are taken, and a token would keep one for 16 s")
		}
	})
}

// A refusal pauses the fleet, unless the service has accepted a purge of any process since the last refusal.
func TestAPauseForOnePurge(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		one, other := w.process(options(w.Redis.Addr)), w.process(options(w.Redis.Addr))
		goOn := func() { w.Do("DEL " + keys + "turn " + keys + "1 " + keys + "2") }
		for status, turn := range map[int]string{
			http.StatusCreated: "0", http.StatusBadRequest: "0",
			http.StatusServiceUnavailable: "1", http.StatusTooManyRequests: "1", 0: "1",
		} {
			w.Do("DEL " + keys + "accepted")
			require.NoError(w, other.pause(w.Context(), time.Hour))
			goOn()
			one.acquire(w).Done(w.Context(), time.Now(), status)
			goOn()
			require.NoError(w, other.pause(w.Context(), time.Hour))
			assert.Equal(w, turn, w.Do("EXISTS "+keys+"turn"), status)
			goOn()
		}
	})
}

// A pause stops all processes. It lasts a minute at most, and a shorter one does not end it. After it, callers of the process
// that caused it come last.
func TestPause(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		limiter := w.process(options(w.Redis.Addr))
		require.NoError(w, limiter.pause(w.Context(), 0))
		require.NoError(w, limiter.wait(w.Context()))
		before := w.Within(time.Minute + 70*time.Millisecond)
		for _, d := range []time.Duration{time.Second, time.Hour} {
			require.NoError(w, limiter.pause(w.Context(), d))
		}
		require.ErrorIs(w, limiter.wait(before), context.DeadlineExceeded, "80 ms later than others")
		require.NoError(w, before.Err())
		require.NoError(w, limiter.pause(w.Context(), time.Second))
		err := w.process(options(w.Redis.Addr)).wait(w.Within(10 * time.Second))
		require.ErrorIs(w, err, context.DeadlineExceeded)
		assert.Regexp(w, "comes in (1m|[45])", err.Error())
	})
}
