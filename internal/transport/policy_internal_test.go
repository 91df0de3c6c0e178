package transport

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		{"a read", situation{class: Read, outcome: Unknown}, again(drawn)},
		{"a delete", situation{class: Delete, outcome: Unknown}, again(drawn)},
		{"a repeatable write", situation{class: Repeatable, outcome: Unknown}, again(drawn)},
		{"a login", situation{class: Login, outcome: Unknown}, again(drawn)},
		{"a write that may have happened", situation{class: Once, outcome: Unknown}, verdict{}},
		{"a write that has happened", situation{class: Once, outcome: Applied}, verdict{}},
		{"a write that has not happened", situation{class: Once, outcome: NotApplied}, again(drawn)},

		{"the third attempt of a read", situation{class: Read, failures: 2}, again(drawn)},
		{"the fourth attempt of a read", situation{class: Read, failures: 3}, verdict{}},
		{"the second attempt of a write", situation{class: Once, outcome: NotApplied, failures: 1}, again(drawn)},
		{"the third attempt of a write", situation{class: Once, outcome: NotApplied, failures: 2}, verdict{}},

		{"Retry-After takes the place of the drawn wait", situation{class: Read, asked: 3 * time.Second}, again(3 * time.Second)},
		{"a Retry-After below the drawn wait does, too", situation{class: Read, asked: time.Millisecond}, again(time.Millisecond)},
		{"a Retry-After of MaxWait", situation{class: Read, asked: 20 * time.Second}, again(20 * time.Second)},
		{"a Retry-After above MaxWait", situation{class: Read, asked: 20*time.Second + 1}, verdict{}},

		{"a deadline behind the wait", situation{class: Read, asked: time.Second, deadline: noon.Add(time.Second + 1)}, again(time.Second)},
		{"a deadline at the end of the wait", situation{class: Read, asked: time.Second, deadline: noon.Add(time.Second)}, verdict{}},
		{"a deadline in the past", situation{class: Read, deadline: noon.Add(-time.Second)}, verdict{}},

		{"the context has ended", situation{class: Read, ended: true}, verdict{}},
		{"too fast, but not limited", situation{class: Read, tooFast: true}, again(drawn)},
		{"limited, but not too fast", situation{class: Repeatable, limited: true}, again(drawn)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.s.transient, tt.s.backoff, tt.s.now = true, drawn, noon
			assert.Equal(t, tt.want, aPolicy.decide(tt.s))
			tt.s.transient = false
			if !tt.s.tooFast {
				assert.Equal(t, verdict{}, aPolicy.decide(tt.s), "a permanent failure")
			}
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
		{"refused again", situation{credentials: refused, renewed: true}, renew}, // it ends that session, and carryOut sends nothing
		{"doubtful", situation{credentials: doubtful}, renewDoubt},
		{"doubtful again", situation{credentials: doubtful, renewed: true}, stop},
		{"the context has ended", situation{credentials: refused, ended: true}, stop},
		{"doubtful, and the context has ended", situation{credentials: doubtful, renewed: true, ended: true}, stop},
		{"at the last attempt", situation{credentials: refused, failures: 9}, renew},
		{"with the status of too fast", situation{credentials: refused, limited: true, tooFast: true}, renew},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, class := range []Class{Once, Read, Delete, Repeatable} {
				tt.s.class, tt.s.now, tt.s.outcome = class, noon, Unknown
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
		{name: "everybody waits in the limiter", s: situation{refusal: pace.Refusal{Wait: time.Second, Everybody: true}}, want: verdict{action: comeAgain}},
		{name: "it alone waits", s: situation{refusal: pace.Refusal{Wait: time.Second}}, want: verdict{action: comeAgain, wait: time.Second}},
		{name: "it alone waits as long as asked", s: situation{refusal: pace.Refusal{Wait: time.Second}, asked: 3 * time.Second}, want: verdict{action: comeAgain, wait: 3 * time.Second}},
		{name: "it alone waits longer than asked", s: situation{refusal: pace.Refusal{Wait: 3 * time.Second}, asked: time.Second}, want: verdict{action: comeAgain, wait: 3 * time.Second}},
		{name: "longer than MaxWait", s: situation{refusal: pace.Refusal{Wait: time.Minute}}, want: verdict{action: comeAgain, wait: time.Minute}},
		{name: "after many attempts", s: situation{refusal: pace.Refusal{Wait: time.Second}, failures: 99}, want: verdict{action: comeAgain, wait: time.Second}},
		{name: "of a class that happens once", s: situation{class: Once, outcome: Unknown, refusal: pace.Refusal{Wait: time.Second}}, want: verdict{action: comeAgain, wait: time.Second}},
		{name: "the wait ends with the time", s: situation{refusal: pace.Refusal{Wait: time.Hour}}, want: verdict{action: comeAgain, wait: time.Hour}},
		{name: "the wait ends after the time", s: situation{refusal: pace.Refusal{Wait: time.Hour + 1}}, why: gaveUp},
		{name: "Retry-After ends after the time", s: situation{asked: time.Hour + 1}, why: gaveUp},
		{name: "retries are off", policy: Policy{MaxAttempts: 1}, s: situation{refusal: pace.Refusal{Wait: time.Second}}},
		{name: "the deadline is behind the wait", s: situation{refusal: pace.Refusal{Wait: time.Second}, deadline: noon.Add(time.Second + 1)}, want: verdict{action: comeAgain, wait: time.Second}},
		{name: "the context has ended", s: situation{ended: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			policy := tt.policy
			if policy.MaxAttempts == 0 {
				policy = aPolicy
			}
			tt.s.limited, tt.s.tooFast, tt.s.transient, tt.s.now, tt.s.giveUpAt = true, true, true, noon, noon.Add(time.Hour)
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
			limited: true, tooFast: true, refusal: pace.Refusal{Wait: 3 * time.Second, Everybody: everybody},
			now: noon, giveUpAt: noon.Add(time.Hour), deadline: noon.Add(3 * time.Second),
		})
		assert.Equal(t, verdict{why: &pace.LateError{Wait: 3 * time.Second, Deadline: 3 * time.Second, Refusing: true}}, v, "a deadline at the end of the wait")
	}
}

// A login makes two attempts and a write that happens once three, unless the policy allows fewer.
func TestAttemptsOfAClass(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ most, once, other int }{{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {9, 3, 9}} {
		p := Policy{MaxAttempts: tt.most}
		assert.Equal(t, tt.once, p.attempts(Once))
		for _, class := range []Class{Read, Delete, Repeatable, Login} {
			assert.Equal(t, tt.other, p.attempts(class))
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
		{time.Second, 20 * time.Second, 7, 20 * time.Second},
		{time.Second, 20 * time.Second, 1000, 20 * time.Second},
		{time.Second, time.Second, 1, time.Second},
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
