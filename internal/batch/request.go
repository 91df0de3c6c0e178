package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// request sends the URIs of some callers as one request. If that is refused, it sends them in parts.
type request struct {
	job
	load
	queue        *Queue
	open         []*caller            // those whose URIs are not all decided
	transactions map[any]*transaction // by receipt
}

// sendLocked starts to send the URIs of some callers. The lock is held.
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

// run sends the URIs. The first request uses permit, and each further one acquires its own. The URIs that run returns
// were only refused together with others, or were not sent.
func (r *request) run(permit Permit) (rest []URI) {
	s := splitter{maxSplits(len(r.uris)), func(from, to int) answer {
		defer func() { permit = nil }()
		return r.send(permit, r.uris[from:to])
	}}
	return r.uris[s.split(len(r.uris)):]
}

// send sends some URIs in one request, and counts it. Afterwards their results are known, unless several URIs were
// refused together. A failure counts also if all callers have left, but not if a Close gave up.
func (r *request) send(permit Permit, uris []URI) answer {
	q := r.queue
	q.mu.Lock()
	forNobody := r.left != nil // a part of a refused request, after all callers have left
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
// have applied them. The lock of the queue is held.
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

// endDecidedLocked ends the callers whose URIs were all accepted or have failed, while the queue may still search for
// the refused URIs of others: that takes a permit for each part. The lock of the queue is held.
func (r *request) endDecidedLocked() {
	var decided []*caller
	r.open = slices.DeleteFunc(r.open, func(c *caller) bool {
		if slices.ContainsFunc(c.uris, func(uri URI) bool { return r.results[uri].receipt == nil && r.results[uri].err == nil }) {
			return false
		}
		if !c.ended {
			r.leave(context.Canceled) // if no other caller stays, nobody waits for the rest
			c.jobs = nil
			decided = append(decided, c)
		}
		return true
	})
	r.awaitTransactionsLocked(decided)
}

// endedByClose replaces the error of a request or a wait that a Close has canceled, because no caller's context has.
func (q *Queue) endedByClose(err error) error {
	if q.gaveUp.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %s", ErrClosed, strings.TrimPrefix(err.Error(), "webdelivery: "))
}
