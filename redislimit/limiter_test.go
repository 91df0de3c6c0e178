package redislimit_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redislimit"
)

func TestNewChecksItsArguments(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: nobody(t)})
	defer rdb.Close()
	for text, tt := range map[string]struct {
		rdb    redis.UniversalClient
		option redislimit.Option
	}{
		"New: rdb is nil": {nil, redislimit.FallbackLocal(1)},
		"WithInterval: 9ms is not between 10ms and 1h":  {rdb, redislimit.WithInterval(9 * time.Millisecond)},
		"WithInterval: 1h0m0.000000001s is not between": {rdb, redislimit.WithInterval(time.Hour + 1)},
		"WithKeyPrefix: is empty":                       {rdb, redislimit.WithKeyPrefix("")},
		"FallbackLocal: 0 is not between 1 and 10,000":  {rdb, redislimit.FallbackLocal(0)},
		"FallbackLocal: 10001 is not between":           {rdb, redislimit.FallbackLocal(10_001)},
	} {
		_, err := redislimit.New(tt.rdb, tt.option)
		require.ErrorIs(t, err, webdelivery.ErrInvalid)
		assert.Contains(t, err.Error()+" ", "webdelivery: invalid redislimit."+text)
	}
	l, err := redislimit.New(rdb, redislimit.WithInterval(time.Hour), redislimit.WithKeyPrefix("p"), redislimit.FallbackLocal(10_000))
	require.NoError(t, err)
	require.NoError(t, l.Waiting("anybody"))
}

// An error of a purge without a permit says why there was none, also that of a queue, and matches the context's.
func TestWhyThereIsNoPermit(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		slow := redistest.NewProxy(w.T, w.redis.Addr, time.Minute)
		gone := nobody(w.T)
		for _, tt := range []struct {
			name  string
			redis *redis.UniversalOptions
			until time.Duration
			why   string
		}{
			{"gone", options(gone), 2 * time.Second, "Redis at " + gone + " is unreachable: dial tcp"},
			{"hung", options(slow.Addr), 2 * time.Second, "Redis at " + slow.Addr + " is unreachable: no reply for "},
			{"paused", options(w.redis.Addr), 5 * time.Second, "the next permit comes in "},
		} {
			w.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				limiter := newLimiter(t, tt.redis)
				client, err := newClient(w.service.URL, limiter)
				require.NoError(t, err)
				queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{})
				require.NoError(t, err)
				if tt.name == "paused" {
					require.NoError(t, limiter.Pause(t.Context(), w.service.URL+"/acme", time.Hour))
				}
				_, ofQueue := queue.Purge(within(t, tt.until), webdelivery.Exact("https://www.example.com/"))
				for _, err := range []error{ofQueue, submit(within(t, tt.until), client)} {
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
		slow := redistest.NewProxy(w.T, w.redis.Addr, time.Minute)
		limiter := forAcme(w.limiter(options(slow.Addr)))
		errs := make(chan error)
		for range 20 {
			go func() { errs <- limiter.Wait(w.Context()) }()
		}
		over := time.After(patience) // 20 times 3 s are more
		for range 20 {
			select {
			case err := <-errs:
				var down *redislimit.UnavailableError
				require.ErrorAs(w, err, &down)
				require.NotErrorIs(w, err, context.DeadlineExceeded)
				require.Error(w, down.Unwrap())
			case <-over:
				require.Fail(w, "a caller gets no error")
			}
		}
		require.NoError(w, limiter.Waiting())
		require.ErrorAs(w, limiter.Pause(w.Context(), time.Second), new(*redislimit.UnavailableError))
	})
}

// refusing is an error of a Redis that refuses a command, from a call that asks once. Asking again takes 3 s each time, and
// a busy machine is not so slow ten times in a row.
func refusing(t *testing.T, call func(context.Context) error, why string) {
	t.Helper()
	for range 10 {
		began := time.Now()
		err := call(within(t, patience))
		require.ErrorAs(t, err, new(*redislimit.UnavailableError))
		require.ErrorContains(t, err, why)
		if time.Since(began) < 3*time.Second {
			return
		}
	}
	require.Fail(t, "it asks again")
}

