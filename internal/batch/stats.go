package batch

import "time"

// statistics counts requests. Those that failed in a row are an outage.
type statistics struct {
	Stats // without what pending says

	changed   bool // since the last report began
	reporting bool // a worker reports
}

// answer notes a request that was answered, which ends an outage.
func (s *statistics) answer() { s.Failures, s.Err = 0, nil }

// fail notes a request or a wait for a permit that failed.
func (s *statistics) fail(err error) {
	s.Failures++
	s.Err = err
}

// reportLocked reports the newest statistics in a goroutine of its own, so that a slow report delays nothing else.
// Requests that end during a report appear together in the next one. The lock is held.
func (q *Queue) reportLocked() {
	if q.work.Report == nil {
		return
	}
	q.stats.changed = true
	if !q.stats.reporting {
		q.stats.reporting = true
		q.goLocked(q.report)
	}
}

// report reports until the newest statistics have been reported.
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
	if c := q.pending.first(); c != nil {
		now.OldestAge = time.Since(c.since)
	}
	return now, s.reporting
}
