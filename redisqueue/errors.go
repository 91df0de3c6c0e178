package redisqueue

import (
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
	Message     string                        // text of the original error, at most 4 KiB
	Response    *webdelivery.Error            // the rejected request, without header and body; nil if there is none
	Transaction *webdelivery.TransactionError // the failed transaction; nil if there is none
	Undecided   *webdelivery.UndecidedError   // the service refused the URI only together with others; nil if not
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
	if e.Undecided != nil {
		causes = append(causes, e.Undecided)
	}
	return causes
}

func remote(err error) *RemoteError {
	text := err.Error()
	e := &RemoteError{Message: strings.ToValidUTF8(text[:min(len(text), 4<<10)], "")}
	e.Transaction, _ = errors.AsType[*webdelivery.TransactionError](err)
	e.Undecided, _ = errors.AsType[*webdelivery.UndecidedError](err)
	if response, ok := errors.AsType[*webdelivery.Error](err); ok {
		public := *response
		public.Header, public.Body = nil, nil
		e.Response = &public
	}
	return e
}

// failed returns the error of a call whose URIs fail because of cause, except those that failed before. If the URIs are
// not known, it returns the cause.
func failed(uris []webdelivery.PurgeURI, cause error, o webdelivery.Outcome, before ...webdelivery.URIFailure) error {
	if len(uris) == 0 {
		return cause
	}
	all, known := &webdelivery.QueueError{Outcome: o}, map[webdelivery.PurgeURI]webdelivery.URIFailure{}
	for _, f := range before {
		known[f.URI] = f
	}
	for _, uri := range uris {
		f, ok := known[uri]
		if !ok {
			f = webdelivery.URIFailure{URI: uri, Err: cause, Outcome: o}
		}
		all.Failures = append(all.Failures, f)
	}
	return all
}

// failures returns the URIs that an error of a call is about.
func failures(err error) []webdelivery.URIFailure {
	if all, ok := errors.AsType[*webdelivery.QueueError](err); ok {
		return all.Failures
	}
	return nil
}

// redisError wraps only replies of Redis: others may be context errors although the caller's context has not ended.
func redisError(err error) error {
	if err == nil || errors.Is(err, ErrRedis) {
		return err
	}
	if _, reply := errors.AsType[redis.Error](err); !reply {
		err = errors.New(err.Error())
	}
	return fmt.Errorf("%w: %w", ErrRedis, err)
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

// message is a result as stored in Redis.
type message struct {
	Receipts []*webdelivery.PurgeReceipt `json:"r,omitempty"`
	Failures []failure                   `json:"f,omitempty"`
	Outcome  webdelivery.Outcome         `json:"o,omitempty"`
	Causes   []*RemoteError              `json:"e,omitempty"` // of the failures, each once; or of the call
}

type failure struct {
	URI     webdelivery.PurgeURI `json:"u"`
	Cause   int                  `json:"c,omitempty"` // index in Causes
	Outcome webdelivery.Outcome  `json:"o,omitempty"`
}

func (r result) encode() string {
	var m message
	for _, receipt := range r.receipts {
		stored := *receipt
		stored.Unknown = nil // each call of a request would store it again
		m.Receipts = append(m.Receipts, &stored)
	}
	if all, ok := errors.AsType[*webdelivery.QueueError](r.err); ok {
		m.Outcome = all.Outcome
		causes := map[string]int{}
		for _, f := range all.Failures {
			text := f.Err.Error()
			i, known := causes[text]
			if !known {
				i = len(m.Causes)
				causes[text], m.Causes = i, append(m.Causes, remote(f.Err))
			}
			m.Failures = append(m.Failures, failure{f.URI, i, f.Outcome})
		}
	} else if r.err != nil {
		m.Causes = []*RemoteError{remote(r.err)}
	}
	text, _ := json.Marshal(m) //nolint:errchkjson,musttag // no value of these types fails
	return string(text)
}

// decode returns the result in a message.
func decode(text string) (r result) {
	var m message
	err := json.Unmarshal([]byte(text), &m) //nolint:musttag // the names of exported fields do not change
	damaged := len(m.Receipts)+len(m.Causes) == 0 || slices.Contains(m.Receipts, nil) || slices.Contains(m.Causes, nil) ||
		slices.ContainsFunc(m.Failures, func(f failure) bool { return f.Cause < 0 || f.Cause >= len(m.Causes) })
	switch {
	case err != nil || damaged:
		return result{err: errors.New("redisqueue: unreadable result in Redis")}
	case m.Failures != nil:
		all := &webdelivery.QueueError{Outcome: m.Outcome}
		for _, f := range m.Failures {
			all.Failures = append(all.Failures, webdelivery.URIFailure{URI: f.URI, Err: m.Causes[f.Cause], Outcome: f.Outcome})
		}
		r.err = all
	case m.Causes != nil:
		r.err = m.Causes[0]
	}
	r.receipts = m.Receipts
	return r
}

func oneLine(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return strings.ToValidUTF8(text[:min(len(text), 500)], "")
}
