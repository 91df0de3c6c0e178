package batch_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
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
		assert.Equal(w, ended{failed: "b", text: "refused", outcome: outcomes.NotApplied, after: got["b"].after}, got["b"])
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
		a, b := w.put(w.within(2*time.Second), "a"), w.put(w.within(3*time.Second), "b")
		assert.Equal(w, ended{receipt: 1, failed: "a", text: "left: context deadline exceeded", after: 2 * time.Second}, <-a)
		synctest.Wait()
		assert.False(w, over.Load())
		assert.Equal(w, 3*time.Second, (<-b).after)
		synctest.Wait()
		assert.True(w, over.Load())
	})
}
