package batch

import (
	"context"
	"fmt"
	"time"
)

// closeGrace is how long Close waits for the queue's workers after its context has ended. They end at once unless user
// code ignores its context.
const closeGrace = 100 * time.Millisecond

// Close refuses new callers, sends all pending URIs and waits for their results. If ctx ends first, Close returns the
// error of ctx, callers whose URIs were not sent get ErrClosed, and requests and waits in progress are canceled. When
// Close returns, no goroutine of the queue is running, unless user code ignores its context: then Close and every Put
// return after 100 ms. Close may be called several times, even concurrently. If one call drops URIs, the others report
// that.
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

// checkIdleLocked sets idle if nothing is left to do. The caller holds the lock.
func (q *Queue) checkIdleLocked() {
	if q.closing.Err() != nil && q.workers == 0 {
		q.idle.set()
	}
}

// giveUp cancels everything and returns the error of a Close whose context has ended.
func (q *Queue) giveUp(ctx context.Context) error {
	onlyReport := q.cancelAll()
	select {
	case <-q.idle.Done():
	case <-time.After(closeGrace):
		q.abandoned.set()
	}
	if onlyReport {
		return fmt.Errorf("webdelivery: everything was sent, but OnStats has not returned: %w", ctx.Err())
	}
	return ctx.Err()
}

// cancelAll fails the pending callers, and cancels the requests and waits in progress. It reports whether there were
// none and only OnStats is running.
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
