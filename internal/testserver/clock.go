package testserver

import (
	"sync/atomic"
	"time"
)

// Clock is the clock of a server: a base plus all advances. It is safe for concurrent use.
type Clock struct {
	base   func() time.Time
	offset atomic.Int64
}

// NewClock returns a clock over base. nil means time.Now, which returns the fake time inside a testing/synctest bubble.
func NewClock(base func() time.Time) *Clock {
	if base == nil {
		base = time.Now
	}
	return &Clock{base: base}
}

// Now returns the current time: that of the base plus all advances.
func (c *Clock) Now() time.Time {
	return c.base().Add(time.Duration(c.offset.Load()))
}

// Advance moves the clock forward by d. It fires no timers: only code that reads the clock notices it.
func (c *Clock) Advance(d time.Duration) {
	c.offset.Add(int64(d))
}
