package transport

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// checkRetry reports whether another attempt follows. It ignores its arguments and judges c.last.
func (c *call) checkRetry(context.Context, *http.Response, error) (bool, error) {
	if c.succeeded() {
		return false, nil
	}
	v := c.t.Policy.decide(c.situation())
	again := c.carryOut(v)
	if c.outcome() == Unknown {
		c.ambiguous = true
	}
	if again {
		c.loop.RetryWaitMin = v.wait
		c.warn("webdelivery: retry", c.last.err, slog.Int("status", c.last.status), slog.Duration("wait", max(v.wait, c.last.refusal.Wait)))
	}
	return again, nil
}

// decidedWait is the Backoff of every loop. It returns RetryWaitMin, to which checkRetry has assigned the wait.
func decidedWait(least, _ time.Duration, _ int, _ *http.Response) time.Duration { return least }

// succeeded reports whether the last attempt got a complete success, and no code in its envelope contradicts that.
func (c *call) succeeded() bool {
	a := &c.last
	return a.err == nil && c.Rules.isSuccess(a.status) && c.Rules.isSuccess(a.effectiveStatus())
}

// outcome returns the outcome of the last attempt.
func (c *call) outcome() Outcome { return c.last.outcome(c.Gate != nil) }

// situation returns everything that the verdict on the last attempt depends on.
func (c *call) situation() situation {
	a := &c.last
	s := situation{
		class: c.Class, limited: c.Gate != nil, outcome: c.outcome(), failures: c.failures, renewed: c.renewed,
		ended: c.ctx.Err() != nil, transient: a.transient(), tooFast: a.tooFast(),
		asked: RetryAfter(a.header), backoff: c.t.Policy.backoff(c.failures + 1), refusal: a.refusal,
		giveUpAt: c.giveUpAt, now: time.Now(),
	}
	if a.err == nil && (c.login != nil || c.t.auth.Pair != nil) {
		s.credentials = c.Rules.credentials(a.effectiveStatus())
	}
	if c.Rules.isSuccess(a.effectiveStatus()) {
		s.asked = 0 // in a success that was cut, Retry-After means something else
	}
	s.deadline, _ = c.ctx.Deadline()
	return s
}

// carryOut carries out a verdict. It reports whether another attempt follows.
func (c *call) carryOut(v verdict) bool {
	generation, again := c.last.generation, false
	switch {
	case c.login == nil && v.action >= renew:
		again = !c.renewed && c.t.auth.rotated(c.ctx, generation)
	case v.action == retry:
		c.failures++
		return true
	case v.action == comeAgain:
		return true
	case v.action == renew:
		again = c.login.renew(generation, c.renewed) && !c.renewed
	case v.action == renewDoubt:
		c.doubted = c.last.effectiveStatus()
		again = c.login.doubt(c.doubted)
	default:
		c.why = v.why
	}
	if again {
		c.renewed, c.newerThan = true, generation
		c.answered = attempt{} // this refusal says nothing about the next attempt
	}
	return again
}
