package batch

import "errors"

// fate is what became of one item.
type fate[Receipt any] struct {
	accepted bool
	receipt  Receipt  // if it was accepted
	failed   *Failure // it was refused, or lost, or its transaction ended badly
	ended    bool     // nothing more will become of it
	unsure   bool     // a request before the last one may have carried it out
}

// known: it was sent, and there is an answer that is about it.
func (f *fate[Receipt]) known() bool { return f.accepted || f.failed != nil }

// applied: as far as anybody knows the item was carried out. If the queue waits for transactions, one that failed was not.
func (f *fate[Receipt]) applied(waits bool) bool {
	return f.ended && (f.failed == nil || f.failed.Outcome == Applied && !waits)
}

// untouched: as far as anybody knows the item was not carried out.
func (f *fate[Receipt]) untouched() bool {
	return !f.accepted && f.failed != nil && !f.unsure && f.failed.Outcome == NotApplied
}

// resultOf makes the result of a caller from the fates of his items: the receipt of the last of them that was accepted,
// and an [*Error] with those that failed. open is why nobody waits for what has not ended; nil if all has.
func resultOf[Item comparable, Receipt any](items []Item, fates map[Item]*fate[Receipt], open *Failure, waits bool) (receipt Receipt, err error) {
	failed := &Error[Item]{}
	var causes []error
	known := map[string]bool{}
	applied, untouched := true, true // all of them
	for _, item := range items {
		f := fates[item]
		if f.accepted {
			receipt = f.receipt
		}
		applied = applied && f.applied(waits)
		untouched = untouched && f.untouched()
		why := f.failed
		if !f.ended {
			why = open
		}
		if why == nil {
			continue
		}
		failed.Items = append(failed.Items, item)
		if !known[why.Text] {
			known[why.Text] = true
			causes = append(causes, why.Err)
		}
	}
	if len(causes) == 0 {
		return receipt, nil
	}
	if failed.Err = causes[0]; len(causes) > 1 {
		failed.Err = errors.Join(causes...)
	}
	switch {
	case applied:
		failed.Outcome = Applied
	case untouched:
		failed.Outcome = NotApplied
	}
	return receipt, failed
}