// A Redis that refuses a command is not asked again: a user that lacks any one permission learns which, a password is
// wrong, a key is of another type. Such a process takes no slot from the others.
func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		good := forAcme(w.limiter(options(w.redis.Addr)))
		require.NoError(w, good.Wait(w.Context()))
		for _, right := range redistest.Rights(w.T) {
			name, isCommand := strings.CutPrefix(right, "+")
			if !isCommand {
				name = "keys"
			}
			poor := options(w.redis.Addr)
			poor.Username = "without-" + name
			require.NoError(w, w.admin.ScriptFlush(w.Context()).Err()) // so that EVAL is needed, too
			args := []any{"ACL", "SETUSER", poor.Username, "on", ">" + password}
			for _, r := range redistest.Rights(w.T) {
				if r != right {
					args = append(args, r)
				}
			}
			require.NoError(w, w.admin.Do(w.Context(), args...).Err())
			limiter := forAcme(w.limiter(poor))
			if name == "hello" || name == "ping" { // go-redis does without
				require.NoError(w, limiter.Wait(w.Context()), right)
				continue
			}
			require.Eventually(w, func() bool { return w.slots() == 0 }, patience, time.Millisecond)
			for range 2 {
				refusing(w.T, limiter.Wait, "NOPERM")
				refusing(w.T, limiter.Wait, name)
			}
			refusing(w.T, func(ctx context.Context) error { return limiter.Pause(ctx, time.Second) }, "NOPERM")
			assert.Zero(w, w.slots(), right)
		}

		poor := options(w.redis.Addr)
		poor.Password = "wrong"
		refusing(w.T, forAcme(w.limiter(poor)).Wait, "Redis at "+w.redis.Addr+" refuses a command: WRONGPASS")

		require.Eventually(w, func() bool { return w.slots() == 0 }, patience, time.Millisecond)
		require.NoError(w, w.admin.RPush(w.Context(), keys+"1", "x").Err())
		require.NoError(w, w.admin.Expire(w.Context(), keys+"1", time.Hour).Err())
		refusing(w.T, good.Wait, "WRONGTYPE")
	})
}

// With FallbackLocal, purges go on at the rate of a share, and come from Redis again as soon as it replies.
func TestFallbackLocal(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		limiter := forAcme(w.limiter(options(w.redis.Addr), redislimit.FallbackLocal(2), redislimit.WithInterval(100*time.Millisecond)))
		w.redis.Kill()
		began := time.Now()
		for range 3 {
			permit, err := limiter.Acquire(w.Context())
			require.NoError(w, err)
			assert.Nil(w, permit.Done)
		}
		assert.GreaterOrEqual(w, time.Since(began), 600*time.Millisecond)
		require.NoError(w, w.redis.Start())
		require.Eventually(w, func() bool {
			permit, err := limiter.Acquire(w.Context())
			return err == nil && permit.Done != nil
		}, patience, time.Millisecond)
	})
}

// Two purges that are on their way hold both slots, for a second and more after their arrival, however long they take.
func TestSlowArrivals(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		limiter := forAcme(w.limiter(options(w.redis.Addr)))
		var permits []webdelivery.Permit
		for range 2 {
			permit, err := limiter.Acquire(w.Context())
			require.NoError(w, err)
			permits = append(permits, permit)
		}
		require.ErrorIs(w, limiter.Wait(within(w, 2*time.Second)), context.DeadlineExceeded)
		arrived := time.Now()
		for _, permit := range permits {
			permit.Done(w.Context(), arrived, 0)
		}
		require.NoError(w, limiter.Wait(w.Context()))
		assert.GreaterOrEqual(w, time.Since(arrived), time.Second)
	})
}

// slots returns how many slots are taken.
func (w *world) slots() int64 {
	n, err := w.admin.Exists(w.Context(), keys+"1", keys+"2").Result()
	require.NoError(w, err)
	return n
}

