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
	waits := func(w *world) { w.work.Wait, w.refused = w.wait, "2" }
	inWorld(t, waits, func(w *world) {
		w.aborted = 2
		results := map[string]<-chan ended{}
		for _, items := range []string{"1", "12", "2", "3", "31"} {
			results[items] = w.put(w.Context(), items)
		}
		got := map[string]ended{}
		for items, result := range results {
			got[items] = <-result
			if strings.Contains(items, "1") {
				assert.Contains(w, got[items].text, "lost")
			}
		}
		assert.Equal(w, []string{"123", "1", "2", "3"}, w.requests)
		assert.ElementsMatch(w, []any{2, 4}, w.waits)
		assert.Equal(w, ended{failed: "2", text: "refused", outcome: outcomes.NotApplied, after: got["2"].after}, got["2"])
		assert.Equal(w, ended{receipt: 4, after: got["2"].after + 11*time.Second}, got["3"])
		assert.Equal(w, "12", got["12"].failed)
		assert.Equal(w, "1", got["31"].failed)
		assert.Equal(w, got["2"].after+11*time.Second, got["31"].after)
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
