package webdelivery

import (
	"cmp"
	"time"
)

// RetryPolicy says how often and for how long the client retries a call. A zero field means its default. A negative
// field, and a MinWait above MaxWait, are invalid. It does not decide which calls are retried, see the package comment.
type RetryPolicy struct {
	// MaxAttempts limits the attempts, including the first; 1 turns retries off. Default 4. Writes other than
	// purges and DELETE make at most 3.
	MaxAttempts int
	// MinWait is the longest wait before the second attempt, which doubles with each further one. Default 500 ms.
	MinWait time.Duration
	// MaxWait limits every wait, except that of a purge that the service refuses as too fast. If Retry-After asks for
	// more, the call is not retried. Default 20 s.
	MaxWait time.Duration
	// ThrottleTimeout limits how long the client retries a purge that the service refuses as too fast (429 or 503),
	// since the first refusal after the last accepted purge, or since the call if that is later. These retries do not
	// count for MaxAttempts; they may be 20 s apart. Default 5 minutes.
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
