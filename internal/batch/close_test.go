package batch_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/batch"
)

// Callers end when the transactions of their items have ended. The queue waits for each transaction once.
func TestTransactions(t *testing.T) {
	t.Parallel()
	waits := func(w *world) { w.work.Wait, w.refused = w.wait, "b" }
	inWorld(t, waits, func(w *world) {
		w.does("Wait 2", func() { panic(errBoom) })
		results := map[string]<-chan ended{}
		for _, items := range []string{"a", "ab", "b", "c", "ca"} {
			results[items] = w.put(w.Context(), items)
		}
		got := map[string]ended{}
		for items, result := range results {
			got[items] = <-result
			if strings.Contains(items, "a") {
				assert.Contains(w, got[items].text, "boom")
			}
		}
		assert.Equal(w, []string{"abc", "a", "b", "c"}, w.requests)
		assert.ElementsMatch(w, []int64{2, 4}, w.waits)
		assert.Equal(w, ended{items: "b", text: "refused", outcome: batch.NotApplied, after: got["b"].after}, got["b"])
		assert.Equal(w, ended{receipt: 4, after: got["b"].after + 10*time.Second}, got["c"])
		assert.Equal(w, "ab", got["ab"].items)
		assert.Equal(w, "a", got["ca"].items)
		assert.Equal(w, got["b"].after+10*time.Second, got["ca"].after)
	})
}

// The wait for a transaction ends when all its callers have left.
func TestLeavingATransaction(t *testing.T) {
	t.Parallel()
	var over atomic.Bool
	waits := func(w *world) {
		w.work.Wait = func(ctx context.Context, _ int64) error {
			<-ctx.Done()
			over.Store(true)
			return ctx.Err()
		}
	}
	inWorld(t, waits, func(w *world) {
		ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
		defer cancel()
		longer, cancelLonger := context.WithTimeout(w.Context(), 3*time.Second)
		defer cancelLonger()
		a, b := w.put(ctx, "a"), w.put(longer, "b")
		assert.Equal(w, ended{receipt: 1, items: "a", text: "left: context deadline exceeded", after: 2 * time.Second}, <-a)
		synctest.Wait()
		assert.False(w, over.Load())
		assert.Equal(w, 3*time.Second, (<-b).after)
		synctest.Wait()
		assert.True(w, over.Load())
	})
}

// If a caller has left, the queue does not wait for its transaction.
func TestTransactionsForNobody(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.work.Wait, w.refused = w.wait, "b" }, func(w *world) {
		ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
		defer cancel()
		a, b := w.put(ctx, "a"), w.put(w.Context(), "b")
		assert.Equal(w, ended{receipt: 2, items: "a", text: "left: context deadline exceeded", after: 2 * time.Second}, <-a)
		assert.Equal(w, "refused", (<-b).text)
		assert.Equal(w, []string{"ab", "a", "b"}, w.requests)
		assert.Empty(w, w.waits)
	})
}

func TestStats(t *testing.T) {
	t.Parallel()
	limits := func(w *world) {
		w.work.Report = w.report
		w.refused, w.options.MaxItems = "c", 2
	}
	inWorld(t, limits, func(w *world) {
		var results []<-chan ended
		for _, items := range []string{"ab", "b", "c", "d", "e"} {
			results = append(results, w.put(w.Context(), items))
		}
		for _, result := range results {
			<-result
		}
		synctest.Wait()
		for i := range w.stats {
			w.stats[i].Oldest = w.stats[i].Oldest.Round(time.Second / 2)
		}
		assert.Equal(w, []string{"ab", "cd", "e", "c", "d"}, w.requests)
		assert.Equal(w, []batch.Stats{
			{Pending: 3, Accepted: 2, Requests: 1, Oldest: half},
			{Pending: 1, Accepted: 2, Requests: 2, Oldest: 3 * half},
			{Pending: 0, Accepted: 3, Requests: 3},
			{Pending: 0, Accepted: 3, Requests: 4},
			{Pending: 0, Accepted: 4, Requests: 5},
		}, w.stats)
	})
}

