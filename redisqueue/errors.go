package redisqueue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/webdelivery/webdelivery-go"
)

// Sentinels for errors.Is.
var (
	ErrFull      = errors.New("redisqueue: the queue is full")           // MaxPending calls wait, and RefuseWhenFull is set
	ErrPending   = errors.New("redisqueue: the purge has not ended")     // a call of Enqueue; ask again later
	ErrUnknownID = errors.New("redisqueue: Redis does not know this id") // its result has expired, or Redis has lost its data
	ErrRedis     = errors.New("redisqueue: Redis does not work")         // it is down, slow or full, or refuses a command
)

// RemoteError is the error of a request that another process sent, or that [Queue.Result] reports. It unwraps to
// Response, Transaction and webdelivery.ErrRefusedTogether, as far as the original error did.
type RemoteError struct {
	Message     string                        // text of the original error, up to 4 KiB
	Response    *webdelivery.Error            // the rejected request, without header and body; nil if there is none
	Transaction *webdelivery.TransactionError // the transaction that ended badly; nil if there is none

	causes []error
}

// Error returns Message.
func (e *RemoteError) Error() string { return e.Message }

// Unwrap returns what the original error was about.
func (e *RemoteError) Unwrap() []error { return e.causes }

func failed(uris []webdelivery.PurgeURI, cause error, outcome webdelivery.Outcome) error {
	return &webdelivery.QueueError{URIs: slices.Clone(uris), Err: cause, Outcome: outcome}
}

// redisError does not match the error of a context, because that of the caller has not ended.
func redisError(err error) error { return fmt.Errorf("%w: %v", ErrRedis, err) } //nolint:errorlint // see above
