package batch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/batch"
)

func TestManyCallers(t *testing.T) {
	t.Parallel()
	inWorld(t, unchanged, func(w *world) {
		var results []<-chan ended
		for i := range 200 {
			results = append(results, w.put(w.Context(), string(rune('a'+i%20))))
		}
		for _, result := range results {
			assert.Equal(w, ended{receipt: 1, after: half}, <-result)
		}
		assert.Equal(w, []string{"abcdefghijklmnopqrst"}, w.requests)
	})
}

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

func TestWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	limits := func(w *world) { w.options.MaxItems, w.options.MaxBytes, w.options.MaxPending = 4, 3, 5 }
	inWorld(t, limits, func(w *world) {
		_, err := w.queue.Put(w.Context(), []rune("abcde"))
		assert.Equal(w, &batch.TooLargeError{Items: 5, Most: 4}, err)
		require.EqualError(w, err, "too large for one request")
		_, err = w.queue.Put(w.Context(), []rune("abcda"))
		assert.Equal(w, &batch.TooLargeError{Items: 4, Most: 4, Bytes: 4}, err)
		assert.Empty(w, w.requests)
	})
}

// A single item is sent whatever its size is.
func TestASingleItem(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.options.MaxBytes = -1 }, func(w *world) {
		a, b := w.put(w.Context(), "a"), w.put(w.Context(), "b")
		assert.Equal(w, []int{1, 2}, []int{(<-a).receipt, (<-b).receipt})
	})
}

// Callers wait for room in order. The end of the caller's context and Close end the wait.
func TestRoom(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.options.MaxPending, w.options.MaxItems = 2, 2 }, func(w *world) {
		w.does("Acquire", func() { time.Sleep(10 * time.Second) })
		ctx, cancel := context.WithCancel(w.Context())
		first, second := w.put(w.Context(), "ab"), w.put(ctx, "c")
		third := w.put(w.Context(), "d")
		time.Sleep(time.Second)
		cancel()
		assert.Equal(w, ended{items: "c", text: "context canceled", outcome: batch.NotApplied, after: time.Second}, <-second)
		assert.Equal(w, ended{receipt: 1, after: 10*time.Second + half}, <-first)
		assert.Equal(w, ended{receipt: 2, after: 20*time.Second + half}, <-third)
		fourth, fifth := w.put(w.Context(), "ef"), w.put(w.Context(), "g")
		assert.Equal(w, batch.Ending{}, w.queue.Close(w.Context()))
		assert.Equal(w, ended{items: "g", text: "closed", outcome: batch.NotApplied, after: 20*time.Second + half}, <-fifth)
		assert.Equal(w, 3, (<-fourth).receipt)
		assert.Equal(w, ended{items: "h", text: "closed", outcome: batch.NotApplied, after: 31 * time.Second}, <-w.put(w.Context(), "h"))
	})
}

// Only the first request waits for other callers. For items that do not fit into it, the queue acquires the next permit
// at once.
func TestOnlyTheFirstRequestGathers(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.options.MaxItems = 2 }, func(w *world) {
		var asked []time.Duration
		w.does("Acquire", func() { asked = append(asked, time.Since(w.began)) })
		first, second := w.put(w.Context(), "ab"), w.put(w.Context(), "cd")
		assert.Equal(w, 1, (<-first).receipt)
		assert.Equal(w, 2, (<-second).receipt)
		assert.Equal(w, []time.Duration{asked[0], asked[0]}, asked)
	})
}

