// Package transport carries one call from a described request to a response or a failure: credentials and login, permits,
// attempts, retries and their budget, bounded and streamed bodies, secrets, the log. It knows HTTP and the JSON envelope
// of an error. It must not know purges, lists, tasks or statistics, nor the types that users see.
//
// Entry points: [New] makes a [Transport] of a [Config]; its Send takes a [Request] and returns a [Response], or a
// [*Failure]. Its Warn logs a warning about a query. A [Gate] gives permits to limited requests. [Secrets] keeps secrets
// out of texts.
//
// A call goes this way: Send (call.go) makes a call and a retry loop for it; each attempt is one RoundTrip (call.go):
// session, permit, header, time limit, send, read bounded, settle, log. CheckRetry asks Policy.decide (policy.go) for a
// verdict and carries it out. Send returns what the last attempt brought (response.go).
package transport

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// Config says how a Transport works. All fields are set but Logger and Own.
type Config struct {
	Base           *address.Base
	Credentials    Credentials
	Next           http.RoundTripper // what sends
	Policy         Policy
	AttemptTimeout time.Duration // of a connection, a request and its whole response
	IdleTimeout    time.Duration // how long a stream may stand still
	MaxBody        int64         // bytes of a response that is read whole, after decompression
	UserAgent      string
	Logger         *slog.Logger // nil: no log

	// Own tells whether an error, without what it wraps, is one that users see of the calls of a client. Such an error is
	// not looked for in what a context or Next returns. nil: none is.
	Own func(error) bool
}

// Transport sends the calls of one client. It is safe for concurrent use.
type Transport struct {
	Config

	auth    *authenticator
	budget  *budget
	journal journal
}

// New returns a Transport.
func New(c Config) *Transport {
	auth := newAuthenticator(c.Credentials, c.Base)
	return &Transport{Config: c, auth: auth, budget: newBudget(), journal: journal{c.Logger, c.Base, auth.secrets}}
}

// Secrets returns what takes this client's secrets out of texts.
func (t *Transport) Secrets() *Secrets { return t.auth.secrets }

// NewRoundTripper returns what a client sends through unless it is given another: net/http's defaults, except that
// connections to one host are kept for many goroutines, are closed before a server's own idle limit closes them under a
// request, and are probed when HTTP/2 falls silent.
func NewRoundTripper() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: judgeProxy,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 10 * time.Second, WriteByteTimeout: 10 * time.Second},
		MaxIdleConns:           128,
		MaxIdleConnsPerHost:    128,
		IdleConnTimeout:        15 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// LogIn makes sure that there is a session, if the client needs one, and that a request like r is not held. A caller who
// waits for a permit before there is a request calls it first, so that no login comes between the permit and the request.
// The error of a held call is a [*Failure].
func (t *Transport) LogIn(ctx context.Context, r Request) error {
	_, err := t.auth.credential(ctx, &r, 0, &patience{})
	if held, ok := err.(*heldError); ok { //nolint:errorlint // the transport's own, which nothing wraps
		c := &call{Request: r, t: t, ctx: ctx, attempts: 1, last: attempt{err: held, unsent: true}}
		return c.failure(held)
	}
	return err
}
