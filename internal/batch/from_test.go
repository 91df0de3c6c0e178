package batch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/batch"
)

// takes returns a take that returns these calls.
func takes(calls ...string) func(context.Context) ([][]batch.URI, error) {
	return func(context.Context) ([][]batch.URI, error) {
		var taken [][]batch.URI
		for _, call := range calls {
			taken = append(taken, uris(call))
		}
		return taken, nil
	}
}

// putFrom calls PutFrom, and returns the results in the order of the calls.
func (w *world) putFrom(ctx context.Context, take func(context.Context) ([][]batch.URI, error)) (results []batch.Result, err error) {
	found := map[int]batch.Result{}
	err = w.queue.PutFrom(ctx, take, func(call int, r batch.Result) { found[call] = r })
	for i := range len(found) {
		results = append(results, found[i])
	}
	return results, err
}

// shown returns results in a form that is easy to compare: receipt, failed URIs, their outcome and the error.
func shown(results []batch.Result) (texts []string) {
	for _, r := range results {
		receipt, _ := r.Receipt.(int)
		if r.Err != nil {
			texts = append(texts, fmt.Sprintf("%d, %s %d: %v", receipt, letters(r.Failed), r.Outcome, r.Err))
		} else {
			texts = append(texts, fmt.Sprint(receipt))
		}
	}
	return texts
}

// PutFrom sends what take returns at the moment of the permit, beside the items of Put.
func TestPutFrom(t *testing.T) {
	t.Parallel()
	inWorld(t, unchanged, func(w *world) {
		w.pause(3 * time.Second)
		results, err := w.putFrom(w.Context(), func(ctx context.Context) ([][]batch.URI, error) {
			assert.Equal(w, 4*time.Second, time.Since(w.began), "the permit comes first")
			assert.Empty(w, w.requests)
			return takes("ab", "bc", "a")(ctx)
		})
		require.NoError(w, err)
		assert.Equal(w, []string{"1", "1", "1"}, shown(results))
		other := w.put(w.Context(), "x")
		assert.Equal(w, 2, (<-other).receipt)
		assert.Equal(w, []string{"abc", "x"}, w.requests, "identical items are sent once")
	})
}

// Each call has its own result, as with Put: refused items are isolated, and a Wait ends first.
func TestResultsOfPutFrom(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.refused = "c"; w.work.Wait = w.wait }, func(w *world) {
		results, err := w.putFrom(w.Context(), takes("ab", "cd", "d", "c"))
		require.NoError(w, err)
		assert.Equal(w, []string{"2", "4, c 0: refused", "4", "0, c 1: refused"}, shown(results))
		assert.Equal(w, []string{"abcd", "ab", "c", "d"}, w.requests)
		assert.Len(w, w.waits, 2, "one wait for each transaction")
	})
}

// If there is nothing to send, the permit is returned, whatever take does.
func TestPutFromSendsNothing(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(context.Context) ([][]batch.URI, error){
		"nothing": takes(),
		"lost":    func(context.Context) ([][]batch.URI, error) { return [][]batch.URI{uris("a")}, errLost },
		"panic":   func(context.Context) ([][]batch.URI, error) { panic("panic") },
	} {
		inWorld(t, func(w *world) { w.options.UnderWay = 1 }, func(w *world) {
			var results []batch.Result
			err := errors.New("panic")
			func() {
				defer func() { _ = recover() }() // as its caller may
				results, err = w.putFrom(w.Context(), take)
			}()
			assert.Empty(w, results)
			if name != "nothing" {
				require.ErrorContains(w, err, name)
			} else {
				require.NoError(w, err)
			}
			assert.Empty(w, w.requests)
			assert.Zero(w, w.permits)
			assert.Equal(w, 1, w.asked)
			require.Equal(w, 1, (<-w.put(w.Context(), "x")).receipt, "the queue goes on")
		})
	}
}

// A caller that leaves gets the truth: nothing was sent, or it may have been.
func TestLeavingPutFrom(t *testing.T) {
	t.Parallel()
	inWorld(t, unchanged, func(w *world) {
		w.pause(time.Hour)
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		_, err := w.putFrom(ctx, takes("a"))
		require.ErrorIs(w, err, context.DeadlineExceeded)
		assert.Equal(w, time.Minute, time.Since(w.began))
		assert.Empty(w, w.requests)
	})
	inWorld(t, unchanged, func(w *world) {
		ctx, cancel := context.WithTimeout(w.Context(), 1250*time.Millisecond)
		defer cancel()
		_, _ = w.putFrom(w.Context(), takes("x"))
		results, err := w.putFrom(ctx, takes("a", "b"))
		require.NoError(w, err)
		assert.Equal(w, []string{"0, a 0: left: context deadline exceeded", "0, b 0: left: context deadline exceeded"}, shown(results))
	})
}

// Close waits for PutFrom, and ends it with its context.
func TestCloseAndPutFrom(t *testing.T) {
	t.Parallel()
	begin := func(w *world, take func(context.Context) ([][]batch.URI, error)) <-chan []string {
		end := make(chan []string, 1)
		go func() {
			results, err := w.putFrom(w.Context(), take)
			end <- append(shown(results), fmt.Sprint(err))
		}()
		synctest.Wait()
		return end
	}
	inWorld(t, unchanged, func(w *world) {
		w.pause(time.Minute)
		end := begin(w, takes("a"))
		require.NoError(w, w.queue.Close(w.Context()))
		assert.Equal(w, []string{"1", "<nil>"}, <-end)
		_, err := w.putFrom(w.Context(), takes("a"))
		require.ErrorIs(w, err, batch.ErrClosed)
	})
	inWorld(t, unchanged, func(w *world) {
		w.pause(time.Minute)
		end := begin(w, takes("a"))
		w.closeGivesUp(0, 0)
		assert.Equal(w, []string{closed}, <-end)
		assert.Empty(w, w.requests)
	})
	inWorld(t, unchanged, func(w *world) {
		end := begin(w, takes("ab", "c"))
		w.closeGivesUp(0, 3)
		assert.Equal(w, []string{"0, ab 0: " + closed + ": context canceled", "0, c 0: " + closed + ": context canceled", "<nil>"}, <-end)
	})
}
