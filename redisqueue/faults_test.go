package redisqueue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// noLimiter gives no permit.
type noLimiter struct{}

func (noLimiter) Wait(context.Context) error { return errors.New("connection refused") }

// brokenClients returns clients that cannot purge, each for another reason.
func (w *world) brokenClients() map[string]*webdelivery.Client {
	cut := fixture.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset by peer") })
	return map[string]*webdelivery.Client{
		"old password": w.Service.ClientAs(w, webdelivery.BasicAuth(w.Service.Username, "yesterday"), webdelivery.WithSharedLimiter(w)),
		"no network": w.client(webdelivery.WithHTTPClient(&http.Client{Transport: cut}),
			webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1000})), // its first failure tells enough
		"no limiter": w.client(webdelivery.WithPurgeLimiter(noLimiter{})),
	}
}

// A process that cannot purge costs the others its first try: calls of both kinds, which do not fit into one request, all
// end well, whoever sends first, with Wait and without.
func TestOneProcessIsBroken(t *testing.T) {
	t.Parallel()
	for _, healthyFirst := range []bool{true, false} {
		inWorld(t, func(w *world) {
			for name, client := range w.brokenClients() {
				w.Run(name, func(t *testing.T) {
					w := w.parallel(t)
					narrow := func(o *redisqueue.Options) {
						o.MaxURIs, o.Wait, o.Prefix = 2, healthyFirst, "webdelivery:queue:"+name
					}
					queues := []*redisqueue.Queue{w.queue(w.rdb(), client, narrow), w.process(narrow)}
					if healthyFirst {
						w.purge(queues[1], object(100))
					}
					var calls sync.WaitGroup
					for i := range 8 {
						calls.Go(func() {
							_, err := queues[i/4].Purge(w.Soon(), object(2*i), object(2*i+1))
							assert.NoError(w, err)
						})
						if i == 3 {
							time.Sleep(200 * time.Millisecond) // the broken process sends, unless the other one does
						}
					}
					calls.Wait()
				})
			}
		}, webdeliverytest.WithPurgeDuration(0))
	}
}

// If no process can purge, the caller gets the error after three terms and a lease, in the same words as in a PurgeQueue.
func TestAllProcessesAreBroken(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		q, err := w.queue(w.rdb(), w.brokenClients()["old password"], brief), error(redisqueue.ErrRedis)
		for errors.Is(err, redisqueue.ErrRedis) { // if the machine stalls for 3 s, go-redis gives up
			_, err = q.Purge(w.Soon(), object(1))
		}
		require.ErrorIs(w, err, webdelivery.ErrUnauthorized)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		sent := w.Service.Count(http.MethodPost, "/cache/purge")
		assert.Contains(w, []int{3, 4, 5, 6}, sent, "more than 3 only on a busy machine, where a lease may end too early")
	})
}

// A sender dies with a request that the service has answered and nobody else knows of. The next one sends its URIs again,
// so that each caller of a living process gets a true result.
func TestADeadSender(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause()
		proxy, sent := redistest.NewProxy(w.T, w.Redis.Addr, 0), make(chan string, 100)
		dies := fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			copied := r.Clone(r.Context())
			copied.Body = io.NopCloser(bytes.NewReader(body))
			if response, err := http.DefaultTransport.RoundTrip(copied); err == nil {
				_ = response.Body.Close()
				proxy.Close()
				sent <- string(body)
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		rdb := w.rdb(func(o *redis.UniversalOptions) { o.Addrs = []string{proxy.Addr} })
		short := func(o *redisqueue.Options) { o.Lease = 5 * time.Second }
		w.enqueue(w.queue(rdb, w.client(webdelivery.WithHTTPClient(&http.Client{Transport: dies})), short), object(1))
		living := w.process(short)
		wait := w.purging(w.Soon(), living, living, living)
		w.queued(living, 4)
		w.goOn()
		lost := <-sent
		w.allGood(wait())
		w.queued(living, 0)
		for i := range 3 {
			if strings.Contains(lost, pattern(i)+`"`) {
				assert.GreaterOrEqual(w, w.purged()[pattern(i)], 2)
			}
		}
	}, webdeliverytest.WithUnlimitedPurges())
}

