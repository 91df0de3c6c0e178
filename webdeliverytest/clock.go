package webdeliverytest

import (
	"time"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Clock is the time by which a server lives: that of the process, or of [WithNow], plus what was advanced. It is safe for
// concurrent use.
type Clock struct{ clock *testserver.Clock }

// Now returns what the server takes for the present.
func (c *Clock) Now() time.Time { return c.clock.Now() }

// Advance moves the clock forward by d: a task that ends within d has ended afterwards. It wakes nobody; a client that
// waits for its next look still does.
func (c *Clock) Advance(d time.Duration) { c.clock.Advance(d) }
