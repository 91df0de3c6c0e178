package redisqueue

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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

	together bool
}

// Error returns Message.
func (e *RemoteError) Error() string { return e.Message }

// Unwrap returns what the original error was about.
func (e *RemoteError) Unwrap() (causes []error) {
	if e.Response != nil {
		causes = append(causes, e.Response)
	}
	if e.Transaction != nil {
		causes = append(causes, e.Transaction)
	}
	if e.together {
		causes = append(causes, webdelivery.ErrRefusedTogether)
	}
	return causes
}

func failed(uris []webdelivery.PurgeURI, cause error, outcome webdelivery.Outcome) error {
	return &webdelivery.QueueError{URIs: slices.Clone(uris), Err: cause, Outcome: outcome}
}

// redisError does not match the error of a context, because that of the caller has not ended.
func redisError(err error) error { return fmt.Errorf("%w: %v", ErrRedis, err) } //nolint:errorlint // see above

// result is what Purge returns for a call.
type result struct {
	receipt *webdelivery.PurgeReceipt
	err     error // nil, or a *webdelivery.QueueError
}

// message is a result in Redis. Every release reads what older ones have written.
type message struct {
	Call        string                        `json:"c,omitempty"` // number of the call in its process
	Receipt     *webdelivery.PurgeReceipt     `json:"r,omitempty"`
	Failed      []webdelivery.PurgeURI        `json:"f,omitempty"`
	Outcome     webdelivery.Outcome           `json:"o,omitempty"`
	Text        string                        `json:"t,omitempty"` // of the error; empty if there is none
	Together    bool                          `json:"g,omitempty"` // it matches ErrRefusedTogether
	Response    *webdelivery.Error            `json:"e,omitempty"`
	Transaction *webdelivery.TransactionError `json:"x,omitempty"`
}

func (r result) encode(call string) string {
	m := message{Call: call, Receipt: r.receipt}
	if failure, ok := errors.AsType[*webdelivery.QueueError](r.err); ok {
		m.Failed, m.Outcome, m.Text = failure.URIs, failure.Outcome, failure.Err.Error()
		m.Text = strings.ToValidUTF8(m.Text[:min(len(m.Text), 4<<10)], "")
		m.Together = errors.Is(failure, webdelivery.ErrRefusedTogether)
		m.Transaction, _ = errors.AsType[*webdelivery.TransactionError](failure)
		if e, ok := errors.AsType[*webdelivery.Error](failure); ok {
			public := *e
			public.Header, public.Body = nil, nil
			m.Response = &public
		}
	}
	text, _ := json.Marshal(m) // no value of these types fails
	return string(text)
}

// decode reads a message: the number of the call, and its result.
func decode(text string) (number string, r result) {
	var m message
	switch err := json.Unmarshal([]byte(text), &m); {
	case err != nil || m.Text == "" && m.Receipt == nil:
		return m.Call, result{err: failed(nil, errors.New("redisqueue: unreadable result in Redis"), webdelivery.OutcomeUnknown)}
	case m.Text == "":
		return m.Call, result{receipt: m.Receipt}
	}
	remote := &RemoteError{Message: m.Text, Response: m.Response, Transaction: m.Transaction, together: m.Together}
	return m.Call, result{m.Receipt, failed(m.Failed, remote, m.Outcome)}
}
