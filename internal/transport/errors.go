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
	"strings"
)

// Errors that callers distinguish. The SDK's own sentinels are these values.
var (
	ErrUnauthorized     = errors.New("webdelivery: unauthorized")
	ErrRateLimited      = errors.New("webdelivery: rate limited")
	ErrBadReply         = errors.New("webdelivery: bad response")
	ErrResponseTooLarge = errors.New("webdelivery: response too large")
)

var (
	// errPermitExpired: the permit expired before the request could begin. Nothing was sent.
	errPermitExpired = errors.New("the purge permit expired before the connection was ready")
	// errReset: the service reset the stream or the connection of an HTTP/2 request that had been sent.
	errReset = errors.New("the HTTP/2 stream or connection was reset before a response")
	// errNoPassword: a login needs a user name and a password.
	errNoPassword = errors.New("SessionToken gives no user name and password to log in with")
	// errSessionRefused: the login worked, the session does not.
	errSessionRefused = fmt.Errorf("the service refused the session that it had just created: %w", ErrUnauthorized)
)

// endedError is the error of a call whose context has ended. It wraps the error of the context alone: what went wrong
// besides may be the cause of the context, which may be the error of another call.
type endedError struct {
	text string
	err  error
}

func (e *endedError) Error() string { return e.text }
func (e *endedError) Unwrap() error { return e.err }

// endedWith returns the error of a context that has ended, with the text of what followed from it.
func endedWith(ended, followed error) error {
	switch {
	case followed == nil, followed == ended: //nolint:errorlint // the very same
		return ended
	case strings.Contains(followed.Error(), ended.Error()):
		return &endedError{followed.Error(), ended}
	default:
		return &endedError{ended.Error() + ": " + followed.Error(), ended}
	}
}

// unsentError is a failure before the request was sent: no permit, or no session.
type unsentError struct {
	what  string
	err   error
	login bool // the login failed
}

func (e *unsentError) Error() string { return e.what + ": " + e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

func noPermit(err error) error    { return &unsentError{what: "waiting for a purge permit", err: err} }
func loginFailed(err error) error { return &unsentError{what: "login", err: err, login: true} }

// timeoutError is an attempt that took too long. The caller's context has not ended.
type timeoutError string

func (e timeoutError) Error() string { return string(e) }
func (e timeoutError) Timeout() bool { return true }

// proxyRefused is the error of a proxy that refuses to connect. It leaves out the text of the proxy, which may contain
// the credentials that the proxy was sent.
type proxyRefused int

func (e proxyRefused) Error() string {
	return fmt.Sprintf("the proxy refused to connect: %d %s", int(e), http.StatusText(int(e)))
}

// judgeProxy gets the response of a proxy to CONNECT before net/http judges it.
func judgeProxy(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return proxyRefused(resp.StatusCode)
}

// Misdirected reports whether err says that there is no such service, or that no connection to it can be set up.
// Examples are an unknown host, an untrusted certificate, an alert that ends a TLS handshake and a proxy that refuses.
// Such an error may be transient, but its usual cause is a wrong setting.
func Misdirected(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	if proxy, ok := errors.AsType[proxyRefused](err); ok {
		return proxy < http.StatusBadRequest || Final(int(proxy))
	}
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err) // a dialer of the user's may not wrap it
	remote, failed := errors.AsType[*net.OpError](err)
	alert := failed && remote.Op == "remote error" // so crypto/tls calls it; internal_error (80) may pass
	return cert || unknown || alert && remote.Err.Error() != tls.AlertError(80).Error()
}
