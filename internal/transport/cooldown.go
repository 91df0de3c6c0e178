package transport

import (
	"fmt"
	"time"
)

// maxCoolDown is the longest cool-down, so that a wrong password neither overloads the service nor locks the account.
const maxCoolDown = 30 * time.Second

// coolDown spaces out what the service refuses: logins, and requests with credentials that no login renews. Whoever
// owns it holds a lock.
type coolDown struct {
	strikes   int       // refusals since the service last accepted
	notBefore time.Time // no try before this
	lastErr   error     // the last refusal
}

// strike counts a refusal and sets the time of the next try. With atOnce 1 the first refusal already starts a cool-down
// of 1 s; with 0 the second one does. Each further refusal doubles it, up to maxCoolDown.
func (c *coolDown) strike(atOnce int, err error) {
	c.strikes++
	c.lastErr = err
	if n := c.strikes + atOnce - 2; n >= 0 {
		c.notBefore = time.Now().Add(min(time.Second<<min(n, 5), maxCoolDown))
	}
}

// cooling returns the error of a try that would come too early. Otherwise it returns nil.
func (c *coolDown) cooling() *coolingDownError {
	wait := time.Until(c.notBefore)
	if wait <= 0 {
		return nil
	}
	return &coolingDownError{wait, c.lastErr}
}

// coolingDownError formats its text only when somebody asks for it, so that no user code runs under the lock.
type coolingDownError struct {
	wait time.Duration // 0: a try is under way
	err  error         // the last refusal
}

func (e *coolingDownError) Error() string {
	if e.wait == 0 {
		return fmt.Sprintf("not tried again while another call tries: %v", e.err)
	}
	return fmt.Sprintf("not tried again for %v: %v", e.wait.Round(time.Millisecond), e.err)
}
func (e *coolingDownError) Unwrap() error { return e.err }
