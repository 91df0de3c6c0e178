package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
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

		{"the third attempt of a read", situation{class: Read, failures: 2}, again(drawn)},
		{"the fourth attempt of a read", situation{class: Read, failures: 3}, verdict{}},
		{"the second attempt of a write", situation{class: Once, outcome: outcomes.NotApplied, failures: 1}, again(drawn)},
		{"the third attempt of a write", situation{class: Once, outcome: outcomes.NotApplied, failures: 2}, verdict{}},

		{"Retry-After takes the place of the drawn wait", situation{class: Read, asked: 3 * time.Second}, again(3 * time.Second)},
		{"a Retry-After below the drawn wait does, too", situation{class: Read, asked: time.Millisecond}, again(time.Millisecond)},
		{"a Retry-After of MaxWait", situation{class: Read, asked: 20 * time.Second}, again(20 * time.Second)},
		{"a Retry-After above MaxWait", situation{class: Read, asked: 20*time.Second + 1}, verdict{}},

		{"a deadline behind the wait", situation{class: Read, asked: time.Second, deadline: noon.Add(time.Second + 1)}, again(time.Second)},
		{"a deadline at the end of the wait", situation{class: Read, asked: time.Second, deadline: noon.Add(time.Second)}, verdict{}},
		{"a deadline in the past", situation{class: Read, deadline: noon.Add(-time.Second)}, verdict{}},

		{"the context has ended", situation{class: Read, ended: true}, verdict{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.s.transient, tt.s.backoff, tt.s.now = true, drawn, noon
			assert.Equal(t, tt.want, aPolicy.decide(tt.s))
			tt.s.transient = false
			assert.Equal(t, verdict{}, aPolicy.decide(tt.s), "a permanent failure")
		})
	}
}

// A refused session is renewed once, whatever the class and however many attempts were made: the service refused it
// before it did anything else.
func TestDecideOnRefusedCredentials(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		s    situation
		want action
	}{
		{"refused", situation{credentials: refused}, renew},
		{"doubtful", situation{credentials: doubtful}, renewDoubt},
		{"the context has ended", situation{credentials: refused, ended: true}, stop},
		{"doubtful, and the context has ended", situation{credentials: doubtful, ended: true}, stop},
		{"at the last attempt", situation{credentials: refused, failures: 9}, renew},
		{"with the status of too fast", situation{credentials: refused, tooFast: true}, renew},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, class := range []Class{Once, Read, Delete, Repeatable} {
				tt.s.class, tt.s.now, tt.s.outcome = class, noon, outcomes.Unknown
				assert.Equal(t, verdict{action: tt.want}, aPolicy.decide(tt.s))
			}
		})
	}
}

// A limited request that comes too fast comes again, until the ThrottleTimeout or its deadline. It uses up no attempts.
func TestDecideOnTooFast(t *testing.T) {
	t.Parallel()
	gaveUp := "refused as too fast, or the service is down, and waiting longer would exceed the ThrottleTimeout of 5m0s"
	for _, tt := range []struct {
		name   string
		policy Policy
		s      situation
		want   verdict
		why    string
	}{
		{name: "everybody waits in the limiter", s: situation{refusal: pace.Refusal{Wait: time.Second, Everybody: true}}, want: verdict{action: retryFree}},
		{name: "it alone waits", s: situation{refusal: pace.Refusal{Wait: time.Second}}, want: verdict{action: retryFree, wait: time.Second}},
		{name: "it alone waits as long as asked", s: situation{refusal: pace.Refusal{Wait: time.Second}, asked: 3 * time.Second}, want: verdict{action: retryFree, wait: 3 * time.Second}},
		{name: "it alone waits longer than asked", s: situation{refusal: pace.Refusal{Wait: 3 * time.Second}, asked: time.Second}, want: verdict{action: retryFree, wait: 3 * time.Second}},
		{name: "longer than MaxWait", s: situation{refusal: pace.Refusal{Wait: time.Minute}}, want: verdict{action: retryFree, wait: time.Minute}},
		{name: "after many attempts", s: situation{refusal: pace.Refusal{Wait: time.Second}, failures: 99}, want: verdict{action: retryFree, wait: time.Second}},
		{name: "of a class that happens once", s: situation{class: Once, outcome: outcomes.Unknown, refusal: pace.Refusal{Wait: time.Second}}, want: verdict{action: retryFree, wait: time.Second}},
		{name: "the wait ends with the time", s: situation{refusal: pace.Refusal{Wait: time.Hour}}, want: verdict{action: retryFree, wait: time.Hour}},
		{name: "the wait ends after the time", s: situation{refusal: pace.Refusal{Wait: time.Hour + 1}}, why: gaveUp},
		{name: "Retry-After ends after the time", s: situation{asked: time.Hour + 1}, why: gaveUp},
		{name: "retries are off", policy: Policy{MaxAttempts: 1}, s: situation{refusal: pace.Refusal{Wait: time.Second}}},
		{name: "the deadline is behind the wait", s: situation{refusal: pace.Refusal{Wait: time.Second}, deadline: noon.Add(time.Second + 1)}, want: verdict{action: retryFree, wait: time.Second}},
		{name: "the context has ended", s: situation{ended: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			policy := tt.policy
			if policy.MaxAttempts == 0 {
				policy = aPolicy
			}
			tt.s.tooFast, tt.s.transient, tt.s.now, tt.s.giveUpAt = true, true, noon, noon.Add(time.Hour)
			v := policy.decide(tt.s)
			if tt.why != "" {
				require.EqualError(t, v.why, tt.why)
				v.why = nil
			}
			assert.Equal(t, tt.want, v)
		})
	}
	for _, everybody := range []bool{true, false} {
		v := aPolicy.decide(situation{
			tooFast: true, refusal: pace.Refusal{Wait: 3 * time.Second, Everybody: everybody},
			now: noon, giveUpAt: noon.Add(time.Hour), deadline: noon.Add(3 * time.Second),
		})
		assert.Equal(t, verdict{why: &pace.LateError{Wait: 3 * time.Second, Deadline: 3 * time.Second, Refusing: true}}, v, "a deadline at the end of the wait")
	}
}