// A caller may leave before the queue acquires a permit: while the queue gathers, or while too many requests are under
// way. It leaves nothing behind.
func TestACallerWhoLeavesEarly(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.options.UnderWay = 1 }, func(w *world) {
		left := func(after time.Duration) ended {
			ctx, cancel := context.WithTimeout(w.Context(), after)
			defer cancel()
			return <-w.put(ctx, "x")
		}
		assert.Equal(w, batch.NotApplied, left(time.Millisecond).outcome)
		synctest.Wait()
		assert.Zero(w, w.asked)
		first := w.put(w.Context(), "a")
		time.Sleep(100 * time.Millisecond) // the request is under way
		assert.Equal(w, batch.NotApplied, left(100*time.Millisecond).outcome)
		synctest.Wait()
		assert.Equal(w, 1, w.asked)
		second := w.put(w.Context(), "b")
		assert.Equal(w, 1, (<-first).receipt)
		assert.Equal(w, 2, (<-second).receipt)
		assert.Equal(w, []string{"a", "b"}, w.requests)
	})
}

// A refused item fails only its callers. A caller with other items also gets their receipt.
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
		assert.Equal(w, []string{"abcdefgh", "abcd", "ab", "c", "defgh"}, w.requests)
		after := got[0].after
		assert.Equal(w, []ended{
			{receipt: 3, after: after},
			{receipt: 5, items: "c", text: "refused", after: after},
			{items: "c", text: "refused", outcome: batch.NotApplied, after: after},
			{receipt: 5, after: after},
			{receipt: 5, after: after},
		}, got)
	})
}

