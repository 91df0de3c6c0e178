package transport

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
)

// attempt is the result of one attempt.
type attempt struct {
	status     int // 0 without a response
	header     http.Header
	body       []byte
	size       int64 // of the whole body
	stream     *Stream
	code       int    // of the body's envelope; 0 without one
	err        error  // why no complete response arrived
	unsent     bool   // nothing reached the service
	generation uint64 // of the session that was used; 0 without one
	permit     *Permit
	refusal    pace.Refusal // of a limited request that came too fast
}

// effectiveStatus returns the HTTP status, or the code of the envelope if that is at least 400 and higher than the
// status.
func (a *attempt) effectiveStatus() int {
	if a.code < http.StatusBadRequest {
		return a.status
	}
	return max(a.status, a.code)
}

// outcome returns whether the service processed the attempt, as far as the client can know.
func (a *attempt) outcome(limited bool) Outcome {
	status := a.effectiveStatus()
	switch {
	case a.err != nil && a.unsent:
		return NotApplied
	case a.err != nil:
		return Unknown
	case limited && status == http.StatusServiceUnavailable:
		return Unknown // the status means both too fast and an internal fault
	case status < http.StatusMultipleChoices:
		return Applied
	case status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "":
		return NotApplied
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError && status != http.StatusRequestTimeout:
		return NotApplied
	default:
		return Unknown
	}
}

// tooFast reports whether the service refused a limited request because requests come too fast. The status is then 429,
// or 503 with or without Retry-After (open point 8).
func (a *attempt) tooFast() bool {
	status := a.effectiveStatus()
	return a.err == nil && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable)
}

// Final reports whether a status refuses a request for good: 4xx, except 408 and 429.
func Final(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError &&
		status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// transient reports whether a retry may succeed.
func (a *attempt) transient() bool {
	if a.err != nil {
		_, unsent := errors.AsType[*unsentError](a.err)
		return !unsent && !errors.Is(a.err, ErrResponseTooLarge) && !errors.Is(a.err, ErrBadReply) && !Misdirected(a.err)
	}
	status := a.effectiveStatus()
	return status >= http.StatusBadRequest && !Final(status) && status != http.StatusNotImplemented
}

// RetryAfter returns the longest wait in the Retry-After headers of a response, or 0 if none can be parsed.
func RetryAfter(h http.Header) time.Duration {
	var wait time.Duration
	for _, value := range h.Values("Retry-After") {
		if at, err := http.ParseTime(strings.TrimSpace(value)); err == nil {
			wait = max(wait, at.Sub(sentAt(h)))
			continue
		}
		for seconds := range strings.SplitSeq(value, ",") { // a proxy may have joined two headers
			wait = max(wait, secondsOf(strings.TrimSpace(seconds)))
		}
	}
	return wait
}

// sentAt returns the time of a response by its sender's clock, so that a wrong clock on either side does no harm.
func sentAt(h http.Header) time.Time {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		return at
	}
	return time.Now()
}

// secondsOf parses a whole number of seconds. It returns the longest duration if the number is too large, and 0 if text
// is not a number.
func secondsOf(text string) time.Duration {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0
	}
	wait, err := time.ParseDuration(text + "s")
	if err != nil { // too large
		return math.MaxInt64
	}
	return wait
}
