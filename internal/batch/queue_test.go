package batch_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/batch"
	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

// Callers wait for room in order. The end of the caller's context and Close end the wait.
func TestRoom(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.options.MaxPending, w.options.MaxURIs = 2, 2 }, func(w *world) {
		w.does("Acquire", func() { time.Sleep(10 * time.Second) })
		ctx, cancel := context.WithCancel(w.Context())
		first, second := w.put(w.Context(), "ab"), w.put(ctx, "c")
		third := w.put(w.Context(), "d")
		time.Sleep(time.Second)
		cancel()
		assert.Equal(w, ended{failed: "c", text: "context canceled", outcome: outcomes.NotApplied, after: time.Second}, <-second)
		assert.Equal(w, ended{receipt: 1, after: 10*time.Second + half}, <-first)
		assert.Equal(w, ended{receipt: 2, after: 20*time.Second + half}, <-third)
		fourth, fifth := w.put(w.Context(), "ef"), w.put(w.Context(), "g")
		require.NoError(w, w.queue.Close(w.Context()))
		assert.Equal(w, ended{failed: "g", text: closed, outcome: outcomes.NotApplied, after: 20*time.Second + half}, <-fifth)
		assert.Equal(w, 3, (<-fourth).receipt)
		assert.Equal(w, ended{failed: "h", text: closed, outcome: outcomes.NotApplied, after: 31 * time.Second}, <-w.put(w.Context(), "h"))
	})
}

// Calls that fail at once, because their host is refused, take no room.
func TestRoomOfRefusedHosts(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.options.MaxPending, w.refused = 2, "ABCDEF" }, func(w *world) {
		for _, item := range "ABCDEFFFFF" {
			assert.NotEmpty(w, (<-w.put(w.Context(), string(item))).failed)
		}
		assert.Equal(w, []string{"A", "B", "C", "D", "E"}, w.requests)
		assert.Empty(w, (<-w.put(w.within(time.Minute), "ab")).failed)
	})
}

// A refused item fails only its callers. A caller with other items also gets their receipt. Each caller ends when its own
// items are decided. After the first refused item, the rest goes in one request.
func TestRefusedItems(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.refused = "c" }, func(w *world) {
		<-w.put(w.Context(), "z") // the service accepts the host
		time.Sleep(time.Minute)
		w.began, w.requests = time.Now(), []string{"z"}
		var results []<-chan ended
		for _, items := range []string{"ab", "cd", "c", "d", "efgh"} {
			results = append(results, w.put(w.Context(), items))
		}
		var got []ended
		for _, result := range results {
			got = append(got, <-result)
		}
		assert.Equal(w, []string{"z", "cdabefgh", "cdab", "cd", "c", "efghabd"}, w.requests, "the shortest callers come first")
		third, fifth := 3*time.Second+half, 4*time.Second+half
		assert.Equal(w, []ended{
			{receipt: 6, after: fifth},
			{receipt: 6, failed: "c", text: "refused", after: fifth},
			{failed: "c", text: "refused", outcome: outcomes.NotApplied, after: third},
			{receipt: 6, after: fifth},
			{receipt: 6, after: fifth},
		}, got)
	})
}

// When a caller leaves, its unsent items leave the queue. If no other caller waits, no permit is acquired.
func TestLeavingBeforeItIsSent(t *testing.T) {
	t.Parallel()
	inWorld(t, unchanged, func(w *world) {
		w.does("Acquire", func() { time.Sleep(time.Second) })
		ctx, cancel := context.WithCancel(w.Context())
		first, second := w.put(ctx, "ab"), w.put(w.Context(), "c")
		cancel()
		assert.Equal(w, ended{failed: "ab", text: "left: context canceled", outcome: outcomes.NotApplied}, <-first)
		assert.Equal(w, ended{receipt: 1, after: 3 * half}, <-second)
		assert.Equal(w, 1, w.asked)

		assert.Equal(w, outcomes.NotApplied, (<-w.put(w.within(100*time.Millisecond), "d")).outcome)
		time.Sleep(time.Minute)
		assert.Equal(w, []string{"c"}, w.requests)
		assert.Equal(w, 2, (<-w.put(w.Context(), "e")).receipt)
	})
}

// When all callers have left, the wait for a permit is canceled. If the permit comes all the same, it is used for new
// callers or returned.
func TestPermitsForNobody(t *testing.T) {
	t.Parallel()
	for deaf, most := range map[bool]int32{false: 0, true: 1} {
		var returned atomic.Int32
		inWorld(t, func(w *world) { w.options.UnderWay, w.deaf = 1, deaf }, func(w *world) {
			w.does("End", func() { returned.Add(1) })
			w.pause()
			assert.Equal(w, time.Second, (<-w.put(w.within(time.Second), "a")).after)
			time.Sleep(20 * time.Second)
			assert.Equal(w, most, returned.Load())
			assert.Zero(w, w.permits)

			w.pause()
			assert.Equal(w, 22*time.Second, (<-w.put(w.within(time.Second), "b")).after)
			assert.Equal(w, 1, (<-w.put(w.Context(), "c")).receipt)
			assert.Equal(w, most, returned.Load())
			assert.Equal(w, []string{"c"}, w.requests)
		})
	}
}