// After too many requests the remaining items fail.
func TestTooManyRefused(t *testing.T) {
	t.Parallel()
	letters := make([]rune, 200)
	for i := range letters {
		letters[i] = rune('一' + i)
	}
	limits := func(w *world) { w.refused, w.options.MaxItems, w.options.MaxBytes = string(letters), 200, 200 }
	inWorld(t, limits, func(w *world) {
		end := <-w.put(w.Context(), string(letters))
		assert.Len(w, w.requests, 129)
		assert.Equal(w, "refused\ntogether", end.text)
		assert.Equal(w, batch.NotApplied, end.outcome)
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
		assert.Equal(w, ended{items: "ab", text: "left: context canceled", outcome: batch.NotApplied}, <-first)
		assert.Equal(w, ended{receipt: 1, after: 3 * half}, <-second)
		assert.Equal(w, 1, w.asked)

		ctx, cancel = context.WithCancel(w.Context())
		third := w.put(ctx, "d")
		time.Sleep(100 * time.Millisecond)
		cancel()
		assert.Equal(w, batch.NotApplied, (<-third).outcome)
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
		t.Run(fmt.Sprintf("deaf=%t", deaf), func(t *testing.T) {
			t.Parallel()
			var returned atomic.Int32
			inWorld(t, func(w *world) { w.options.UnderWay, w.deaf = 1, deaf }, func(w *world) {
				w.does("Return", func() { returned.Add(1) })
				w.pause(10 * time.Second)
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				assert.Equal(w, time.Second, (<-w.put(ctx, "a")).after)
				time.Sleep(20 * time.Second)
				assert.Equal(w, most, returned.Load())
				assert.Zero(w, w.permits)

				w.pause(10 * time.Second)
				ctx, cancel = context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				assert.Equal(w, 22*time.Second, (<-w.put(ctx, "b")).after)
				assert.Equal(w, 1, (<-w.put(w.Context(), "c")).receipt)
				assert.Equal(w, most, returned.Load())
				assert.Equal(w, []string{"c"}, w.requests)
			})
		})
	}
}

// A request goes on while one of its callers stays, and is canceled when all have left.
func TestLeavingARequest(t *testing.T) {
	t.Parallel()
	inWorld(t, unchanged, func(w *world) {
		w.does("Send ab", func() { time.Sleep(time.Second) })
		first, cancelFirst := context.WithCancel(w.Context())
		second, cancelSecond := context.WithCancel(w.Context())
		a, b, both := w.put(first, "a"), w.put(second, "b"), w.put(w.Context(), "ab")
		time.Sleep(100 * time.Millisecond)
		cancelFirst()
		assert.Equal(w, ended{items: "a", text: "left: context canceled", after: 100 * time.Millisecond}, <-a)
		cancelSecond()
		<-b
		assert.Equal(w, ended{receipt: 1, after: 3 * half}, <-both)

		alone, cancel := context.WithCancel(w.Context())
		c := w.put(alone, "c")
		time.Sleep(100 * time.Millisecond)
		cancel()
		assert.Equal(w, batch.Unknown, (<-c).outcome)
		synctest.Wait()
		assert.Zero(w, w.permits, "the request has ended")
	})
}

// An error that matches context.Canceled comes from Close only if the context of Close has ended.
func TestCanceledByItself(t *testing.T) {
	t.Parallel()
	canceled := func(w *world) {
		w.work.Send = func(context.Context, batch.Permit, []rune) (int, error) {
			w.count(-1)
			return 0, context.Canceled
		}
	}
	inWorld(t, canceled, func(w *world) {
		assert.Equal(w, "context canceled", (<-w.put(w.Context(), "a")).text)
	})
}

// Without a permit nothing is sent. The next caller makes the queue acquire one again.
func TestNoPermit(t *testing.T) {
	t.Parallel()
	failing := func(w *world) {
		acquire := w.work.Acquire
		w.options.UnderWay = 1
		w.work.Acquire = func(ctx context.Context) (batch.Permit, error) {
			permit, err := acquire(ctx)
			if w.asked == 1 {
				return nil, errLost
			}
			return permit, err
		}
	}
	inWorld(t, failing, func(w *world) {
		assert.Equal(w, ended{items: "a", text: "lost", outcome: batch.NotApplied}, <-w.put(w.Context(), "a"))
		w.count(-1)
		for name, end := range map[string]func(){"panic": func() { panic(errBoom) }, "Goexit": runtime.Goexit} {
			w.does("Acquire", end)
			first, second := w.put(w.Context(), "ab"), w.put(w.Context(), "b")
			for _, result := range []<-chan ended{first, second} {
				got := <-result
				assert.Contains(w, got.text, name)
				assert.Equal(w, batch.NotApplied, got.outcome)
			}
		}
		assert.Empty(w, w.requests)
		w.does("Acquire", nil)
		assert.Equal(w, 1, (<-w.put(w.Context(), "a")).receipt)
	})
}

// If user code ends a request, the callers of its items fail, and the queue stays usable.
func TestASendThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) { w.refused = "b" }, func(w *world) {
		for range 5 { // more than UnderWay
			w.requests = nil
			w.does("Send b", func() { panic(errBoom) }) // after a was accepted
			first, second := w.put(w.Context(), "a"), w.put(w.Context(), "b")
			assert.Equal(w, 2, (<-first).receipt)
			got := <-second
			assert.Contains(w, got.text, "boom")
			assert.Equal(w, batch.Unknown, got.outcome)
		}
		w.does("Send c", runtime.Goexit)
		assert.Contains(w, (<-w.put(w.Context(), "c")).text, "Goexit")
		assert.NotZero(w, (<-w.put(w.Context(), "d")).receipt)
	})
}

// If a request may have been applied before it was refused, the outcome of its items is unknown.
func TestDoubt(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		send := w.work.Send
		w.work.Send = func(ctx context.Context, held batch.Permit, items []rune) (int, error) {
			_, err := send(ctx, held, items)
			if len(items) > 1 {
				return 0, errors.Join(errRefused, errLost)
			}
			return 0, cmp(err, errRefused)
		}
		w.work.Judge = func(err error) *batch.Failure {
			f := judge(err)
			if errors.Is(err, errLost) {
				f.Outcome = batch.Unknown
			}
			return f
		}
	}, func(w *world) {
		got := <-w.put(w.Context(), "ab")
		assert.Equal(w, "refused", got.text)
		assert.Equal(w, batch.Unknown, got.outcome)
	})
}

// cmp returns the first error that is not nil.
func cmp(errs ...error) error {
	return errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
}
