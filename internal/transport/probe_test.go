package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// coolDowns are the waits after refusals in a row.
var coolDowns = []time.Duration{
	time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second,
}

// aPurge is a request whose rules take a 403 for refused credentials.
func aPurge() transport.Request {
	r := aRepeated
	r.Path, r.Rules.Refuse = "/purge", []int{403}
	return r
}

// heldFor checks the failure of a call that was held.
func (f *fixture) heldFor(failure *transport.Failure, status int, text string) {
	f.Helper()
	require.EqualError(f, failure.Cause, "not sent: credentials: "+text)
	require.ErrorIs(f, failure, transport.ErrUnauthorized)
	assert.Equal(f, []any{status, true, 0, transport.NotApplied},
		[]any{max(failure.Status, failure.Code), failure.Unauthorized, failure.Attempts, failure.Outcome})
}

// A refused credential is tried again after 1, 2, 4 to 30 s. Calls in between are held, and say why. A success starts
// anew.
func TestRefusedCredentialsCoolDown(t *testing.T) {
	t.Parallel()
	token := func(c *transport.Config) {
		c.Credentials = transport.Credentials{Token: redact.New("0123456789"), Cookie: "authtoken"}
	}
	sessions := func(c *transport.Config) {
		c.Credentials.LogIn = func(context.Context) (redact.Secret, bool, error) { return redact.New("session-1"), false, nil }
	}
	stream := aRead
	stream.Begin = begins(401, nil)
	for _, tt := range []struct {
		name   string
		bend   func(c *transport.Config)
		r      transport.Request
		answer exchange
		text   string
	}{
		{"user name and password", nil, aWrite, answer(401, ""), "POST /acme/v1/things got 401 Unauthorized"},
		{"a fixed token", token, aRead, answer(401, ""), "GET /acme/v1/things got 401 Unauthorized"},
		{"a login", nil, aLogin, answer(401, ""), "POST /acme/v1/sessions got 401 Unauthorized"},
		{"a login of a client with sessions", sessions, aLogin, answer(401, ""), "POST /acme/v1/sessions got 401 Unauthorized"},
		{"a code", nil, aRead, answer(200, `{"code":401}`), "GET /acme/v1/things got 401 Unauthorized"},
		{"a code in a stream", nil, stream, answer(200, `{"code":401}`), "GET /acme/v1/things got 401 Unauthorized"},
		{"403 by the rules", nil, aPurge(), answer(403, ""), "POST /acme/v1/purge got 403 Forbidden"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, tt.bend, func(f *fixture) {
				status, rounds := 401, 2
				if len(tt.r.Rules.Refuse) > 0 {
					status, rounds = 403, 1 // after a success the first 403 causes no cool-down
				}
				for range rounds {
					f.seen = nil
					for i, wait := range coolDowns {
						f.script = []exchange{tt.answer}
						failure := f.fails(tt.r)
						require.NoError(f, failure.Cause)
						assert.Equal(f, 1, failure.Attempts)
						f.heldFor(f.fails(tt.r), status, fmt.Sprintf("not tried again for %v: %s", wait, tt.text))
						time.Sleep(wait - 1)
						f.heldFor(f.fails(tt.r), status, "not tried again for 0s: "+tt.text)
						require.Equal(f, i+1, f.count())
						time.Sleep(time.Nanosecond)
					}
					f.script = []exchange{answer(200, "{}")}
					r := tt.r
					r.Begin = nil
					f.succeeds(r)
				}
			}, tt.answer)
		})
	}
}

// together sends n requests at once.
func (f *fixture) together(n int, r transport.Request) (failures []*transport.Failure) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			_, err := f.send(r)
			failure, _ := err.(*transport.Failure) //nolint:errorlint // it comes as it is
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, failure)
		})
	}
	wg.Wait()
	return failures
}

// Of calls at once with a wrong password one is sent, at first and after each cool-down. The others share its result.
func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	for _, r := range append(allClasses, aPurge()) {
		inFakeTime(t, nil, func(f *fixture) {
			for i, wait := range coolDowns {
				held := 0
				for _, failure := range f.together(18, r) {
					assert.True(f, failure.Unauthorized)
					if failure.Attempts == 0 {
						held++
					}
				}
				assert.Equal(f, 17, held)
				require.Equal(f, i+1, f.count())
				time.Sleep(wait)
			}
			f.script = []exchange{after(time.Second, answer(200, ""))}
			began := time.Now()
			for _, failure := range f.together(18, r) {
				assert.Nil(f, failure)
			}
			assert.Equal(f, 2*time.Second, time.Since(began), "one, and then all the others")
			f.together(18, r)
			assert.Equal(f, 3*time.Second, time.Since(began), "all of them")
		}, after(time.Second, answer(401, "")))
	}
}

