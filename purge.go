package webdelivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// PurgeService removes content from the caches. Use it as [Client.Purge]. It is safe for concurrent use. (Service
// document, [section 4.4].)
//
// [section 4.4]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#44-cache-purge-and-transactions
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
	Action PurgeAction `json:"action"` // default ActionPurge
	URIs   []PurgeURI  `json:"uris"`   // at least one; the service sets no upper limit
}

// PurgeURI is one pattern of a purge. Create it with [Exact], [ExactBoth], [ExactAll] or [Prefix], which refuse what the
// service would accept without purging what was meant; a struct literal is sent without these checks.
type PurgeURI struct {
	MatchMode             MatchMode `json:"match_mode"`                         // required
	URIPattern            string    `json:"uri_pattern"`                        // required; UTF-8 without a fragment, blanks or control characters (open points 44, 48)
	CacheKeyModifierRegex string    `json:"cache_key_modifier_regex,omitempty"` // "" matches any; see WithCacheKeyModifier

	// doubtful means that Exact or Prefix got a pattern that probably means something else. It is false for every URI that
	// can be sent, so that these equal their struct literals.
	doubtful bool
}

// Exact matches one object of one protocol: https://host/path and http://host/path are two objects. The pattern is sent
// unchanged. The purge returns a [*ValidationError] if the pattern has no protocol, which the service would take as
// http alone, if it has no host, or if it ends in *, which is not a wildcard. (Service document, [section 4.4].)
//
// [section 4.4]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#44-cache-purge-and-transactions
func Exact(uri string) PurgeURI {
	return PurgeURI{MatchMode: MatchExact, URIPattern: uri}.marked()
}

func (u PurgeURI) marked() PurgeURI {
	u.doubtful = u.doubt() != ""
	return u
}

// ExactBoth matches one object over https and over http: it returns an [Exact] for each. The URI may have either
// protocol, or none.
func ExactBoth(uri string) []PurgeURI {
	protocol, domain, after := split(uri)
	if one := Exact(uri); protocol != "" && one.doubtful {
		return []PurgeURI{one}
	}
	return ExactAll("https://"+domain+after, "http://"+domain+after)
}

// ExactAll returns an [Exact] for each URI.
func ExactAll(uris ...string) []PurgeURI {
	all := make([]PurgeURI, len(uris))
	for i, uri := range uris {
		all[i] = Exact(uri)
	}
	return all
}

// Prefix matches everything under a directory, or every name that starts with the pattern, over http and https. The
// protocol is optional: host/path is enough. The pattern needs a host and is sent unchanged. A * after the domain is
// invalid, because it is not a wildcard there. (Service document, [section 4.4]; open point 48.)
//
// [section 4.4]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#44-cache-purge-and-transactions
func Prefix(uri string) PurgeURI {
	return PurgeURI{MatchMode: MatchPrefix, URIPattern: uri}.marked()
}

// WithCacheKeyModifier returns a copy of a Prefix that only matches objects with this modifier in their cache key. The
// modifier is a plain string, which may end in a single *, the wildcard. If it has another *, or u is an [Exact], the
// purge returns a [*ValidationError]. (Service document, [section 2.2].)
//
// [section 2.2]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#22-purge-request-request-body
func (u PurgeURI) WithCacheKeyModifier(modifier string) PurgeURI {
	u.CacheKeyModifierRegex = modifier
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
	StatusURI     string `json:"transaction_status_uri"` // as sent; /transactions/<id> if that is not the address of this transaction

	Unknown json.RawMessage `json:"-"` // an object with the members that the service document does not name; nil if there are none
}

// UnmarshalJSON reads a receipt that MarshalJSON has written.
func (r *PurgeReceipt) UnmarshalJSON(b []byte) error {
	type plain PurgeReceipt
	return wire.DecodeKnown(b, (*plain)(r), &r.Unknown)
}

