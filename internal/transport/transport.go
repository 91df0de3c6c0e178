// Package transport executes calls: it turns a [Request] into a [Response]. It handles credentials and logins, permits,
// retries and their budget, bounded and streamed bodies, secrets and logging. It knows HTTP and the JSON envelope of an
// error. It must not depend on purges, lists, tasks or statistics, nor on the types that users see.
//
// Send (call.go) creates a call with a retry loop. Each attempt is one RoundTrip (call.go): prepare gets a credential
// and a permit, send (send.go) sends the request and reads the response within limits, settle and log record the
// result. checkRetry (retry.go) asks Policy.decide (policy.go) for a verdict and acts on it. finish (response.go)
// describes the last attempt.
package transport

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// Config configures a Transport. All fields are required except Logger.
type Config struct {
	Base           *address.Base
	Credentials    Credentials
	Next           http.RoundTripper // sends the requests
	Policy         Policy
	AttemptTimeout time.Duration // for connecting, sending the request and reading the whole response
	IdleTimeout    time.Duration // how long a stream may stall
	MaxBody        int64         // maximum bytes of a response that is not streamed, after decompression
	UserAgent      string
	Logger         *slog.Logger // nil means no log
}

// Transport sends the calls of one client. It is safe for concurrent use.
type Transport struct {
	Config

	auth       *authenticator
	secrets    Secrets
	plainHTTP2 bool // see mayPlainHTTP2
}

// New returns a Transport.
func New(c Config) *Transport {
	t := &Transport{Config: c, auth: newAuthenticator(c.Credentials, c.AttemptTimeout), plainHTTP2: mayPlainHTTP2(c.Next)}
	t.secrets = Secrets{c.Base, t.auth}
	return t
}

// Secrets returns the filter that removes this client's secrets from texts.
func (t *Transport) Secrets() *Secrets { return &t.secrets }

// NewRoundTripper returns the default for Config.Next. Unlike net/http's default, it keeps enough idle connections for
// many goroutines that use one host, closes them before a server's idle timeout can hit a request, and pings silent
// HTTP/2 connections.
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

// LogIn makes sure that there is a session, if the client needs one. A caller that acquires a permit before it has a
// request calls LogIn first, so that no login delays the request once it has the permit.
func (t *Transport) LogIn(ctx context.Context) error {
	if t.auth.login == nil {
		return nil
	}
	_, err := t.auth.login.current(ctx, 0, 0)
	return err
}
