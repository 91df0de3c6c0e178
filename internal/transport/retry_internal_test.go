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
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
	"github.com/webdelivery/webdelivery-go/internal/pace"
)

var (
	aPolicy = Policy{MaxAttempts: 4, MinWait: time.Second, MaxWait: 20 * time.Second, ThrottleTimeout: 5 * time.Minute}
	noon    = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
)

// A transient failure is met by another attempt, while that is safe, allowed, and of any use.
func TestDecideOnATransientFailure(t *testing.T) {
	t.Parallel()
	again := func(wait time.Duration) verdict { return verdict{action: retry, wait: wait} }
	const drawn = 700 * time.Millisecond
	for _, tt := range []struct {
		name string
		s    situation
		want verdict
	}{
		{"a read", situation{class: Read, outcome: outcomes.Unknown}, again(drawn)},
		{"a delete", situation{class: Delete, outcome: outcomes.Unknown}, again(drawn)},
		{"a repeatable write", situation{class: Repeatable, outcome: outcomes.Unknown}, again(drawn)},
		{"a login", situation{class: Login, outcome: outcomes.Unknown}, again(drawn)},
		{"a write that may have happened", situation{class: Once, outcome: outcomes.Unknown}, verdict{}},
		{"a write that has happened", situation{class: Once, outcome: outcomes.Applied}, verdict{}},
		{"a write that has not happened", situation{class: Once, outcome: outcomes.NotApplied}, again(drawn)},

		{"Retry-After takes the place of the drawn wait", situation{class: Read, asked: 3 * time.Second}, again(3 * time.Second)},
		{"a Retry-After below the drawn wait does, too", situation{class: Read, asked: time.Millisecond}, again(time.Millisecond)},
		{"a Retry-After of MaxWait", situation{class: Read, asked: 20 * time.Second}, again(20 * time.Second)},
		{"a Retry-After above MaxWait", situation{class: Read, asked: 20*time.Second + 1}, verdict{}},

		{"a deadline behind the wait", situation{class: Read, asked: time.Second, deadline: noon.Add(time.Second + 1)}, again(time.Second)},
		{"a deadline at the end of the wait", situation{class: Read, asked: time.Second, deadline: noon.Add(time.Second)}, verdict{}},
		{"a deadline in the past", situation{class: Read, deadline: noon.Add(-time.Second)}, verdict{}},

		{"the context has ended", situation{class: Read, ended: true}, verdict{}},
	} {
		tt.s.transient, tt.s.backoff, tt.s.now = true, drawn, noon
		assert.Equal(t, tt.want, aPolicy.decide(tt.s), tt.name)
		tt.s.transient = false
		assert.Equal(t, verdict{}, aPolicy.decide(tt.s), "%s, a permanent failure", tt.name)
	}
}

// A limited request that comes too fast comes again, until the ThrottleTimeout or its deadline. It uses up no attempts.
func TestDecideOnTooFast(t *testing.T) {
	t.Parallel()
	gaveUp := "refused as too fast, or the service is down, and waiting longer would exceed the ThrottleTimeout of 5m0s"
	late := (&pace.LateError{Wait: time.Second, Deadline: time.Second, Refusing: true}).Error()
	for _, tt := range []struct {
		name string
		s    situation
		want verdict
		why  string
	}{
		{name: "everybody waits in the limiter", s: situation{refusal: pace.Refusal{Wait: time.Second, Everybody: true}}, want: verdict{action: retryFree}},
		{name: "it alone waits as long as asked", s: situation{refusal: pace.Refusal{Wait: time.Second}, asked: 3 * time.Second}, want: verdict{action: retryFree, wait: 3 * time.Second}},
		{name: "it alone waits longer than asked", s: situation{refusal: pace.Refusal{Wait: 3 * time.Second}, asked: time.Second}, want: verdict{action: retryFree, wait: 3 * time.Second}},
		{
			name: "however often, longer than MaxWait, and of a class that happens once",
			s:    situation{class: Once, outcome: outcomes.Unknown, failures: 99, refusal: pace.Refusal{Wait: time.Minute}},
			want: verdict{action: retryFree, wait: time.Minute},
		},
		{name: "the wait ends with the time", s: situation{refusal: pace.Refusal{Wait: time.Hour}}, want: verdict{action: retryFree, wait: time.Hour}},
		{name: "the wait ends after the time", s: situation{refusal: pace.Refusal{Wait: time.Hour + 1}}, why: gaveUp},
		{name: "Retry-After ends after the time", s: situation{asked: time.Hour + 1}, why: gaveUp},
		{name: "the deadline is behind the wait", s: situation{refusal: pace.Refusal{Wait: time.Second}, deadline: noon.Add(time.Second + 1)}, want: verdict{action: retryFree, wait: time.Second}},
		{name: "the deadline is at its end", s: situation{refusal: pace.Refusal{Wait: time.Second}, deadline: noon.Add(time.Second)}, why: late},
		{name: "the deadline is at the end of everybody's", s: situation{refusal: pace.Refusal{Wait: time.Second, Everybody: true}, deadline: noon.Add(time.Second)}, why: late},
		{name: "the context has ended", s: situation{ended: true}},
	} {
		tt.s.tooFast, tt.s.transient, tt.s.now, tt.s.giveUpAt = true, true, noon, noon.Add(time.Hour)
		v := aPolicy.decide(tt.s)
		if tt.why != "" {
			require.EqualError(t, v.why, tt.why, tt.name)
			v.why = nil
		}
		assert.Equal(t, tt.want, v, tt.name)
		assert.Equal(t, verdict{}, Policy{MaxAttempts: 1}.decide(tt.s), "%s, and retries are off", tt.name)
	}
}

