package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// PurgeService removes content from the caches. (Section 4.4.)
type PurgeService struct{ conn *conn }

// PurgeAction is what a purge does with the objects that it matches.
type PurgeAction string

const (
	// ActionPurge removes the objects from the caches.
	ActionPurge PurgeAction = "PURGE"
	// ActionExpire marks the objects as expired. The caches keep them, and may serve them while the origin is
	// unreachable or answers with 5xx.
	ActionExpire PurgeAction = "EXPIRE"
)

// PurgeRequest is one purge of any number of URIs. (Section 2.2.)
type PurgeRequest struct {
	Action PurgeAction `json:"action"` // default ActionPurge
	URIs   []PurgeURI  `json:"uris"`   // at least one; the service sets no upper limit
}

// PurgeReceipt is the service's response to a purge. Any process can wait for the purge by its TransactionID. (Section
// 2.3.)
type PurgeReceipt struct {
	Code          int    `json:"code"`                   // HTTP status of the validation
	Description   string `json:"description"`            // the service's words
	TransactionID int64  `json:"transaction_id"`         // above 0
	StatusURI     string `json:"transaction_status_uri"` // as sent; /transactions/<id> if that is not the address of this transaction
}

// Submit sends one purge and returns when the service has accepted it. [PurgeService.Wait] waits until the caches have
// carried it out. Each call is one request and waits its turn: for more than a few purges, use a [PurgeQueue].
//
// If the user may not purge one of the URIs, or one has no configuration, the service rejects the whole request with
// [ErrBadRequest]. If no permit can come before the deadline of the context, Submit returns at once an error that
// matches context.DeadlineExceeded.
func (s *PurgeService) Submit(ctx context.Context, request PurgeRequest) (*PurgeReceipt, error) {
	if err := request.Validate(); err != nil {
		return nil, err
	}
	cl := describe("Purge.Submit", http.MethodPost, purgePath, "")
	cl.Body = request.body()
	r, err := s.conn.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	return r.receipt()
}

// Validate returns a [*ValidationError] if the request is invalid, as Submit would.
func (r PurgeRequest) Validate() error {
	var p problems
	if r.Action != "" && r.Action != ActionPurge && r.Action != ActionExpire {
		p.add("action", "%q is neither PURGE nor EXPIRE", string(r.Action))
	}
	if len(r.URIs) == 0 {
		p.add("uris", "is empty")
	}
	for i := range r.URIs {
		if field, reason := r.URIs[i].problem(); reason != "" {
			if field == "uri_pattern" && len(r.URIs) > 1 { // an index alone says little of one among many
				reason = fmt.Sprintf("%.100q %s", r.URIs[i].URIPattern, reason)
			}
			p.add(fmt.Sprintf("uris[%d].%s", i, field), "%s", reason)
		}
	}
	return p.err()
}

// receipt reads the response to a purge. A 303 whose body names no transaction, or cannot be read, names it in its
// Location, which is never followed (open point 7).
func (r *response) receipt() (*PurgeReceipt, error) {
	var body struct {
		Code          wire.Code `json:"code"`
		Description   string    `json:"description"`
		TransactionID wire.Int  `json:"transaction_id"`
		PurgeResponse struct {
			TransactionStatusURI string `json:"transaction_status_uri"`
		} `json:"purge_response"`
	}
	err := r.decodeObject(&body)
	receipt := &PurgeReceipt{
		Code: int(body.Code), Description: body.Description, TransactionID: int64(body.TransactionID),
		StatusURI: body.PurgeResponse.TransactionStatusURI,
	}
	if err != nil {
		*receipt = PurgeReceipt{} // it may hold a part of the body
	}
	if r.Status == http.StatusSeeOther {
		if err = nil; receipt.TransactionID <= 0 {
			receipt.StatusURI = cmp.Or(receipt.StatusURI, r.Header.Get("Location"))
		}
	}
	var at int64
	var elsewhere error
	if receipt.StatusURI != "" {
		at, elsewhere = r.conn.transactionAt(receipt.StatusURI)
	}
	if receipt.TransactionID <= 0 {
		receipt.TransactionID = at
	}
	if err != nil || receipt.TransactionID <= 0 {
		return nil, r.noReceipt(receipt, err, elsewhere)
	}
	if at != receipt.TransactionID { // no address, or not one of this transaction
		receipt.StatusURI = transactionsPath + strconv.FormatInt(receipt.TransactionID, 10)
	}
	receipt.Code = cmp.Or(receipt.Code, r.Status)
	return receipt, nil
}

// noReceipt returns the error for a response that names no transaction or, with err, cannot be read. A 201 proves that
// the service accepted the purge. So does the body of a purge, but no other object. With elsewhere, the transaction's
// address is not one of this service, so the response proves nothing.
func (r *response) noReceipt(body *PurgeReceipt, err, elsewhere error) error {
	accepted := r.Status == http.StatusCreated
	if err == nil {
		err = r.bad("no transaction id", elsewhere)
		accepted = accepted || r.Status != http.StatusSeeOther && (body.StatusURI != "" || body.Code >= http.StatusOK)
	}
	if e, ok := errors.AsType[*Error](err); ok && accepted && elsewhere == nil {
		e.outcome = OutcomeApplied
	}
	return err
}

// transactionAt returns the id at the end of a transaction's address, or 0 if there is none. It returns an error if the
// address does not lead to this service.
func (c *conn) transactionAt(address string) (int64, error) {
	path, _, err := c.resolve("transaction_status_uri", address)
	if relative := strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//"); err != nil && !relative {
		return 0, err
	}
	digits, _ := strings.CutPrefix(path, transactionsPath)
	id, err := strconv.ParseUint(digits, 10, 63) // unlike ParseInt, it accepts no sign
	if err != nil {
		return 0, nil //nolint:nilerr // a path of this service without an id, such as /transactions/
	}
	return int64(id), nil
}

// purgeFrame is the size of a request without its URIs, in bytes, rounded up.
const purgeFrame = 100

// body returns the JSON body of a purge. Unlike encoding/json, it leaves <, > and & as they are.
func (r PurgeRequest) body() []byte {
	size := purgeFrame
	for _, u := range r.URIs {
		size += len(u.URIPattern) + len(u.CacheKeyModifierRegex) + len(`{"match_mode":"PREFIX_LITERAL","uri_pattern":"","cache_key_modifier_regex":""},`)
	}
	b := append(make([]byte, 0, size), `{"purge_request":{"action":"`+string(cmp.Or(r.Action, ActionPurge))+`","uris":[`...)
	for i, u := range r.URIs {
		if i > 0 {
			b = append(b, ',')
		}
		b = u.appendJSON(b)
	}
	return append(b, "]}}"...)
}
