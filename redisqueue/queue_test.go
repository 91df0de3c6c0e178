package redisqueue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// foreign is a URI that the service refuses.
var foreign = webdelivery.Exact("https://www.example.org/")

// pauseOf keeps the permits of the fleet for a time, so that calls wait in Redis.
func (w *world) pause(d time.Duration) {
	rdb := w.rdb()
	limiter, ok := w.client(rdb).PurgeLimiter().(interface {
		Pause(ctx context.Context, d time.Duration) error
	})
	require.True(w, ok)
	require.NoError(w, limiter.Pause(w.Context(), d))
}

// ended is what a call of Purge returns.
type ended struct {
	receipt *webdelivery.PurgeReceipt
	err     error
	after   time.Duration
}

// purges calls Purge in a goroutine.
func (w *world) purges(ctx context.Context, q *redisqueue.Queue, uris ...webdelivery.PurgeURI) <-chan ended {
	end := make(chan ended, 1)
	began := time.Now()
	go func() {
		receipt, err := q.Purge(ctx, uris...)
		end <- ended{receipt, err, time.Since(began)}
	}()
	return end
}

// stored waits until that many entries are in Redis.
func (w *world) stored(n int) {
	rdb := w.rdb()
	require.Eventually(w, func() bool {
		keys, err := rdb.Keys(w.Context(), "webdelivery:queue:*:calls").Result()
		if err != nil || len(keys) != 1 {
			return n == 0 && err == nil
		}
		length, err := rdb.XLen(w.Context(), keys[0]).Result()
		return err == nil && int(length) == n
	}, 20*time.Second, 5*time.Millisecond)
}

// The calls of several processes go in a few requests, and each gets the receipt of the request with its URI.
func TestCallsOfManyProcesses(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		receipts := map[string]int64{}
		for p := range 10 {
			q := w.process()
			for i := range 10 {
				wg.Go(func() {
					receipt, err := q.Purge(w.Context(), object(10*p+i))
					if assert.NoError(w, err) {
						mu.Lock()
						defer mu.Unlock()
						receipts[object(10*p+i).URIPattern] = receipt.TransactionID
					}
				})
			}
		}
		wg.Wait()
		assert.Len(w, receipts, 100)
		assert.Equal(w, w.carriers(), receipts)
		assert.LessOrEqual(w, len(w.service.Requests()), 6)
	})
}

// One request carries more calls than one script takes or ends.
func TestManyCallsInOneRequest(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		const calls = 1200
		q := w.process()
		w.pause(3 * time.Second)
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				_, err := q.Purge(w.Context(), object(i))
				assert.NoError(w, err)
			})
		}
		wg.Wait()
		assert.Len(w, w.purgedURIs(), calls)
		assert.Len(w, w.service.Requests(), 1)
		w.stored(0)
	})
}

// Identical URIs that wait are sent once, and all their callers get the same receipt.
func TestIdenticalURIs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		first, second := w.purges(w.Context(), w.process(), object(1), object(1), object(2)), w.purges(w.Context(), w.process(), object(2), object(1))
		a, b := <-first, <-second
		require.NoError(w, a.err)
		require.NoError(w, b.err)
		assert.Equal(w, a.receipt, b.receipt)
		assert.Equal(w, map[string]int{object(1).URIPattern: 1, object(2).URIPattern: 1}, w.purgedURIs())
	})
}

// A URI that the service refuses fails for its callers alone, in every process.
func TestRefusedURIs(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		a, b := w.process(), w.process()
		good := []<-chan ended{w.purges(w.Context(), a, object(1)), w.purges(w.Context(), b, object(2))}
		bad := []<-chan ended{w.purges(w.Context(), a, foreign), w.purges(w.Context(), b, foreign)}
		both := w.purges(w.Context(), b, object(3), foreign)
		w.stored(5)
		for _, g := range good {
			require.NoError(w, (<-g).err)
		}
		remote := 0
		for _, end := range bad {
			e := <-end
			require.ErrorIs(w, e.err, webdelivery.ErrBadRequest)
			assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(e.err))
			failed := (*webdelivery.QueueError)(nil)
			require.ErrorAs(w, e.err, &failed)
			assert.Equal(w, []webdelivery.PurgeURI{foreign}, failed.URIs)
			response := (*webdelivery.Error)(nil)
			require.ErrorAs(w, e.err, &response)
			assert.Equal(w, 400, response.StatusCode)
			assert.Contains(w, e.err.Error(), response.Description)
			if sent := (*redisqueue.RemoteError)(nil); assert.Equal(w, 1, strings.Count(e.err.Error(), "webdelivery:")) && asRemote(e.err, &sent) {
				remote++
				assert.Contains(w, e.err.Error(), sent.Message[len("webdelivery: "):])
			}
		}
		assert.Equal(w, 1, remote, "one of the two callers is in the process that sent the request")
		e := <-both
		require.ErrorIs(w, e.err, webdelivery.ErrBadRequest)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(e.err), "a part was purged")
		assert.NotNil(w, e.receipt)
		assert.Len(w, w.purgedURIs(), 3)
	})
}

