package redisqueue

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// leaveWithin is how long a caller whose context has ended waits for the answer whether its URIs were taken.
const leaveWithin = 60 * time.Millisecond

// leavers are the calls that leave Redis. One goroutine asks for all of them, so that thousands that leave together need
// only a few questions. The lock of the queue guards them.
type leavers struct {
	calls  []leaver
	asking bool
}

type leaver struct {
	id   string
	left chan bool // has room for the answer
}

// leave removes a call from Redis. It returns whether no process had taken it; false if there is no answer in time.
func (q *Queue) leave(id string) bool {
	l := leaver{id, make(chan bool, 1)}
	q.mu.Lock()
	q.leavers.calls = append(q.leavers.calls, l)
	if !q.leavers.asking {
		q.leavers.asking = true
		q.goLocked(q.askForLeavers)
	}
	q.mu.Unlock()
	timer := time.NewTimer(leaveWithin)
	defer timer.Stop()
	select {
	case left := <-l.left:
		return left
	case <-timer.C:
		return false
	}
}

func (q *Queue) askForLeavers() {
	for {
		q.mu.Lock()
		some := q.leavers.calls[:min(len(q.leavers.calls), perScript)]
		q.leavers.calls = q.leavers.calls[len(some):]
		q.leavers.asking = len(some) > 0
		q.mu.Unlock()
		if len(some) == 0 {
			return
		}
		ids := make([]string, len(some))
		for i, l := range some {
			ids[i] = l.id
		}
		answers, err := []int64(nil), q.ctx.Err()
		if err == nil {
			answers, err = q.store.leave(context.Background(), ids)
		}
		for i, l := range some {
			l.left <- err == nil && i < len(answers) && answers[i] == 1
		}
	}
}

// storedLocked returns the waiting calls that Redis has, by their ids. The lock is held.
func (q *Queue) storedLocked() map[string]*call {
	stored := map[string]*call{}
	for _, c := range q.waiting {
		if c.entry.id != "" {
			stored[c.entry.id] = c
		}
	}
	return stored
}

// leaveAll ends those of the calls that no process has taken, with an error.
func (q *Queue) leaveAll(ctx context.Context, stored map[string]*call, cause error) {
	for ids := range slices.Chunk(slices.Collect(maps.Keys(stored)), perScript) {
		left, err := q.store.leave(ctx, ids)
		for i, id := range ids {
			if c := stored[id]; err == nil && i < len(left) && left[i] == 1 {
				q.deliver(c.entry.number, result{err: failed(c.uris, cause, webdelivery.OutcomeNotApplied)})
			}
		}
	}
}
