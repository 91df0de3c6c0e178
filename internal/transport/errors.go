package transport

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Errors that callers distinguish. The SDK's own sentinels are these values.
var (
	ErrUnauthorized     = errors.New("webdelivery: unauthorized")
	ErrRateLimited      = errors.New("webdelivery: rate limited")
	ErrBadReply         = errors.New("webdelivery: bad response")
	ErrResponseTooLarge = errors.New("webdelivery: response too large")
)

var (
	// errNoResponse: a transport of the user's does not keep to the contract of http.RoundTripper.
	errNoResponse = errors.New("the transport returned neither a response nor an error")
	// errCut: the body was cut. HTTP cannot see that, as such a body may end anywhere.
	errCut = fmt.Errorf("the connection ended in the middle of the JSON text: %w", io.ErrUnexpectedEOF)
	// errPermitExpired: the permit expired before the request could begin. Nothing was sent.
	errPermitExpired = errors.New("the purge permit expired before the connection was ready")
	// errReset: the service reset the stream or the connection of an HTTP/2 request that had been sent.
	errReset = errors.New("the HTTP/2 stream or connection was reset before a response")
)

func tooLarge(limit int64) error {
	return fmt.Errorf("%w: more than %d bytes", ErrResponseTooLarge, limit)
}

// joinCause puts the error of a context before the error that followed from it.
func joinCause(ended, err error) error {
	if err == nil {
		return ended
	}
	return fmt.Errorf("%w: %w", ended, err)
}

// unsentError is a failure before the request was sent: no permit, or no session.
type unsentError struct {
	what string
	err  error
}

func (e *unsentError) Error() string { return e.what + ": " + e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// loginError is the error of a call whose login failed. Nothing of the call was sent.
type loginError struct{ unsentError }

func (e *loginError) Unwrap() error { return &e.unsentError }

func loginFailed(err error) *loginError { return &loginError{unsentError{"login", err}} }

// attemptExpired is the error of an attempt that got no whole response in time. The caller's context has not ended.
type attemptExpired struct {
	after  time.Duration
	unsent bool // there was no connection yet
}

func (e *attemptExpired) Error() string {
	if e.unsent {
		return fmt.Sprintf("no connection within %v", e.after)
	}
	return fmt.Sprintf("no whole response within %v", e.after)
}
func (e *attemptExpired) Timeout() bool { return true }
