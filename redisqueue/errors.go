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

// RemoteError describes an error of a request that another process sent, or that [Queue.Result] reports. It wraps what
// the original error did, as far as a field holds it.
type RemoteError struct {
	Message         string                        // text of the original error, at most 4 KiB
	Response        *webdelivery.Error            // the rejected request, without header and body; nil if there is none
	Transaction     *webdelivery.TransactionError // the failed transaction; nil if there is none
	Undecided       *webdelivery.UndecidedError   // the service refused the URI only together with others; nil if not
	RefusedTogether bool                          // as Undecided, which processes of older releases do not write
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
		causes = append(causes, cmp.Or(e.Undecided, new(webdelivery.UndecidedError)))
	}
	return causes
}

func remote(err error) *RemoteError {
	text := err.Error()
	e := &RemoteError{Message: strings.ToValidUTF8(text[:min(len(text), 4<<10)], "")}
	e.Transaction, _ = errors.AsType[*webdelivery.TransactionError](err)
	e.Undecided, e.RefusedTogether = errors.AsType[*webdelivery.UndecidedError](err)
	if response, ok := errors.AsType[*webdelivery.Error](err); ok {
		public := *response
		public.Header, public.Body = nil, nil
		e.Response = &public
	}
	return e
}

// failed returns the error of a call that fails as a whole, or the cause if the URIs are not known.
func failed(uris []webdelivery.PurgeURI, cause error, outcome webdelivery.Outcome) error {
	if len(uris) == 0 {
		return cause
	}
	e := &webdelivery.QueueError{Failures: make([]webdelivery.URIFailure, len(uris)), Outcome: outcome}
	for i, uri := range uris {
		e.Failures[i] = webdelivery.URIFailure{URI: uri, Err: cause, Outcome: outcome}
	}
	return e
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
	err      error // nil, or a *webdelivery.QueueError; or the error of a call whose URIs are not known
}

// message is a result as stored in Redis. Every release must read what older ones have written, and older ones what
// this one writes: they know the first five members.
type message struct {
	Call    string                    `json:"c,omitempty"` // number of the call within its process
	Receipt *webdelivery.PurgeReceipt `json:"r,omitempty"` // the last one
	Failed  []webdelivery.PurgeURI    `json:"f,omitempty"`
	Outcome webdelivery.Outcome       `json:"o,omitempty"`
	Error   *RemoteError              `json:"e,omitempty"` // of all causes

	Receipts []*webdelivery.PurgeReceipt `json:"rs,omitempty"` // all but the last one
	Causes   []*RemoteError              `json:"es,omitempty"`
	Each     [][2]int                    `json:"fs,omitempty"` // of Failed: index in Causes, and Outcome
}

func (r result) encode(call string) string {
	m := message{Call: call}
	for _, receipt := range r.receipts {
		stored := *receipt
		stored.Unknown = nil // each call of a request would store it again
		m.Receipts = append(m.Receipts, &stored)
	}
	if n := len(m.Receipts); n > 0 {
		m.Receipt, m.Receipts = m.Receipts[n-1], m.Receipts[:n-1]
	}
	if r.err != nil {
		m.Error = remote(r.err)
	}
	if failure, ok := errors.AsType[*webdelivery.QueueError](r.err); ok {
		m.Outcome = failure.Outcome
		causes := map[string]int{}
		for _, f := range failure.Failures {
			i, known := causes[f.Err.Error()]
			if !known {
				i = len(causes)
				causes[f.Err.Error()], m.Causes = i, append(m.Causes, remote(f.Err))
			}
			m.Failed, m.Each = append(m.Failed, f.URI), append(m.Each, [2]int{i, int(f.Outcome)})
		}
	}
	text, _ := json.Marshal(m) //nolint:errchkjson,musttag // no value of these types fails
	return string(text)
}

// decode returns the number of the call and the result in a message.
func decode(text string) (number string, r result) {
	var m message
	err := json.Unmarshal([]byte(text), &m) //nolint:musttag // the names of exported fields do not change
	damaged := m.Error == nil && (m.Receipt == nil || m.Failed != nil) ||
		len(m.Each) > 0 && len(m.Each) != len(m.Failed) ||
		slices.ContainsFunc(m.Each, func(f [2]int) bool { return f[0] < 0 || f[0] >= len(m.Causes) }) ||
		slices.Contains(m.Causes, nil) || slices.Contains(m.Receipts, nil)
	if err != nil || damaged {
		return m.Call, result{err: errors.New("redisqueue: unreadable result in Redis")}
	}
	if r.receipts = m.Receipts; m.Receipt != nil {
		r.receipts = append(r.receipts, m.Receipt)
	}
	if m.Error != nil {
		r.err = failed(m.Failed, m.Error, m.Outcome)
	}
	if e, ok := errors.AsType[*webdelivery.QueueError](r.err); ok {
		for i, f := range m.Each { // older releases do not write it
			e.Failures[i].Err, e.Failures[i].Outcome = m.Causes[f[0]], webdelivery.Outcome(f[1])
		}
	}
	return m.Call, r
}
