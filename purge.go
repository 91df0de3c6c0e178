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
	"github.com/webdelivery/webdelivery-go/internal/transport"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// PurgeService takes content out of the caches (service-interface section 4.4). It is [Client.Purge], and safe for
// concurrent use.
type PurgeService struct{ funnel *funnel }

// PurgeAction is what a purge does with the objects it matches (service-interface section 2.2).
type PurgeAction string

const (
	// ActionPurge takes the objects out of the caches.
	ActionPurge PurgeAction = "PURGE"
	// ActionExpire marks them expired but keeps them: stale content may be served while the origin does not answer or
	// answers with 5xx.
	ActionExpire PurgeAction = "EXPIRE"
)

// MatchMode is how a pattern matches (service-interface section 4.4).
type MatchMode string

const (
	// MatchExact matches one object.
	MatchExact MatchMode = "EXACT_LITERAL"
	// MatchPrefix matches all that begins with the pattern.
	MatchPrefix MatchMode = "PREFIX_LITERAL"
)

// PurgeRequest is one purge of any number of URIs (service-interface section 2.2).
type PurgeRequest struct {
	Action PurgeAction `json:"action"` // required
	URIs   []PurgeURI  `json:"uris"`   // at least one; the service sets no upper limit
}

// PurgeURI is one pattern of a purge (service-interface sections 2.2 and 4.4). Make it with [Exact] or [Prefix].
type PurgeURI struct {
	MatchMode             MatchMode `json:"match_mode"`                         // required
	URIPattern            string    `json:"uri_pattern"`                        // required; UTF-8 without a fragment, blanks and control characters (open points 44, 48)
	CacheKeyModifierRegex string    `json:"cache_key_modifier_regex,omitempty"` // "": any; see WithCacheKeyModifier
}

// Exact matches one object, of one protocol: https://host/path and http://host/path are two objects. Without a protocol
// the pattern is treated as http (service-interface section 4.4, rule 1). The pattern is sent as it is, byte for byte: a *
// in its path is a character of the path.
func Exact(uri string) PurgeURI { return PurgeURI{MatchMode: MatchExact, URIPattern: uri} }

// Prefix matches everything under a directory, or whose name begins so, over http and https. The protocol may be left
// out: host/path is enough (service-interface section 4.4, rule 2). A * behind the domain is refused, as it is no wildcard
// there (open point 48). The pattern is sent as it is, byte for byte.
func Prefix(uri string) PurgeURI { return PurgeURI{MatchMode: MatchPrefix, URIPattern: uri} }

// WithCacheKeyModifier narrows a prefix to objects whose cache key has this modifier: a plain string, or one that ends
// in a single * (service-interface section 2.2). A regular expression is refused when it is sent (open point 48), and so
// is a modifier of an [Exact]. It returns a changed copy.
func (u PurgeURI) WithCacheKeyModifier(regex string) PurgeURI {
	u.CacheKeyModifierRegex = regex
	return u
}

// PurgeReceipt is the service's answer to a purge (service-interface section 2.3). With its TransactionID the purge can
// be waited for, also by another process.
type PurgeReceipt struct {
	Code          int    `json:"code"`                   // HTTP status of the validation
	Description   string `json:"description"`            // the service's words
	TransactionID int64  `json:"transaction_id"`         // above 0
	StatusURI     string `json:"transaction_status_uri"` // as sent, relative to {base_url}/<customer>/v1
}

// Transaction is the state of a purge (service-interface section 2.3).
type Transaction struct {
	Code                         int       `json:"code"`                           // 400 or more: it ended badly
	Description                  string    `json:"description"`                    // the service's words for the code
	TransactionID                int64     `json:"transaction_id"`                 // as the receipt has it
	BeginTS                      time.Time `json:"begin_ts,omitzero"`              // UTC, whole seconds
	EndTS                        time.Time `json:"end_ts,omitzero"`                // UTC; zero while it is pending
	PercentReceivedResponses     int       `json:"percent_received_responses"`     // percent of the caches that have answered
	TransactionStatus            string    `json:"transaction_status"`             // PENDING, or the service's word for its end
	TransactionStatusDescription string    `json:"transaction_status_description"` // the service's words for the status
}