// What the service has accepted is not sent again, whatever happens to its transaction: the sender closes, the next one
// cannot read the transaction, and the result has the receipt.
func TestAcceptedOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		one := w.process(waits) // its lease does not end before it has stored a receipt
		id := w.enqueue(one, object(1))
		w.Until("the service has accepted it", func() bool { return len(w.Service.Purged()) == 1 })
		ctx, cancel := context.WithCancel(w.Context())
		ended := w.purging(ctx, one)
		w.Until("and another one", func() bool { return len(w.Service.Purged()) == 2 })
		w.Until("the receipts are stored", func() bool {
			stored := 0
			for _, key := range strings.Fields(w.Do("KEYS *:result:*")) {
				if strings.Contains(w.Do("GET "+key), " {") {
					stored++
				}
			}
			return stored == 2
		})
		w.exchanged()
		cancel()
		err := ended()[0]
		require.ErrorContains(w, err, "the service has accepted transaction")
		require.NoError(w, one.Close(w.Soon()))
		_, err = one.Result(w.Soon(), id)
		require.ErrorIs(w, err, redisqueue.ErrPending)
		w.Service.Fail(webdeliverytest.FaultRule{Path: "/transactions/*", Status: http.StatusNotFound})
		receipts, err := w.result(w.process(brief, waits), id)
		require.ErrorIs(w, err, webdelivery.ErrNotFound)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		assert.Len(w, receipts, 1)
		assert.Equal(w, map[string]int{pattern(0): 1, pattern(1): 1}, w.purged())
	}, webdeliverytest.WithPurgeDuration(time.Hour))
}

// If Redis is full while a process cannot purge, no call is lost: its result is stored, or it stays. New calls fail.
func TestAFullRedis(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		broken := w.queue(w.rdb(), w.brokenClients()["old password"], brief)
		w.pause()
		id := w.enqueue(broken, object(1))
		w.Do("CONFIG SET maxmemory 1")
		w.goOn()
		_, err := broken.Enqueue(w.Soon(), object(2))
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		require.ErrorContains(w, err, "OOM")
		_, err = w.result(w.process(), id)
		require.NoError(w, err, "while Redis is full")
		assert.Equal(w, map[string]int{pattern(1): 1}, w.purged())
	})
}

// Redis is killed and restarted without its data, before calls come and while they wait. No caller notices.
func TestRedisIsRestarted(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		one, other, later := w.process(brief), w.process(brief), w.process(brief)
		w.pause()
		wait := w.purging(w.Soon(), one, other)
		w.queued(one, 2)
		w.Redis.Kill()
		waitLater := w.purging(w.Soon(), later)
		w.Redis.Start(w.T)
		w.goOn()
		w.allGood(wait())
		w.allGood(waitLater())
	})
}

// While Redis hangs, callers leave with their contexts or fail, and so does Close. All goes on when it wakes up.
func TestRedisHangs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		q, other := w.process(brief), w.process(brief)
		slow := redis.NewClient(&redis.Options{Addr: w.Redis.Addr})
		closing := w.queue(slow, w.client(), brief)
		w.pause()
		wait, waitClosing := w.purging(w.Soon(), q), w.purging(w.Soon(), closing)
		w.queued(other, 2)
		w.Redis.Signal(w.T, "STOP")
		began := time.Now()
		err := closing.Close(w.Within(100 * time.Millisecond))
		assert.Less(w, time.Since(began), 35*time.Second, "with go-redis's defaults, a command takes up to 40 s")
		if err != nil {
			require.ErrorIs(w, err, context.DeadlineExceeded)
			require.ErrorIs(w, waitClosing()[0], webdelivery.ErrQueueClosed)
		} else { // if the machine stalls, the call has failed before
			require.ErrorIs(w, waitClosing()[0], redisqueue.ErrRedis)
		}
		require.NoError(w, slow.Close())
		_, err = other.Purge(w.Within(500*time.Millisecond), object(5))
		require.ErrorIs(w, err, context.DeadlineExceeded)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		err = wait()[0]
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		assert.NotErrorIs(w, err, context.DeadlineExceeded)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		w.Redis.Signal(w.T, "CONT")
		w.goOn()
		w.allGood(w.purging(w.Soon(), q, other)())
	})
}

