package batch

import (
	"context"
	"fmt"
	"time"
)

// closeGrace is how long Close waits for the workers of the queue after its context has ended. They end at once, unless
// user code ignores its context.
const closeGrace = 100 * time.Millisecond

// Close refuses new callers and sends what waits. If ctx ends first, it returns the error of ctx, each caller whose URIs
// were not sent gets ErrClosed, and requests and waits under way are canceled. When Close returns, no goroutine of the
// queue runs. The exception is user code that ignores its context: then Close and every Put return after 100 ms all the
// same. Close may be called several times, also concurrently. If one of them dropped URIs, the others say so.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closing.set()
	q.checkIdleLocked()
	q.mu.Unlock()
	select {
	case <-q.idle.Done():
	case <-ctx.Done():
	}
	if q.idle.Err() == nil {
		return q.giveUp(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dropped > 0 {
		return fmt.Errorf("%w: another Close dropped %d URIs", ErrClosed, q.dropped)
	}
	return nil
}

// checkIdleLocked signals that nothing is left to do. The lock is held.
func (q *Queue) checkIdleLocked() {
	if q.closing.Err() != nil && q.workers == 0 {
		q.idle.set()
	}
}

// giveUp ends everything, and returns the error of a Close whose context has ended.
func (q *Queue) giveUp(ctx context.Context) error {
	onlyReport := q.cancelAll()
	select {
	case <-q.idle.Done():
	case <-time.After(closeGrace):
		q.abandoned.set()
	}
	if onlyReport {
		return fmt.Errorf("webdelivery: everything was sent, and OnStats has not returned: %w", ctx.Err())
	}
	return ctx.Err()
}

// cancelAll fails the waiting callers, and cancels the requests and waits under way. It reports whether there were none
// and only OnStats runs.
func (q *Queue) cancelAll() (onlyReport bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gaveUp.Err() == nil {
		q.dropped = q.pending.uris
		for c := range q.sent {
			for _, uri := range c.uris {
				if !c.request.results[uri].ended {
					q.dropped++
				}
			}
		}
	}
	q.gaveUp.set()
	q.pending.fail(ErrClosed)
	return q.dropped == 0 && q.stats.reporting
}
