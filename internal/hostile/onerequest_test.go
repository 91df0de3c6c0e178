package hostile

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// net/http retries some requests by itself, over HTTP/2 even one that the service has read completely. For every call
// of the SDK, one attempt is one request. The service receives as many requests as the error reports, and the outcome in
// the error is true.
func TestOneAttemptIsOneRequest(t *testing.T) {
	t.Parallel()
	oneRequestEach(t, "TLS", "PROTOCOL_ERROR", "REFUSED_STREAM", "INTERNAL_ERROR", "GOAWAY")
}

// oneRequestEach makes calls over a connection that resets them.
func oneRequestEach(t *testing.T, over string, resets ...string) {
	t.Helper()
	trusted := newAuthority()
	certificate := trusted.issue(nil)
	for name, reset := range map[string]func(f *frames, stream uint32){
		"PROTOCOL_ERROR": func(f *frames, stream uint32) { f.send(frameReset, 0, stream, numbers(codeProtocolError)) },
		"REFUSED_STREAM": func(f *frames, stream uint32) { f.send(frameReset, 0, stream, numbers(codeRefusedStream)) },
		"INTERNAL_ERROR": func(f *frames, stream uint32) { f.send(frameReset, 0, stream, numbers(0x2)) },
		"GOAWAY":         func(f *frames, _ uint32) { f.send(frameGoAway, 0, 0, numbers(0, codeNoError)) },
	} {
		if !slices.Contains(resets, name) {
			continue
		}
		for _, op := range []struct {
			name     string
			attempts int
			call     func(context.Context, *webdelivery.Client) error
		}{
			{"GET", 4, getTask},
			{"POST", 1, addEntries},
			{"POST without a body", 1, func(ctx context.Context, c *webdelivery.Client) error {
				return c.Do(ctx, http.MethodPost, "/config/networklists/l/entries/deletions", nil, nil)
			}},
			{"DELETE", 4, operation("NetworkLists.Delete")},
			{"a login", 4, operation("Sessions.Create")},
		} {
			t.Run(strings.Join([]string{over, name, op.name}, "/"), func(t *testing.T) {
				t.Parallel()
				scheme, secure, transport := "https://", certificate, trusted.transport(t)
				if over != "TLS" {
					scheme, secure, transport.Protocols = "http://", nil, new(http.Protocols)
					transport.Protocols.SetUnencryptedHTTP2(true)
				}
				var requests atomic.Int32
				service := startRaw(t, overFrames(secure, nil, func(f *frames, stream uint32) {
					if requests.Add(1) < 50 { // an end for a client that never stops
						reset(f, stream)
					} else {
						f.respond(stream)
					}
				}))
				var through http.RoundTripper = transport
				if over == "clear text, wrapped" {
					through = struct{ http.RoundTripper }{transport}
				}
				c := client(t, scheme+service.addr, quick(through, webdelivery.WithAttemptTimeout(10*time.Second))...)
				err := op.call(bounded(t), c)
				require.Error(t, err)
				attempts, outcome := op.attempts, webdelivery.OutcomeUnknown
				if (name == "GOAWAY" || name == "REFUSED_STREAM") && op.name == "POST" { // the service did not process the stream, and says so
					attempts, outcome = 3, webdelivery.OutcomeNotApplied
				}
				assert.Equal(t, attempts, attemptsOf(err), "attempts: %v", err)
				assert.LessOrEqual(t, int(requests.Load()), attempts, "requests")
				if op.name != "GET" {
					assert.Equal(t, outcome, webdelivery.OutcomeOf(err))
				}
			})
		}
	}
}
