package redisqueue

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// result is what Purge returns for a call.
type result struct {
	receipt *webdelivery.PurgeReceipt
	err     error // nil, or a *webdelivery.QueueError
}

// message is a result in Redis. Every release reads what older ones have written.
type message struct {
	Call        string                    `json:"c,omitempty"` // number of the call in its process
	Receipt     *webdelivery.PurgeReceipt `json:"r,omitempty"`
	Failed      []webdelivery.PurgeURI    `json:"f,omitempty"`
	Outcome     webdelivery.Outcome       `json:"o,omitempty"`
	Text        string                    `json:"t,omitempty"` // of the error; empty if there is none
	Together    bool                      `json:"g,omitempty"` // it matches ErrRefusedTogether
	Response    *webdelivery.Error        `json:"e,omitempty"`
	Transaction *webdelivery.Transaction  `json:"x,omitempty"`
}

func (r result) encode(call string) string {
	m := message{Call: call, Receipt: r.receipt}
	if failure, ok := errors.AsType[*webdelivery.QueueError](r.err); ok {
		m.Failed, m.Outcome, m.Text = failure.URIs, failure.Outcome, failure.Err.Error()
		m.Text = strings.ToValidUTF8(m.Text[:min(len(m.Text), 4<<10)], "")
		m.Together = errors.Is(failure, webdelivery.ErrRefusedTogether)
		if t, ok := errors.AsType[*webdelivery.TransactionError](failure); ok {
			m.Transaction = t.Transaction
		}
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
	remote := &RemoteError{Message: m.Text, Response: m.Response}
	if m.Response != nil {
		remote.causes = append(remote.causes, m.Response)
	}
	if m.Transaction != nil {
		remote.Transaction = &webdelivery.TransactionError{Transaction: m.Transaction}
		remote.causes = append(remote.causes, remote.Transaction)
	}
	if m.Together {
		remote.causes = append(remote.causes, webdelivery.ErrRefusedTogether)
	}
	return m.Call, result{m.Receipt, failed(m.Failed, remote, m.Outcome)}
}
