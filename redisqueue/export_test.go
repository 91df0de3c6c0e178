package redisqueue

// Active returns how many goroutines of a queue run.
func (q *Queue) Active() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.active
}