// A request goes on while one of its callers stays, and is canceled when all have left.
func TestLeavingARequest(t *testing.T) {
	t.Parallel()
	inWorld(t, unchanged, func(w *world) {
		w.does("Send ab", func() { time.Sleep(time.Second) })
		a, b, both := w.put(w.within(half/5), "a"), w.put(w.within(half/5), "b"), w.put(w.Context(), "ab")
		assert.Equal(w, ended{failed: "a", text: "left: context deadline exceeded", after: half / 5}, <-a)
		<-b
		assert.Equal(w, ended{receipt: 1, after: 3 * half}, <-both)

		assert.Equal(w, outcomes.Unknown, (<-w.put(w.within(half/5), "c")).outcome)
		synctest.Wait()
		assert.Zero(w, w.permits, "the request has ended")
	})
}

// If a request may have been applied before it was refused, the outcome of its items is unknown.
func TestDoubt(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.refused = "ab"
		w.work.Send = func(ctx context.Context, held batch.Permit, uris []batch.URI, failed func(error)) batch.Response {
			got := w.send(ctx, held, uris, failed)
			if len(uris) > 1 {
				got.Outcome = outcomes.Unknown
			}
			return got
		}
	}, func(w *world) {
		got := <-w.put(w.Context(), "ab")
		assert.Equal(w, "refused", got.text)
		assert.Equal(w, outcomes.Unknown, got.outcome)
	})
}

// URIs of a host that was refused travel apart, so that the callers of others wait for one permit at most. An accepted
// URI clears the host.
func TestRefusedHostsTravelApart(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.refused = "ABCDEFGHIJ" }, func(w *world) {
		<-w.put(w.Context(), "a")
		good, bad := w.put(w.Context(), "ab"), w.put(w.Context(), "ABCDEFGHIJ")
		assert.Equal(w, ended{receipt: 3, after: 2*time.Second + half}, <-good)
		got := <-bad
		assert.ElementsMatch(w, []string{"refused", "host A: 5 alone"}, strings.Split(got.text, ", "))
		assert.Equal(w, "ABCDEFGHIJ", got.failed)
		assert.Equal(w, outcomes.NotApplied, got.outcome)
		assert.Equal(w, []string{"a", "abABCDEFGHIJ", "ab"}, w.requests[:3], "accepted hosts come first")
		assert.Len(w, w.requests, 3+5)
		for _, alone := range w.requests[3:] {
			assert.Len(w, alone, 1)
		}

		w.requests = nil
		got = <-w.put(w.Context(), "AB")
		assert.Equal(w, ended{failed: "AB", text: "host A: 5 alone", outcome: outcomes.NotApplied, after: got.after}, got)
		assert.Empty(w, w.requests, "for 10 s it is known")
		time.Sleep(10 * time.Second)
		bad, good = w.put(w.Context(), "AB"), w.put(w.Context(), "c")
		assert.Equal(w, "AB", (<-bad).failed)
		<-good
		assert.Len(w, w.requests, 2, "c, and one of A and B")

		time.Sleep(10 * time.Second)
		w.requests, w.refused = nil, ""
		<-w.put(w.Context(), "AB")
		bad, good = w.put(w.Context(), "AB"), w.put(w.Context(), "c")
		<-good
		<-bad
		assert.Len(w, w.requests[0]+w.requests[1], 2, "alone first")
		assert.ElementsMatch(w, []string{"c", "AB"}, w.requests[2:], "apart for ten minutes")
		time.Sleep(10 * time.Minute)
		bad, good = w.put(w.Context(), "AB"), w.put(w.Context(), "c")
		<-good
		<-bad
		assert.Equal(w, "cAB", w.requests[4])
	})
}

// Refused paths of a host that was accepted before do not make it a refused one, however often they are purged: its
// other callers travel apart, and do not fail. Callers of other hosts go ahead.
func TestRefusedPathsOfAGoodHost(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.refused = "ABCDEFGH" }, func(w *world) {
		<-w.put(w.Context(), "aZ")
		for _, path := range "ABCDEFGH" {
			assert.Equal(w, "refused", (<-w.put(w.Context(), string(path))).text)
		}
		w.requests = nil
		good, other := w.put(w.Context(), "Y"), w.put(w.Context(), "b")
		assert.Empty(w, (<-good).text)
		assert.Empty(w, (<-other).text)
		assert.ElementsMatch(w, []string{"Y", "b"}, w.requests)
	})
}

// The same URI, purged again and again, does not make its host a refused one.
func TestOneRefusedURI(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.refused = "A" }, func(w *world) {
		for range 10 {
			assert.Equal(w, "refused", (<-w.put(w.Context(), "A")).text)
		}
		assert.Empty(w, (<-w.put(w.Context(), "B")).text)
	})
}

// If a permit fails, the parts that wait for one fail, too. If all callers of a request leave, nothing is acquired for its
// parts, and its items were only refused.
func TestPermitsOfParts(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.refused, w.lost = "bB", 2 }, func(w *world) {
		both := w.put(w.Context(), "ab")
		time.Sleep(700 * time.Millisecond)
		assert.Equal(w, ended{failed: "c", text: "lost", outcome: outcomes.NotApplied, after: time.Second}, <-w.put(w.Context(), "c"))
		assert.Equal(w, ended{failed: "ab", text: "lost", outcome: outcomes.NotApplied, after: time.Second}, <-both)
		assert.Equal(w, []string{"ab"}, w.requests)

		w.requests = nil
		time.Sleep(time.Second)
		got := <-w.put(w.within(700*time.Millisecond), "AB")
		assert.Equal(w, "left: context deadline exceeded", got.text)
		assert.Equal(w, outcomes.NotApplied, got.outcome)
		time.Sleep(10 * time.Second)
		assert.Equal(w, []string{"AB"}, w.requests)
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
