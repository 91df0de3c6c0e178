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
	err        error  // no whole response arrived
	unsent     bool   // certainly nothing reached the service
	generation uint64 // of the session that was used; 0 without one
	permit     *Permit
	refusal    pace.Refusal // of a limited request that came too fast
}

// effectiveStatus decides how an attempt is judged. It is the HTTP status, or the code of the envelope if that is at
// least 400 and higher.
func (a *attempt) effectiveStatus() int {
	if a.code < http.StatusBadRequest {
		return a.status
	}
	return max(a.status, a.code)
}

// outcome says what the attempt did at the service, as far as the client can know.
func (a *attempt) outcome(limited bool) Outcome {
	status := a.effectiveStatus()
	switch {
	case a.err != nil && a.unsent:
		return NotApplied
	case a.err != nil:
		// The client cannot know whether the connection was cut before or after the service read the request.
		return Unknown
	case limited && status == http.StatusServiceUnavailable:
		return Unknown // too fast, or an internal fault: the status means both
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

// tooFast: the service says that limited requests come too fast. That is 429, or 503 with or without Retry-After (open
// point 8).
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

// RetryAfter returns the wait that a response asks for: the longest of its values, or 0 if it can read none.
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

// sentAt is the time of a response by the clock of its sender, so a wrong clock on either side does no harm.
func sentAt(h http.Header) time.Time {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		return at
	}
	return time.Now()
}

// secondsOf reads a whole number of seconds. It returns the longest duration if there are too many, and 0 if text is no
// such number.
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
