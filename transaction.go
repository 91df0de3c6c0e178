package webdelivery

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Transaction is the state of a purge. (Section 2.3.)
type Transaction struct {
	Code              int       `json:"code"`                           // 400 or more: the purge ended badly
	Description       string    `json:"description"`                    // the service's words for the code
	TransactionID     int64     `json:"transaction_id"`                 // as in the receipt
	BeginTS           time.Time `json:"begin_ts,omitzero"`              // UTC, whole seconds
	EndTS             time.Time `json:"end_ts,omitzero"`                // UTC; zero while PENDING, before 1970 in another status that is no end
	PercentReceived   int       `json:"percent_received_responses"`     // percentage of the caches that have responded
	Status            string    `json:"transaction_status"`             // PENDING, or the service's word for the end
	StatusDescription string    `json:"transaction_status_description"` // the service's words for the status
}

// Pending reports whether the purge is in progress: the transaction has not failed, and its status is PENDING in any
// letter case, or empty because it was never read, or the service sent the placeholder of a pending end_ts.
func (t *Transaction) Pending() bool {
	return !t.endedBadly() && (t.Status == "" || strings.EqualFold(t.Status, "PENDING") || !t.EndTS.IsZero() && t.EndTS.Unix() < 0)
}

// endedBadly reports whether the transaction has failed (open point 9).
func (t *Transaction) endedBadly() bool {
	if t.Code >= http.StatusBadRequest {
		return true
	}
	status := strings.ToUpper(t.Status)
	return slices.ContainsFunc([]string{"FAIL", "ERROR", "ABORT", "CANCEL", "REJECT"}, func(word string) bool {
		return strings.Contains(status, word)
	})
}

func (c *conn) fetchTransaction(ctx context.Context, cl call) (*Transaction, error) {
	r, err := c.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	var body struct {
		Code                wire.Code `json:"code"`
		Description         string    `json:"description"`
		TransactionID       wire.Int  `json:"transaction_id"`
		TransactionResponse struct {
			BeginTS           wire.Shown `json:"begin_ts"`
			EndTS             wire.Shown `json:"end_ts"`
			PercentReceived   wire.Shown `json:"percent_received_responses"`
			Status            string     `json:"transaction_status"`
			StatusDescription string     `json:"transaction_status_description"`
		} `json:"transaction_response"`
	}
	if err := r.decodeObject(&body); err != nil {
		return nil, err
	}
	state := &body.TransactionResponse
	tx := &Transaction{
		Code: int(body.Code), Description: body.Description, TransactionID: int64(body.TransactionID),
		BeginTS: epoch(state.BeginTS), EndTS: epoch(state.EndTS), PercentReceived: state.PercentReceived.Clamp(),
		Status: state.Status, StatusDescription: state.StatusDescription,
	}
	if state.EndTS < 0 && !tx.Pending() && !tx.endedBadly() {
		tx.EndTS = time.Unix(-1, 0).UTC()
	}
	if tx.Status == "" && tx.Code < http.StatusBadRequest { // it must not look like a successful end
		return nil, r.bad("no transaction_status", nil)
	}
	if tx.TransactionID == 0 { // the document has it, but the address names the transaction, too
		tx.TransactionID, _ = strconv.ParseInt(cl.id, 10, 64)
	}
	if err := r.checkID(strconv.FormatInt(tx.TransactionID, 10)); err != nil {
		return nil, err
	}
	return tx, nil
}

// epoch returns the time of epoch seconds, and the zero time for 0, for the negative placeholder of a pending end, and
// after the year 9999, which JSON cannot have.
func epoch(seconds wire.Shown) time.Time {
	if seconds <= 0 || seconds > 253402300799 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

// Status reads the state of a purge once. A transaction that ended badly is not an error here.
func (s *PurgeService) Status(ctx context.Context, transactionID int64) (*Transaction, error) {
	return s.conn.fetchTransaction(ctx, transactionCall(transactionID))
}

func transactionCall(id int64) call {
	cl := objectCall("Purge.Status", transactionsPath+"{transaction_id}", "", strconv.FormatInt(id, 10))
	if id <= 0 {
		cl.invalid = invalid("transaction_id", "%d is not above 0", id)
	}
	return cl
}

// Wait polls a purge until it has ended. The first poll comes at once, the others at growing intervals ([WaitInterval]).
// If the purge ended badly, Wait returns a [*TransactionError], which holds the transaction.
//
// [TasksService.Wait] lists the errors that end Wait. (Section 3.)
func (s *PurgeService) Wait(ctx context.Context, transactionID int64, options ...WaitOption) (*Transaction, error) {
	tx, err := s.wait(ctx, transactionID, false, s.conn.fetchTransaction, options)
	if err != nil {
		return nil, err
	}
	return tx, nil
}

// SubmitAndWait calls [PurgeService.Submit], and then [PurgeService.Wait] for its transaction. If Submit fails,
// SubmitAndWait returns its error and no transaction. If Wait fails, it returns the error of Wait and the last state of
// the transaction, which has at least a TransactionID, so you can wait again.
func (s *PurgeService) SubmitAndWait(ctx context.Context, request PurgeRequest, options ...WaitOption) (*Transaction, error) {
	if _, err := newWaiter(options); err != nil {
		return nil, err
	}
	receipt, err := s.Submit(ctx, request)
	if err != nil {
		return nil, err
	}
	return s.wait(ctx, receipt.TransactionID, true, s.conn.fetchTransaction, options)
}

// wait reads the transaction with read. With an error, it also returns the last state. If exists is true, the
// transaction certainly exists.
func (s *PurgeService) wait(ctx context.Context, id int64, exists bool, read func(context.Context, call) (*Transaction, error), options []WaitOption) (*Transaction, error) {
	cl := transactionCall(id)
	if cl.invalid != nil {
		return nil, cl.invalid
	}
	tx := &Transaction{TransactionID: id}
	w, err := newWaiter(options)
	if err != nil {
		return tx, err
	}
	w.exists = exists
	err = w.wait(ctx, &item{kind: "transaction", Progress: Progress{ID: cl.id}, read: func(ctx context.Context) (Progress, error) {
		now, err := read(ctx, cl)
		if err != nil {
			return Progress{}, err
		}
		tx = now
		return Progress{Status: s.conn.secrets.Text(tx.Status), Percent: tx.PercentReceived, Complete: !tx.Pending()}, nil
	}})
	if err == nil && tx.endedBadly() {
		s.conn.redactAll(&tx.Description, &tx.Status, &tx.StatusDescription) // they become part of an error
		err = &TransactionError{tx}
	}
	return tx, err
}

// TransactionError is a purge transaction that ended badly, although all calls succeeded. Some of its URIs may be
// purged, so its outcome is [OutcomeUnknown].
type TransactionError struct {
	Transaction *Transaction // its last state
}

// Error returns the id of the transaction with its status, code and descriptions, on one line.
func (e *TransactionError) Error() string {
	t := cmp.Or(e.Transaction, &Transaction{}) // nil in a user's test
	text := joinNonEmpty(": ", t.StatusDescription, t.Description)
	return joinNonEmpty(": ", fmt.Sprintf("webdelivery: transaction %d ended as %s (code %d)", t.TransactionID,
		redact.Line(cmp.Or(t.Status, "unknown")), t.Code), redact.Line(text))
}

func (e *TransactionError) outcomeOfWrite() Outcome { return OutcomeUnknown }
