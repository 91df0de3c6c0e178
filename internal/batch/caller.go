package batch

import (
	"context"
	"time"
)

// caller is one call of Put.
type caller[Item comparable, Receipt any] struct {
	items   []Item // each once
	since   time.Time
	request *request[Item, Receipt] // that carries them; nil while the caller waits
	gone    bool                    // nobody waits for it any more
	shares  []*share                // what is done for this caller, and maybe for others
	waits   int                     // transactions that have not ended

	done    chan struct{}
	receipt Receipt
	err     error
}

// share is work for some callers. It ends when they have all left.
type share struct {
	staying int
	cancel  context.CancelFunc
}

// unsent is the error of a caller of whose items nothing was sent.
func (c *caller[Item, Receipt]) unsent(err error) error {
	return &Error[Item]{Items: c.items, Err: err, Outcome: NotApplied}
}

// resultLocked is what became of a caller whose items are in a request; see resultOf. The lock of the queue is held.
func (c *caller[Item, Receipt]) resultLocked(open *Failure) (Receipt, error) {
	return resultOf(c.items, c.request.fates, open, c.request.work.Wait != nil)
}

// openLocked counts the items that have not ended, if anybody waits for them. The lock of the queue is held.
func (c *caller[Item, Receipt]) openLocked() (open int) {
	for _, item := range c.items {
		if !c.gone && !c.request.fates[item].ended {
			open++
		}
	}
	return open
}

// endLocked ends a caller, unless he has ended. The lock of the queue is held.
func (c *caller[Item, Receipt]) endLocked(receipt Receipt, err error) {
	select {
	case <-c.done:
	default:
		c.receipt, c.err = receipt, err
		close(c.done)
	}
}

// leaveLocked takes a caller off what is done for him. The lock of the queue is held.
func (c *caller[Item, Receipt]) leaveLocked() {
	for _, s := range c.shares {
		if s.staying--; s.staying == 0 {
			s.cancel()
		}
	}
}
