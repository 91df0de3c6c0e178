package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Errors that callers distinguish. The SDK exports the same values.
var (
	ErrUnauthorized     = errors.New("webdelivery: unauthorized")
	ErrRateLimited      = errors.New("webdelivery: rate limited")
	ErrBadResponse      = errors.New("webdelivery: bad response")
	ErrResponseTooLarge = errors.New("webdelivery: response too large")
)

var (
	// errPermitExpired means that the permit expired before the request could begin. Nothing was sent.
	errPermitExpired = errors.New("the purge permit expired before the connection was ready")
	// errReset means that the HTTP/2 stream or connection was reset after the request had been sent.
	errReset = errors.New("the HTTP/2 stream or connection was reset before a response")
)

// failure is an error with a text of its own.
type failure struct {
	text   string
	err    error
	unsent bool // there is no permit or no credential, so the request was not sent, and another attempt does not help
	login  bool // the login failed
}

func (e *failure) Error() string { return e.text }
func (e *failure) Unwrap() error { return e.err }

func unsent(what string, err error) error {
	return &failure{text: what + ": " + err.Error(), err: err, unsent: true}
}

func loginFailed(what string, err error) error {
	return &failure{text: what + ": " + err.Error(), err: err, unsent: true, login: true}
}

// timeout returns the error of an attempt that took too long although the caller's context has not ended. Like the
// timeouts of package net, it matches [net.Error] and [os.ErrDeadlineExceeded].
func timeout(format string, args ...any) error {
	return &failure{text: fmt.Sprintf(format, args...), err: os.ErrDeadlineExceeded}
}

// endedWith returns the error of a call whose context has ended. It has the text of both errors, and wraps only that of
// the context: the other one may be the context's cause, which may come from another call.
func endedWith(ended, followed error) error {
	switch {
	case followed == nil, followed == ended: //nolint:errorlint // identity is meant
		return ended
	case strings.Contains(followed.Error(), ended.Error()):
		return &failure{text: followed.Error(), err: ended}
	default:
		return &failure{text: ended.Error() + ": " + followed.Error(), err: ended}
	}
}

// proxyRefused is the status of a proxy that refused to connect. The proxy's own text is left out, because it may
// contain the credentials sent to the proxy.
type proxyRefused int

func (e proxyRefused) Error() string {
	return fmt.Sprintf("the proxy refused to connect: %d %s", int(e), http.StatusText(int(e)))
}

// judgeProxy checks a proxy's response to CONNECT before net/http does.
func judgeProxy(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return proxyRefused(resp.StatusCode)
}

// Misdirected reports whether err means that the service does not exist or cannot be connected to, such as an unknown
// host, an untrusted certificate, a TLS alert during the handshake, or a refusal by the proxy. The usual cause is a
// wrong setting.
func Misdirected(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	if proxy, ok := errors.AsType[proxyRefused](err); ok {
		return proxy < http.StatusBadRequest || Final(int(proxy))
	}
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err) // the user's dialer may not wrap it
	remote, failed := errors.AsType[*net.OpError](err)
	alert := failed && remote.Op == "remote error" // as crypto/tls names an alert; internal_error (80) may be transient
	return cert || unknown || alert && remote.Err.Error() != tls.AlertError(80).Error()
}