// If Redis is down for good, callers get an error that says so.
func TestRedisIsDown(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		q := w.process(brief)
		w.Redis.Kill()
		_, err := q.Purge(w.Soon(), object(1))
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		require.ErrorContains(w, err, w.Redis.Addr)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		_, err = q.Enqueue(w.Soon(), object(1))
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		_, err = q.Result(w.Soon(), "1")
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		_, err = q.Stats(w.Soon())
		require.ErrorIs(w, err, redisqueue.ErrRedis)
		_, err = q.Purge(w.Within(500*time.Millisecond), object(1))
		require.ErrorIs(w, err, context.DeadlineExceeded)
		require.ErrorContains(w, err, w.Redis.Addr)
	})
}

// All keys of a queue are on one node of a cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.Cluster()
		q := w.queue(w.rdb(func(o *redis.UniversalOptions) { o.IsClusterMode = true }), w.client())
		w.purge(q, object(1))
		_, err := w.result(q, w.enqueue(q, object(3)))
		require.NoError(w, err)
		require.NoError(w, q.Close(w.Soon()))
	})
}

// A user that lacks any one of the documented permissions learns soon which, with the command, unless its purge works
// without, and so does one with a wrong password. The other processes of the fleet do not suffer.
func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.every = 0
		for i, right := range append(redistest.Rights(w.T), "+nothing") {
			w.Run(right, func(t *testing.T) {
				w := w.parallel(t)
				options := func(o *redisqueue.Options) { o.Prefix, o.Lease = fmt.Sprint("webdelivery:queue:", i), time.Hour }
				user, name := w.Without(right)
				why := "NOPERM.*" + name
				rdb := w.rdb(func(o *redis.UniversalOptions) {
					if o.Username = user; right == "+nothing" {
						o.Password, why = "wrong", "WRONGPASS"
					}
				})
				poor, good := w.queue(rdb, w.client(), options), w.process(options)
				for i := range 3 { // the second call meets a process that rests
					_, err := poor.Purge(w.Soon(), object(i))                // a lease is longer
					if slices.Contains([]string{"+hello", "+ping"}, right) { // go-redis does without
						assert.NoError(w, err)
					} else {
						assert.ErrorIs(w, err, redisqueue.ErrRedis)
						assert.Regexp(w, why, fmt.Sprint(err))
						assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
					}
					w.purge(good, object(20+i))
				}
			})
		}
	}, webdeliverytest.WithUnlimitedPurges())
}

// A call older than Keep is not sent, and its result says so. A younger one is.
func TestOldCalls(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		set := w.Redis.Clock(w.T)
		purgedAfter := func(i int, ahead time.Duration) error {
			w.pause()
			q := w.process()
			id := w.enqueue(q, object(i))
			require.NoError(w, q.Close(w.Soon()))
			set(ahead)
			w.goOn()
			q = w.process()
			_, err := w.result(q, id)
			require.NoError(w, q.Close(w.Soon()))
			return err
		}
		require.NoError(w, purgedAfter(1, 59*time.Minute))
		err := purgedAfter(2, 2*time.Hour)
		require.ErrorContains(w, err, "redisqueue: not sent any more after waiting for longer than Options.Keep, 1h0m0s; purge again")
		require.ErrorAs(w, err, new(*redisqueue.RemoteError))
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		assert.Equal(w, map[string]int{pattern(1): 1}, w.purged())
	})
}

// A clock that jumps while calls wait stops nobody, and ends no call, even if Redis loses its data at the same time.
func TestTheClockJumps(t *testing.T) {
	t.Parallel()
	for ahead, restart := range map[time.Duration]bool{2 * time.Hour: false, -2 * time.Hour: false, -5 * time.Second: true} {
		inWorld(t, func(w *world) {
			set := w.Redis.Clock(w.T)
			one, other := w.process(brief), w.process(brief)
			w.purge(one, object(9))
			w.pause()
			wait := w.purging(w.Soon(), one, other)
			w.queued(one, 2)
			w.exchanged() // what it has not read yet would be older than Keep
			if set(ahead); restart {
				w.Redis.Kill()
				w.Redis.Start(w.T)
			}
			w.goOn()
			w.allGood(wait())
			w.allGood(w.purging(w.Soon(), one, other)())
		})
	}
}
