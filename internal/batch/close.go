package batch

import (
	"context"
	"time"
)

// closeGrace is how long a Close that gives up waits for the goroutines of the queue. They end at once, unless a function
// of the user's ignores its context.
const closeGrace = 100 * time.Millisecond

// Ending is how a Close ended.
type Ending struct {
	GaveUp    bool  // its context ended first
	Dropped   int   // items that had not ended when this Close or another one gave up
	Reporting bool  // this Close gave up while nothing was left but a report
	Report    error // what a report did in place of returning, the first time; only if no Close gave up
}

// Close refuses new callers and sends the rest. If ctx ends before all of it has ended, every caller whose items were not
// sent gets the error of Work.Closed, and what is under way is given up. When Close returns, nothing of the queue runs,
// unless a function of the user's ignores the end of its context: 100 ms later Close returns, and so does every Put. Close
// may be called again, and by several goroutines.
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

// ended is how a Close ends that did not give up.
func (q *Queue[Item, Receipt]) ended() Ending {
	q.mu.Lock()
	defer q.mu.Unlock()
	ending := Ending{Dropped: q.dropped}
	if q.dropped == 0 && q.reports.failed != nil {
		ending.Report = q.reports.failed.Err
	}
	return ending
}

// giveUp ends all that waits and all that is under way.
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

// endAll ends the callers whose items are under way.
func (q *Queue[Item, Receipt]) endAll(open *Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := range q.sent {
		q.settleLocked(c, open)
	}
}
