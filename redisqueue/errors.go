package redisqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// Errors that callers can test for with errors.Is.
var (
	ErrFull      = errors.New("redisqueue: the queue is full")           // Redis holds MaxPending calls; nothing was added
	ErrPending   = errors.New("redisqueue: the purge has not ended")     // the Enqueue call has no result yet
	ErrUnknownID = errors.New("redisqueue: Redis does not know this id") // the result has expired, or Redis lost its data
	ErrRedis     = errors.New("redisqueue: Redis does not work")         // it is down, slow or full, or refuses a command
)

// RemoteError describes the error of a request that another process sent, or that [Queue.Result] reports. It wraps
// Response, Transaction and webdelivery.ErrRefusedTogether if the original error did.
type RemoteError struct {
	Message         string                        // text of the original error, at most 4 KiB
	Response        *webdelivery.Error            // the rejected request, without header and body; nil if there is none
	Transaction     *webdelivery.TransactionError // the failed transaction; nil if there is none
	RefusedTogether bool                          // the service refused the URIs only together with others
}

// Error returns Message.
func (e *RemoteError) Error() string { return e.Message }

// Unwrap returns the causes that the original error wrapped.
func (e *RemoteError) Unwrap() (causes []error) {
	if e.Response != nil {
		causes = append(causes, e.Response)
	}
	if e.Transaction != nil {
		causes = append(causes, e.Transaction)
	}
	if e.RefusedTogether {
		causes = append(causes, webdelivery.ErrRefusedTogether)
	}
	return causes
}

func failed(uris []webdelivery.PurgeURI, cause error, outcome webdelivery.Outcome) error {
	return &webdelivery.QueueError{URIs: slices.Clone(uris), Err: cause, Outcome: outcome}
}

// redisError wraps only replies of Redis: others may be context errors although the caller's context has not ended.
func redisError(err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	if _, reply := errors.AsType[redis.Error](err); !reply {
		err = errors.New(err.Error())
	}
	return fmt.Errorf("%w: %w", ErrRedis, err)
}

// exec sends a pipeline, and returns the error of a command that Redis refuses, or else the first.
func exec(ctx context.Context, pipe redis.Pipeliner) error {
	commands, err := pipe.Exec(ctx)
	for _, c := range commands {
		if refused(c.Err()) {
			err = fmt.Errorf("%s: %w", c.Name(), c.Err())
		}
	}
	return redisError(err)
}

var refusal = regexp.MustCompile(`^(ERR )?(NOPERM|NOAUTH|WRONGPASS|WRONGTYPE|unknown) `)

// refused reports whether Redis refuses a command for a reason that does not pass, unlike LOADING, READONLY or OOM.
func refused(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && refusal.MatchString(reply.Error())
}

// result is what Purge returns for a call.
type result struct {
	receipt *webdelivery.PurgeReceipt
	err     error // nil, or a *webdelivery.QueueError
}

// message is a result as stored in Redis. Every release must read what older ones have written.
type message struct {
	Call    string                    `json:"c,omitempty"` // number of the call within its process
	Receipt *webdelivery.PurgeReceipt `json:"r,omitempty"`
	Failed  []webdelivery.PurgeURI    `json:"f,omitempty"`
	Outcome webdelivery.Outcome       `json:"o,omitempty"`
	Error   *RemoteError              `json:"e,omitempty"`
}

func (r result) encode(call string) string {
	m := message{Call: call, Receipt: r.receipt}
	if failure, ok := errors.AsType[*webdelivery.QueueError](r.err); ok {
		m.Failed, m.Outcome = failure.URIs, failure.Outcome
		text := failure.Err.Error()
		m.Error = &RemoteError{Message: strings.ToValidUTF8(text[:min(len(text), 4<<10)], "")}
		m.Error.RefusedTogether = errors.Is(failure, webdelivery.ErrRefusedTogether)
		m.Error.Transaction, _ = errors.AsType[*webdelivery.TransactionError](failure)
		if e, ok := errors.AsType[*webdelivery.Error](failure); ok {
			public := *e
			public.Header, public.Body = nil, nil
			m.Error.Response = &public
		}
	}
	text, _ := json.Marshal(m) //nolint:errchkjson,musttag // no value of these types fails
	return string(text)
}

// decode returns the number of the call and the result in a message.
func decode(text string) (number string, r result) {
	var m message
	switch err := json.Unmarshal([]byte(text), &m); { //nolint:musttag // the names of exported fields do not change
	case err != nil || m.Error == nil && m.Receipt == nil:
		return m.Call, result{err: failed(nil, errors.New("redisqueue: unreadable result in Redis"), webdelivery.OutcomeUnknown)}
	case m.Error == nil:
		return m.Call, result{receipt: m.Receipt}
	default:
		return m.Call, result{m.Receipt, failed(m.Failed, m.Error, m.Outcome)}
	}
}
