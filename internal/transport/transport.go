// Package transport carries one call from a described request to a response or a failure. It is responsible for
// credentials and logins, permits, attempts, retries and their budget, bounded and streamed bodies, secrets and the
// log. It knows HTTP and the JSON envelope of an error. It must not know purges, lists, tasks or statistics, nor the
// types that users see.
//
// Entry points: [New] creates a [Transport] from a [Config]. Its Send takes a [Request] and returns a [Response] or a
// [*Failure]. Its Warn logs a warning about a query. A [Gate] gives permits to limited requests. [Secrets] removes
// secrets from texts.
//
// Send (call.go) creates a call with a retry loop. Each attempt is one RoundTrip (call.go) with these steps:
// credentials, permit, header, time limit, send, read bounded, settle, log. CheckRetry asks Policy.decide (policy.go)
// for a verdict and carries it out. Send returns the result of the last attempt (response.go).
package transport

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// Config says how a Transport works. All fields are set except Logger and Own, which may be nil.
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

	// Own reports whether an error, without what it wraps, is an error of the SDK that users see. If a context or
	// Next returns such an error, it comes from another call and says nothing of this one. nil: no error is.
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

// Secrets returns what removes this client's secrets from texts.
func (t *Transport) Secrets() *Secrets { return t.auth.secrets }

// NewRoundTripper returns the default of Config.Next. It has net/http's defaults with three changes. It keeps
// connections to one host for many goroutines. It closes idle connections before a server's own limit closes them
// during a request. It probes a silent HTTP/2 connection.
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

// LogIn makes sure that there is a session, if the client needs one, and that a request like r is not held. A caller
// that waits for a permit before it has a request calls LogIn first. So no login comes between the permit and the
// request. The error of a held call is a [*Failure].
func (t *Transport) LogIn(ctx context.Context, r Request) error {
	_, err := t.auth.credential(ctx, &r, 0, &patience{})
	if held, ok := err.(*heldError); ok { //nolint:errorlint // the transport's own, which nothing wraps
		c := &call{Request: r, t: t, ctx: ctx, attempts: 1, last: attempt{err: held, unsent: true}}
		return c.failure(held)
	}
	return err
}
