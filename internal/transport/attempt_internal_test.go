package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A code of 400 or more in the envelope counts if it is graver than the status.
func TestEffectiveStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ status, code, want int }{
		{200, 0, 200},
		{200, 201, 200},
		{200, 399, 200},
		{200, 400, 400},
		{200, 503, 503},
		{303, 201, 303},
		{404, 400, 404},
		{404, 404, 404},
		{404, 503, 503},
		{500, 400, 500},
		{500, 0, 500},
		{303, 399, 303},
	} {
		assert.Equal(t, tt.want, (&attempt{status: tt.status, code: tt.code}).effectiveStatus(), "%d, %d", tt.status, tt.code)
	}
}

// What an attempt did at the service is known if nothing was sent, or if a response says so.
func TestOutcomeOfAnAttempt(t *testing.T) {
	t.Parallel()
	later := http.Header{"Retry-After": {"1"}}
	for _, tt := range []struct {
		name    string
		attempt attempt
		want    Outcome
		limited Outcome
	}{
		{"unsent", attempt{err: io.EOF, unsent: true}, NotApplied, NotApplied},
		{"cut", attempt{err: io.EOF}, Unknown, Unknown},
		{"cut after a status", attempt{err: io.EOF, status: 200}, Unknown, Unknown},
		{"200", attempt{status: 200}, Applied, Applied},
		{"299", attempt{status: 299}, Applied, Applied},
		{"300", attempt{status: 300}, Unknown, Unknown},
		{"399", attempt{status: 399}, Unknown, Unknown},
		{"400", attempt{status: 400}, NotApplied, NotApplied},
		{"408", attempt{status: 408}, Unknown, Unknown},
		{"409", attempt{status: 409}, NotApplied, NotApplied},
		{"429", attempt{status: 429}, NotApplied, NotApplied},
		{"499", attempt{status: 499}, NotApplied, NotApplied},
		{"500", attempt{status: 500}, Unknown, Unknown},
		{"500 and Retry-After", attempt{status: 500, header: later}, Unknown, Unknown},
		{"503", attempt{status: 503}, Unknown, Unknown},
		{"503 and Retry-After", attempt{status: 503, header: later}, NotApplied, Unknown},
		{"200 and code 400", attempt{status: 200, code: 400}, NotApplied, NotApplied},
		{"200 and code 500", attempt{status: 200, code: 500}, Unknown, Unknown},
		{"200, code 503 and Retry-After", attempt{status: 200, code: 503, header: later}, NotApplied, Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, tt.attempt.outcome(false))
			assert.Equal(t, tt.limited, tt.attempt.outcome(true), "limited")
		})
	}
}

// Too fast is 429 or 503, by status or by code. Without a whole response it is not known.
func TestTooFast(t *testing.T) {
	t.Parallel()
	for _, a := range []attempt{{status: 429}, {status: 503}, {status: 200, code: 429}, {status: 200, code: 503}} {
		assert.True(t, a.tooFast())
		a.err = io.ErrUnexpectedEOF
		assert.False(t, a.tooFast())
	}
	for _, a := range []attempt{{}, {status: 200}, {status: 303}, {status: 400}, {status: 500}, {status: 503, code: 504}} {
		assert.False(t, a.tooFast())
	}
}

// Transient are 408, 429 and what begins with 5 except 501.
func TestTransientStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{
		200: false, 303: false, 400: false, 401: false, 404: false, 407: false, 408: true, 409: false, 425: false, 429: true, 499: false,
		500: true, 501: false, 502: true, 503: true, 504: true, 599: true,
	} {
		assert.Equal(t, want, (&attempt{status: status}).transient(), "%d", status)
		assert.Equal(t, want, (&attempt{status: 200, code: status}).transient(), "code %d", status)
	}
}

