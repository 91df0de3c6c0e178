package redisqueue

import "time"

// HoldFor sets how long a request may take until others send its URIs as well.
func (q *Queue) HoldFor(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.holdFor = d
}

// Active returns how many goroutines of a queue run.
func (q *Queue) Active() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.active
}
