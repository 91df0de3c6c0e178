package webdelivery

import (
	"cmp"
	"time"
)

// RetryPolicy says how often and how patiently a call is repeated. A zero field takes its default. Which calls are
// repeated at all is not a matter of policy: only those for which it is safe (see the package page). A field below 0, and
// a MinWait above MaxWait, are refused.
type RetryPolicy struct {
	// MaxAttempts counts the first attempt; 1 turns retrying off. Default 4. Logins make at most 2 attempts, and
	// writes that are no purge and no DELETE at most 3.
	MaxAttempts int
	// MinWait is the most that is waited before the second attempt. It doubles from attempt to attempt, and each wait
	// is drawn evenly between 0 and that ("full jitter"). Default 500 ms.
	MinWait time.Duration
	// MaxWait bounds every wait. A service that asks for more by Retry-After is not asked again: the call returns its
	// reply at once. Default 20 s. It does not bound a purge that the service refuses as too fast, which waits for its
	// next permit.
	MaxWait time.Duration
	// ThrottleTimeout bounds how long a purge is tried while the service answers that purges come too fast (429, or 503).
	// It counts from the first such answer since the service last accepted a purge, or from the call if that is later.
	// If Retry-After asks for more than is left of it, the call returns its response at once. These retries do not use up
	// MaxAttempts. Permits can be 20 s apart then, so a value below that may allow no retry. Default 5 minutes.
	ThrottleTimeout time.Duration
}

func (p RetryPolicy) withDefaults() (RetryPolicy, error) {
	var bad problems
	bad.addBelow0("WithRetry.MaxAttempts", int64(p.MaxAttempts))
	bad.addBelow0("WithRetry.MinWait", int64(p.MinWait))
	bad.addBelow0("WithRetry.MaxWait", int64(p.MaxWait))
	bad.addBelow0("WithRetry.ThrottleTimeout", int64(p.ThrottleTimeout))
	if err := bad.err(); err != nil {
		return p, err
	}
	p.MaxAttempts = cmp.Or(p.MaxAttempts, 4)
	p.MaxWait = cmp.Or(p.MaxWait, 20*time.Second)
	p.ThrottleTimeout = cmp.Or(p.ThrottleTimeout, 5*time.Minute)
	p.MinWait = cmp.Or(p.MinWait, min(500*time.Millisecond, p.MaxWait))
	if p.MinWait > p.MaxWait {
		return p, invalid("WithRetry", "MinWait %v is above MaxWait %v", p.MinWait, p.MaxWait)
	}
	return p, nil
}
