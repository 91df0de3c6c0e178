package batch

import (
	"context"
	"sync"
)

// request is the items of some callers, sent as one request or, if that is refused, as those into which it is split.
type request[Item comparable, Receipt any] struct {
	ctx   context.Context //nolint:containedctx // ends when all callers have left, or the context of a Close ends
	work  *Work[Item, Receipt]
	send  func(context.Context, Permit, []Item) (Receipt, error)
	items []Item

	mu    sync.Locker // the queue's, which guards the fates
	fates map[Item]*fate[Receipt]
}

// deliver sends the items: the first request with a permit, the others with permits of their own. What became of each item
// is known afterwards.
func (r *request[Item, Receipt]) deliver(permit Permit) {
	s := splitter{maxSplits(len(r.items)), func(from, to int) answer {
		now := permit
		permit = nil
		return r.try(now, r.items[from:to])
	}}
	if rest := r.items[s.split(len(r.items)):]; len(rest) > 0 {
		r.note(rest, fate[Receipt]{failed: &Failure{r.work.Together, r.work.Together.Error(), NotApplied}})
	}
}

// try sends some items. What became of them is known afterwards, unless they are several and were refused.
func (r *request[Item, Receipt]) try(permit Permit, items []Item) answer {
	receipt, err := r.send(r.ctx, permit, items)
	if err == nil {
		r.note(items, fate[Receipt]{accepted: true, receipt: receipt})
		return taken
	}
	failed := r.work.Judge(err)
	if !r.work.Refused(err) {
		r.note(items, fate[Receipt]{failed: failed})
		return lost
	}
	if failed.Outcome != NotApplied {
		r.doubt(items)
	}
	if len(items) == 1 {
		r.note(items, fate[Receipt]{failed: failed})
	}
	return refused
}

// note keeps what became of some items.
func (r *request[Item, Receipt]) note(items []Item, now fate[Receipt]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		f := r.fates[item]
		f.accepted, f.receipt, f.failed = now.accepted, now.receipt, now.failed
		f.ended = now.failed != nil || r.work.Wait == nil
	}
}

// doubt notes that some items may have been carried out by a request that was refused.
func (r *request[Item, Receipt]) doubt(items []Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		r.fates[item].unsure = true
	}
}

// endLocked ends the items of which nothing is known, because the goroutine that sent them has failed. The lock is held.
func (r *request[Item, Receipt]) endLocked(failed *Failure) {
	for _, f := range r.fates {
		if !f.known() {
			f.failed, f.ended = failed, true
		}
	}
}
