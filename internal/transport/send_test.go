package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// What a request's own rules change, and what happens without them.
func TestRules(t *testing.T) {
	t.Parallel()
	const pending = `{"code":503,"transaction_id":7}`
	for _, tt := range []struct {
		name         string
		rules        transport.Rules
		answer       exchange
		succeeds     bool
		unauthorized bool
	}{
		{"303 is no success", transport.Rules{}, answer(303, `{"code":201}`), false, false},
		{"303 is a success", transport.Rules{Success: []int{303}}, answer(303, `{"code":201}`), true, false},
		{"303 with a refusal in its body", transport.Rules{Success: []int{303}}, answer(303, `{"code":400}`), false, false},
		{"a code that is a success in a status that is none", transport.Rules{Success: []int{409}}, answer(404, `{"code":409}`), false, false},
		{"302 is no success", transport.Rules{Success: []int{303}}, answer(302, ``), false, false},
		{"199 is no success", transport.Rules{}, answer(199, ``), false, false},
		{"200 is a success", transport.Rules{}, answer(200, ``), true, false},
		{"299 is a success", transport.Rules{}, answer(299, ``), true, false},
		{"300 is no success", transport.Rules{}, answer(300, ``), false, false},
		{"a code below 400", transport.Rules{}, answer(200, `{"code":399}`), true, false},
		{"403 is no word on the credentials", transport.Rules{}, answer(403, ``), false, false},
		{"403 refuses the credentials", transport.Rules{Refuse: []int{403}}, answer(403, ``), false, true},
		{"401 always does", transport.Rules{Refuse: []int{403}}, answer(401, ``), false, true},
		{"a code of 401 does, too", transport.Rules{}, answer(200, `{"code":401}`), false, true},
		{"400 may refuse them, so this is not sure", transport.Rules{MayRefuse: []int{400}}, answer(400, ``), false, false},
		{"a code that says something else", transport.Rules{NotInEnvelope: []string{"transaction_id"}}, answer(200, pending), true, false},
		{"a code that would say it elsewhere", transport.Rules{NotInEnvelope: []string{"other"}}, answer(200, pending), false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				r := aRead
				r.Rules = tt.rules
				if tt.succeeds {
					f.succeeds(r)
				} else {
					assert.Equal(f, tt.unauthorized, f.fails(r).Unauthorized)
				}
			}, tt.answer)
		})
	}
}

// A redirect is not followed, and what leads elsewhere is shown as its origin alone.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	const target = "https://elsewhere.example.net/path?token=abcdef"
	for _, status := range []int{300, 301, 302, 303, 307, 308, 399} {
		for _, r := range allClasses {
			inFakeTime(t, nil, func(f *fixture) {
				failure := f.fails(r)
				assert.Equal(f, 1, f.count())
				assert.Equal(f, status, failure.Status)
				assert.Equal(f, "redirect to https://elsewhere.example.net not followed", failure.Description)
				assert.Equal(f, http.Header{"Location": {"https://elsewhere.example.net"}}, failure.Header)
				assert.Empty(f, failure.Body, "it repeats the target")
				assert.NoError(f, failure.Cause)
			}, answer(status, `see `+target, "Location", target))
			inFakeTime(t, nil, func(f *fixture) {
				assert.Equal(f, "redirect without a Location not followed", f.fails(r).Description)
			}, answer(status, ""))
		}
	}
}

// A failure has what the service said last, and no secret.
func TestAFailureDescribesTheLastResponse(t *testing.T) {
	t.Parallel()
	said := answer(503, `{"code":507,"description":"no room for `+password+`"}`, "X-Id", "7", "Set-Cookie", "a=b")
	want := transport.Failure{
		Status: 503, Code: 507, Method: "POST", Path: "/acme/v1/things", Host: "api.example.com", Description: "no room for [redacted]",
		Body: []byte(`{"code":507,"description":"no room for [redacted]"}`), Header: http.Header{"X-Id": {"7"}}, Attempts: 4,
		Outcome: transport.Unknown,
	}
	inFakeTime(t, nil, func(f *fixture) { assert.Equal(f, want, *f.fails(aRepeated)) }, said)

	inFakeTime(t, nil, func(f *fixture) {
		failure := f.fails(aRepeated)
		require.EqualError(f, failure, "POST /acme/v1/things failed")
		require.ErrorIs(f, failure, errLost)
		require.EqualError(f, failure.Cause, "connection lost")
		failure.Cause = nil
		assert.Equal(f, want, *failure, "the last response is an earlier one")
	}, said, cut)

	inFakeTime(t, nil, func(f *fixture) {
		failure := f.fails(aRepeated)
		assert.Zero(f, failure.Status)
		assert.Empty(f, failure.Description)
		assert.Empty(f, failure.Header)
		assert.Nil(f, failure.Body)
	}, cut)

	inFakeTime(t, nil, func(f *fixture) {
		failure := f.fails(transport.Request{Class: transport.Read, Method: "GET", Path: "/" + password})
		assert.Equal(f, "/acme/v1/[redacted]", failure.Path)
		assert.Equal(f, "Not Found", failure.Description)
		assert.False(f, failure.TooFast)
	}, answer(404, ""))
}

