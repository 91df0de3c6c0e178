package batch_test

import (
	"context"
	"slices"
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

// The permit comes first: items that arrive while the queue waits for it go into the same request.
func TestWhoComesWhileThePermitIsAwaited(t *testing.T) {
	t.Parallel()
	inWorld(t, unchanged, func(w *world) {
		first := w.put(w.Context(), "a")
		time.Sleep(100 * time.Millisecond)
		second := w.put(w.Context(), "bb")
		time.Sleep(half)
		third := w.put(w.Context(), "cb")
		assert.Equal(w, ended{receipt: 1, after: half}, <-first)
		assert.Equal(w, ended{receipt: 2, after: 3 * half}, <-second)
		assert.Equal(w, ended{receipt: 2, after: 3 * half}, <-third)
		assert.Equal(w, []string{"a", "bc"}, w.requests)
	})
}

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

// A refused item fails only its callers. A caller with other items also gets their receipt. Each caller ends when its own
// items are decided.
func TestRefusedItems(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.refused = "c" }, func(w *world) {
		var results []<-chan ended
		for _, items := range []string{"ab", "cd", "c", "d", "efgh"} {
			results = append(results, w.put(w.Context(), items))
		}
		var got []ended
		for _, result := range results {
			got = append(got, <-result)
		}
		assert.Equal(w, []string{"cdabefgh", "c", "h", "abefgd"}, w.requests, "the shortest callers come first")
		second, fourth := time.Second+half, 3*time.Second+half
		assert.Equal(w, []ended{
			{receipt: 4, after: fourth},
			{receipt: 4, failed: "c", text: "refused", after: fourth},
			{failed: "c", text: "refused", outcome: outcomes.NotApplied, after: second},
			{receipt: 4, after: fourth},
			{receipt: 4, after: fourth},
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

// Without a permit nothing is sent. The next caller makes the queue acquire one again.
func TestNoPermit(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.options.UnderWay, w.lost = 1, 1 }, func(w *world) {
		first, second := w.put(w.Context(), "ab"), w.put(w.Context(), "b")
		assert.Equal(w, ended{failed: "ab", text: "lost", outcome: outcomes.NotApplied}, <-first)
		assert.Equal(w, ended{failed: "b", text: "lost", outcome: outcomes.NotApplied}, <-second)
		assert.Empty(w, w.requests)
		assert.Equal(w, 1, (<-w.put(w.Context(), "a")).receipt)
	})
}

// If a request may have been applied before it was refused, the outcome of its items is unknown.
func TestDoubt(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.refused = "ab"
		w.work.Send = func(ctx context.Context, held batch.Permit, uris []batch.URI) batch.Response {
			got := w.send(ctx, held, uris)
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
		assert.Equal(w, "refused, host A: 5 alone, refused", got.text)
		assert.Equal(w, "ABCDEFGHIJ", got.failed)
		assert.Equal(w, outcomes.NotApplied, got.outcome)
		assert.Equal(w, []string{"a", "abABCDEFGHIJ", "ab", "A", "J", "F", "C", "D"}, w.requests, "from all over the list")

		w.requests = nil
		got = <-w.put(w.Context(), "AB")
		assert.Equal(w, ended{failed: "AB", text: "host A: 5 alone, refused", outcome: outcomes.NotApplied, after: got.after}, got)
		assert.Empty(w, w.requests, "for 10 s it is known")
		time.Sleep(10 * time.Second)
		bad, good = w.put(w.Context(), "AB"), w.put(w.Context(), "c")
		assert.Equal(w, "host A: 5 alone, refused, refused", (<-bad).text)
		<-good
		assert.ElementsMatch(w, []string{"c", "B"}, w.requests, "A was refused before")

		time.Sleep(10 * time.Second)
		w.requests, w.refused = nil, ""
		<-w.put(w.Context(), "AB")
		bad, good = w.put(w.Context(), "AB"), w.put(w.Context(), "c")
		<-good
		<-bad
		assert.Equal(w, []string{"B", "A", "cAB"}, w.requests)
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

// Callers of a host that is being searched wait until its part has ended, even if that is lost.
func TestSearchedHosts(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.refused = "B"
		w.work.Send = func(ctx context.Context, held batch.Permit, uris []batch.URI) batch.Response {
			if got := w.send(ctx, held, uris); letters(uris) != "A" {
				return got
			}
			return batch.Response{Err: errLost}
		}
	}, func(w *world) {
		<-w.put(w.Context(), "a")
		first := w.put(w.Context(), "aABC")
		time.Sleep(2 * time.Second)
		held, other := w.put(w.Context(), "D"), w.put(w.Context(), "b")
		<-other
		<-held
		assert.Equal(w, ended{receipt: 7, failed: "AB", text: "lost, refused", after: 7*time.Second + half}, <-first)
		assert.Equal(w, []string{"a", "aABC", "a", "b", "A", "D", "C", "B"}, w.requests)
	})
}

// Requests wait while 16 parts of refused ones wait for permits, so that searches end.
func TestSearchesAreBounded(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.options.MaxURIs = 3 }, func(w *world) {
		var calls []string // of three URIs each, the last of which is refused
		for i := range rune(30) {
			calls = append(calls, string([]rune{1000 + 3*i, 1001 + 3*i, 1002 + 3*i}))
			w.refused += string(1002 + 3*i)
		}
		var all []<-chan ended
		for _, call := range calls {
			all = append(all, w.put(w.Context(), call))
		}
		for _, result := range all {
			<-result
		}
		most := 0
		for at := range w.requests {
			open := 0
			for _, call := range calls {
				begun := slices.Index(w.requests, call)
				if begun <= at && slices.ContainsFunc(w.requests[at:], func(part string) bool { return part != call && strings.Contains(call, part) }) {
					open++
				}
			}
			most = max(most, open)
		}
		assert.LessOrEqual(w, most, 16+4, "besides those under way")
	})
}

// If a permit fails, the parts that wait for it fail, too. If all callers of a part leave, nothing is acquired for it.
func TestPermitsOfParts(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.refused, w.lost = "bB", 2 }, func(w *world) {
		both := w.put(w.Context(), "ab")
		time.Sleep(700 * time.Millisecond)
		assert.Equal(w, ended{failed: "c", text: "lost", outcome: outcomes.NotApplied, after: time.Second}, <-w.put(w.Context(), "c"))
		assert.Equal(w, ended{failed: "ab", text: "lost, refused", outcome: outcomes.NotApplied, after: 2*time.Second + half}, <-both)
		assert.Equal(w, []string{"ab", "b"}, w.requests)

		w.requests = nil
		time.Sleep(time.Second)
		assert.Equal(w, outcomes.Unknown, (<-w.put(w.within(700*time.Millisecond), "AB")).outcome)
		time.Sleep(10 * time.Second)
		assert.Equal(w, []string{"AB"}, w.requests)
	})
}
