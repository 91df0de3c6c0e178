package purgewire

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// TransactionsPath is where transactions are, by their ids.
const TransactionsPath = "/transactions/"

// Receipt is what the response to a purge says.
type Receipt struct {
	Code          int
	Description   string
	TransactionID int64
	StatusURI     string
}

// ReceiptBody is the body of that response.
type ReceiptBody struct {
	Code          wire.Code `json:"code"`
	Description   string    `json:"description"`
	TransactionID wire.Int  `json:"transaction_id"`
	PurgeResponse struct {
		TransactionStatusURI string `json:"transaction_status_uri"`
	} `json:"purge_response"`
}

// Receipt returns what the response says. A 303 whose body names no transaction, or was not decoded, names it in its
// location (open point 7). resolve returns the path of an address below the base, or an error if it leads elsewhere.
//
// If the response names no transaction, the receipt is nil. taken says that the service took the purge all the same.
func (b *ReceiptBody) Receipt(status int, location string, decoded bool, resolve func(address string) (string, error)) (receipt *Receipt, taken bool) {
	r := &Receipt{
		Code: int(b.Code), Description: b.Description, TransactionID: int64(b.TransactionID), StatusURI: b.PurgeResponse.TransactionStatusURI,
	}
	seeOther := status == http.StatusSeeOther
	if seeOther && (!decoded || r.TransactionID <= 0 && r.StatusURI == "") {
		r.StatusURI = location
	}
	if r.TransactionID <= 0 {
		r.TransactionID = transactionAt(r.StatusURI, resolve)
	}
	if r.TransactionID <= 0 { // an object of any other kind says nothing
		return nil, status == http.StatusCreated || !seeOther && (r.StatusURI != "" || r.Code >= http.StatusOK)
	}
	r.Code = cmp.Or(r.Code, status)
	r.StatusURI = cmp.Or(r.StatusURI, TransactionsPath+strconv.FormatInt(r.TransactionID, 10))
	return r, true
}

// transactionAt reads the id at the end of a transaction's address; 0 when it is no address of a transaction here.
func transactionAt(address string, resolve func(address string) (string, error)) int64 {
	path, err := resolve(address)
	if err != nil {
		return 0
	}
	digits, _ := strings.CutPrefix(path, TransactionsPath)
	id, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// Transaction is the state of a purge.
type Transaction struct {
	Code                         int
	Description                  string
	TransactionID                int64
	BeginTS                      time.Time // UTC
	EndTS                        time.Time // UTC; zero while there is no end
	PercentReceivedResponses     int
	TransactionStatus            string
	TransactionStatusDescription string
}

// TransactionBody is the body of the response to a read of a transaction: times in epoch seconds, negative while there
// is no end yet.
type TransactionBody struct {
	Code                wire.Code `json:"code"`
	Description         string    `json:"description"`
	TransactionID       wire.Int  `json:"transaction_id"`
	TransactionResponse struct {
		BeginTS                      wire.Int `json:"begin_ts"`
		EndTS                        wire.Int `json:"end_ts"`
		PercentReceivedResponses     wire.Int `json:"percent_received_responses"`
		TransactionStatus            string   `json:"transaction_status"`
		TransactionStatusDescription string   `json:"transaction_status_description"`
	} `json:"transaction_response"`
}

// Transaction returns the state of the transaction with the id asked. If the response has no status, it returns nil,
// because a missing status must not look like a successful end.
func (b *TransactionBody) Transaction(asked string) *Transaction {
	r := &b.TransactionResponse
	if r.TransactionStatus == "" && b.Code < http.StatusBadRequest {
		return nil
	}
	if b.TransactionID == 0 {
		_ = b.TransactionID.UnmarshalJSON([]byte(asked)) // the document has it; without it the address tells
	}
	return &Transaction{
		Code: int(b.Code), Description: b.Description, TransactionID: int64(b.TransactionID),
		BeginTS: epoch(r.BeginTS), EndTS: epoch(r.EndTS), PercentReceivedResponses: r.PercentReceivedResponses.Clamp(),
		TransactionStatus: r.TransactionStatus, TransactionStatusDescription: r.TransactionStatusDescription,
	}
}

// epoch makes a time of epoch seconds; 0 and the negative placeholder are no time.
func epoch(seconds wire.Int) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

// Pending tells whether a purge with this status is still in progress. Every other status is an end (open point 9).
func Pending(status string) bool { return strings.EqualFold(status, "PENDING") }

// EndedBadly judges a transaction that is no longer pending (open point 9).
func EndedBadly(code int, status string) bool {
	if code >= http.StatusBadRequest {
		return true
	}
	status = strings.ToUpper(status)
	for _, word := range []string{"FAIL", "ERROR", "ABORT", "CANCEL", "REJECT"} {
		if strings.Contains(status, word) {
			return true
		}
	}
	return false
}