// MarshalJSON writes the members of a receipt on one level, and the unknown ones as they were.
func (r PurgeReceipt) MarshalJSON() ([]byte, error) {
	type plain PurgeReceipt
	return wire.EncodeKnown(plain(r), r.Unknown)
}

// Submit sends one purge and returns when the service has accepted it. [PurgeService.Wait] waits until the caches have
// carried it out. Submit waits for a purge permit first, and again before each retry. Purging twice does no harm, so
// Submit retries after every transient failure. 429 and 503 mean that purges come too fast, so if the service answers
// nothing but 503, Submit fails with [ErrRateLimited] after up to 5 minutes (ThrottleTimeout of [RetryPolicy]); if it
// answers 500 or 504, after a few seconds. Each call is one request and waits its turn: for more than a few purges, use
// a [PurgeQueue].
//
// If the request is invalid, Submit returns a [*ValidationError] and takes no permit. If the user may not purge one of
// the URIs, or one has no configuration, the service rejects the whole request with [ErrBadRequest]. Wrong credentials
// return [ErrUnauthorized]. If no permit can come before the deadline of the context, Submit returns at once an error
// that matches context.DeadlineExceeded. [OutcomeOf] says what became of the purge.
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

// Validate returns a [*ValidationError] if the service would refuse the URI for what it is, as [PurgeRequest.Validate]
// does, with the name of the member as its Field.
func (u PurgeURI) Validate() error {
	if field, reason := u.problem(); reason != "" {
		return invalid(field, "%s", reason)
	}
	return nil
}

// problem returns the member of the URI that is wrong, and why; both are "" if none is.
func (u PurgeURI) problem() (field, reason string) {
	if u.MatchMode != MatchExact && u.MatchMode != MatchPrefix {
		return "match_mode", fmt.Sprintf("%q is neither EXACT_LITERAL nor PREFIX_LITERAL", string(u.MatchMode))
	}
	if reason := u.patternProblem(); reason != "" {
		return "uri_pattern", reason
	}
	if u.CacheKeyModifierRegex != "" {
		if reason := u.modifierProblem(); reason != "" {
			return "cache_key_modifier_regex", reason
		}
	}
	return "", ""
}

// receipt reads the response to a purge. A 303 whose body names no transaction, or cannot be read, names it in its
// Location, which is never followed (open point 7).
func (r *response) receipt() (*PurgeReceipt, error) {
	var body struct {
		Code          wire.Code `json:"code"`
		Description   string    `json:"description"`
		TransactionID wire.Int  `json:"transaction_id"`
		PurgeResponse struct {
			TransactionStatusURI string         `json:"transaction_status_uri"`
			Unknown              jsontext.Value `json:",embed"`
		} `json:"purge_response"`
		Unknown jsontext.Value `json:",embed"`
	}
	err := r.decodeObject(&body)
	receipt := &PurgeReceipt{
		Code: int(body.Code), Description: body.Description, TransactionID: int64(body.TransactionID),
		StatusURI: body.PurgeResponse.TransactionStatusURI, Unknown: wire.Unknown(body.Unknown, "purge_response", body.PurgeResponse.Unknown),
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
func (f *conn) transactionAt(address string) (int64, error) {
	path, _, err := f.resolve("transaction_status_uri", address)
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

// appendJSON appends a valid URI.
func (u PurgeURI) appendJSON(to []byte) []byte {
	to = append(append(to, `{"match_mode":"`...), u.MatchMode...)
	if to = append(to, `","uri_pattern":`...); strings.ContainsAny(u.URIPattern, `"\`) {
		to, _ = jsontext.AppendQuote(to, u.URIPattern) // its only error is broken UTF-8
	} else { // a valid pattern has no control characters
		to = append(append(append(to, '"'), u.URIPattern...), '"')
	}
	if u.CacheKeyModifierRegex != "" {
		to, _ = jsontext.AppendQuote(append(to, `,"cache_key_modifier_regex":`...), u.CacheKeyModifierRegex) // it is UTF-8
	}
	return append(to, '}')
}