// With Wait, Purge returns when the transaction has ended. A bad end is an error of its callers in every process.
func TestWait(t *testing.T) {
	t.Parallel()
	waits := func(o *redisqueue.Options) { o.Wait = true }
	inWorld(t, func(w *world) {
		a, b := w.process(waits), w.process(waits)
		w.pause(time.Second)
		w.service.FailTransactions(1, "FAILED", "2 caches are silent", 504)
		for _, end := range []<-chan ended{w.purges(w.Context(), a, object(1)), w.purges(w.Context(), b, object(2))} {
			e := <-end
			failed := (*webdelivery.TransactionError)(nil)
			require.ErrorAs(w, e.err, &failed)
			assert.Equal(w, "2 caches are silent", failed.Transaction.TransactionStatusDescription)
			assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(e.err))
		}
		_, err := a.Purge(w.Context(), object(3))
		require.NoError(w, err)
	}, webdeliverytest.WithPurgeDuration(0))
}

// Any process returns the result of a call of Enqueue: when it has ended, and not before.
func TestEnqueue(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		a, b := w.process(), w.process()
		good, err := a.Enqueue(w.Context(), object(1), object(2))
		require.NoError(w, err)
		bad, err := b.Enqueue(w.Context(), foreign)
		require.NoError(w, err)
		for _, id := range []string{good, bad} {
			_, err := b.Result(w.Context(), id)
			require.ErrorIs(w, err, redisqueue.ErrPending)
		}
		w.stored(0)
		for _, q := range []*redisqueue.Queue{a, b, w.process()} {
			receipt, err := q.Result(w.Context(), good)
			require.NoError(w, err)
			assert.Equal(w, w.carriers()[object(2).URIPattern], receipt.TransactionID)
			_, err = q.Result(w.Context(), bad)
			require.ErrorIs(w, err, webdelivery.ErrBadRequest)
			assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			assert.Contains(w, err.Error(), foreign.URIPattern)
			_, err = q.Result(w.Context(), "1-1")
			require.ErrorIs(w, err, redisqueue.ErrUnknownID)
		}
	})
}

// URIs of Enqueue are sent by another process if their own has ended.
func TestEnqueueOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		a := w.process()
		id, err := a.Enqueue(w.Context(), object(1))
		require.NoError(w, err)
		require.NoError(w, a.Close(w.Context()))
		assert.Empty(w, w.service.Requests())
		w.process()
		w.stored(0)
		receipt, err := w.process().Result(w.Context(), id)
		require.NoError(w, err)
		assert.Positive(w, receipt.TransactionID)
	})
}

// If the context ends before a process has taken the URIs, they leave Redis. Afterwards the outcome is unknown.
func TestLeaving(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(2 * time.Second)
		q := w.process()
		ctx, cancel := context.WithCancel(w.Context())
		left, stays := w.purges(ctx, q, object(1), object(2)), w.purges(w.Context(), q, object(3))
		w.stored(2)
		cancel()
		e := <-left
		require.ErrorIs(w, e.err, context.Canceled)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(e.err))
		failed := (*webdelivery.QueueError)(nil)
		require.ErrorAs(w, e.err, &failed)
		assert.Len(w, failed.URIs, 2)
		require.NoError(w, (<-stays).err)
		assert.Equal(w, map[string]int{object(3).URIPattern: 1}, w.purgedURIs())
	})
	inWorld(t, func(w *world) {
		w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 1, Delay: time.Second})
		ctx, cancel := context.WithCancel(w.Context())
		end := w.purges(ctx, w.process(), object(1))
		require.Eventually(w, func() bool { return len(w.service.Requests()) == 1 }, 10*time.Second, time.Millisecond)
		cancel()
		e := <-end
		require.ErrorIs(w, e.err, context.Canceled)
		assert.Equal(w, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(e.err))
	})
}

