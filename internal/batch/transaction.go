package batch

import "slices"

// transaction is the wait for the transaction of one accepted request, shared by all callers with URIs in it.
type transaction struct {
	job

	waiting []*caller
	results []*uriResult
	ended   bool
	err     error // its result, if ended
}

// awaitTransactionsLocked ends the callers that have nothing to wait for, and starts one wait for each transaction of
// the others. The caller holds the queue's lock.
func (r *request) awaitTransactionsLocked(callers []*caller) {
	q := r.queue
	for _, c := range callers {
		for _, uri := range c.uris {
			u := r.results[uri]
			if u.ended {
				continue
			}
			t := r.transactions[u.receipt]
			if t == nil || t.left != nil {
				t = &transaction{job: job{canceled: newSignal(q.gaveUp)}}
				r.transactions[u.receipt] = t
				q.goLocked(func() { q.wait(u.receipt, t) })
			}
			if t.ended {
				u.err, u.ended = t.err, true
				continue
			}
			t.results = append(t.results, u)
			if !slices.Contains(c.jobs, &t.job) {
				t.waiting = append(t.waiting, c)
				t.add(c)
				c.waits++
			}
		}
		q.endLocked(c)
	}
}

// wait waits until a transaction has ended or all its callers have left.
func (q *Queue) wait(receipt any, t *transaction) {
	err := q.endedByClose(q.work.Wait(t.canceled, receipt))
	q.mu.Lock()
	defer q.mu.Unlock()
	t.canceled.set()
	t.ended, t.err = true, err
	for _, u := range t.results {
		u.err, u.ended = err, true
	}
	for _, c := range t.waiting {
		c.waits--
		q.endLocked(c)
	}
}

// endLocked ends a caller whose URIs were sent, unless it has left or waits for a transaction. The queue's lock is
// held.
func (q *Queue) endLocked(c *caller) {
	if !c.ended && c.waits == 0 {
		delete(q.sent, c)
		c.end(q.resultLocked(c, nil))
	}
}

// resultLocked returns the result of a caller whose URIs are in a request; see resultOf. The queue's lock is held.
func (q *Queue) resultLocked(c *caller, open error) Result {
	return resultOf(c.uris, c.request.results, open, q.work.Wait != nil)
}