// A 403 that the rules take for a refusal holds the calls with such rules, and no others: it may be a missing
// permission.
func TestAForbiddenPurgeHoldsNoOtherCalls(t *testing.T) {
	t.Parallel()
	const text = "not tried again for 1s: POST /acme/v1/purge got 403 Forbidden"
	purge := aPurge()
	inFakeTime(t, nil, func(f *fixture) {
		f.fails(purge)
		f.heldFor(f.fails(purge), 403, text)
		f.script = []exchange{answer(200, "")}
		f.succeeds(aRead)
		f.succeeds(purge) // the service accepted the password meanwhile

		f.script = []exchange{answer(403, "")}
		assert.Equal(f, 1, f.fails(purge).Attempts)
		assert.Equal(f, 1, f.fails(purge).Attempts, "the first 403 of an accepted password may be chance")
		f.heldFor(f.fails(purge), 403, text)
		assert.Equal(f, 1, f.fails(aRead).Attempts, "a 403 elsewhere is none of the password")
		f.script = []exchange{answer(200, "")}
		f.succeeds(purge)
	}, answer(403, ""))
	inFakeTime(t, nil, func(f *fixture) { // a 401 holds all
		f.fails(aRead)
		f.heldFor(f.fails(purge), 401, "not tried again for 1s: GET /acme/v1/things got 401 Unauthorized")
		time.Sleep(time.Second)
		f.fails(purge)
		f.heldFor(f.fails(aRead), 403, "not tried again for 2s: POST /acme/v1/purge got 403 Forbidden")
		assert.Equal(f, 2, f.count())
	}, answer(401, ""), answer(403, ""))
	once := func(c *transport.Config) { c.Policy.MaxAttempts = 1 }
	inFakeTime(t, once, func(f *fixture) { // other calls of an accepted password do not wait for each other
		f.succeeds(aRead)
		f.fails(purge)
		began := time.Now()
		f.together(18, aRead)
		assert.Equal(f, time.Second, time.Since(began))
	}, answer(200, ""), answer(403, ""), after(time.Second, answer(500, "")))
}

// KeepSession: such a 401 is about an address of the service's, not about the password.
func TestARefusalThatIsNotOfTheCredentials(t *testing.T) {
	t.Parallel()
	kept, doubt := aRead, aRead
	kept.KeepSession, doubt.Rules.MayRefuse = true, []int{400}
	for _, tt := range []struct {
		r      transport.Request
		status int
	}{{kept, 401}, {aRead, 403}, {doubt, 400}, {aRead, 404}} {
		inFakeTime(t, nil, func(f *fixture) {
			for range 5 {
				assert.Equal(f, 1, f.fails(tt.r).Attempts)
			}
			f.succeeds(aRead)
		}, append(make([]exchange, 0, 6), answer(tt.status, ""), answer(tt.status, ""), answer(tt.status, ""), answer(tt.status, ""), answer(tt.status, ""), answer(200, ""))...)
	}
}

// Refusals of calls that left together count once, and a success that left before a refusal proves nothing.
func TestCallsThatLeftBeforeTheRefusal(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		f.succeeds(aRead)
		f.script = []exchange{
			nil, after(time.Second, answer(401, "")), after(1500*time.Millisecond, answer(401, "")), after(1600*time.Millisecond, answer(200, "")),
			answer(401, ""),
		}
		began := time.Now()
		f.together(3, aRead)
		assert.Equal(f, 1600*time.Millisecond, time.Since(began))
		f.heldFor(f.fails(aRead), 401, "not tried again for 400ms: GET /acme/v1/things got 401 Unauthorized")
		time.Sleep(400 * time.Millisecond)
		assert.Equal(f, 1, f.fails(aRead).Attempts)
		assert.Contains(f, f.fails(aRead).Cause.Error(), "not tried again for 2s")
	}, answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // a call that is held on its second attempt keeps what the first one got
		f.succeeds(aRead)
		f.script = []exchange{nil, answer(503, "", "Retry-After", "1"), after(500*time.Millisecond, answer(401, ""))}
		failures := make(chan *transport.Failure)
		go func() { failures <- f.fails(aRead) }()
		synctest.Wait()
		f.fails(aRead)
		failure := <-failures
		assert.Equal(f, []any{503, 1, true}, []any{failure.Status, failure.Attempts, failure.Unauthorized})
		assert.EqualError(f, failure.Cause, "not sent: credentials: not tried again for 500ms: GET /acme/v1/things got 401 Unauthorized")
	}, answer(200, ""))
}

// A code of 401 behind rows that were handed out counts too.
func TestALateCodeCoolsDown(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		stream := aRead
		stream.Begin = begins(0, nil)
		response := f.succeeds(stream)
		response.Refused(401, "")
		response.Stream.Close()
		f.heldFor(f.fails(aRead), 401, "not tried again for 1s: GET /acme/v1/things got 401 Unauthorized")
	}, answer(200, "{}"))
}