// What a login is answered with may hold a session in any shape: nothing of it is kept but a few headers.
func TestAFailedLoginKeepsNothing(t *testing.T) {
	t.Parallel()
	said := answer(403, `{"description":"token 123"}`, "Content-Type", "text/plain", "X-Session", "123", "Retry-After", "7")
	r := aLogin
	r.Rules.Refuse = []int{403}
	inFakeTime(t, nil, func(f *fixture) {
		assert.Equal(f, transport.Failure{
			Status: 403, Method: "POST", Path: "/acme/v1/sessions", Host: "api.example.com", Description: "Forbidden", Attempts: 1, Outcome: transport.NotApplied,
			Header: http.Header{"Content-Type": {"text/plain"}, "Retry-After": {"7"}}, Unauthorized: true,
		}, *f.fails(r))
	}, said)
	inFakeTime(t, nil, func(f *fixture) {
		failure := f.fails(aLogin)
		assert.Equal(f, "redirect to https://api.example.com not followed", failure.Description)
		assert.Empty(f, failure.Body)
	}, answer(302, "token 123", "Location", "/elsewhere"))
}

// A success that its reader cannot use may well have happened.
func TestAFailureMadeOfASuccess(t *testing.T) {
	t.Parallel()
	for _, r := range allClasses {
		inFakeTime(t, nil, func(f *fixture) {
			response := f.succeeds(r)
			failure := response.Failure(errLost)
			require.ErrorIs(f, failure, errLost)
			assert.Equal(f, 200, failure.Status)
			assert.Equal(f, 1, failure.Attempts)
			if r.Class == transport.Read {
				assert.Equal(f, transport.NotApplied, failure.Outcome)
			} else {
				assert.Equal(f, transport.Unknown, failure.Outcome)
			}
			if r.Class != transport.Login {
				assert.Equal(f, `{"id":"123"}`, string(failure.Body))
			}
			response.Forget()
			assert.Nil(f, response.Body)
			assert.Empty(f, response.Failure(nil).Body)
		}, answer(200, `{"id":"123"}`))
	}
}

