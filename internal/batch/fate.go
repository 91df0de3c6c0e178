package batch

import "errors"

// fate is the state of one item.
type fate[Receipt any] struct {
	accepted bool
	receipt  Receipt  // if it was accepted
	failed   *Failure // if it was refused, its request was lost, or its transaction failed
	ended    bool     // the fate is final
	unsure   bool     // an earlier request, which was refused, may have applied it
}

// known reports whether a response decided about this item.
func (f *fate[Receipt]) known() bool { return f.accepted || f.failed != nil }

// applied reports whether the item was certainly applied. If the queue waits for transactions, a failed item was not.
func (f *fate[Receipt]) applied(waits bool) bool {
	return f.ended && (f.failed == nil || f.failed.Outcome == Applied && !waits)
}

// untouched reports whether the item was certainly not applied.
func (f *fate[Receipt]) untouched() bool {
	return !f.accepted && f.failed != nil && !f.unsure && f.failed.Outcome == NotApplied
}

// resultOf returns the result of a caller from the fates of its items. That is the receipt of the last accepted item,
// and an [*Error] with the failed ones. open is the failure of items that have not ended; nil if all have ended.
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
