package transport_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Which classes are retried after which failure, how often, and the outcome of a write that fails every time. A read, a
// delete and a repeatable write are sent 4 times if the failure is transient, and a login twice. A write that must
// happen once is sent 3 times, only if it certainly did not happen.
func TestWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	const (
		unknown = transport.Unknown
		not     = transport.NotApplied
	)
	later := []string{"Retry-After", "1"}
	for _, tt := range []struct {
		name    string
		fault   exchange
		counts  [5]int // read, delete, repeatable, once, login
		outcome transport.Outcome
		status  int
	}{
		{"connection refused", unconnected(errLost), [5]int{4, 4, 4, 3, 2}, not, 0},
		{"no such host", unconnected(&net.DNSError{IsNotFound: true}), [5]int{1, 1, 1, 1, 1}, not, 0},
		{"name server unreachable", unconnected(&net.DNSError{IsTemporary: true}), [5]int{4, 4, 4, 3, 2}, not, 0},
		{"certificate not trusted", unconnected(&tls.CertificateVerificationError{Err: errLost}), [5]int{1, 1, 1, 1, 1}, not, 0},
		{"connection cut", connected(cut), [5]int{4, 4, 4, 1, 2}, unknown, 0},
		{"a transport that reports nothing", cut, [5]int{4, 4, 4, 1, 2}, unknown, 0},
		{"no answer in time", connected(silent), [5]int{4, 4, 4, 1, 2}, unknown, 0},
		{"neither response nor error", func(*http.Request) (*http.Response, error) { return nil, nil }, [5]int{4, 4, 4, 1, 2}, unknown, 0}, //nolint:nilnil // as it says
		{"body cut", cutBody(200, `{"id":`), [5]int{4, 4, 4, 1, 2}, unknown, 200},
		{"body too large", answer(200, strings.Repeat(" ", 1<<20+1)), [5]int{1, 1, 1, 1, 1}, unknown, 200},
		{"101", answer(101, ""), [5]int{1, 1, 1, 1, 1}, unknown, 101},
		{"300", answer(300, ""), [5]int{1, 1, 1, 1, 1}, unknown, 300},
		{"303", answer(303, ""), [5]int{1, 1, 1, 1, 1}, unknown, 303},
		{"304", answer(304, ""), [5]int{1, 1, 1, 1, 1}, unknown, 304},
		{"400", answer(400, ""), [5]int{1, 1, 1, 1, 1}, not, 400},
		{"401", answer(401, ""), [5]int{1, 1, 1, 1, 1}, not, 401},
		{"404", answer(404, ""), [5]int{1, 1, 1, 1, 1}, not, 404},
		{"408", answer(408, ""), [5]int{4, 4, 4, 1, 2}, unknown, 408},
		{"409", answer(409, ""), [5]int{1, 1, 1, 1, 1}, not, 409},
		{"429", answer(429, ""), [5]int{4, 4, 4, 3, 2}, not, 429},
		{"429 and Retry-After", answer(429, "", later...), [5]int{4, 4, 4, 3, 2}, not, 429},
		{"500", answer(500, ""), [5]int{4, 4, 4, 1, 2}, unknown, 500},
		{"501", answer(501, ""), [5]int{1, 1, 1, 1, 1}, unknown, 501},
		{"502", answer(502, ""), [5]int{4, 4, 4, 1, 2}, unknown, 502},
		{"503", answer(503, ""), [5]int{4, 4, 4, 1, 2}, unknown, 503},
		{"503 and Retry-After", answer(503, "", later...), [5]int{4, 4, 4, 3, 2}, not, 503},
		{"503 whose body is cut", cutBody(503, `{`, later...), [5]int{4, 4, 4, 3, 2}, not, 503},
		{"504", answer(504, ""), [5]int{4, 4, 4, 1, 2}, unknown, 504},
		{"200 and code 400", answer(200, `{"code":400}`), [5]int{1, 1, 1, 1, 1}, not, 200},
		{"200 and code 429", answer(200, `{"code":429}`), [5]int{4, 4, 4, 3, 2}, not, 200},
		{"200 and code 500", answer(200, `{"code":500}`), [5]int{4, 4, 4, 1, 2}, unknown, 200},
	} {
		for i, r := range allClasses {
			t.Run(tt.name+"/"+r.Method+r.Path, func(t *testing.T) {
				t.Parallel()
				inFakeTime(t, nil, func(f *fixture) {
					failure := f.fails(r)
					assert.Equal(f, tt.counts[i], f.count())
					assert.Equal(f, tt.counts[i], failure.Attempts)
					assert.Equal(f, tt.status, failure.Status)
					if r.Class == transport.Read {
						assert.Equal(f, not, failure.Outcome, "a read changes nothing")
					} else {
						assert.Equal(f, tt.outcome, failure.Outcome)
					}
				}, tt.fault)
			})
		}
	}
}