// A slot whose purge never leaves is free again: if nothing was sent, if the caller leaves during the question, if the
// reply is lost.
func TestUnusedSlots(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		limiter := forAcme(w.limiter(options(w.redis.Addr)))
		permit, err := limiter.Acquire(w.Context())
		require.NoError(w, err)
		assert.InDelta(w, 10, time.Until(permit.Expires).Seconds(), 5)
		require.EqualValues(w, 1, w.slots())
		permit.Done(w.Context(), time.Time{}, 0)
		require.Zero(w, w.slots())

		for range 2 { // by processes that are killed
			_, err = limiter.Acquire(w.Context())
			require.NoError(w, err)
		}
		require.ErrorIs(w, limiter.Wait(within(w, 10*time.Second)), context.DeadlineExceeded)
		require.NoError(w, limiter.Wait(within(w, 25*time.Second)), "a slot that nobody frees is free after 16 s")

		proxy := redistest.NewProxy(w.T, w.redis.Addr, 300*time.Millisecond)
		limiter = forAcme(w.limiter(options(proxy.Addr)))
		require.NoError(w, limiter.Wait(w.Context()))
		left := make(chan error, 1)
		for err = nil; err == nil; err = <-left { // a busy machine may cancel too late
			require.Eventually(w, func() bool { return w.slots() == 0 }, patience, time.Millisecond)
			ctx, cancel := context.WithCancel(w.Context())
			go func() { left <- limiter.Wait(ctx) }()
			require.Eventually(w, func() bool { return w.slots() == 1 }, patience, time.Millisecond)
			cancel() // the reply is on its way
		}
		require.ErrorIs(w, err, context.Canceled)
		require.Eventually(w, func() bool { return w.slots() == 0 }, 12*time.Second, time.Millisecond)

		proxy = redistest.NewProxy(w.T, w.redis.Addr, 0)
		limiter = forAcme(w.limiter(options(proxy.Addr)))
		require.NoError(w, limiter.Pause(w.Context(), time.Millisecond)) // sets up the connection
		require.Eventually(w, func() bool { return w.admin.Exists(w.Context(), keys+"turn").Val() == 0 }, patience, time.Millisecond)
		proxy.Lost.Store(1)
		go func() { left <- limiter.Wait(w.Context()) }()
		require.Eventually(w, func() bool { return w.slots() == 1 }, patience, time.Millisecond)
		require.ErrorAs(w, <-left, new(*redislimit.UnavailableError))
		require.Eventually(w, func() bool { return w.slots() == 0 }, 12*time.Second, time.Millisecond)
	})
}

// If the clock of Redis is set back, keys live for too long. They get the longest time that they can have: 1.05 s for a
// slot whose purge has arrived, and half a second for a turn.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.redis.Kill()
		env, set := redistest.Clock(w.T)
		w.redis.Env = env
		require.NoError(w, w.redis.Start())
		limiter := forAcme(w.limiter(options(w.redis.Addr)))
		for _, back := range []time.Duration{-20 * time.Second, -2 * time.Hour} {
			for range 2 {
				permit, err := limiter.Acquire(w.Context())
				require.NoError(w, err)
				permit.Done(w.Context(), time.Now(), http.StatusCreated)
			}
			set(back)
			require.NoError(w, limiter.Wait(within(w, 12*time.Second)), "both slots are taken, and a token would keep one for 16 s")
		}
	})
}

// A refusal pauses the fleet, unless the service has accepted a purge of any process since the last refusal.
func TestAPauseForOnePurge(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		one, other := forAcme(w.limiter(options(w.redis.Addr))), forAcme(w.limiter(options(w.redis.Addr)))
		goOn := func() { require.NoError(w, w.admin.Del(w.Context(), keys+"turn", keys+"1", keys+"2").Err()) }
		for status, paused := range map[int]bool{
			http.StatusCreated: false, http.StatusBadRequest: false,
			http.StatusServiceUnavailable: true, http.StatusTooManyRequests: true, 0: true,
		} {
			require.NoError(w, w.admin.Del(w.Context(), keys+"accepted").Err())
			require.NoError(w, other.Pause(w.Context(), time.Hour))
			goOn()
			permit, err := one.Acquire(w.Context())
			require.NoError(w, err)
			permit.Done(w.Context(), time.Now(), status)
			goOn()
			require.NoError(w, other.Pause(w.Context(), time.Hour))
			assert.Equal(w, paused, w.admin.PTTL(w.Context(), keys+"turn").Val() > 0, status)
			goOn()
		}
	})
}

// A pause stops all processes. It lasts a minute at most, and a shorter one does not end it. After it, callers of the process
// that caused it come last.
func TestPause(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		limiter := forAcme(w.limiter(options(w.redis.Addr)))
		require.NoError(w, limiter.Pause(w.Context(), 0))
		require.NoError(w, limiter.Wait(w.Context()))
		before := within(w, time.Minute+70*time.Millisecond)
		for _, d := range []time.Duration{time.Second, time.Hour} {
			require.NoError(w, limiter.Pause(w.Context(), d))
		}
		require.ErrorIs(w, limiter.Wait(before), context.DeadlineExceeded, "80 ms later than others")
		require.NoError(w, before.Err())
		require.NoError(w, limiter.Pause(w.Context(), time.Second))
		err := forAcme(w.limiter(options(w.redis.Addr))).Wait(within(w, 10*time.Second))
		require.ErrorIs(w, err, context.DeadlineExceeded)
		assert.Regexp(w, "comes in (1m|[45])", err.Error())
	})
}
