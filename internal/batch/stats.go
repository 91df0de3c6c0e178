package batch

import "time"

// Stats returns the present state of the queue.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.stats
	now.Pending = q.pending.uris
	if c := q.pending.first(none); c != nil {
		now.OldestAge = time.Since(c.since)
	}
	return now
}
