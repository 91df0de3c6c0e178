package batch_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/batch"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Callers end when the transactions of their items have ended. The queue waits for each transaction once.
func TestTransactions(t *testing.T) {
	t.Parallel()
	waits := func(w *world) { w.work.Wait, w.refused = w.wait, "b" }
	inWorld(t, waits, func(w *world) {
		w.aborted = 2
		results := map[string]<-chan ended{}
		for _, items := range []string{"a", "ab", "b", "c", "ca"} {
			results[items] = w.put(w.Context(), items)
		}
		got := map[string]ended{}
		for items, result := range results {
			got[items] = <-result
			if strings.Contains(items, "a") {
				assert.Contains(w, got[items].text, "lost")
			}
		}
		assert.Equal(w, []string{"abc", "a", "b", "c"}, w.requests)
		assert.ElementsMatch(w, []any{2, 4}, w.waits)
		assert.Equal(w, ended{failed: "b", text: "refused", outcome: transport.NotApplied, after: got["b"].after}, got["b"])
		assert.Equal(w, ended{receipt: 4, after: got["b"].after + 11*time.Second}, got["c"])
		assert.Equal(w, "ab", got["ab"].failed)
		assert.Equal(w, "a", got["ca"].failed)
		assert.Equal(w, got["b"].after+11*time.Second, got["ca"].after)
	})
}

// The wait for a transaction ends when all its callers have left.
func TestLeavingATransaction(t *testing.T) {
	t.Parallel()
	var over atomic.Bool
	waits := func(w *world) {
		w.work.Wait = func(ctx context.Context, _ any) error {
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
		assert.Equal(w, ended{receipt: 1, failed: "a", text: "left: context deadline exceeded", after: 2 * time.Second}, <-a)
		synctest.Wait()
		assert.False(w, over.Load())
		assert.Equal(w, 3*time.Second, (<-b).after)
		synctest.Wait()
		assert.True(w, over.Load())
	})
}

func TestStats(t *testing.T) {
	t.Parallel()
	limits := func(w *world) {
		w.work.Report = w.report
		w.refused, w.options.MaxURIs = "c", 2
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
			w.stats[i].OldestAge = w.stats[i].OldestAge.Round(time.Second / 2)
		}
		assert.Equal(w, []string{"ab", "cd", "e", "c", "d"}, w.requests)
		assert.Equal(w, []batch.Stats{
			{Pending: 3, Accepted: 2, Requests: 1, OldestAge: half},
			{Pending: 1, Accepted: 2, Requests: 2, OldestAge: 3 * half},
			{Pending: 0, Accepted: 3, Requests: 3},
			{Pending: 0, Accepted: 3, Requests: 4},
			{Pending: 0, Accepted: 4, Requests: 5},
		}, w.stats)
	})
}

// Close sends all waiting items.
func TestClose(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.options.MaxURIs, w.work.Wait = 1, w.wait }, func(w *world) {
		a, b := w.put(w.Context(), "a"), w.put(w.Context(), "b")
		require.NoError(w, w.queue.Close(w.Context()))
		assert.Equal(w, []int{1, 2}, []int{(<-a).receipt, (<-b).receipt})
		assert.Equal(w, 11*time.Second+half, time.Since(w.began).Round(100*time.Millisecond))
		require.NoError(w, w.queue.Close(w.Context()))
	})
}

// When the context of Close ends, unsent items are not applied and requests under way are canceled. Close does not wait
// for one that ignores its context.
func TestCloseGivesUp(t *testing.T) {
	t.Parallel()
	for _, ignores := range []bool{false, true} {
		t.Run(fmt.Sprintf("ignores=%t", ignores), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) { w.options.MaxURIs, w.work.Wait = 2, w.wait }, func(w *world) {
				took := time.Duration(0)
				if ignores {
					w.does("Send c", func() { time.Sleep(time.Minute) })
					took = 100 * time.Millisecond
				}
				a, c := w.put(w.Context(), "ab"), w.put(w.Context(), "c")
				time.Sleep(time.Second)
				d := w.put(w.Context(), "de")
				w.closeGivesUp(half/2, 5)
				after := time.Second + half/2 + took
				assert.Equal(w, after.Round(100*time.Millisecond), time.Since(w.began).Round(100*time.Millisecond))
				got := <-a
				assert.Equal(w, []any{1, "ab", closed + ": context canceled", transport.Unknown}, []any{got.receipt, got.failed, got.text, got.outcome})
				got = <-c
				assert.Equal(w, []any{0, "c", transport.Unknown}, []any{got.receipt, got.failed, got.outcome})
				assert.Equal(w, map[bool]string{true: closed, false: closed + ": context canceled"}[ignores], got.text)
				got = <-d
				assert.Equal(w, []any{"de", closed, transport.NotApplied}, []any{got.failed, got.text, got.outcome})
				time.Sleep(time.Minute)
			})
		})
	}
}
