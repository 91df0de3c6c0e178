package batch

import (
	"context"
	"time"
)

// closeGrace is how long Close waits for the goroutines of the queue after its context has ended. They end at once,
// unless user code ignores its context.
const closeGrace = 100 * time.Millisecond

// Ending is the result of Close.
type Ending struct {
	GaveUp    bool  // the context of this Close ended first
	Dropped   int   // items that had not ended when the context of this Close or another one ended
	Reporting bool  // the context of this Close ended while only a report was still running
	Report    error // first panic or Goexit of a report; only if no context of a Close ended
}

// Close refuses new callers and sends the waiting items. If ctx ends first, each caller whose items were not sent gets
// Work.Closed, and requests and waits under way are canceled. When Close returns, no goroutine of the queue runs. The
// exception is user code that ignores its context: then Close and every Put return after 100 ms all the same. Close may
// be called several times, also concurrently.
func (q *Queue[Item, Receipt]) Close(ctx context.Context) Ending {
	q.mu.Lock()
	q.crew.closeLocked()
	q.mu.Unlock()
	select {
	case <-q.crew.idle:
		return q.ended()
	default:
	}
	select {
	case <-q.crew.idle:
		return q.ended()
	case <-ctx.Done():
	}
	ending := q.giveUp()
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-q.crew.idle:
	case <-grace.C:
		q.endAll(q.work.Judge(q.work.Closed))
	}
	return ending
}

// ended returns the result of a Close whose context has not ended.
func (q *Queue[Item, Receipt]) ended() Ending {
	q.mu.Lock()
	defer q.mu.Unlock()
	ending := Ending{Dropped: q.dropped}
	if q.dropped == 0 && q.reports.failed != nil {
		ending.Report = q.reports.failed.Err
	}
	return ending
}

// giveUp fails the waiting callers, and cancels the requests and waits under way.
func (q *Queue[Item, Receipt]) giveUp() Ending {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ctx.Err() == nil {
		q.dropped = q.line.items
		for c := range q.sent {
			q.dropped += c.openLocked()
		}
	}
	q.cancel()
	q.failLocked(nil)
	return Ending{GaveUp: true, Dropped: q.dropped, Reporting: q.dropped == 0 && q.reports.running}
}

// endAll ends the callers whose items are under way, and calls of PutFrom.
func (q *Queue[Item, Receipt]) endAll(open *Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := range q.sent {
		q.settleLocked(c, open)
	}
	select {
	case <-q.deserted:
	default:
		close(q.deserted)
	}
}