// A write that happens once makes three attempts, unless the policy allows fewer.
func TestAttemptsOfAClass(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ most, once, other int }{{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {9, 3, 9}} {
		p := Policy{MaxAttempts: tt.most, MaxWait: time.Second}
		for class, want := range map[Class]int{Once: tt.once, Read: tt.other, Delete: tt.other, Repeatable: tt.other, Login: tt.other} {
			s := situation{class: class, outcome: outcomes.NotApplied, transient: true, failures: want - 1}
			assert.Equal(t, stop, p.decide(s).action)
			if s.failures--; want > 1 {
				assert.Equal(t, retry, p.decide(s).action)
			}
		}
	}
}

// Each wait is drawn evenly under a ceiling that doubles up to MaxWait. Of so many draws one is near each end.
func TestBackoffHasACeiling(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		shortest, longest time.Duration
		n                 int
		ceiling           time.Duration
	}{
		{time.Second, 20 * time.Second, 1, time.Second},
		{time.Second, 20 * time.Second, 2, 2 * time.Second},
		{time.Second, 20 * time.Second, 5, 16 * time.Second},
		{time.Second, 20 * time.Second, 6, 20 * time.Second},
		{time.Second, 20 * time.Second, 1000, 20 * time.Second},
		{time.Second, time.Second, 2, time.Second},
		{1 << 62, 1<<63 - 1, 3, 1<<63 - 1},
	} {
		draws := make([]time.Duration, 1000)
		for i := range draws {
			draws[i] = Policy{MinWait: tt.shortest, MaxWait: tt.longest}.backoff(tt.n)
		}
		assert.GreaterOrEqual(t, slices.Min(draws), time.Duration(0))
		assert.Less(t, slices.Min(draws), tt.ceiling/10)
		assert.Less(t, slices.Max(draws), tt.ceiling)
		assert.Greater(t, slices.Max(draws), tt.ceiling/10*9, "wait %d", tt.n)
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
		for _, none := range []string{"", "0", "-7", "+7", "1.5", "7 s", "٧", "soon", "Fri, 31 Dec 1999 00:00:00 GMT"} {
			check(0, "", none)
		}
		for _, seven := range []string{"7", " 7\t", "007"} {
			check(7*time.Second, "", seven)
		}
		check(9223372036*time.Second, "", "9223372036")
		for _, tooMany := range []string{"9223372037", "18446744073709551615", "99999999999999999999999"} {
			check(longest, "", tooMany)
			check(longest, "", tooMany, "5")
		}
		check(9*time.Second, "", "3", "9", "5")
		check(9*time.Second, "", "7, 9")
		check(5*time.Second, "", "soon", "5")
		check(5*time.Second, "", "5", "soon")
		const nine = "Sat, 01 Jan 2000 00:00:09 GMT"
		for _, date := range []string{nine, "Saturday, 01-Jan-00 00:00:09 GMT", "Sat Jan  1 00:00:09 2000"} {
			check(9*time.Second, "", date)
		}
		check(9*time.Second, "yesterday", nine)
		check(4*time.Second, "Sat, 01 Jan 2000 00:00:05 GMT", nine)
		check(9*time.Second, "Wed, 01 May 2013 12:00:00 GMT", "Wed, 01 May 2013 12:00:09 GMT")
		check(0, "Sat, 01 Jan 2000 00:00:10 GMT", nine)
		check(12*time.Second, "", nine, "12")
		check(12*time.Second, "", "12", nine)
	})
}