// The fleet has room for MaxPending URIs. Further callers wait for room, or get an error at once.
func TestRoom(t *testing.T) {
	t.Parallel()
	small := func(o *redisqueue.Options) { o.MaxPending = 3 }
	inWorld(t, func(w *world) {
		w.pause(2 * time.Second)
		a, b := w.process(small), w.process(small)
		refusing := w.process(small, func(o *redisqueue.Options) { o.RefuseWhenFull = true })
		ends := []<-chan ended{w.purges(w.Context(), a, object(1), object(2))}
		w.stored(1)
		_, err := refusing.Enqueue(w.Context(), object(3), object(4))
		require.ErrorIs(w, err, redisqueue.ErrFull)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = b.Purge(ctx, object(5), object(6))
		require.ErrorIs(w, err, context.DeadlineExceeded)
		assert.Equal(w, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		for i := range 6 {
			ends = append(ends, w.purges(w.Context(), b, object(10+2*i), object(11+2*i)))
		}
		for _, end := range ends {
			require.NoError(w, (<-end).err)
		}
		for _, p := range w.service.Purged() {
			assert.LessOrEqual(w, len(p.URIs), 3)
		}
		assert.Len(w, w.purgedURIs(), 14)
	})
}

// A request carries at most MaxURIs and MaxBodyBytes; a call of another process that is larger goes alone.
func TestSizeOfRequests(t *testing.T) {
	t.Parallel()
	for name, small := range map[string]func(*redisqueue.Options){
		"URIs": func(o *redisqueue.Options) { o.MaxURIs = 2 },
		"bytes": func(o *redisqueue.Options) {
			o.MaxBodyBytes = 2*len(`[{"match_mode":"EXACT_LITERAL","uri_pattern":"https://www.example.com/1"}]`) + 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.pause(time.Second)
				ends := []<-chan ended{w.purges(w.Context(), w.process(small), object(1))} // this process has the turn
				w.stored(1)
				large := w.process()
				ends = append(ends, w.purges(w.Context(), large, object(2), object(3), object(4), object(5)))
				w.stored(2)
				for i := range 3 {
					ends = append(ends, w.purges(w.Context(), large, object(6+i)))
				}
				w.stored(5)
				for _, end := range ends {
					require.NoError(w, (<-end).err)
				}
				var sizes []int
				for _, p := range w.service.Purged() {
					sizes = append(sizes, len(p.URIs))
				}
				assert.ElementsMatch(w, []int{1, 4, 2, 1}, sizes) // two may be under way together
			})
		})
	}
}

// All keys expire, and have one hash tag. Nothing in them is a credential.
func TestKeys(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		rdb := w.rdb()
		w.service.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 1, Delay: time.Second})
		w.pause(time.Second)
		a, b := w.process(), w.process()
		id, err := a.Enqueue(w.Context(), object(1))
		require.NoError(w, err)
		ends := []<-chan ended{w.purges(w.Context(), a, object(2)), w.purges(w.Context(), b, object(3))}
		seen := map[string]bool{}
		look := func() {
			keys, err := rdb.Keys(w.Context(), "webdelivery:queue:*").Result()
			require.NoError(w, err)
			for _, key := range keys {
				left, err := rdb.PTTL(w.Context(), key).Result()
				require.NoError(w, err)
				assert.NotEqual(w, time.Duration(-1), left, "%s does not expire", key)
				assert.LessOrEqual(w, left, time.Hour)
				assert.Regexp(w, `^webdelivery:queue:\{acme:[0-9a-f]{8}:purge\}:[a-z]+(:.+)?$`, key)
				seen[strings.Split(key[strings.Index(key, "}:")+2:], ":")[0]] = true
				dump, err := rdb.Dump(w.Context(), key).Result()
				if err == nil {
					assert.NotContains(w, dump, w.service.Password)
				}
			}
		}
		for done := 0; done < len(ends); {
			look()
			select {
			case e := <-ends[done]:
				require.NoError(w, e.err)
				done++
			case <-time.After(10 * time.Millisecond):
			}
		}
		_, err = a.Result(w.Context(), id)
		require.NoError(w, err)
		look()
		assert.Equal(w, map[string]bool{"state": true, "calls": true, "leases": true, "to": true, "result": true}, seen)
	})
}

