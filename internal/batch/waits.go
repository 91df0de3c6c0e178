package batch

// transactionWait is the wait for one transaction, for all callers whose items it carries.
type transactionWait[Item comparable, Receipt any] struct {
	share

	callers []*caller[Item, Receipt]
	fates   []*fate[Receipt]
}

// waitsLocked returns the waits for what was accepted of the items of some callers and has not ended, by transaction. The
// lock of the queue is held.
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

// add must get all items of one caller before those of the next.
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

// endLocked ends the items, and returns the callers who wait for nothing else. The lock of the queue is held.
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
