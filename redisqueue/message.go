package redisqueue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// version is that of the messages this package writes. It reads all versions up to this one. A process leaves calls of
// a newer version to newer processes. A result has the version of its call.
const version = 1

// longestText is the most bytes of the text of an error that travels.
const longestText = 4 << 10

// result is what became of a call.
type result struct {
	receipt *webdelivery.PurgeReceipt
	err     error // nil, or a *webdelivery.QueueError
}

// message is a result on its way to another process.
type message struct {
	Version int                       `json:"v"`
	Call    string                    `json:"c,omitempty"` // number of the call in its process
	Receipt *webdelivery.PurgeReceipt `json:"r,omitempty"`
	Failed  []webdelivery.PurgeURI    `json:"f,omitempty"` // URIs that failed
	Outcome webdelivery.Outcome       `json:"o,omitempty"` // of these URIs
	Cause   *cause                    `json:"e,omitempty"`
}

// cause is the cause of a failure on its way.
type cause struct {
	Text        string                   `json:"t"`
	Matches     []string                 `json:"m,omitempty"` // names of sentinels
	Response    *response                `json:"r,omitempty"`
	Transaction *webdelivery.Transaction `json:"x,omitempty"`
}

// response has the fields of a webdelivery.Error that travel.
type response struct {
	StatusCode  int    `json:"s"`
	Code        int    `json:"c,omitempty"`
	Method      string `json:"m"`
	Host        string `json:"h"`
	Path        string `json:"p"`
	Description string `json:"d,omitempty"`
	Attempts    int    `json:"a"`
}

// sentinels are the errors that travel by name. Those of a context or of a closed queue are about the sender alone.
var sentinels = []struct {
	name string
	err  error
}{
	{"bad-request", webdelivery.ErrBadRequest},
	{"unauthorized", webdelivery.ErrUnauthorized},
	{"forbidden", webdelivery.ErrForbidden},
	{"not-found", webdelivery.ErrNotFound},
	{"rate-limited", webdelivery.ErrRateLimited},
	{"server", webdelivery.ErrServer},
	{"redirect", webdelivery.ErrRedirect},
	{"bad-reply", webdelivery.ErrBadReply},
	{"too-large", webdelivery.ErrResponseTooLarge},
	{"refused-together", webdelivery.ErrRefusedTogether},
}

// encode returns a result as the message to the process that waits for a call.
func (r result) encode(call string) string {
	m := message{Version: version, Call: call, Receipt: r.receipt}
	if r.err != nil {
		m.fail(r.err)
	}
	text, err := json.Marshal(m)
	if err != nil { // no value of these types does this
		return fmt.Sprintf(`{"v":%d,"c":%q,"e":{"t":"the result could not be encoded"}}`, version, call)
	}
	return string(text)
}

func (m *message) fail(err error) {
	m.Outcome = webdelivery.OutcomeOf(err)
	why := err
	if q, ok := errors.AsType[*webdelivery.QueueError](err); ok {
		m.Failed, why = q.URIs, q.Err
	}
	m.Cause = &cause{Text: shortened(why.Error())}
	for _, s := range sentinels {
		if errors.Is(why, s.err) {
			m.Cause.Matches = append(m.Cause.Matches, s.name)
		}
	}
	if t, ok := errors.AsType[*webdelivery.TransactionError](why); ok {
		m.Cause.Transaction = t.Transaction
	}
	e, ok := errors.AsType[*webdelivery.Error](why)
	if !ok {
		return
	}
	answer := &response{e.StatusCode, e.Code, e.Method, e.Host, e.Path, shortened(e.Description), e.Attempts}
	for _, s := range sentinels { // a response that would match another sentinel, such as one of a login, stays here
		if errors.Is(answer.error(), s.err) && !errors.Is(why, s.err) {
			return
		}
	}
	m.Cause.Response = answer
}

func (r *response) error() *webdelivery.Error {
	return &webdelivery.Error{
		StatusCode: r.StatusCode, Code: r.Code, Method: r.Method, Host: r.Host, Path: r.Path, Description: r.Description,
		Attempts: r.Attempts,
	}
}

// decode reads a message: the number of the call, and its result.
func decode(text string) (number string, r result) {
	var m message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return "", result{err: failed(nil, fmt.Errorf("redisqueue: unreadable result in Redis: %w", err), webdelivery.OutcomeUnknown)}
	}
	return m.Call, m.result()
}

func (m *message) result() result {
	if m.Version > version {
		why := fmt.Errorf("redisqueue: the result has version %d; this release reads up to %d", m.Version, version)
		return result{m.Receipt, failed(nil, why, webdelivery.OutcomeUnknown)}
	}
	if m.Cause == nil && m.Receipt == nil {
		return result{err: failed(nil, errors.New("redisqueue: empty result in Redis"), webdelivery.OutcomeUnknown)}
	}
	if m.Cause == nil {
		return result{receipt: m.Receipt}
	}
	remote := &RemoteError{Message: m.Cause.Text}
	for _, s := range sentinels {
		for _, name := range m.Cause.Matches {
			if name == s.name {
				remote.matches = append(remote.matches, s.err)
			}
		}
	}
	if m.Cause.Response != nil {
		remote.Response = m.Cause.Response.error()
	}
	if m.Cause.Transaction != nil {
		remote.Transaction = &webdelivery.TransactionError{Transaction: m.Cause.Transaction}
	}
	return result{m.Receipt, failed(m.Failed, remote, m.Outcome)}
}

// shortened cuts a text at a whole character.
func shortened(text string) string {
	if len(text) > longestText {
		text = strings.ToValidUTF8(text[:longestText], "") + " ..."
	}
	return text
}
