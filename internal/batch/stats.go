package batch

import "time"

// statistics counts requests, and failures in a row.
type statistics struct {
	Stats // without Pending and OldestAge

	changed   bool // since the last report began
	reporting bool // a goroutine is reporting
}

// fail records a failed request or wait for a permit.
func (s *statistics) fail(err error) {
	s.Failures++
	s.Err = err
}

// reportLocked reports the newest statistics in a separate goroutine, so that a slow Report delays nothing else.
// Requests that end during a report appear together in the next one. The queue's lock is held.
func (q *Queue) reportLocked() {
	if q.work.Report == nil {
		return
	}
	q.stats.changed = true
	if !q.stats.reporting {
		q.stats.reporting = true
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
	s := &q.stats
	s.reporting, s.changed = s.changed, false
	now = s.Stats
	now.Pending = q.pending.uris
	if c := q.pending.first(none); c != nil {
		now.OldestAge = time.Since(c.since)
	}
	return now, s.reporting
}
