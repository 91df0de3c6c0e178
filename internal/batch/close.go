package batch

import (
	"context"
	"fmt"
	"time"
)

// closeGrace is how long Close waits for workers after its context has ended, because user code may ignore its own.
const closeGrace = 100 * time.Millisecond

// Close refuses new callers, sends all pending URIs and waits for their results. If ctx ends first, callers whose URIs
// were not sent get ErrClosed, the rest is canceled, and Close returns the error of ctx. When it returns, no goroutine of
// the queue is running, unless user code ignores its context: then Close and every Put return after 100 ms. If one of
// several calls of Close drops callers, the others report that.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closing.set(nil) // from now on, only workers start others
	q.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		q.workers.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		q.mu.Lock()
		if q.gaveUp.Err() == nil {
			q.dropped = q.pending.callers.Len() + q.unfinished
		}
		q.gaveUp.set(nil)
		q.failLocked(ErrClosed)
		q.mu.Unlock()
		select {
		case <-idle:
		case <-time.After(closeGrace):
			q.abandoned.set(nil)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.dropped > 0 && ctx.Err() == nil:
		return fmt.Errorf("%w: another Close dropped %d calls", ErrClosed, q.dropped)
	case q.dropped == 0 && q.abandoned.Err() == nil:
		return nil
	default:
		return ctx.Err()
	}
}
