package webdelivery

import (
	"context"
	"errors"
	"math/bits"
	"net/http"
)

// delivery is one request of a queue, with those into which it is split. Each URI has a fate of its own, whoever
// asked for it; the result of a caller is built from the fates of its URIs.
type delivery struct {
	queue *PurgeQueue
	ctx   context.Context //nolint:containedctx // ends when all callers have left, or Close gives up
	calls []*purgeCall
	items []purgeItem

	fates map[string]*fate // by the form on the wire; the lock of the queue guards them

	left int // requests that may still be made
}

// fate is what became of one URI.
type fate struct {
	receipt *PurgeReceipt // the service accepted it
	failed  *failure      // it was refused, or lost, or its transaction ended badly
	ended   bool          // nothing more will become of it
	unsure  bool          // a request before the last one may have purged it
}

// deliverLocked sends the URIs of some calls, and ends the calls with what became of them. The lock is held.
func (q *PurgeQueue) deliverLocked(calls []*purgeCall, first *permit) {
	ctx, cancel := context.WithCancel(q.ctx)
	d := &delivery{queue: q, ctx: ctx, calls: calls, fates: map[string]*fate{}}
	shared := &share{len(calls), cancel}
	for _, c := range calls {
		q.taken[c] = true
		c.delivery, c.shares = d, []*share{shared}
		for _, item := range c.items {
			if d.fates[item.json] == nil {
				d.fates[item.json] = &fate{}
				d.items = append(d.items, item)
			}
		}
	}
	d.left = maxSplits(len(d.items))
	q.goLocked(func() error {
		d.deliver(first)
		return nil
	}, func(failed *failure) {
		cancel()
		q.inWork.Release(1)
		q.mu.Lock()
		defer q.mu.Unlock()
		d.endLocked(failed)
	})
}

// endLocked ends the calls, or with Wait begins to wait for the transactions of what was accepted. failed is why not all
// of it was sent. The lock is held.
func (d *delivery) endLocked(failed *failure) {
	for _, f := range d.fates {
		if f.receipt == nil && f.failed == nil {
			f.failed, f.ended = failed, true
		}
	}
	waits := map[int64]*transactionWait{}
	for _, c := range d.calls {
		for _, item := range c.items {
			f := d.fates[item.json]
			if f.ended || c.gone {
				continue
			}
			id := f.receipt.TransactionID
			if waits[id] == nil {
				waits[id] = &transactionWait{}
			}
			waits[id].add(c, f)
		}
		if c.waits == 0 {
			receipt, err := c.result(nil)
			d.queue.settleLocked(c, receipt, err)
		}
	}
	for id, w := range waits {
		d.queue.awaitLocked(id, w)
	}
}

// transactionWait is the wait for one transaction, for all callers whose URIs it carries.
type transactionWait struct {
	share

	calls []*purgeCall
	fates []*fate
}

// add must get all URIs of one call before those of the next.
func (w *transactionWait) add(c *purgeCall, f *fate) {
	w.fates = append(w.fates, f)
	if n := len(w.calls); n > 0 && w.calls[n-1] == c {
		return
	}
	w.calls = append(w.calls, c)
	w.staying++
	c.shares = append(c.shares, &w.share)
	c.waits++
}

// awaitLocked polls one transaction until it has ended or all callers have left. The lock is held.
func (q *PurgeQueue) awaitLocked(id int64, w *transactionWait) {
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(q.ctx)
	q.goLocked(func() error {
		_, err := q.client.Purge.wait(ctx, id, q.look, nil)
		return q.endedByClose(err)
	}, func(failed *failure) {
		w.cancel()
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, f := range w.fates {
			f.failed, f.ended = failed, true
		}
		for _, c := range w.calls {
			if c.waits--; c.waits == 0 {
				receipt, err := c.result(nil)
				q.settleLocked(c, receipt, err)
			}
		}
	})
}

// look reads the state of a transaction, a few at once.
func (q *PurgeQueue) look(ctx context.Context, cl call) (*Transaction, error) {
	if err := q.polls.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer q.polls.Release(1)
	return q.client.fetchTransaction(ctx, cl)
}

// result is what became of a call that was taken into a request: the receipt of the request that carried the last of its
// accepted URIs, and an error with those that failed. open is why nobody waits for what has not ended; nil if all has. The
// lock of the queue is held.
func (c *purgeCall) result(open *failure) (receipt *PurgeReceipt, err error) {
	failed := &QueueError{}
	var causes []error
	known := map[string]bool{}
	applied, untouched := true, true // all of the call, as far as anybody knows
	for _, item := range c.items {
		f := c.delivery.fates[item.json]
		if f.receipt != nil {
			receipt = f.receipt
		}
		applied = applied && f.ended && (f.failed == nil || f.failed.outcome == Applied && !c.delivery.queue.options.Wait)
		untouched = untouched && f.receipt == nil && f.failed != nil && !f.unsure && f.failed.outcome == NotApplied
		why := f.failed
		if !f.ended {
			why = open
		}
		if why == nil {
			continue
		}
		failed.URIs = append(failed.URIs, item.uri)
		if !known[why.text] {
			known[why.text] = true
			causes = append(causes, why.err)
		}
	}
	switch {
	case len(causes) == 0:
		return receipt, nil
	case len(causes) == 1:
		failed.Err = causes[0]
	default:
		failed.Err = errors.Join(causes...)
	}
	switch {
	case applied:
		failed.outcome = Applied
	case untouched:
		failed.outcome = NotApplied
	}
	return receipt, failed
}

