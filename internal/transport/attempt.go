package transport

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// attempt is the result of one attempt.
type attempt struct {
	status     int // 0 without a response
	header     http.Header
	body       []byte
	cut        bool  // the body was longer, but no more of it arrived
	size       int64 // of the whole body
	stream     *Stream
	code       int    // of the body's envelope; 0 without one
	err        error  // no whole response arrived
	unsent     bool   // certainly nothing reached the service
	generation uint64 // of the session that was used; 0 without one
	pass       pass
	final      bool // the service refused the credential, and no login helps
	permit     *Permit
	refusal    pace.Refusal // of a limited request that came too fast
}

// effectiveStatus decides how an attempt is judged. It is the HTTP status, or the code of the envelope if that is at
// least 400 and higher.
func (a *attempt) effectiveStatus() int { return effectiveStatus(a.status, a.code) }

func effectiveStatus(status, code int) int {
	if code < http.StatusBadRequest {
		return status
	}
	return max(status, code)
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

// transient: the failure will probably be over soon.
func (a *attempt) transient() bool {
	if a.err != nil {
		return !permanent(a.err)
	}
	switch status := a.effectiveStatus(); status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	default:
		return status >= http.StatusInternalServerError && status != http.StatusNotImplemented
	}
}

// permanent: a second attempt would fail in the same way.
func permanent(err error) bool {
	var unsent *unsentError
	switch {
	case errors.As(err, &unsent), errors.Is(err, ErrResponseTooLarge), errors.Is(err, ErrBadReply): // the status is none
		return true
	default:
		return usercode.Caused(err) || Misdirected(err)
	}
}

// Misdirected reports whether err says that there is no such service, or that no connection to it can be set up.
// Examples are an unknown host, an untrusted certificate, wrong TLS settings and a proxy that refuses. Such an error
// may be transient, but its usual cause is a wrong setting.
func Misdirected(err error) bool {
	var (
		setup *setupError
		dns   *net.DNSError
		cert  *tls.CertificateVerificationError
	)
	if errors.As(err, &dns) {
		return dns.IsNotFound
	}
	return errors.As(err, &setup) || errors.As(err, &cert)
}

// retryCost is what another attempt takes from the budget.
func (a *attempt) retryCost() int {
	var timeout interface{ Timeout() bool }
	if errors.As(a.err, &timeout) && timeout.Timeout() {
		return budgetTimeout
	}
	return budgetRetry
}

// retryAfter returns the wait that a response asks for, in seconds or as a date. Of several values it returns the
// longest. It subtracts the response's own Date from a date, so a wrong clock on either side does no harm. It returns 0
// if there is no value, or none that it can read.
func retryAfter(h http.Header) time.Duration {
	const longest = 1<<63 - 1
	var wait time.Duration
	for _, value := range h.Values("Retry-After") {
		value = strings.TrimSpace(value)
		if value != "" && strings.Trim(value, "0123456789") == "" {
			seconds, err := strconv.ParseUint(value, 10, 64) // the only error left is that it is too long
			if err != nil || seconds > uint64(longest/time.Second) {
				return longest
			}
			wait = max(wait, time.Duration(seconds)*time.Second)
		} else if at, err := http.ParseTime(value); err == nil {
			now, err := http.ParseTime(h.Get("Date"))
			if err != nil {
				now = time.Now()
			}
			wait = max(wait, at.Sub(now))
		}
	}
	return wait
}
