package batch

import "slices"

// transaction is the wait for the transaction of one accepted request, for all callers whose URIs it carries out.
type transaction struct {
	job

	waiting []*caller
	results []*uriResult
}

// awaitTransactionsLocked ends the callers of a request that have nothing to wait for, and starts to wait for the
// transactions of the others, once for each. The lock is held.
func (q *Queue) awaitTransactionsLocked(callers []*caller) {
	transactions := map[any]*transaction{} // by receipt
	for _, c := range callers {
		for _, uri := range c.uris {
			u := c.request.results[uri]
			if u.ended || c.ended {
				continue
			}
			t := transactions[u.receipt]
			if t == nil {
				t = &transaction{job: job{canceled: newSignal(q.gaveUp)}}
				transactions[u.receipt] = t
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
	for receipt, t := range transactions {
		q.goLocked(func() { q.wait(receipt, t) })
	}
}

// wait waits until a transaction has ended or all its callers have left.
func (q *Queue) wait(receipt any, t *transaction) {
	err := q.endedByClose(q.work.Wait(t.canceled, receipt))
	q.mu.Lock()
	defer q.mu.Unlock()
	t.canceled.set()
	for _, u := range t.results {
		u.err, u.ended = err, true
	}
	for _, c := range t.waiting {
		c.waits--
		q.endLocked(c)
	}
}

// endLocked ends a caller whose URIs were sent, unless it has left or waits for a transaction. The lock is held.
func (q *Queue) endLocked(c *caller) {
	if !c.ended && c.waits == 0 {
		delete(q.sent, c)
		c.end(q.resultLocked(c, nil))
	}
}

// resultLocked returns the result of a caller whose URIs are in a request; see resultOf. The lock is held.
func (q *Queue) resultLocked(c *caller, open error) Result {
	return resultOf(c.uris, c.request.results, open, q.work.Wait != nil)
}