// The one success among failures counts.
func TestAnAttemptThatSucceedsEndsTheCall(t *testing.T) {
	t.Parallel()
	for _, r := range allClasses {
		inFakeTime(t, nil, func(f *fixture) {
			response := f.succeeds(r)
			assert.Equal(f, http.StatusCreated, response.Status)
			assert.Equal(f, `{"id":7}`, string(response.Body))
			assert.Equal(f, http.Header{"Etag": {"x"}}, response.Header)
			assert.Nil(f, response.Stream)
			assert.False(f, response.Gone)
			assert.Equal(f, 2, f.count())
		}, answer(429, ""), answer(201, `{"id":7}`, "Etag", "x"))
	}
}

// A failure is unknown as soon as one of its attempts is: a later one may have met what the earlier one did.
func TestAnEarlierAttemptMayHaveHappened(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		script []exchange
		want   transport.Outcome
	}{
		{"429, then 409", []exchange{answer(429, ""), answer(409, "")}, transport.NotApplied},
		{"503 and Retry-After, then 409", []exchange{answer(503, "", "Retry-After", "1"), answer(409, "")}, transport.NotApplied},
		{"not sent, then 409", []exchange{unconnected(errLost), answer(409, "")}, transport.NotApplied},
		{"500, then 409", []exchange{answer(500, ""), answer(409, "")}, transport.Unknown},
		{"cut, then 409", []exchange{cut, answer(409, "")}, transport.Unknown},
		{"500, 429, then not sent", []exchange{answer(500, ""), answer(429, ""), unconnected(errLost)}, transport.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) { assert.Equal(f, tt.want, f.fails(aRepeated).Outcome) }, tt.script...)
			inFakeTime(t, nil, func(f *fixture) { assert.Equal(f, transport.NotApplied, f.fails(aRead).Outcome) }, tt.script...)
		})
	}
}

// A delete that finds nothing has succeeded if an earlier attempt of its own may have removed it, and only then.
func TestADeleteThatFindsNothing(t *testing.T) {
	t.Parallel()
	notFound := answer(404, `{"code":404}`, "Etag", "x")
	for _, tt := range []struct {
		name    string
		request transport.Request
		script  []exchange
		gone    bool
	}{
		{"at once", aDelete, []exchange{notFound}, false},
		{"after a cut", aDelete, []exchange{cut, notFound}, true},
		{"after 500", aDelete, []exchange{answer(500, ""), notFound}, true},
		{"after a cut and 429", aDelete, []exchange{cut, answer(429, ""), notFound}, true},
		{"after 429", aDelete, []exchange{answer(429, ""), notFound}, false},
		{"after nothing was sent", aDelete, []exchange{unconnected(errLost), notFound}, false},
		{"by its code", aDelete, []exchange{cut, answer(200, `{"code":404}`)}, true},
		{"another status", aDelete, []exchange{cut, answer(410, "")}, false},
		{"another class", aRepeated, []exchange{cut, notFound}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				if !tt.gone {
					f.fails(tt.request)
					return
				}
				response := f.succeeds(tt.request)
				assert.True(f, response.Gone)
				assert.Empty(f, response.Body)
				if response.Status == http.StatusNotFound {
					assert.Equal(f, "x", response.Header.Get("Etag"))
				} else {
					assert.Equal(f, http.StatusOK, response.Status)
				}
				assert.Equal(f, transport.Unknown, response.Failure(nil).Outcome)
			}, tt.script...)
		})
	}
}

