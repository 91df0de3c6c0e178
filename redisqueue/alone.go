package redisqueue

import (
	"crypto/rand"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// localID begins the ids of these calls.
const localID = "local-"

// alone is a call of Enqueue that this process purges by itself, because Redis was down.
type alone struct {
	ended  time.Time // zero while the purge is under way
	result result
}

// enqueueAlone purges a call in the background. Only this process knows its result.
func (q *Queue) enqueueAlone(c *call) (id string, err error) {
	id = localID + rand.Text()
	a := &alone{}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return "", failed(c.uris, webdelivery.ErrQueueClosed, webdelivery.OutcomeNotApplied)
	}
	for other, of := range q.alone {
		if !of.ended.IsZero() && time.Since(of.ended) > q.options.Keep {
			delete(q.alone, other)
		}
	}
	q.alone[id] = a
	q.purging++
	q.goLocked(func() {
		receipt, err := q.purgeAlone(q.ctx, c)
		q.mu.Lock()
		defer q.mu.Unlock()
		a.ended, a.result = time.Now(), result{receipt, err}
		q.purging--
		q.restLocked()
	})
	return id, nil
}

// resultAlone returns the result of such a call.
func (q *Queue) resultAlone(id string) (r result, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.alone[id]
	switch {
	case a == nil:
		return result{}, false
	case a.ended.IsZero():
		return result{err: ErrPending}, true
	default:
		return a.result, true
	}
}
