package testserver

import (
	"sync/atomic"
	"time"
)

// Clock is the time by which a server lives: a base plus what was advanced. It is safe for concurrent use.
type Clock struct {
	base   func() time.Time
	offset atomic.Int64
}

// NewClock returns a clock over base; nil means time.Now, which inside a testing/synctest bubble is the fake time.
func NewClock(base func() time.Time) *Clock {
	if base == nil {
		base = time.Now
	}
	return &Clock{base: base}
}

// Now returns the time of the base plus all advances.
func (c *Clock) Now() time.Time {
	return c.base().Add(time.Duration(c.offset.Load()))
}

// Advance moves the clock forward by d. It fires no timers: only what looks at the clock sees it.
func (c *Clock) Advance(d time.Duration) {
	c.offset.Add(int64(d))
}