// A slow report delays no caller, and the next one has the newest statistics. Close reports one that does not
// return.
func TestReportsThatTakeLong(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.work.Report = w.report }, func(w *world) {
		w.does("Report", func() { time.Sleep(10 * time.Second) })
		for range 3 {
			<-w.put(w.Context(), "a")
		}
		assert.Equal(w, 5*half, time.Since(w.began).Round(100*time.Millisecond))
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		assert.Equal(w, batch.Ending{GaveUp: true, Reporting: true}, w.queue.Close(ctx))
		assert.Equal(w, batch.Ending{}, w.queue.Close(w.Context()))
		require.Len(w, w.stats, 2)
		assert.Equal(w, []int{1, 3}, []int{w.stats[0].Requests, w.stats[1].Requests})
	})
}

func TestReportsThatPanic(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.work.Report = w.report }, func(w *world) {
		w.does("Report", func() { panic(errBoom) })
		<-w.put(w.Context(), "a")
		synctest.Wait()
		w.does("Report", runtime.Goexit)
		<-w.put(w.Context(), "a")
		end := w.queue.Close(w.Context())
		require.ErrorIs(w, end.Report, errBoom, "the first time")
		assert.Equal(w, batch.Ending{Report: end.Report}, end)
	})
}

// Close sends all waiting items.
func TestClose(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.options.MaxItems, w.work.Wait = 1, w.wait }, func(w *world) {
		a, b := w.put(w.Context(), "a"), w.put(w.Context(), "b")
		assert.Equal(w, batch.Ending{}, w.queue.Close(w.Context()))
		assert.Equal(w, []int{1, 2}, []int{(<-a).receipt, (<-b).receipt})
		assert.Equal(w, 11*time.Second+half, time.Since(w.began).Round(100*time.Millisecond))
		assert.Equal(w, batch.Ending{}, w.queue.Close(w.Context()))
	})
}

// When the context of Close ends, unsent items are not applied and requests under way are canceled. Close does not wait
// for one that ignores its context.
func TestCloseGivesUp(t *testing.T) {
	t.Parallel()
	for _, ignores := range []bool{false, true} {
		t.Run(fmt.Sprintf("ignores=%t", ignores), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) { w.options.MaxItems, w.work.Wait = 2, w.wait }, func(w *world) {
				took := time.Duration(0)
				if ignores {
					w.does("Send c", func() { time.Sleep(time.Minute) })
					took = 100 * time.Millisecond
				}
				a, c := w.put(w.Context(), "ab"), w.put(w.Context(), "c")
				time.Sleep(time.Second)
				d := w.put(w.Context(), "de")
				ctx, cancel := context.WithTimeout(w.Context(), half/2)
				defer cancel()
				assert.Equal(w, batch.Ending{GaveUp: true, Dropped: 5}, w.queue.Close(ctx))
				after := time.Second + half/2 + took
				assert.Equal(w, after.Round(100*time.Millisecond), time.Since(w.began).Round(100*time.Millisecond))
				got := <-a
				assert.Equal(w, []any{1, "ab", "closed: context canceled", batch.Unknown}, []any{got.receipt, got.items, got.text, got.outcome})
				got = <-c
				assert.Equal(w, []any{0, "c", batch.Unknown}, []any{got.receipt, got.items, got.outcome})
				assert.Equal(w, map[bool]string{true: "closed", false: "closed: context canceled"}[ignores], got.text)
				got = <-d
				assert.Equal(w, []any{"de", "closed", batch.NotApplied}, []any{got.items, got.text, got.outcome})
				assert.Equal(w, batch.Ending{Dropped: 5}, w.queue.Close(w.Context()))
				time.Sleep(time.Minute)
			})
		})
	}
}