// A code of 400 or more in the envelope counts if it is graver than the status.
func TestEffectiveStatus(t *testing.T) {
	t.Parallel()
	for want, pairs := range map[int][][2]int{
		200: {{200, 0}, {200, 201}, {200, 399}},
		303: {{303, 201}, {303, 399}},
		400: {{200, 400}},
		404: {{404, 400}, {404, 404}},
		500: {{500, 400}, {500, 0}},
		503: {{200, 503}, {404, 503}},
	} {
		for _, pair := range pairs {
			assert.Equal(t, want, (&attempt{status: pair[0], code: pair[1]}).effectiveStatus(), "%v", pair)
		}
	}
}

// What an attempt did at the service is known if nothing was sent, or if a response says so.
func TestOutcomeOfAnAttempt(t *testing.T) {
	t.Parallel()
	later := http.Header{"Retry-After": {"1"}}
	check := func(want, limited outcomes.Outcome, attempts ...attempt) {
		for _, a := range attempts {
			assert.Equal(t, want, a.outcome(), "%+v", a)
			a.permit = &Permit{}
			assert.Equal(t, limited, a.outcome(), "limited: %+v", a)
		}
	}
	check(outcomes.Applied, outcomes.Applied, attempt{status: 200}, attempt{status: 299})
	check(outcomes.NotApplied, outcomes.NotApplied, attempt{err: io.EOF, unsent: true},
		attempt{status: 400}, attempt{status: 409}, attempt{status: 429}, attempt{status: 499}, attempt{status: 200, code: 400})
	check(outcomes.Unknown, outcomes.Unknown, attempt{err: io.EOF}, attempt{err: io.EOF, status: 200}, // the last one is cut after its status
		attempt{status: 300}, attempt{status: 399}, attempt{status: 408}, attempt{status: 500}, attempt{status: 500, header: later},
		attempt{status: 503}, attempt{status: 200, code: 500})
	check(outcomes.NotApplied, outcomes.Unknown, attempt{status: 503, header: later}, attempt{status: 200, code: 503, header: later})
}

// Too fast is 429 or 503 to a limited request, by status or by code. Without a whole response it is not known.
func TestTooFast(t *testing.T) {
	t.Parallel()
	for _, a := range []attempt{{status: 429}, {status: 503}, {status: 200, code: 429}, {status: 200, code: 503}} {
		assert.False(t, a.tooFast(), "not limited")
		a.permit = &Permit{}
		assert.True(t, a.tooFast())
		a.err = io.ErrUnexpectedEOF
		assert.False(t, a.tooFast())
	}
	for _, a := range []attempt{{}, {status: 200}, {status: 303}, {status: 400}, {status: 500}, {status: 503, code: 504}} {
		a.permit = &Permit{}
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
	check := func(want bool, all ...error) {
		for _, cause := range all {
			for _, err := range []error{cause, fmt.Errorf("wrapped: %w", cause)} {
				assert.Equal(t, want, (&attempt{err: err, status: 404}).transient(), err)
				assert.Equal(t, want, (&attempt{err: err, status: 503}).transient(), err)
			}
		}
	}
	check(true, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, &net.OpError{Op: "dial", Err: errors.New("connection refused")}, errReset,
		errPermitExpired, timeout("no complete response within %v", time.Second), &net.DNSError{IsTemporary: true},
		&net.OpError{Op: "remote error", Err: tls.AlertError(80)}, // about the server itself
		proxyRefused(502))
	check(false, &net.DNSError{IsNotFound: true}, unsent("waiting for a purge permit", io.EOF), ErrResponseTooLarge, ErrBadResponse,
		&net.OpError{Op: "remote error", Err: tls.AlertError(42)}, proxyRefused(407), &tls.CertificateVerificationError{Err: io.EOF})
}

// Retry-After is seconds or a date; of several the longest counts, and what cannot be read asks for nothing.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const longest = time.Duration(1<<63 - 1)
	synctest.Test(t, func(t *testing.T) { // begins at 2000-01-01 00:00:00 UTC, a Saturday
		check := func(want time.Duration, date string, asked ...string) {
			h := http.Header{"Retry-After": asked}
			if date != "" {
				h.Set("Date", date)
			}
			assert.Equal(t, want, RetryAfter(h), "%q at %q", asked, date)
		}
		each := func(want time.Duration, asked ...string) {
			for _, one := range asked {
				check(want, "", one)
			}
		}
		const nine = "Sat, 01 Jan 2000 00:00:09 GMT"
		each(0, "", "0", "-7", "+7", "1.5", "7 s", "٧", "soon", "Fri, 31 Dec 1999 00:00:00 GMT")
		each(7*time.Second, "7", " 7\t", "007")
		each(9223372036*time.Second, "9223372036")
		each(longest, "9223372037", "18446744073709551615", "99999999999999999999999")
		each(9*time.Second, "7, 9", nine, "Saturday, 01-Jan-00 00:00:09 GMT", "Sat Jan  1 00:00:09 2000")
		check(longest, "", "99999999999999999999999", "5")
		check(9*time.Second, "", "3", "9", "5")
		check(5*time.Second, "", "soon", "5")
		check(5*time.Second, "", "5", "soon")
		check(12*time.Second, "", nine, "12")
		check(12*time.Second, "", "12", nine)
		check(9*time.Second, "yesterday", nine)
		check(4*time.Second, "Sat, 01 Jan 2000 00:00:05 GMT", nine)
		check(9*time.Second, "Wed, 01 May 2013 12:00:00 GMT", "Wed, 01 May 2013 12:00:09 GMT")
		check(0, "Sat, 01 Jan 2000 00:00:10 GMT", nine)
	})
}
