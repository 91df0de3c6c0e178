package webdeliverytest

import (
	"time"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Clock is the clock of a server. It returns the time of the process, or that of [WithNow], plus all advances. It is
// safe for concurrent use.
type Clock struct{ clock *testserver.Clock }

// Now returns the current time of the server.
func (c *Clock) Now() time.Time { return c.clock.Now() }

// Advance moves the clock forward by d. A task that ends within d has ended when Advance returns. Advance does not fire
// timers, so a client that waits for its next poll keeps waiting.
func (c *Clock) Advance(d time.Duration) { c.clock.Advance(d) }
