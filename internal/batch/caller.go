package batch

import (
	"context"
	"time"
)

// caller is one call of Put.
type caller[Item comparable, Receipt any] struct {
	items   []Item // without duplicates
	since   time.Time
	request *request[Item, Receipt] // the request with the items; nil while the caller is in the line
	gone    bool                    // the caller has left
	shares  []*share                // work for this caller and maybe others
	waits   int                     // transactions to wait for

	done    chan struct{}
	receipt Receipt
	err     error
}

// share is work for several callers. It is canceled when all of them have left.
type share struct {
	staying int
	cancel  context.CancelFunc
	left    error // why the last caller left; nil while one stays
}

// unsent returns the error of a caller none of whose items was sent.
func (c *caller[Item, Receipt]) unsent(err error) error {
	return &Error[Item]{Items: c.items, Err: err, Outcome: NotApplied}
}

// resultLocked returns the result of a caller whose items are in a request; see resultOf. The lock of the queue is
// held.
func (c *caller[Item, Receipt]) resultLocked(open *Failure) (Receipt, error) {
	return resultOf(c.items, c.request.fates, open, c.request.work.Wait != nil)
}

// openLocked counts the items that have not ended; 0 if the caller has left. The lock of the queue is held.
func (c *caller[Item, Receipt]) openLocked() (open int) {
	for _, item := range c.items {
		if !c.gone && !c.request.fates[item].ended {
			open++
		}
	}
	return open
}

// endLocked ends a caller unless it has ended already. The lock of the queue is held.
func (c *caller[Item, Receipt]) endLocked(receipt Receipt, err error) {
	select {
	case <-c.done:
	default:
		c.receipt, c.err = receipt, err
		close(c.done)
	}
}

// leaveLocked removes a caller from its shares. The lock of the queue is held.
func (c *caller[Item, Receipt]) leaveLocked(reason error) {
	for _, s := range c.shares {
		if s.staying--; s.staying == 0 {
			s.left = reason
			s.cancel()
		}
	}
}
