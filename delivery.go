package webdelivery

import (
	"context"
	"errors"
	"math/bits"
	"net/http"
)

// delivery is one request of a queue, with those into which it is split. Each URI has a fate of its own, whoever
// asked for it; what a caller learns is made of the fates of his URIs.
type delivery struct {
	queue *PurgeQueue
	ctx   context.Context //nolint:containedctx // ends when all callers have left, or Close gives up
	calls []*purgeCall
	items []purgeItem

	fates map[string]*fate // by the form on the wire; the lock of the queue guards them

	left    int   // requests that may still be made
	refusal error // the last one
}

// fate is what became of one URI.
type fate struct {
	receipt *PurgeReceipt // the service accepted it
	err     error         // it was refused, or lost, or its transaction ended badly
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
		d.send(d.items, first)
		return nil
	}, func(err error) {
		cancel()
		q.inWork.Release(1)
		q.mu.Lock()
		defer q.mu.Unlock()
		d.endLocked(err)
	})
}

// endLocked ends the calls, or with Wait begins to wait for the transactions of what was accepted. err is why not all of
// it was sent. The lock is held.
func (d *delivery) endLocked(err error) {
	for _, f := range d.fates {
		if f.receipt == nil && f.err == nil {
			f.err, f.ended = err, true
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

// awaitLocked looks at one transaction until it has ended or all callers have left. The lock is held.
func (q *PurgeQueue) awaitLocked(id int64, w *transactionWait) {
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(q.ctx)
	q.goLocked(func() error {
		_, err := q.client.Purge.wait(ctx, id, q.look, nil)
		return err
	}, func(err error) {
		w.cancel()
		if err != nil && q.ctx.Err() != nil {
			err = errors.Join(ErrQueueClosed, err)
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, f := range w.fates {
			f.err, f.ended = err, true
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
func (c *purgeCall) result(open error) (receipt *PurgeReceipt, err error) {
	failed := &QueueError{}
	var causes []error
	known := map[string]bool{}
	applied, untouched := true, true // all of the call, as far as anybody knows
	for _, item := range c.items {
		f := c.delivery.fates[item.json]
		if f.receipt != nil {
			receipt = f.receipt
		}
		applied = applied && f.receipt != nil && f.err == nil
		untouched = untouched && f.receipt == nil && f.err != nil && !f.unsure && OutcomeOf(f.err) == NotApplied
		cause := f.err
		if !f.ended {
			cause = open
		}
		if cause == nil {
			continue
		}
		failed.URIs = append(failed.URIs, item.uri)
		if text := cause.Error(); !known[text] {
			known[text] = true
			causes = append(causes, cause)
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

// A request that the service refuses is sent again in halves, until the refused URIs stand alone.

// maxSplits bounds the requests for n URIs: enough to find a few refused ones among many; when there are more of them,
// splitting on would take all the permits of everybody.
func maxSplits(n int) int { return 1 + 6*bits.Len(uint(n)) }

// send sends some URIs, with a permit or, if nil, one of its own. It says whether the service took all of them.
func (d *delivery) send(items []purgeItem, p *permit) bool {
	if d.left == 0 {
		d.note(items, fate{err: d.refusal})
		return false
	}
	d.left--
	receipt, err := d.submit(items, p)
	if err == nil || !errors.Is(err, ErrBadRequest) {
		d.note(items, fate{receipt: receipt, err: err})
		return err == nil
	}
	d.refusal = err
	if OutcomeOf(err) != NotApplied {
		d.doubt(items)
	}
	d.split(items)
	return false
}

// split finds out which of the URIs are refused; at least one is. When the first half is taken, the refused ones are in
// the other half, which need not be sent whole to know that.
func (d *delivery) split(items []purgeItem) {
	if len(items) == 1 || d.left == 0 {
		d.note(items, fate{err: d.refusal})
		return
	}
	first, second := items[:len(items)/2], items[len(items)/2:]
	switch {
	case !d.send(first, nil):
		d.send(second, nil)
	case len(second) == 1:
		d.send(second, nil) // for its own words
	default:
		d.split(second)
	}
}

// note keeps what became of some URIs.
func (d *delivery) note(items []purgeItem, now fate) {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	for _, item := range items {
		f := d.fates[item.json]
		f.receipt, f.err = now.receipt, now.err
		f.ended = now.err != nil || !d.queue.options.Wait
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
	if err != nil && q.ctx.Err() != nil {
		err = errors.Join(ErrQueueClosed, err)
	}
	q.count(len(items), err)
	return receipt, err
}

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
