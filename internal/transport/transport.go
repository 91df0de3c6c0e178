// Package transport executes calls: it turns a [Request] into a [Response]. It handles credentials and logins, permits,
// retries and their budget, bounded and streamed bodies, secrets and logging. It knows HTTP and the JSON envelope of an
// error. It must not depend on purges, lists, tasks or statistics, nor on the types that users see.
//
// Send (call.go) creates a call with a retry loop. Each attempt is one RoundTrip (call.go): prepare gets a credential
// and a permit, send (send.go) sends the request and reads the response within limits, settle and log record the
// result. checkRetry asks Policy.decide (retry.go) for a verdict and acts on it. finish (call.go) describes the last
// attempt.
package transport

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
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

// The log never contains a header, a body or a query value.

// log logs an attempt at level Debug, for a stream when it is closed. waited is how long the attempt waited for a
// permit.
func (c *call) log(started time.Time, waited time.Duration) {
	if !c.t.logs(c.ctx, slog.LevelDebug) {
		return
	}
	write := func(bytes int64) {
		c.t.write(c.ctx, slog.LevelDebug, "webdelivery: attempt", &c.Request, c.last.err,
			slog.Int("status", c.last.status), slog.Duration("duration", time.Since(started)-waited), slog.Int("attempt", c.attempts),
			slog.Duration("wait", waited), slog.Int64("bytes", bytes))
	}
	if s := c.last.stream; s != nil {
		s.closed = write
	} else {
		write(c.last.size)
	}
}

// warn logs a message about an attempt at level Warn.
func (c *call) warn(message string, err error, attrs ...slog.Attr) {
	if c.t.logs(c.ctx, slog.LevelWarn) {
		c.t.write(c.ctx, slog.LevelWarn, message, &c.Request, err, append([]slog.Attr{slog.Int("attempt", c.attempts)}, attrs...)...)
	}
}

// Warn logs a warning about a request at level Warn, before its first attempt.
func (t *Transport) Warn(ctx context.Context, r Request, message, warning string) {
	if t.logs(ctx, slog.LevelWarn) {
		t.write(ctx, slog.LevelWarn, message, &r, nil, slog.String("warning", warning))
	}
}

func (t *Transport) logs(ctx context.Context, level slog.Level) bool {
	return t.Logger != nil && t.Logger.Enabled(ctx, level)
}

func (t *Transport) write(ctx context.Context, level slog.Level, message string, r *Request, err error, attrs ...slog.Attr) {
	attrs = append([]slog.Attr{slog.String("method", r.Method), slog.String("path", t.secrets.Text(t.Base.Path(r.Path)))}, attrs...)
	if err != nil {
		attrs = append(attrs, slog.String("error", redact.Line(t.secrets.Text(err.Error()))))
	}
	t.Logger.LogAttrs(ctx, level, message, attrs...)
}