// A request that the service refuses says nothing of which URIs it refuses. They are found by group testing (Hwang's
// generalized binary splitting): halves of a refused group are sent until one refused URI stands alone, then groups of
// what is left, of a size in which about every second group has a refused one.

// maxSplits bounds the requests for n URIs, as each takes a permit of everybody. It is enough to find 20 refused ones of
// 200; when there are more of them, the rest is given back to the callers.
func maxSplits(n int) int { return 1 + 16*bits.Len(uint(n)) }

// answer is what the service says to one request.
type answer int

const (
	taken   answer = iota
	refused        // because of one of its URIs, at least
	lost           // any other error
)

// deliver sends all URIs: the first request with a permit, the others with permits of their own.
func (d *delivery) deliver(first *permit) {
	rest, size, found := d.items, len(d.items), 0
	for p := first; len(rest) > 0 && d.left > 0; p = nil {
		if 3*size > 2*len(rest) {
			size = len(rest) // a small rest is not worth a request of its own
		}
		if d.send(rest[:size], p) != refused {
			rest = rest[size:]
			size *= 2
			continue
		}
		rest = rest[d.find(rest[:size]):]
		if found++; found == 1 {
			size = len(rest) // most often there is one
		} else {
			size = max(1, (len(d.items)-len(rest))*7/10/found)
		}
	}
	if len(rest) > 0 {
		d.note(rest, fate{failed: &failure{ErrRefusedTogether, ErrRefusedTogether.Error(), NotApplied}})
	}
}

// find looks for the first refused one of some URIs that were refused together. It returns for how many of them, from the
// first one on, it is known what became of them. When the first half of a group is taken, the refused one is in the other
// half, which need not be sent to know that.
func (d *delivery) find(items []purgeItem) (known int) {
	at, end := 0, len(items)
	for end-at > 1 && d.left > 0 {
		half := (end - at) / 2
		switch d.send(items[at:at+half], nil) {
		case refused:
			end = at + half
		case lost:
			return at + half
		case taken:
			at += half
			if end-at == 1 && d.left > 0 {
				d.send(items[at:end], nil) // for its own words
				return end
			}
		}
	}
	if d.isKnown(items[end-1]) {
		return end
	}
	return at
}

// isKnown reports whether it is known what became of a URI.
func (d *delivery) isKnown(item purgeItem) bool {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	f := d.fates[item.json]
	return f.receipt != nil || f.failed != nil
}

// send sends some URIs, with a permit or, if nil, one of its own. What became of them is known afterwards, unless they are
// several and were refused.
func (d *delivery) send(items []purgeItem, p *permit) answer {
	d.left--
	receipt, err := d.submit(items, p)
	if err == nil || !errors.Is(err, ErrBadRequest) {
		d.note(items, fate{receipt: receipt, failed: judge(err)})
		if err != nil {
			return lost
		}
		return taken
	}
	if OutcomeOf(err) != NotApplied {
		d.doubt(items)
	}
	if len(items) == 1 {
		d.note(items, fate{failed: judge(err)})
	}
	return refused
}

// note keeps what became of some URIs.
func (d *delivery) note(items []purgeItem, now fate) {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	for _, item := range items {
		f := d.fates[item.json]
		f.receipt, f.failed = now.receipt, now.failed
		f.ended = now.failed != nil || !d.queue.options.Wait
	}
}

// doubt notes that some URIs may have been purged by a request that was refused.
func (d *delivery) doubt(items []purgeItem) {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	for _, item := range items {
		d.fates[item.json].unsure = true
	}
}

// submit sends one request.
func (d *delivery) submit(items []purgeItem, p *permit) (*PurgeReceipt, error) {
	q := d.queue
	r, err := q.client.send(d.ctx, call{method: http.MethodPost, path: purgePath, purge: d.bodyOf(items), permit: p})
	var receipt *PurgeReceipt
	if err == nil {
		receipt, err = r.receipt()
	}
	err = q.endedByClose(err)
	q.count(len(items), err)
	return receipt, err
}

// endedByClose is an error of something that was under way when Close gave up.
func (q *PurgeQueue) endedByClose(err error) error {
	if err == nil || q.ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return &closedError{err}
}

// closedError is a request, or the wait for a transaction, that Close has ended. What it stands for matches
// context.Canceled, as the queue's own context ended; the caller's did not.
type closedError struct{ err error }

func (e *closedError) Error() string { return ErrQueueClosed.Error() + ": " + e.err.Error() }

func (e *closedError) Is(target error) bool {
	return target == ErrQueueClosed || target != context.Canceled && errors.Is(e.err, target)
}

func (e *closedError) As(target any) bool { return errors.As(e.err, target) }

func (e *closedError) outcomeOfWrite() Outcome { return OutcomeOf(e.err) }

// bodyOf is the body of a request for these.
func (d *delivery) bodyOf(items []purgeItem) *purgeBody {
	size := 0
	for _, item := range items {
		size += len(item.json)
	}
	return newPurgeBody(d.queue.options.Action, len(items), size, func(b []byte, i int) []byte {
		return append(b, items[i].json...)
	})
}