// Pending tells whether the purge is still in progress: PENDING in any letter case. Every other status is an end
// (service-interface section 3, open point 9).
func (t *Transaction) Pending() bool { return purgewire.Pending(t.TransactionStatus) }

// fetchTransaction reads one status.
func (f *funnel) fetchTransaction(ctx context.Context, cl call) (*Transaction, error) {
	reply, err := f.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	var body purgewire.TransactionBody
	if err := reply.decodeObject(&body); err != nil {
		return nil, err
	}
	tx := (*Transaction)(body.Transaction(cl.id))
	if tx == nil {
		return nil, reply.bad("no transaction_status", nil)
	}
	if err := reply.checkID(strconv.FormatInt(tx.TransactionID, 10)); err != nil {
		return nil, err
	}
	return tx, nil
}

// Submit sends one purge (service-interface section 4.4). It waits for a purge permit first, and for one again before
// each retry: purging twice does no harm, so it is repeated after every fault that may pass. A purge that is refused as
// too fast is retried for 5 minutes (ThrottleTimeout of [RetryPolicy]). It returns when the service has accepted the
// purge; [PurgeService.Wait] tells when the caches have carried it out. Each call is a request of its own, and waits
// behind all others: for more than a few purges use a [PurgeQueue].
//
// What the service document calls invalid is refused as [*ValidationError] and takes no permit. URIs that the user may
// not purge, or for which there is no configuration, are refused by the service with [ErrBadRequest], all of the
// request with them; bad credentials are [ErrUnauthorized] (service-interface section 7). If the permit comes after the
// deadline of the context, the call returns an error that matches context.DeadlineExceeded as soon as that is known:
// also because of others, of a pause, or of a slow pace. [OutcomeOf] says what became of it. The request is not
// changed; it must not be changed by others before Submit returns.
func (s *PurgeService) Submit(ctx context.Context, request PurgeRequest) (*PurgeReceipt, error) {
	if err := cmp.Or(s.via().usable(ctx), request.validate()); err != nil {
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

// wire is the URI as it is encoded.
func (u PurgeURI) wire() purgewire.URI {
	return purgewire.URI{MatchMode: string(u.MatchMode), Pattern: u.URIPattern, Modifier: u.CacheKeyModifierRegex}
}

// body is that of a purge. There is no limit on the number of URIs, so they are encoded as they are sent.
func (r PurgeRequest) body() *transport.ListBody {
	size := 0
	for _, u := range r.URIs {
		size += u.wire().Size()
	}
	return transport.NewListBody(purgewire.Head(string(r.Action)), purgewire.Tail, len(r.URIs), size,
		func(b []byte, i int) []byte { return r.URIs[i].wire().Append(b) })
}

// validate states sections 2.2 and 4.4 of the service document.
func (r PurgeRequest) validate() error {
	var p problems
	if r.Action != ActionPurge && r.Action != ActionExpire {
		p.add("action", "%q is neither PURGE nor EXPIRE", string(r.Action))
	}
	if len(r.URIs) == 0 {
		p.add("uris", "is empty")
	}
	for i, u := range r.URIs {
		if field, reason := u.wire().Problem(); reason != "" {
			p.add(fmt.Sprintf("uris[%d].%s", i, field), "%s", reason)
		}
	}
	return p.err()
}

// receipt reads the answer to a purge. The address in a Location is read, never followed (open point 7).
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

// accepted is the error for the body of a purge that cannot be read. A 201 says by itself that the service took it, unless
// the body is an HTML page, which something else may have sent.
func (r *response) accepted(err error) error {
	var e *Error
	if r.Status == http.StatusCreated && !wire.IsHTML(r.Header) && errors.As(err, &e) {
		e.outcome = OutcomeApplied
	}
	return err
}

// Status reads the state of a purge once (service-interface section 4.4). A transaction that ended badly is no error
// here. An id that is not above 0 is a [*ValidationError].
func (s *PurgeService) Status(ctx context.Context, transactionID int64) (*Transaction, error) {
	cl, err := s.via().transactionCall(ctx, transactionID)
	if err != nil {
		return nil, err
	}
	return s.funnel.fetchTransaction(ctx, cl)
}

func (f *funnel) transactionCall(ctx context.Context, id int64) (call, error) {
	if err := f.usable(ctx); err != nil {
		return call{}, err
	}
	if id <= 0 {
		return call{}, invalid("transaction_id", "%d is not above 0", id)
	}
	text := strconv.FormatInt(id, 10)
	return objectCall(transactionsPath+text, "", text), nil
}

// Wait polls a purge until it has ended (service-interface section 3), at once and then at growing intervals
// ([PollEvery]). If the purge ended badly, Wait returns a [*TransactionError], which holds the transaction. A poll that
// fails does not end Wait if the failure may pass; which errors end it is said at [TasksService.Wait], and without a
// deadline and [WaitTimeout] there is no other end. The purge goes on after an error, and its outcome is
// [OutcomeUnknown].
func (s *PurgeService) Wait(ctx context.Context, transactionID int64, options ...WaitOption) (*Transaction, error) {
	tx, err := s.wait(ctx, transactionID, false, s.via().fetchTransaction, options)
	if err != nil {
		return nil, err
	}
	return tx, nil
}

// SubmitAndWait is [PurgeService.Submit], and [PurgeService.Wait] for its transaction (service-interface section 4.4).
// The options are those of the wait: WaitTimeout does not bound the submission. If the submission fails, SubmitAndWait
// returns its error and no transaction. If the wait fails, it returns that error, which names the transaction, and the
// transaction as it was last read, with at least its TransactionID, by which Wait can go on. In both cases [OutcomeOf]
// tells what became of the purge.
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

// wait is Wait with the way in which it reads the transaction, and with the transaction as it was last read beside an
// error. known: it exists for certain.
func (s *PurgeService) wait(ctx context.Context, id int64, known bool, read func(context.Context, call) (*Transaction, error), options []WaitOption) (*Transaction, error) {
	cl, err := s.via().transactionCall(ctx, id)
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
		s.funnel.secrets.Texts(&tx.Description, &tx.TransactionStatus, &tx.TransactionStatusDescription) // it is an error now
		err = &TransactionError{tx}
	}
	return tx, err
}

// TransactionError is a purge transaction that ended badly (service-interface section 2.3, open point 9). The calls
// that led to it succeeded; some of its URIs may be purged, so its outcome is [OutcomeUnknown].
type TransactionError struct {
	Transaction *Transaction // the transaction as it was last read
}

// Error gives the id of the transaction with its status, code and descriptions, on one line.
func (e *TransactionError) Error() string {
	t := cmp.Or(e.Transaction, &Transaction{}) // a user's test may leave it out
	text := joinNonEmpty(": ", t.TransactionStatusDescription, t.Description)
	return joinNonEmpty(": ", fmt.Sprintf("webdelivery: transaction %d ended as %s (code %d)", t.TransactionID,
		redact.Line(cmp.Or(t.TransactionStatus, "unknown")), t.Code), redact.Line(text))
}

// LogValue gives id, status and code of the transaction.
func (e *TransactionError) LogValue() slog.Value {
	t := cmp.Or(e.Transaction, &Transaction{})
	return slog.GroupValue(
		slog.Int64("transaction_id", t.TransactionID),
		slog.String("transaction_status", redact.Line(t.TransactionStatus)),
		slog.Int("code", t.Code))
}
