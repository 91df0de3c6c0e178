package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/purgewire"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// PurgeService removes content from the caches. Use it as [Client.Purge]. It is safe for concurrent use. (Service
// document, [section 4.4].)
//
// [section 4.4]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#44-cache-purge-and-transactions
type PurgeService struct{ funnel *funnel }

// PurgeAction is what a purge does with the objects that it matches.
type PurgeAction string

const (
	// ActionPurge removes the objects from the caches.
	ActionPurge PurgeAction = "PURGE"
	// ActionExpire marks the objects as expired. The caches keep them, and may serve them while the origin is
	// unreachable or answers with 5xx.
	ActionExpire PurgeAction = "EXPIRE"
)

// MatchMode is how a pattern matches.
type MatchMode string

const (
	// MatchExact matches one object.
	MatchExact MatchMode = "EXACT_LITERAL"
	// MatchPrefix matches every object that starts with the pattern.
	MatchPrefix MatchMode = "PREFIX_LITERAL"
)

// PurgeRequest is one purge of any number of URIs. (Service document, [section 2.2].)
//
// [section 2.2]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#22-purge-request-request-body
type PurgeRequest struct {
	Action PurgeAction `json:"action"` // required
	URIs   []PurgeURI  `json:"uris"`   // at least one; the service sets no upper limit
}

// PurgeURI is one pattern of a purge. Create it with [Exact] or [Prefix].
type PurgeURI struct {
	MatchMode             MatchMode `json:"match_mode"`                         // required
	URIPattern            string    `json:"uri_pattern"`                        // required; UTF-8 without fragment, blanks and control characters (open points 44, 48)
	CacheKeyModifierRegex string    `json:"cache_key_modifier_regex,omitempty"` // "" matches any; see WithCacheKeyModifier
}

// Exact matches one object of one protocol: https://host/path and http://host/path are two objects. The service
// treats a pattern without a protocol as http. The pattern is sent unchanged, so a * in its path is a literal *.
// (Service document, [section 4.4].)
//
// [section 4.4]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#44-cache-purge-and-transactions
func Exact(uri string) PurgeURI { return PurgeURI{MatchMode: MatchExact, URIPattern: uri} }

// Prefix matches everything under a directory, or every name that starts with the pattern, over http and https. The
// protocol is optional: host/path is enough. The pattern is sent unchanged. A * after the domain is invalid, because
// it is not a wildcard there. (Service document, [section 4.4]; open point 48.)
//
// [section 4.4]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#44-cache-purge-and-transactions
func Prefix(uri string) PurgeURI { return PurgeURI{MatchMode: MatchPrefix, URIPattern: uri} }

// WithCacheKeyModifier returns a copy of a Prefix that only matches objects with this modifier in their cache key.
// The modifier is a plain string, or one that ends in a single *. If it is a regular expression, or u is an [Exact],
// the purge returns a [*ValidationError]. (Open point 48.)
func (u PurgeURI) WithCacheKeyModifier(regex string) PurgeURI {
	u.CacheKeyModifierRegex = regex
	return u
}

// PurgeReceipt is the service's response to a purge. Any process can wait for the purge by its TransactionID.
// (Service document, [section 2.3].)
//
// [section 2.3]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#23-purge-response-and-transaction-status
type PurgeReceipt struct {
	Code          int    `json:"code"`                   // HTTP status of the validation
	Description   string `json:"description"`            // the service's words
	TransactionID int64  `json:"transaction_id"`         // above 0
	StatusURI     string `json:"transaction_status_uri"` // as sent, relative to {base_url}/<customer>/v1
}

// Transaction is the state of a purge. (Service document, [section 2.3].)
//
// [section 2.3]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#23-purge-response-and-transaction-status
type Transaction struct {
	Code                         int       `json:"code"`                           // 400 or more: the purge ended badly
	Description                  string    `json:"description"`                    // the service's words for the code
	TransactionID                int64     `json:"transaction_id"`                 // as in the receipt
	BeginTS                      time.Time `json:"begin_ts,omitzero"`              // UTC, whole seconds
	EndTS                        time.Time `json:"end_ts,omitzero"`                // UTC; zero while pending
	PercentReceivedResponses     int       `json:"percent_received_responses"`     // percentage of the caches that have responded
	TransactionStatus            string    `json:"transaction_status"`             // PENDING, or the service's word for the end
	TransactionStatusDescription string    `json:"transaction_status_description"` // the service's words for the status
}

