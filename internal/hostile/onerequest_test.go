package hostile

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// resets are the ways in which a service of HTTP/2 ends a request before it answers, and whether it says that it has not
// processed the request.
var resets = []struct {
	name         string
	reset        func(f *frames, stream uint32)
	notProcessed bool
}{
	{"PROTOCOL_ERROR", func(f *frames, stream uint32) { f.reset(stream, codeProtocolError) }, false},
	{"REFUSED_STREAM", func(f *frames, stream uint32) { f.reset(stream, codeRefusedStream) }, true},
	{"GOAWAY", func(f *frames, _ uint32) { f.goAway(0) }, true},
	{"INTERNAL_ERROR", func(f *frames, stream uint32) { f.reset(stream, codeInternalError) }, false},
}

// net/http retries some requests by itself, over HTTP/2 even one that the service has read completely. For every call
// of the SDK, one attempt is one request. The service receives as many requests as the error reports, and the outcome in
// the error is true.
func TestOneAttemptIsOneRequest(t *testing.T) {
	t.Parallel()
	oneRequestEach(t, func(t *testing.T, serve serving) (string, http.RoundTripper) {
		config, tr := secured(t, "h2")
		return "https://" + startRaw(t, overTLS(config, serve)).addr, tr
	})
}

// One attempt is one request in clear text, too, as a sidecar speaks it, also if the transport is wrapped.
func TestNothingIsSentAgainInClearText(t *testing.T) {
	t.Parallel()
	oneRequestEach(t, func(t *testing.T, serve serving) (string, http.RoundTripper) {
		return "http://" + startRaw(t, serve).addr, struct{ http.RoundTripper }{clearHTTP2(t)}
	})
	t.Run("bare", func(t *testing.T) {
		t.Parallel()
		oneRequestEach(t, func(t *testing.T, serve serving) (string, http.RoundTripper) {
			return "http://" + startRaw(t, serve).addr, clearHTTP2(t)
		})
	})
}

// pass is a middleware that hides the transport from the question whether it uses HTTP/2 without TLS.
var pass = webdelivery.WithMiddleware(func(next http.RoundTripper) http.RoundTripper { return struct{ http.RoundTripper }{next} })

// oneRequestEach makes calls over connections that reset each of their requests.
func oneRequestEach(t *testing.T, start func(*testing.T, serving) (url string, tr http.RoundTripper)) {
	t.Helper()
	for _, r := range resets {
		for _, k := range []kind{read, purge, write, bodiless, deletion, login} {
			t.Run(r.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				attempts, outcome := k.attempts, k.outcome
				// For a request without a body, net/http does not report that: it was about to repeat the request by itself.
				if r.notProcessed && (k.name == write.name || k.name == purge.name) {
					attempts, outcome = max(attempts, 3), webdelivery.OutcomeNotApplied
				}
				var requests atomic.Int32
				url, tr := start(t, overFrames(func(f *frames, stream uint32) {
					if int(requests.Add(1)) <= attempts {
						r.reset(f, stream)
					} else { // what should not have been sent succeeds
						f.respond(stream, "200", good)
					}
				}))
				err := k.call(t.Context(), client(t, url, tr, pass))
				require.Error(t, err)
				assert.Equal(t, attempts, attemptsOf(err), "attempts: %v", err)
				assert.LessOrEqual(t, int(requests.Load()), attempts, "requests")
				assert.Equal(t, outcome, webdelivery.OutcomeOf(err))
			})
		}
	}
}
