package batch

import "time"

// statistics counts requests. Those that failed in a row are an outage. Requests and waits for permits overlap and are
// numbered, because one that ends late says nothing about those that began after it.
type statistics struct {
	Stats // without what pending says

	begun, answered, failed int  // numbers of the newest request, the newest answered and the newest failed one
	changed                 bool // since the last report began
	reporting               bool // a worker reports
}

// begin returns the number of a new request.
func (s *statistics) begin() int {
	s.begun++
	return s.begun
}

// answer ends a request that was answered. It ends the outage unless a later request has failed.
func (s *statistics) answer(request int) {
	s.answered = max(s.answered, request)
	if request > s.failed {
		s.Failures, s.Err = 0, nil
	}
}

// fail ends a request that failed. It says nothing if a later one was answered.
func (s *statistics) fail(request int, err error) {
	if request < s.answered {
		return
	}
	s.Failures++
	if request > s.failed {
		s.failed, s.Err = request, err
	}
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