// A probe that ends without a verdict lets the next call try at once, before the first success and after a cool-down.
func TestAProbeWithoutAVerdict(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]exchange{
		"a lost connection":        cut,
		"no connection":            unconnected(errLost),
		"503":                      answer(503, "", "Retry-After", "21"),
		"429":                      answer(429, "", "Retry-After", "21"),
		"a panic":                  func(*http.Request) (*http.Response, error) { panic(errLost) },
		"a goroutine that is over": func(*http.Request) (*http.Response, error) { runtime.Goexit(); return nil, nil }, //nolint:nilnil // never
		"a caller who is gone":     silent,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, refusals := range []int{0, 1} {
				inFakeTime(t, func(c *transport.Config) { c.Policy.MaxAttempts = 1 }, func(f *fixture) {
					for range refusals {
						f.fails(aRead)
						time.Sleep(time.Second)
					}
					f.script = []exchange{answer(401, ""), after(time.Second, ends), answer(200, "")}[1-refusals:]
					began := time.Now()
					ctx, cancel := context.WithTimeout(f.Context(), 1500*time.Millisecond)
					defer cancel()
					var wg sync.WaitGroup
					wg.Go(func() {
						defer func() { _ = recover() }()
						_, err := f.transport.Send(ctx, aRead)
						assert.Error(f, err)
					})
					synctest.Wait()
					assert.Equal(f, make([]*transport.Failure, 3), f.together(3, aRead))
					assert.Less(f, time.Since(began), maxProbeWait)
					wg.Wait()
				}, answer(401, ""))
			}
		})
	}
}

const maxProbeWait = 2 * time.Second

// At first use no call waits more than 2 s for a probe, counted from the beginning of the probe. After a cool-down calls
// wait for the verdict, until their context ends or another probe replaces a lost one.
func TestAProbeThatTakesLong(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		go func() { _, _ = f.send(aRead) }()
		synctest.Wait()
		f.script = []exchange{nil, answer(500, "")}
		f.together(3, aDelete)
		assert.Equal(f, maxProbeWait, f.times()[1])
		f.fails(aDelete)
		assert.Equal(f, maxProbeWait, time.Since(f.began).Truncate(time.Second), "once")
		time.Sleep(time.Minute)
	}, after(20*time.Second, answer(200, "")))
	inFakeTime(t, nil, func(f *fixture) { // until its own context ends
		go func() { _, _ = f.send(aRead) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(f.Context(), 1500*time.Millisecond)
		defer cancel()
		failure := f.failsWith(ctx, aRead)
		require.ErrorIs(f, failure, context.DeadlineExceeded)
		assert.EqualError(f, failure.Cause, "waiting for the first response to the credentials: context deadline exceeded")
		assert.Equal(f, 1500*time.Millisecond, time.Since(f.began))
		assert.Equal(f, transport.NotApplied, failure.Outcome)
		time.Sleep(time.Minute)
	}, after(20*time.Second, answer(200, "")))
	inFakeTime(t, nil, func(f *fixture) {
		f.fails(aRead)
		time.Sleep(time.Second)
		go func() { _, _ = f.send(aRead) }() // its transport ignores its context
		synctest.Wait()
		ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
		defer cancel()
		failure := f.failsWith(ctx, aRead)
		assert.EqualError(f, failure.Cause, "waiting for the first response to the credentials: context deadline exceeded")
		assert.Equal(f, transport.NotApplied, failure.Outcome)
		assert.Equal(f, 2, f.count())
		assert.Equal(f, make([]*transport.Failure, 3), f.together(3, aRead))
		assert.Equal(f, 31*time.Second, time.Since(f.began), "the probe counts as lost after 30 s")
		assert.Equal(f, []time.Duration{0, time.Second, 31 * time.Second, 31 * time.Second, 31 * time.Second}, f.times())
		f.succeeds(aRead)
		time.Sleep(time.Hour)
		f.succeeds(aRead)
	}, answer(401, ""), after(time.Hour, cut), answer(200, ""))
}

// A call from within a probe, as by a transport of the user's, waits for 2 s and no longer.
func TestACallWithinAProbe(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		f.script = []exchange{func(r *http.Request) (*http.Response, error) {
			_, err := f.transport.Send(r.Context(), aRead)
			return respond(200, ""), err
		}, answer(200, "")}
		f.succeeds(aRead)
		assert.Equal(f, maxProbeWait, time.Since(f.began))
	})
}

// A held request takes no permit, and gives back the one that it has.
func TestHeldRequestsTakeNoPermit(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		l := &lender{}
		gate := l.gate()
		r := limited(gate)
		r.Rules.Refuse = []int{403}
		f.fails(r)
		assert.Equal(f, 1, l.count())
		f.fails(r)
		assert.Equal(f, 1, l.count(), "none was asked for")
		err := f.transport.LogIn(f.Context(), r)
		failure, ok := err.(*transport.Failure) //nolint:errorlint // it comes as it is
		require.True(f, ok)
		f.heldFor(failure, 403, "not tried again for 1s: POST /acme/v1/things got 403 Forbidden")
		require.NoError(f, f.transport.LogIn(f.Context(), aRead), "the 403 says nothing of others")

		r.Permit, err = gate.Acquire(f.Context())
		require.NoError(f, err)
		f.fails(r)
		assert.Len(f, l.endings(), 2)
		assert.Contains(f, l.endings(), ending{0, unsent})
		assert.Equal(f, 1, f.count())
	}, answer(403, ""))
}