// Pending reports whether the purge is in progress: its status is PENDING in any letter case. Any other status is
// final. (Open point 9.)
func (t *Transaction) Pending() bool { return purgewire.Pending(t.TransactionStatus) }

func (f *funnel) fetchTransaction(ctx context.Context, cl call) (*Transaction, error) {
	r, err := f.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	var body purgewire.TransactionBody
	if err := r.decodeObject(&body); err != nil {
		return nil, err
	}
	tx := (*Transaction)(body.Transaction(cl.id))
	if tx == nil {
		return nil, r.bad("no transaction_status", nil)
	}
	if err := r.checkID(strconv.FormatInt(tx.TransactionID, 10)); err != nil {
		return nil, err
	}
	return tx, nil
}

// Submit sends one purge and returns when the service has accepted it. [PurgeService.Wait] waits until the caches
// have carried it out. Submit waits for a purge permit first, and again before each retry. Purging twice does no
// harm, so Submit retries after every transient failure. 429 and 503 mean that purges come too fast, so a service that
// answers nothing but 503 makes Submit fail with [ErrRateLimited] after up to 5 minutes (ThrottleTimeout of
// [RetryPolicy]), and one that answers 500 or 504 after a few seconds. Each call is one request and waits behind all others: for more than a
// few purges, use a [PurgeQueue].
//
// If the request is invalid, Submit returns a [*ValidationError] and takes no permit. If the user may not purge one
// of the URIs, or it has no configuration, the service rejects the whole request with [ErrBadRequest]. Wrong
// credentials return [ErrUnauthorized]. If a permit cannot come before the deadline of the context, Submit returns an
// error at once that matches context.DeadlineExceeded. [OutcomeOf] says what became of the purge. Do not change the
// request before Submit returns. (Service document, [section 4.4].)
//
// [section 4.4]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#44-cache-purge-and-transactions
func (s *PurgeService) Submit(ctx context.Context, request PurgeRequest) (*PurgeReceipt, error) {
	if err := request.Validate(); err != nil {
		return nil, err
	}
	cl := describe(http.MethodPost, purgePath, "")
	cl.Encoder = request.body()
	r, err := s.funnel.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	return r.receipt()
}

func (u PurgeURI) wire() purgewire.URI {
	return purgewire.URI{MatchMode: string(u.MatchMode), Pattern: u.URIPattern, Modifier: u.CacheKeyModifierRegex}
}

// Validate returns a [*ValidationError] if the request is invalid, as Submit would.
func (r PurgeRequest) Validate() error {
	var p problems
	if r.Action != ActionPurge && r.Action != ActionExpire {
		p.add("action", "%q is neither PURGE nor EXPIRE", string(r.Action))
	}
	if len(r.URIs) == 0 {
		p.add("uris", "is empty")
	}
	for i := range r.URIs {
		if field, reason := r.URIs[i].wire().Problem(); reason != "" {
			p.add(fmt.Sprintf("uris[%d].%s", i, field), "%s", reason)
		}
	}
	return p.err()
}

// receipt reads the response to a purge. It reads the address in a Location, and never follows it (open point 7).
func (r *response) receipt() (*PurgeReceipt, error) {
	var body purgewire.ReceiptBody
	err := r.decodeObject(&body)
	if err != nil && r.Status != http.StatusSeeOther {
		return nil, r.accepted(err)
	}
	receipt, taken := body.Receipt(r.Status, r.Header.Get("Location"), err == nil, func(address string) (string, error) {
		path, _, err := r.funnel.resolve("transaction_status_uri", address)
		return path, err
	})
	if receipt != nil {
		return (*PurgeReceipt)(receipt), nil
	}
	e := r.bad("no transaction id", nil)
	if taken {
		e.outcome = OutcomeApplied
	}
	return nil, e
}

// accepted returns the error for a purge whose body cannot be read. A 201 proves that the service accepted it, unless
// the body is an HTML page, which something else may have sent.
func (r *response) accepted(err error) error {
	var e *Error
	if r.Status == http.StatusCreated && !wire.IsHTML(r.Header) && errors.As(err, &e) {
		e.outcome = OutcomeApplied
	}
	return err
}

// Status reads the state of a purge once. A transaction that ended badly is no error here. If the id is not above 0,
// Status returns a [*ValidationError]. (Service document, [section 4.4].)
//
// [section 4.4]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#44-cache-purge-and-transactions
func (s *PurgeService) Status(ctx context.Context, transactionID int64) (*Transaction, error) {
	cl, err := s.funnel.transactionCall(ctx, transactionID)
	if err != nil {
		return nil, err
	}
	return s.funnel.fetchTransaction(ctx, cl)
}

