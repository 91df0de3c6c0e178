// Package transport carries one call from a described [Request] to a [Response]: credentials and logins, permits,
// attempts, retries and their budget, bounded and streamed bodies, secrets and the log. It knows HTTP and the
// JSON envelope of an error. It must not know purges, lists, tasks or statistics, nor the types that users see.
//
// Send (call.go) creates a call with a retry loop. Each attempt is one RoundTrip (call.go): prepare gets a credential and
// a permit, send (send.go) sends the request and reads the response within bounds, settle and log note the result.
// checkRetry (retry.go) asks Policy.decide (policy.go) for a verdict and carries it out. finish (response.go) describes
// the last attempt.
package transport

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// Config says how a Transport works. All fields are set except Logger, which may be nil.
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
}

// Transport sends the calls of one client. It is safe for concurrent use.
type Transport struct {
	Config

	auth       *authenticator
	secrets    Secrets
	budget     budget
	plainHTTP2 bool // see mayPlainHTTP2
}

// New returns a Transport.
func New(c Config) *Transport {
	t := &Transport{Config: c, auth: newAuthenticator(c.Credentials), plainHTTP2: mayPlainHTTP2(c.Next)}
	t.secrets = Secrets{c.Base, t.auth}
	return t
}

// Secrets returns what removes this client's secrets from texts.
func (t *Transport) Secrets() *Secrets { return &t.secrets }

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

// LogIn makes sure that there is a session, if the client needs one. A caller that waits for a permit before it has a
// request calls LogIn first. So no login comes between the permit and the request.
func (t *Transport) LogIn(ctx context.Context) error {
	if t.auth.login == nil {
		return nil
	}
	_, err := t.auth.login.current(ctx, 0)
	return err
}