// Each attempt has a header and a URL of its own, whatever a transport does to them.
func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	spoiled := func(f *fixture) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			resp, err := f.RoundTrip(r)
			for name := range r.Header {
				r.Header.Add(name, "spoiled")
			}
			r.Header["Accept"][0] = "spoiled"
			r.Header.Set("New", "spoiled")
			r.URL.Path, r.URL.RawPath = "/spoiled", "/spoiled"
			r.Method, r.Host = "SPOILED", "spoiled.example.com"
			return resp, err
		}
	}
	for _, tt := range []struct {
		name    string
		request transport.Request
		url     string
		body    string
	}{
		{"a read", transport.Request{Class: transport.Read, Method: "GET", Path: "/a%2Fb", Query: "c=d%20e"}, "https://api.example.com/acme/v1/a%2Fb?c=d%20e", ""},
		{"a body", transport.Request{Class: transport.Repeatable, Method: "POST", Path: "/a", Body: []byte(`{"a":1}`)}, "https://api.example.com/acme/v1/a", `{"a":1}`},
		{"a body written anew", transport.Request{Class: transport.Repeatable, Method: "POST", Path: "/a", Encoder: &encoder{text: `{"b":2}`}}, "https://api.example.com/acme/v1/a", `{"b":2}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var f *fixture
			next := func(r *http.Request) (*http.Response, error) { return spoiled(f)(r) }
			inFakeTime(t, func(c *transport.Config) { c.Next = roundTripper(next) }, func(g *fixture) {
				f = g
				f.fails(tt.request)
				require.Equal(f, 4, f.count())
				want := http.Header{"Accept": {"application/json"}, "User-Agent": {"agent/1"}, "Authorization": {"Basic " + basicPair}}
				if tt.body != "" {
					want["Content-Type"] = []string{"application/json"}
				}
				for _, r := range f.requests() {
					assert.Equal(f, want, r.header)
					assert.Equal(f, tt.url, r.url)
					assert.Equal(f, tt.request.Method, r.method)
					assert.Equal(f, tt.body, r.body)
					assert.Equal(f, tt.body != "", r.hasGetBody, "net/http may send again what it has not written")
				}
			}, answer(500, ""))
		})
	}
}

// encoder counts how often its text is opened. Nothing may be read from it once it is closed.
type encoder struct {
	text           string
	opened, closed int
	err            error // of the openings after so many
	failsAfter     int
}

func (e *encoder) Open() (io.Reader, error) {
	e.opened++
	if e.closed > 0 {
		return nil, errors.New("opened after it was closed")
	}
	if e.err != nil && e.opened > e.failsAfter {
		return nil, e.err
	}
	return strings.NewReader(e.text), nil
}

func (e *encoder) Close() { e.closed++ }

// An Encoder is closed once, at the end of the call, however it ends.
func TestAnEncoderIsClosedAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 404, 500} {
		inFakeTime(t, nil, func(f *fixture) {
			e := &encoder{text: "[]"}
			_, _ = f.send(transport.Request{Class: transport.Repeatable, Method: "POST", Path: "/a", Encoder: e})
			assert.Equal(f, 1, e.closed)
			assert.GreaterOrEqual(f, e.opened, f.count())
		}, answer(status, ""))
	}
}

// A body that is opened is closed, also that of an attempt that sends nothing.
func TestEveryRequestBodyIsClosed(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		e := &closingEncoder{}
		l := &lender{acquire: func(_ context.Context, n int) error {
			if n == 3 {
				return errLost
			}
			return nil
		}}
		r := limited(l.gate())
		r.Body, r.Encoder = nil, e
		require.ErrorIs(f, f.fails(r), errLost)
		assert.Equal(f, 2, f.count())
		assert.Greater(f, len(e.bodies), 2)
		for _, body := range e.bodies {
			assert.Equal(f, 1, body.times)
		}
	}, answer(500, ""))
}

type closingEncoder struct{ bodies []*closing }

func (e *closingEncoder) Open() (io.Reader, error) {
	e.bodies = append(e.bodies, &closing{Reader: strings.NewReader("[]")})
	return e.bodies[len(e.bodies)-1], nil
}

func (e *closingEncoder) Close() {}

// A request that cannot be made is refused before anything is sent.
func TestARequestThatCannotBeSent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		request transport.Request
		field   string
	}{
		{"a bad escape", transport.Request{Method: "GET", Path: "/%zz"}, "path"},
		{"no body", transport.Request{Method: "POST", Path: "/a", Encoder: &encoder{err: errLost}}, "request"},
	} {
		inFakeTime(t, nil, func(f *fixture) {
			response, err := f.send(tt.request)
			require.Nil(f, response)
			var invalid *address.Error
			require.ErrorAs(f, err, &invalid)
			assert.Equal(f, tt.field, invalid.Field)
			assert.NotEmpty(f, invalid.Reason)
			assert.Zero(f, f.count())
			if e, ok := tt.request.Encoder.(*encoder); ok {
				assert.Equal(f, 1, e.closed)
				assert.Equal(f, "connection lost", invalid.Reason)
			}
		}, answer(200, ""))
	}
}

// An Encoder that fails later fails the call: before the first attempt with its error, after it with the last response.
func TestAnEncoderThatFailsLater(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		opens, count, status int
		cause                error
	}{{1, 0, 0, errLost}, {2, 1, 500, nil}} {
		inFakeTime(t, nil, func(f *fixture) {
			failure := f.fails(transport.Request{Class: transport.Repeatable, Method: "POST", Path: "/a", Encoder: &encoder{text: "[]", err: errLost, failsAfter: tt.opens}})
			assert.Equal(f, tt.cause, failure.Cause)
			assert.Equal(f, tt.status, failure.Status)
			assert.Equal(f, tt.count, f.count())
			assert.Equal(f, tt.count, failure.Attempts)
		}, answer(500, ""))
	}
}

// The context of the caller ends the call at once, wherever it is. What is known of the last response stays.
func TestTheCallerLeaves(t *testing.T) {
	t.Parallel()
	slow := withBody(200, func(ctx context.Context) io.Reader { return standing{ctx} })
	for _, tt := range []struct {
		name    string
		leaves  time.Duration
		script  []exchange
		count   int
		status  int
		outcome transport.Outcome
		cause   string
	}{
		{"before", 0, []exchange{answer(200, "")}, 0, 0, transport.NotApplied, "context canceled"},
		{"without a connection", 3 * time.Second, []exchange{connecting}, 1, 0, transport.NotApplied, "context canceled"},
		{"before the response", 3 * time.Second, []exchange{connected(silent)}, 1, 0, transport.Unknown, "context canceled"},
		{"before a response in other words", 3 * time.Second, []exchange{inOtherWords}, 1, 0, transport.Unknown, "context canceled: connection lost"},
		{"in the body", 3 * time.Second, []exchange{slow}, 1, 200, transport.Unknown, "context canceled"},
		{"before the second attempt", 3 * time.Second, []exchange{answer(429, "", "Retry-After", "9")}, 1, 429, transport.NotApplied, "context canceled"},
		{"during the second attempt", 3 * time.Second, []exchange{answer(429, ""), silent}, 2, 429, transport.Unknown, "context canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				ctx, cancel := context.WithCancel(f.Context())
				defer cancel()
				if tt.leaves == 0 {
					cancel()
				} else {
					time.AfterFunc(tt.leaves, cancel)
				}
				failure := f.failsWith(ctx, aRepeated)
				assert.Equal(f, tt.leaves, time.Since(f.began))
				require.ErrorIs(f, failure, context.Canceled)
				require.EqualError(f, failure.Cause, tt.cause)
				assert.Equal(f, tt.count, f.count())
				assert.Equal(f, tt.status, failure.Status)
				assert.Equal(f, tt.outcome, failure.Outcome)
			}, tt.script...)
		})
	}
}

// If a caller leaves an attempt whose time is over, but that does not end, the caller gets the error of its own
// context.
func TestTheCallerLeavesAnAttemptThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		ctx, cancel := context.WithTimeout(f.Context(), 33*time.Second)
		defer cancel()
		assert.Equal(f, "context deadline exceeded: connection lost", f.failsWith(ctx, aRead).Cause.Error())
		assert.Equal(f, 35*time.Second, time.Since(f.began))
	}, func(r *http.Request) (*http.Response, error) {
		_, _ = silent(r)
		time.Sleep(5 * time.Second)
		return nil, errLost
	})
}

// connecting never gets a connection.
func connecting(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return unconnected(r.Context().Err())(r)
}

// inOtherWords does not say that the context ended it.
func inOtherWords(r *http.Request) (*http.Response, error) {
	_, _ = silent(r)
	return nil, errLost
}

// An attempt has a time of its own, which covers the body; after it the next one follows.
func TestAnAttemptTakesTooLong(t *testing.T) {
	t.Parallel()
	const response, connection = "no whole response within 30s", "no connection within 30s"
	for _, tt := range []struct {
		name  string
		fault exchange
		cause string
	}{
		{"no response", silent, response},
		{"no response over a connection", connected(silent), response},
		{"no connection", connecting, connection},
		{"in other words", inOtherWords, response},
		{"a body that does not arrive", withBody(200, func(ctx context.Context) io.Reader { return standing{ctx} }), response},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				failure := f.fails(aRead)
				assert.Equal(f, 4, f.count())
				assert.Equal(f, 2*time.Minute, time.Since(f.began).Truncate(time.Second))
				require.EqualError(f, failure.Cause, tt.cause)
				var timeout interface{ Timeout() bool }
				require.ErrorAs(f, failure.Cause, &timeout)
				assert.True(f, timeout.Timeout())
				assert.NotErrorIs(f, failure.Cause, context.Canceled)
			}, tt.fault)
		})
	}
	inFakeTime(t, nil, func(f *fixture) {
		f.succeeds(aRead)
		assert.Equal(f, 29*time.Second, time.Since(f.began))
	}, after(29*time.Second, answer(200, "")))
}

// What an attempt holds is let go when it ends.
func TestAnAttemptEndsItsContext(t *testing.T) {
	t.Parallel()
	for _, fault := range []exchange{answer(200, "{}"), answer(404, "{}"), cut, unconnected(errLost), answer(101, "")} {
		inFakeTime(t, nil, func(f *fixture) {
			_, _ = f.send(aWrite)
			for _, r := range f.requests() {
				require.ErrorIs(f, r.context.Err(), context.Canceled)
			}
		}, func(r *http.Request) (*http.Response, error) {
			assert.NoError(t, r.Context().Err())
			return fault(r)
		})
	}
}