// Queues with another name, customer, action or Wait are other queues in the same Redis.
func TestOtherQueues(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		id, err := w.process().Enqueue(w.Context(), object(1))
		require.NoError(w, err)
		for _, change := range []func(*redisqueue.Options){
			func(o *redisqueue.Options) { o.Name = "other" },
			func(o *redisqueue.Options) { o.Prefix = "staging" },
			func(o *redisqueue.Options) { o.Action = webdelivery.ActionExpire },
			func(o *redisqueue.Options) { o.Wait = true },
		} {
			_, err := w.process(change).Result(w.Context(), id)
			require.ErrorIs(w, err, redisqueue.ErrUnknownID)
		}
		rdb := w.rdb()
		limiter := w.client(rdb).PurgeLimiter()
		other, err := webdelivery.NewClient(w.service.URL, "globex", webdelivery.BasicAuth("bob", "secret"), webdelivery.WithPurgeLimiter(limiter))
		require.NoError(w, err)
		_, err = w.queue(rdb, other).Result(w.Context(), id)
		require.ErrorIs(w, err, redisqueue.ErrUnknownID)
		w.stored(0)
	})
}

// The statistics are those of the whole fleet, in every process.
func TestStats(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		var reports []webdelivery.QueueStats
		reporting := func(o *redisqueue.Options) {
			o.OnStats = func(s webdelivery.QueueStats) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, s)
			}
		}
		a, b := w.process(reporting), w.process(reporting)
		w.pause(2 * time.Second)
		ends := []<-chan ended{w.purges(w.Context(), a, object(1), object(2)), w.purges(w.Context(), b, object(2), object(3))}
		w.stored(2)
		stats, err := b.Stats(w.Context())
		require.NoError(w, err)
		assert.Positive(w, stats.OldestAge)
		stats.OldestAge = 0
		assert.Equal(w, webdelivery.QueueStats{Pending: 4}, stats)
		for _, end := range ends {
			require.NoError(w, (<-end).err)
		}
		_, err = b.Purge(w.Context(), foreign)
		require.Error(w, err)
		require.NoError(w, a.Close(w.Context()))
		require.NoError(w, b.Close(w.Context())) // returns after the last OnStats
		stats, err = w.process().Stats(w.Context())
		require.NoError(w, err)
		assert.Equal(w, webdelivery.QueueStats{Accepted: 3, Requests: 2}, stats)
		mu.Lock()
		defer mu.Unlock()
		require.NotEmpty(w, reports)
		assert.Equal(w, stats, reports[len(reports)-1])
	})
}

// entryOf stores an entry as a process of another release would.
func (w *world) entryOf(version int, process string, uris ...webdelivery.PurgeURI) {
	payload, err := json.Marshal(uris)
	require.NoError(w, err)
	rdb, base := w.rdb(), w.base()
	require.NoError(w, rdb.Do(w.Context(), "XADD", base+"calls", "*", "v", version, "p", process, "c", "1", "n", len(uris), "b", len(payload),
		"u", payload, "k", "wait").Err())
	require.NoError(w, rdb.HIncrBy(w.Context(), base+"state", "size", int64(len(uris))).Err())
}

// A process leaves a call of a newer release to a process of that release, and asks it to look. It sends all others.
func TestNewerReleases(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		q := w.process()
		before := w.purges(w.Context(), q, object(1))
		w.stored(1)
		w.entryOf(2, "NEWER", object(2))
		w.stored(2)
		require.NoError(w, (<-before).err)
		_, err := q.Purge(w.Context(), object(3))
		require.NoError(w, err)
		assert.Equal(w, map[string]int{object(1).URIPattern: 1, object(3).URIPattern: 1}, w.purgedURIs())
		w.stored(1)
		messages, err := w.rdb().XRange(w.Context(), w.base()+"to:NEWER", "-", "+").Result()
		require.NoError(w, err)
		require.NotEmpty(w, messages)
		assert.Equal(w, map[string]any{"look": "1"}, messages[0].Values)
	})
}

// A call that another program has damaged fails alone.
func TestDamagedCalls(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.pause(time.Second)
		q := w.process()
		end := w.purges(w.Context(), q, object(1))
		w.stored(1)
		w.entryOf(1, "OTHER", webdelivery.Exact("https://www.example.com/a b"))
		w.entryOf(1, "OTHER")
		w.stored(3)
		require.NoError(w, (<-end).err)
		w.stored(0)
		messages, err := w.rdb().XRange(w.Context(), w.base()+"to:OTHER", "-", "+").Result()
		require.NoError(w, err)
		require.Len(w, messages, 2)
		assert.Contains(w, fmt.Sprint(messages[0].Values), "uri_pattern")
	})
}