// A deadline that comes before the next attempt ends the call with the last response, and without the wait.
func TestADeadlineBeforeTheNextAttempt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		asked string
		count int
	}{{"4", 2}, {"5", 1}, {"6", 1}} {
		inFakeTime(t, nil, func(f *fixture) {
			ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
			defer cancel()
			failure := f.failsWith(ctx, aRead)
			assert.Equal(f, 429, failure.Status)
			require.NoError(f, failure.Cause)
			assert.Equal(f, tt.count, f.count())
		}, answer(429, "", "Retry-After", tt.asked))
	}
}

// The service says when to come again: that long, but not longer than MaxWait.
func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		f.succeeds(aWrite)
		assert.Equal(f, []time.Duration{0, 7 * time.Second, 27 * time.Second}, f.times())
	}, answer(429, "", "Retry-After", "7"), answer(503, "", "Retry-After", "20"), answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) {
		assert.Equal(f, 429, f.fails(aRead).Status)
		assert.Equal(f, []time.Duration{0}, f.times())
	}, answer(429, "", "Retry-After", "21"))
}

// Waits grow from attempt to attempt under a ceiling that doubles.
func TestWaitsGrow(t *testing.T) {
	t.Parallel()
	longest := make([]time.Duration, 3)
	for range 50 {
		inFakeTime(t, func(c *transport.Config) { c.Policy.MinWait = time.Second }, func(f *fixture) {
			f.fails(aRead)
			times := f.times()
			for i := range longest {
				longest[i] = max(longest[i], times[i+1]-times[i])
			}
		}, answer(500, ""))
	}
	for i, ceiling := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		assert.LessOrEqual(t, longest[i], ceiling)
		assert.Greater(t, longest[i], ceiling/2) // of 50 draws all are below half with a chance of 2^-50
	}
}

// All calls of a transport share a budget of 500 for retries. Each retry costs 5, and 10 after a timeout. A success
// gives back 1, and the cost of its own last retry.
func TestTheRetryBudget(t *testing.T) {
	t.Parallel()
	down := answer(500, "")
	for _, tt := range []struct {
		name    string
		fault   exchange
		retries int
	}{{"500", down, 100}, {"timeouts", silent, 50}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				for range 40 {
					f.fails(aRead)
				}
				assert.Equal(f, 40+tt.retries, f.count())
				assert.Equal(f, 1, f.fails(aRead).Attempts)

				f.script = []exchange{answer(200, "")}
				for range 4 {
					f.succeeds(aRead)
				}
				f.script = []exchange{down}
				assert.Equal(f, 1, f.fails(aRead).Attempts)

				f.script = []exchange{answer(200, "")}
				f.succeeds(aRead)
				f.script = []exchange{down}
				assert.Equal(f, 2, f.fails(aRead).Attempts)
			}, tt.fault)
		})
	}
	t.Run("a retry that succeeds", func(t *testing.T) {
		t.Parallel()
		inFakeTime(t, nil, func(f *fixture) {
			for range 40 {
				f.fails(aRead)
			}
			f.script = []exchange{answer(200, "")}
			for range 5 {
				f.succeeds(aRead)
			}
			first := f.count() + 1
			f.script = []exchange{func(r *http.Request) (*http.Response, error) {
				if f.count() == first {
					return down(r)
				}
				return answer(200, "")(r)
			}}
			f.succeeds(aRead) // pays 5 and brings 6
			f.script = []exchange{down}
			assert.Equal(f, 2, f.fails(aRead).Attempts)
			assert.Equal(f, 1, f.fails(aRead).Attempts)
		}, down)
	})
}
