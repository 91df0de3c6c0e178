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
	ErrBadReply         = errors.New("webdelivery: bad response")
	ErrResponseTooLarge = errors.New("webdelivery: response too large")
)

var (
	// errPermitExpired means that the permit expired before the request could begin. Nothing was sent.
	errPermitExpired = errors.New("the purge permit expired before the connection was ready")
	// errReset means that the HTTP/2 stream or connection was reset after the request had been sent.
	errReset = errors.New("the HTTP/2 stream or connection was reset before a response")
	// errNoPassword means that a login has no user name and password to use.
	errNoPassword = errors.New("SessionToken gives no user name and password to log in with")
	// errSessionRefused means that the login succeeded, but its session was refused.
	errSessionRefused = fmt.Errorf("the service refused the session that it had just created: %w", ErrUnauthorized)
)

// endedWith returns the error of a call whose context has ended. It has the text of both errors but wraps only that of
// the context: the other may be the context's cause, which may come from another call.
func endedWith(ended, followed error) error {
	if followed == nil {
		return ended
	}
	before, after, found := strings.Cut(followed.Error(), ended.Error())
	if !found {
		before, after = "", ": "+followed.Error()
	}
	return fmt.Errorf("%s%w%s", before, ended, after)
}

// unsentError is a failure to get a permit or credentials, before the request was sent.
type unsentError struct {
	what  string
	err   error
	login bool // the login failed
}

func (e *unsentError) Error() string { return e.what + ": " + e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

func noPermit(err error) error    { return &unsentError{what: "waiting for a purge permit", err: err} }
func loginFailed(err error) error { return &unsentError{what: "login", err: err, login: true} }

// timeoutError means that an attempt took too long although the caller's context has not ended. Like the timeouts of
// package net, it is a [net.Error] and matches [os.ErrDeadlineExceeded].
type timeoutError string

func (e timeoutError) Error() string        { return string(e) }
func (e timeoutError) Timeout() bool        { return true }
func (e timeoutError) Temporary() bool      { return true }
func (e timeoutError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

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
