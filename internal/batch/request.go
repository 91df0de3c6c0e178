package batch

import (
	"context"
	"sync"
)

// request sends the items of some callers as one request. If that is refused, it sends them in parts.
type request[Item comparable, Receipt any] struct {
	ctx   context.Context //nolint:containedctx // ends when all callers have left, or the context of a Close ends
	work  *Work[Item, Receipt]
	send  func(Permit, []Item) (Receipt, error)
	items []Item

	mu     sync.Locker // the queue's lock; guards the fields below
	fates  map[Item]*fate[Receipt]
	number int // of the last part that was sent, for the outage
}

// deliver sends the items. The first request uses permit, and each further one acquires its own. Afterwards each item
// has its fate.
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

// try sends some items. Afterwards they have their fates, unless several items were refused together.
func (r *request[Item, Receipt]) try(permit Permit, items []Item) answer {
	receipt, err := r.send(permit, items)
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

// note sets the fate of some items.
func (r *request[Item, Receipt]) note(items []Item, now fate[Receipt]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		f := r.fates[item]
		f.accepted, f.receipt, f.failed = now.accepted, now.receipt, now.failed
		f.ended = now.failed != nil || r.work.Wait == nil
	}
}

// doubt records that a refused request may have applied its items.
func (r *request[Item, Receipt]) doubt(items []Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		r.fates[item].unsure = true
	}
}

// endLocked ends the items without a fate, because the goroutine that sent them has failed. The lock is held.
func (r *request[Item, Receipt]) endLocked(failed *Failure) {
	for _, f := range r.fates {
		if !f.known() {
			f.failed, f.ended = failed, true
		}
	}
}
