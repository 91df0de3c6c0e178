package batch

import "time"

// reportLocked reports the newest statistics in a separate goroutine, so that a slow Report delays nothing else.
// Requests that end during a report appear together in the next one. The caller holds the queue's lock.
func (q *Queue) reportLocked() {
	if q.work.Report == nil {
		return
	}
	if q.changed = true; !q.reporting {
		q.reporting = true
		q.workers.Go(q.report)
	}
}

// report reports statistics until the newest ones have been reported.
func (q *Queue) report() {
	for now, changed := q.nextReport(); changed; now, changed = q.nextReport() {
		q.work.Report(now)
	}
}

func (q *Queue) nextReport() (now Stats, changed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reporting, q.changed = q.changed, false
	now = q.stats
	now.Pending = q.pending.uris
	if c := q.pending.first(none); c != nil {
		now.OldestAge = time.Since(c.since)
	}
	return now, q.reporting
}
