package redisqueue

import (
	"cmp"
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

// RemoteError describes an error of a request that the sending process has stored in Redis. It wraps what the original
// error did, as far as a field holds it.
type RemoteError struct {
	Message     string                        // text of the original error, on one line and at most 4 KiB
	Response    *webdelivery.Error            // the rejected request, without header and body; nil if there is none
	Transaction *webdelivery.TransactionError // the failed transaction; nil if there is none
	Matches     []string                      // texts of errors of package webdelivery that it matches, beside those of Response
}

// sentinels are what a response does not tell: a 403 or 503 alone may mean several things.
var sentinels = []error{webdelivery.ErrUnauthorized, webdelivery.ErrRateLimited, webdelivery.ErrHostRefused, webdelivery.ErrRefusedTogether}

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
	for _, sentinel := range sentinels {
		if slices.Contains(e.Matches, sentinel.Error()) {
			causes = append(causes, sentinel)
		}
	}
	return causes
}

func remote(err error) *RemoteError {
	e := &RemoteError{Message: oneLine(err)}
	e.Transaction, _ = errors.AsType[*webdelivery.TransactionError](err)
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			e.Matches = append(e.Matches, sentinel.Error())
		}
	}
	if response, ok := errors.AsType[*webdelivery.Error](err); ok {
		public := *response
		public.Header, public.Body = nil, nil
		e.Response = &public
	}
	return e
}

// failed returns the error of a call whose URIs fail because of cause, but for those that have failed before, unless cause
// names its URIs already.
func failed(uris []webdelivery.PurgeURI, cause error, o webdelivery.Outcome, before ...webdelivery.URIFailure) error {
	if _, ok := errors.AsType[*webdelivery.QueueError](cause); ok || cause == nil {
		return cause
	}
	failures := map[webdelivery.PurgeURI]webdelivery.URIFailure{}
	for _, uri := range uris {
		failures[uri] = webdelivery.URIFailure{URI: uri, Err: cause, Outcome: o}
	}
	for _, f := range before {
		failures[f.URI] = f
	}
	all := &webdelivery.QueueError{Outcome: o}
	for _, uri := range uris {
		if f, ok := failures[uri]; ok {
			all.Failures = append(all.Failures, f)
			delete(failures, uri)
		}
	}
	return all
}

// redisError wraps only replies of Redis: others may be context errors although the caller's context has not ended.
func redisError(err error) error {
	if err == nil {
		return nil
	}
	if _, reply := errors.AsType[redis.Error](err); !reply {
		err = errors.New(err.Error())
	}
	return fmt.Errorf("%w: %w", ErrRedis, err)
}

// askedError is redisError for a command with the context of a caller, whose end it matches.
func askedError(ctx context.Context, err error) error {
	if err = redisError(err); err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err) // on one line, unlike errors.Join
	}
	return err
}

var refusal = regexp.MustCompile(`^(ERR )?(NOPERM|NOAUTH|WRONGPASS|WRONGTYPE|unknown) `)

// refused reports whether Redis refuses a command for a reason that does not pass, unlike LOADING, READONLY or OOM.
func refused(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && refusal.MatchString(reply.Error())
}

// result is what Purge returns for a call.
type result struct {
	receipts []*webdelivery.PurgeReceipt
	err      error
}

// message is a result as stored in Redis.
type message struct {
	Receipts []*webdelivery.PurgeReceipt `json:"r,omitempty"`
	Failures []webdelivery.URIFailure    `json:"f,omitempty"`
	Causes   []*RemoteError              `json:"e,omitempty"` // of each failure; nil: that of the one before
	Outcome  webdelivery.Outcome         `json:"o,omitempty"`
}

func (r result) encode() string {
	m := message{Receipts: r.receipts}
	if all, ok := errors.AsType[*webdelivery.QueueError](r.err); ok {
		m.Outcome = all.Outcome
		last := ""
		for _, f := range all.Failures {
			var cause *RemoteError
			if text := f.Err.Error(); text != last {
				cause, last = remote(f.Err), text
			}
			m.Causes = append(m.Causes, cause)
			m.Failures = append(m.Failures, webdelivery.URIFailure{URI: f.URI, TransactionID: f.TransactionID, Outcome: f.Outcome})
		}
	}
	text, _ := json.Marshal(m) //nolint:errchkjson,musttag // no value of these types fails
	return string(text)
}

// decode returns the result in a message.
func decode(text string) (r result) {
	var m message
	cause := &RemoteError{Message: "redisqueue: unreadable call or result in Redis"}
	err := json.Unmarshal([]byte(text), &m) //nolint:musttag // the names of exported fields do not change
	if err != nil || len(m.Receipts)+len(m.Causes) == 0 || len(m.Causes) != len(m.Failures) || slices.Contains(m.Receipts, nil) {
		return result{err: cause}
	}
	for i := range m.Failures {
		cause = cmp.Or(m.Causes[i], cause)
		m.Failures[i].Err = cause
	}
	if r.receipts = m.Receipts; m.Failures != nil {
		r.err = &webdelivery.QueueError{Failures: m.Failures, Outcome: m.Outcome}
	}
	return r
}

func oneLine(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return strings.ToValidUTF8(text[:min(len(text), 4<<10)], "")
}