// An error is transient unless a second attempt would meet it again.
func TestTransientErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"a cut", io.ErrUnexpectedEOF, true},
		{"a timeout", os.ErrDeadlineExceeded, true},
		{"a refused connection", &net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		{"the stream was reset", errReset, true},
		{"the permit expired", errPermitExpired, true},
		{"the attempt took too long", timeoutError("no complete response within 1s"), true},
		{"name server unreachable", &net.DNSError{IsTemporary: true}, true},
		{"no such host", &net.DNSError{IsNotFound: true}, false},
		{"no permit", noPermit(io.EOF), false},
		{"too large", ErrResponseTooLarge, false},
		{"a status that is none", ErrBadReply, false},
		{"an alert", &net.OpError{Op: "remote error", Err: tls.AlertError(42)}, false},
		{"an alert about the server itself", &net.OpError{Op: "remote error", Err: tls.AlertError(80)}, true},
		{"a proxy that wants a password", proxyRefused(407), false},
		{"a proxy that cannot connect", proxyRefused(502), true},
		{"a certificate that is not trusted", &tls.CertificateVerificationError{Err: io.EOF}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{tt.err, fmt.Errorf("wrapped: %w", tt.err)} {
				assert.Equal(t, tt.want, (&attempt{err: err, status: 404}).transient())
				assert.Equal(t, tt.want, (&attempt{err: err, status: 503}).transient())
			}
		})
	}
}

// Retry-After is seconds or a date; of several the longest counts, and what cannot be read asks for nothing.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const longest = time.Duration(1<<63 - 1)
	synctest.Test(t, func(t *testing.T) { // begins at 2000-01-01 00:00:00 UTC, a Saturday
		for _, tt := range []struct {
			asked []string
			date  string
			want  time.Duration
		}{
			{asked: nil},
			{asked: []string{""}},
			{asked: []string{"0"}},
			{asked: []string{"7"}, want: 7 * time.Second},
			{asked: []string{" 7\t"}, want: 7 * time.Second},
			{asked: []string{"007"}, want: 7 * time.Second},
			{asked: []string{"-7"}},
			{asked: []string{"+7"}},
			{asked: []string{"1.5"}},
			{asked: []string{"7 s"}},
			{asked: []string{"٧"}},
			{asked: []string{"soon"}},
			{asked: []string{"9223372036"}, want: 9223372036 * time.Second},
			{asked: []string{"9223372037"}, want: longest},
			{asked: []string{"18446744073709551615"}, want: longest},
			{asked: []string{"99999999999999999999999"}, want: longest},
			{asked: []string{"3", "9", "5"}, want: 9 * time.Second},
			{asked: []string{"7, 9"}, want: 9 * time.Second},
			{asked: []string{"soon", "5"}, want: 5 * time.Second},
			{asked: []string{"5", "soon"}, want: 5 * time.Second},
			{asked: []string{"9223372037", "5"}, want: longest},

			{asked: []string{"Sat, 01 Jan 2000 00:00:09 GMT"}, want: 9 * time.Second},
			{asked: []string{"Saturday, 01-Jan-00 00:00:09 GMT"}, want: 9 * time.Second},
			{asked: []string{"Sat Jan  1 00:00:09 2000"}, want: 9 * time.Second},
			{asked: []string{"Fri, 31 Dec 1999 00:00:00 GMT"}},
			{asked: []string{"Sat, 01 Jan 2000 00:00:09 GMT"}, date: "yesterday", want: 9 * time.Second},
			{asked: []string{"Sat, 01 Jan 2000 00:00:09 GMT"}, date: "Sat, 01 Jan 2000 00:00:05 GMT", want: 4 * time.Second},
			{asked: []string{"Wed, 01 May 2013 12:00:09 GMT"}, date: "Wed, 01 May 2013 12:00:00 GMT", want: 9 * time.Second},
			{asked: []string{"Sat, 01 Jan 2000 00:00:09 GMT"}, date: "Sat, 01 Jan 2000 00:00:10 GMT"},
			{asked: []string{"Sat, 01 Jan 2000 00:00:09 GMT", "12"}, want: 12 * time.Second},
			{asked: []string{"12", "Sat, 01 Jan 2000 00:00:09 GMT"}, want: 12 * time.Second},
		} {
			h := http.Header{"Retry-After": tt.asked}
			if tt.date != "" {
				h.Set("Date", tt.date)
			}
			assert.Equal(t, tt.want, RetryAfter(h), "%q at %q", tt.asked, tt.date)
		}
	})
}
