package batch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/batch"
)

// A request or a permit counts as a failure even if all its callers give up before it ends. The error says why the last
// of them left, and how the work ended if that says more.
func TestFailuresWithoutCallers(t *testing.T) {
	t.Parallel()
	const timeout = "left: context deadline exceeded"
	for name, tt := range map[string]struct {
		change   func(w *world)
		patience time.Duration
		requests int
		failures int
		text     string
		is       error
	}{
		"request":                      {unchanged, 200 * time.Millisecond, 1, 1, timeout, context.DeadlineExceeded},
		"request with an error":        {func(w *world) { w.work.Send = w.losing }, 200 * time.Millisecond, 1, 1, timeout + "\nlost", errLost},
		"request that was refused":     {func(w *world) { w.work.Send = w.ending(errRefused) }, 200 * time.Millisecond, 3, 0, "", nil},
		"request that was accepted":    {func(w *world) { w.work.Send = w.ending(nil) }, 200 * time.Millisecond, 1, 0, "", nil},
		"permit":                       {func(w *world) { w.pause() }, time.Second, 0, 1, timeout, context.DeadlineExceeded},
		"permit with an error":         {func(w *world) { w.work.Acquire = w.denying }, time.Second, 0, 1, timeout + "\nlost", errLost},
		"permit that comes for nobody": {func(w *world) { w.deaf = true; w.pause() }, time.Second, 0, 1, timeout, context.DeadlineExceeded},
		"before it asks for a permit":  {unchanged, time.Millisecond, 0, 0, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) { w.work.Report = w.report; tt.change(w) }, func(w *world) {
				ctx, cancel := context.WithTimeout(w.Context(), tt.patience)
				defer cancel()
				a, b := w.put(ctx, "a"), w.put(ctx, "b")
				<-a
				<-b
				time.Sleep(time.Minute)
				synctest.Wait()
				last := batch.Stats{}
				if len(w.stats) > 0 {
					last = w.stats[len(w.stats)-1]
				}
				assert.Equal(w, tt.requests, last.Requests)
				assert.Equal(w, tt.failures, last.Failures)
				if tt.text == "" {
					assert.NoError(w, last.Err)
					return
				}
				assert.EqualError(w, last.Err, tt.text)
				assert.ErrorIs(w, last.Err, tt.is)
			})
		})
	}
}

// losing sends a request that fails when its context ends.
func (w *world) losing(ctx context.Context, _ batch.Permit, _ []batch.URI) batch.Response {
	defer w.count(-1)
	<-ctx.Done()
	return batch.Response{Err: errLost}
}

// ending returns a Send that ends after a second with a given error, whatever its context does.
func (w *world) ending(err error) func(context.Context, batch.Permit, []batch.URI) batch.Response {
	return func(ctx context.Context, permit batch.Permit, _ []batch.URI) batch.Response {
		if permit == nil { // a part of a refused request
			return response(0, ctx.Err())
		}
		defer w.count(-1)
		time.Sleep(time.Second)
		return response(1, err)
	}
}

// denying fails when its context ends.
func (*world) denying(ctx context.Context) (batch.Permit, error) {
	<-ctx.Done()
	return nil, errLost
}
