// Package transport executes calls: it turns a [Request] into a [Response]. It handles credentials and logins, permits,
// retries, bounded and streamed bodies, secrets and logging. It knows HTTP and the JSON envelope of an error. Of purges
// it knows only that they need a permit; it knows no other resource of the service, nor the types that users see.
// docs/internals/architecture.md shows the way of a call.
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
	PlainHTTP2     bool              // see MayPlainHTTP2
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

	login   *login // nil unless the client logs in
	secrets Secrets
}

// New returns a Transport.
func New(c Config) *Transport {
	t := &Transport{Config: c, secrets: Secrets{cookie: c.Credentials.Cookie}}
	learn := func(token redact.Secret) { t.secrets.learnToken(&t.secrets.tokens, token) }
	if !c.Credentials.Token.IsZero() {
		learn(c.Credentials.Token)
	}
	if c.Credentials.LogIn != nil {
		t.login = &login{create: c.Credentials.LogIn, vain: map[int]time.Time{}, learn: learn}
	}
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

// LogIn makes sure that there are credentials. A caller that acquires a permit before it has a request calls LogIn
// first, so that neither a login nor a function of the user's holds up the request once it has the permit.
func (t *Transport) LogIn(ctx context.Context) (err error) {
	if t.login != nil {
		_, err = t.login.current(ctx, 0, 0)
	} else if t.Credentials.Pair != nil { // which also makes the pair known as a secret
		_, err = t.authorization(ctx)
	}
	return err
}

// log logs an attempt at level Debug, for a stream when it is closed. waited is how long the attempt waited for a
// permit. The log never contains a body or a query value. docs/guarantees.md says what it contains of headers.
func (c *call) log(started time.Time, waited time.Duration) {
	if !c.t.Logger.Enabled(c.ctx, slog.LevelDebug) {
		return
	}
	write := func(bytes int64) {
		attrs := []slog.Attr{
			slog.Int("status", c.last.status), slog.Duration("duration", time.Since(started)-waited), slog.Int("attempt", c.attempts),
			slog.Duration("wait", waited), slog.Int64("bytes", bytes),
		}
		if id := c.t.Secrets().RequestID(c.last.header); id != "" {
			attrs = append(attrs, slog.String("request_id", id))
		}
		c.t.write(c.ctx, slog.LevelDebug, "webdelivery: attempt", &c.Request, c.last.err, attrs...)
	}
	if s := c.last.stream; s != nil {
		s.closed = write
	} else {
		write(max(c.last.size, int64(len(c.last.body))))
	}
}

// warn logs a message about an attempt at level Warn.
func (c *call) warn(message string, err error, attrs ...slog.Attr) {
	c.t.write(c.ctx, slog.LevelWarn, message, &c.Request, err, append([]slog.Attr{slog.Int("attempt", c.attempts)}, attrs...)...)
}

// Warn logs a warning about a request at level Warn, before its first attempt.
func (t *Transport) Warn(ctx context.Context, r Request, message, warning string) {
	t.write(ctx, slog.LevelWarn, message, &r, nil, slog.String("warning", warning))
}

func (t *Transport) write(ctx context.Context, level slog.Level, message string, r *Request, err error, attrs ...slog.Attr) {
	if t.Logger == nil || !t.Logger.Enabled(ctx, level) {
		return
	}
	attrs = append([]slog.Attr{slog.String("operation", r.Operation), slog.String("method", r.Method), slog.String("path", t.secrets.Text(t.Base.Path(r.Path)))}, attrs...)
	if err != nil {
		attrs = append(attrs, slog.String("error", redact.Line(t.secrets.Text(err.Error()))))
	}
	t.Logger.LogAttrs(ctx, level, message, attrs...)
}
