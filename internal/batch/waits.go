package batch

// transactionWait is the wait for one transaction, shared by all callers whose items it carries out.
type transactionWait[Item comparable, Receipt any] struct {
	share

	callers []*caller[Item, Receipt]
	fates   []*fate[Receipt]
}

// waitsLocked returns the waits for accepted items of some callers that have not ended, by transaction. The lock of the
// queue is held.
func waitsLocked[Item comparable, Receipt any](callers []*caller[Item, Receipt], transaction func(Receipt) int64) map[int64]*transactionWait[Item, Receipt] {
	waits := map[int64]*transactionWait[Item, Receipt]{}
	for _, c := range callers {
		if c.gone {
			continue
		}
		for _, item := range c.items {
			f := c.request.fates[item]
			if f.ended {
				continue
			}
			id := transaction(f.receipt)
			if waits[id] == nil {
				waits[id] = &transactionWait[Item, Receipt]{}
			}
			waits[id].add(c, f)
		}
	}
	return waits
}

// add adds an item of a caller. All items of one caller must come before those of the next.
func (w *transactionWait[Item, Receipt]) add(c *caller[Item, Receipt], f *fate[Receipt]) {
	w.fates = append(w.fates, f)
	if n := len(w.callers); n > 0 && w.callers[n-1] == c {
		return
	}
	w.callers = append(w.callers, c)
	w.staying++
	c.shares = append(c.shares, &w.share)
	c.waits++
}

// endLocked ends the items, and returns the callers that wait for no other transaction. The lock of the queue is held.
func (w *transactionWait[Item, Receipt]) endLocked(failed *Failure) (ended []*caller[Item, Receipt]) {
	for _, f := range w.fates {
		f.failed, f.ended = failed, true
	}
	for _, c := range w.callers {
		if c.waits--; c.waits == 0 {
			ended = append(ended, c)
		}
	}
	return ended
}
