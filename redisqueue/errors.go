package redisqueue

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// Sentinels for errors.Is.
var (
	// ErrFull means that the fleet has MaxPending URIs that have not ended, and that RefuseWhenFull is set.
	ErrFull = errors.New("redisqueue: the queue is full")
	// ErrPending means that a call of Enqueue has not ended. Ask again later.
	ErrPending = errors.New("redisqueue: the purge has not ended")
	// ErrUnknownID means that Redis does not know the id: its result has expired, or Redis has lost its data.
	ErrUnknownID = errors.New("redisqueue: Redis does not know this id")
)

// UnavailableError means that Redis did not do what it was asked for: it is down, slow, full, or it rejects the
// script. After a purge it is the cause of a [*webdelivery.QueueError], whose outcome says whether the URIs may have
// been purged.
type UnavailableError struct{ cause error }

// Error returns the cause on one line.
func (e *UnavailableError) Error() string {
	return fmt.Sprint("redisqueue: Redis is unavailable: ", e.cause)
}

// Unwrap returns the error of go-redis. It never matches the error of a context, because the caller's context has not
// ended.
func (e *UnavailableError) Unwrap() error { return e.cause }

func unavailable(cause error) *UnavailableError {
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		cause = errors.New(cause.Error())
	}
	return &UnavailableError{cause}
}

// neverSent returns whether a script certainly had no effect, because Redis rejected it or it did not leave. The store
// never repeats a script, so no earlier attempt had an effect either.
func neverSent(err error) bool {
	var reply redis.Error // enqueueScript fails before its first write, if at all
	var dial *net.OpError
	switch {
	case errors.As(err, &reply):
		return true
	case errors.As(err, &dial) && dial.Op == "dial":
		return true
	default:
		return errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed)
	}
}

// RemoteError is the error of a request that another process sent, or that [Queue.Result] reports. It is the cause of
// a [*webdelivery.QueueError]. It matches the same sentinels of package webdelivery as the original error. Its text
// is that of the original error, up to 4 KiB.
type RemoteError struct {
	Message     string                        // text of the original error
	Response    *webdelivery.Error            // the rejected request, without header and body; nil if there is none
	Transaction *webdelivery.TransactionError // the transaction that ended badly; nil if there is none

	matches []error // sentinels
}

// Error returns Message.
func (e *RemoteError) Error() string { return e.Message }

// Is matches the sentinels that the original error matched.
func (e *RemoteError) Is(target error) bool {
	for _, sentinel := range e.matches {
		if sentinel == target {
			return true
		}
	}
	return false
}

// Unwrap returns Response and Transaction.
func (e *RemoteError) Unwrap() (all []error) {
	if e.Response != nil {
		all = append(all, e.Response)
	}
	if e.Transaction != nil {
		all = append(all, e.Transaction)
	}
	return all
}

// failed is the error of a call whose URIs have all failed.
func failed(uris []webdelivery.PurgeURI, cause error, outcome webdelivery.Outcome) error {
	return &webdelivery.QueueError{URIs: uris, Err: cause, Outcome: outcome}
}