func (f *funnel) transactionCall(ctx context.Context, id int64) (call, error) {
	if id <= 0 {
		return call{}, invalid("transaction_id", "%d is not above 0", id)
	}
	text := strconv.FormatInt(id, 10)
	return objectCall(transactionsPath+text, "", text), nil
}

// Wait polls a purge until it has ended. The first poll comes at once, the others at growing intervals ([PollEvery]).
// If the purge ended badly, Wait returns a [*TransactionError], which holds the transaction.
//
// A transient failure of a poll does not end Wait; [TasksService.Wait] lists the errors that do. Without a deadline
// and without [WaitTimeout], Wait ends by itself only when nothing could be read for 10 minutes ([WaitMaxOutage]). After an error, the purge itself goes on, and its outcome is
// [OutcomeUnknown]. (Service document, [section 3].)
//
// [section 3]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#3-states-and-transitions
func (s *PurgeService) Wait(ctx context.Context, transactionID int64, options ...WaitOption) (*Transaction, error) {
	tx, err := s.wait(ctx, transactionID, false, s.funnel.fetchTransaction, options)
	if err != nil {
		return nil, err
	}
	return tx, nil
}

// SubmitAndWait calls [PurgeService.Submit], and then [PurgeService.Wait] for its transaction. The options apply to
// the wait only: WaitTimeout does not limit the submission. If Submit fails, SubmitAndWait returns its error and no
// transaction. If Wait fails, it returns the error of Wait and the last state of the transaction. That has at least a
// TransactionID, so you can wait again. [OutcomeOf] says what became of the purge after an error.
func (s *PurgeService) SubmitAndWait(ctx context.Context, request PurgeRequest, options ...WaitOption) (*Transaction, error) {
	if _, err := newWaiter(options); err != nil {
		return nil, err
	}
	receipt, err := s.Submit(ctx, request)
	if err != nil {
		return nil, err
	}
	return s.wait(ctx, receipt.TransactionID, true, s.funnel.fetchTransaction, options)
}

// wait reads the transaction with read. With an error, it also returns the last state. If known is true, the
// transaction certainly exists.
func (s *PurgeService) wait(ctx context.Context, id int64, known bool, read func(context.Context, call) (*Transaction, error), options []WaitOption) (*Transaction, error) {
	cl, err := s.funnel.transactionCall(ctx, id)
	if err != nil {
		return nil, err
	}
	tx := &Transaction{TransactionID: id}
	err = poll(ctx, ProgressTransaction, cl.id, known, options, func(ctx context.Context) (Progress, error) {
		now, err := read(ctx, cl)
		if err != nil {
			return Progress{}, err
		}
		tx = now
		return Progress{Status: s.funnel.secrets.Text(tx.TransactionStatus), Percent: tx.PercentReceivedResponses, Complete: !tx.Pending()}, nil
	})
	if err == nil && purgewire.EndedBadly(tx.Code, tx.TransactionStatus) {
		s.funnel.redactAll(&tx.Description, &tx.TransactionStatus, &tx.TransactionStatusDescription) // they become part of an error
		err = &TransactionError{tx}
	}
	return tx, err
}

// TransactionError is a purge transaction that ended badly. The calls that led to it succeeded. Some of its URIs may
// be purged, so its outcome is [OutcomeUnknown]. (Open point 9.)
type TransactionError struct {
	Transaction *Transaction // its last state
}

// Error returns the id of the transaction with its status, code and descriptions, on one line.
func (e *TransactionError) Error() string {
	t := cmp.Or(e.Transaction, &Transaction{}) // nil in a test of a user
	text := joinNonEmpty(": ", t.TransactionStatusDescription, t.Description)
	return joinNonEmpty(": ", fmt.Sprintf("webdelivery: transaction %d ended as %s (code %d)", t.TransactionID,
		redact.Line(cmp.Or(t.TransactionStatus, "unknown")), t.Code), redact.Line(text))
}

// LogValue returns id, status and code of the transaction.
func (e *TransactionError) LogValue() slog.Value {
	t := cmp.Or(e.Transaction, &Transaction{})
	return slog.GroupValue(
		slog.Int64("transaction_id", t.TransactionID),
		slog.String("transaction_status", redact.Line(t.TransactionStatus)),
		slog.Int("code", t.Code))
}