// A limiter that ignores its context delays Close by closeGrace only, and delays no waiting caller.
func TestCloseLeavesADeafLimiterBehind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		leaves time.Duration // when the caller leaves
		ending batch.Ending
		put    ended
	}{
		"a caller waits": {
			time.Hour,
			batch.Ending{GaveUp: true, Dropped: 1},
			ended{items: "a", text: "closed", outcome: batch.NotApplied, after: time.Second},
		},
		"nobody waits": {
			half,
			batch.Ending{GaveUp: true},
			ended{items: "a", text: "left: context deadline exceeded", outcome: batch.NotApplied, after: half},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) { w.deaf = true }, func(w *world) {
				w.pause(10 * time.Second)
				caller, cancelCaller := context.WithTimeout(w.Context(), tt.leaves)
				defer cancelCaller()
				a := w.put(caller, "a")
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				assert.Equal(w, tt.ending, w.queue.Close(ctx))
				assert.Equal(w, 1100*time.Millisecond, time.Since(w.began).Round(100*time.Millisecond))
				assert.Equal(w, tt.put, <-a)
				assert.Equal(w, batch.Ending{Dropped: tt.ending.Dropped}, w.queue.Close(w.Context()))
				assert.Empty(w, w.requests)
			})
		})
	}
}

// A Close that drops items says only that. It mentions neither a slow report nor a failed one.
func TestDroppedItemsComeBeforeReports(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]func(){"takes long": func() { time.Sleep(10 * time.Second) }, "panics": func() { panic(errBoom) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) { w.work.Report = w.report }, func(w *world) {
				w.does("Report", report)
				assert.Equal(w, 1, (<-w.put(w.Context(), "a")).receipt)
				b := w.put(w.Context(), "b")
				now, cancel := context.WithCancel(w.Context())
				cancel()
				assert.Equal(w, batch.Ending{GaveUp: true, Dropped: 1}, w.queue.Close(now))
				assert.Equal(w, "closed", (<-b).text)
				assert.Equal(w, batch.Ending{Dropped: 1}, w.queue.Close(w.Context()))
			})
		})
	}
}

// Close counts the items that had not ended and whose callers still wait.
func TestWhatCloseGivesUp(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.work.Wait, w.refused = w.wait, "b" }, func(w *world) {
		ctx, cancel := context.WithTimeout(w.Context(), 3*time.Second)
		defer cancel()
		ab, c := w.put(w.Context(), "ab"), w.put(ctx, "c")
		assert.Equal(w, "c", (<-c).items)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.Equal(w, []string{"abc", "a", "b", "c"}, w.requests)
		now, cancel := context.WithCancel(w.Context())
		cancel()
		assert.Equal(w, batch.Ending{GaveUp: true, Dropped: 1}, w.queue.Close(now))
		got := <-ab
		assert.Equal(w, []any{2, "ab", "closed: context canceled\nrefused"}, []any{got.receipt, got.items, got.text})
	})
}

// A request with an unreadable receipt was applied, but the queue cannot wait for its transaction.
func TestWithoutAReceipt(t *testing.T) {
	t.Parallel()
	for waits, outcome := range map[bool]batch.Outcome{false: batch.Applied, true: batch.Unknown} {
		t.Run(fmt.Sprintf("waits=%t", waits), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.work.Judge = func(err error) *batch.Failure {
					return &batch.Failure{Err: err, Text: err.Error(), Outcome: batch.Applied}
				}
				w.work.Send = func(context.Context, batch.Permit, []rune) (int, error) {
					w.count(-1)
					return 0, errLost
				}
				if waits {
					w.work.Wait = w.wait
				}
			}, func(w *world) {
				got := <-w.put(w.Context(), "a")
				assert.Equal(w, "lost", got.text)
				assert.Equal(w, outcome, got.outcome)
				assert.Empty(w, w.waits)
			})
		})
	}
}

// brokenContext has an Err method that panics.
type brokenContext struct{ context.Context }

func (brokenContext) Err() error { panic(errBoom) }

// A panic of the caller's own context reaches the caller, and removes its items from the queue.
func TestContextsThatPanic(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.work.Left = context.Context.Err }, func(w *world) {
		w.does("Acquire", func() { time.Sleep(time.Second) })
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(half, cancel)
		assert.PanicsWithValue(w, errBoom, func() { _, _ = w.queue.Put(brokenContext{ctx}, []rune("a")) })
		time.Sleep(time.Minute)
		assert.Empty(w, w.requests)
		w.does("Acquire", nil)
		assert.Equal(w, 1, (<-w.put(w.Context(), "b")).receipt)
	})
}
