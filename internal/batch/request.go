package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// request sends the URIs of some callers in one request. If that is refused, it sends them in parts.
type request struct {
	job
	load
	queue        *Queue
	open         []*caller            // callers whose URIs are not all decided
	transactions map[any]*transaction // by receipt
}

// sendLocked starts a request with the URIs of some callers. The caller holds the lock.
func (q *Queue) sendLocked(callers []*caller, uris load, permit Permit) {
	r := &request{job: job{canceled: newSignal(q.gaveUp)}, load: uris, queue: q, open: slices.Clone(callers), transactions: map[any]*transaction{}}
	for _, c := range callers {
		c.request = r
		q.sent[c] = true
		r.job.add(c)
	}
	q.goLocked(func() {
		defer q.underWay.Release(1)
		rest := r.run(permit)
		q.mu.Lock()
		defer q.mu.Unlock()
		r.setLocked(rest, Response{Err: ErrRefusedTogether, Outcome: transport.NotApplied})
		r.canceled.set()
	})
}

// run sends the URIs. The first request uses permit, and each further one acquires its own. run returns the URIs that
// were only refused together with others, or not sent.
func (r *request) run(permit Permit) (rest []URI) {
	s := splitter{maxSplits(len(r.uris)), func(from, to int) answer {
		defer func() { permit = nil }()
		return r.send(permit, r.uris[from:to])
	}}
	return r.uris[s.split(len(r.uris)):]
}

// send sends some URIs in one request and records their results, unless several URIs were refused together. It counts
// the request. A failure is not counted if a Close gave up, or if all callers had left before the request.
func (r *request) send(permit Permit, uris []URI) answer {
	q := r.queue
	q.mu.Lock()
	forNobody := r.left != nil // part of a refused request, after all callers have left
	q.mu.Unlock()
	response := q.work.Send(r.canceled, permit, uris)
	response.Err = q.endedByClose(response.Err)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.Requests++
	if response.Err == nil {
		q.stats.Accepted += len(uris)
	}
	switch {
	case response.Err == nil, response.Refused:
		q.stats.answer()
	case q.gaveUp.Err() != nil, forNobody:
	case r.left != nil:
		q.stats.fail(whyFailed(r.left, response.Err))
	default:
		q.stats.fail(response.Err)
	}
	q.reportLocked()
	return r.setLocked(uris, response)
}

// setLocked sets the results of some URIs. If several were refused together, it only records whether that request may
// have applied them. The queue's lock is held.
func (r *request) setLocked(uris []URI, response Response) answer {
	for _, uri := range uris {
		u := r.results[uri]
		if response.Refused && response.Outcome != transport.NotApplied {
			u.doubtful = true
		}
		if !response.Refused || len(uris) == 1 {
			u.receipt, u.err, u.outcome = response.Receipt, response.Err, response.Outcome
			u.ended = response.Err != nil || r.queue.work.Wait == nil
		}
	}
	r.endDecidedLocked()
	switch {
	case response.Err == nil:
		return taken
	case response.Refused:
		return refused
	default:
		return lost
	}
}

// endDecidedLocked ends the callers whose URIs have all been accepted or have failed, so that they need not wait while
// the queue searches for refused URIs of others. The queue's lock is held.
func (r *request) endDecidedLocked() {
	var decided []*caller
	r.open = slices.DeleteFunc(r.open, func(c *caller) bool {
		if slices.ContainsFunc(c.uris, func(uri URI) bool { return r.results[uri].receipt == nil && r.results[uri].err == nil }) {
			return false
		}
		if !c.ended {
			r.leave(context.Canceled) // cancels the rest if no other caller waits for it
			c.jobs = nil
			decided = append(decided, c)
		}
		return true
	})
	r.awaitTransactionsLocked(decided)
}

// endedByClose replaces the error of a request or wait that a Close canceled, because no caller's context has ended.
func (q *Queue) endedByClose(err error) error {
	if q.gaveUp.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %s", ErrClosed, strings.TrimPrefix(err.Error(), "webdelivery: "))
}
