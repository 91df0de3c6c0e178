package purgewire_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/purgewire"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// resolve knows a service whose base is /acme/v1.
func resolve(address string) (string, error) {
	if address == "" || strings.Contains(address, "elsewhere") {
		return address, errors.New("leads elsewhere")
	}
	return strings.TrimPrefix(address, "/acme/v1"), nil
}

// What a response to a purge says, in each of its forms.
func TestReceipts(t *testing.T) {
	t.Parallel()
	receipt := func(code int, description string, id int64, uri string) *purgewire.Receipt {
		return &purgewire.Receipt{Code: code, Description: description, TransactionID: id, StatusURI: uri}
	}
	for _, tt := range []struct {
		name     string
		status   int
		body     string
		location string
		broken   bool
		want     *purgewire.Receipt
		taken    bool
	}{
		{
			"all", 201, `{"code":201,"description":"d","transaction_id":7,"purge_response":{"transaction_status_uri":"/transactions/7"}}`, "", false,
			receipt(201, "d", 7, "/transactions/7"), true,
		},
		{"an id alone", 200, `{"transaction_id":7}`, "", false, receipt(200, "", 7, "/transactions/7"), true},
		{"an id in quotes, with all its digits", 201, `{"transaction_id":"9007199254740993"}`, "", false, receipt(201, "", 9007199254740993, "/transactions/9007199254740993"), true},
		{"an address alone", 201, `{"purge_response":{"transaction_status_uri":"/acme/v1/transactions/7"}}`, "", false, receipt(201, "", 7, "/acme/v1/transactions/7"), true},
		{"the id before the address", 201, `{"transaction_id":7,"purge_response":{"transaction_status_uri":"/transactions/8"}}`, "", false, receipt(201, "", 7, "/transactions/8"), true},
		{"303 with a location", 303, `{}`, "/acme/v1/transactions/7", false, receipt(303, "", 7, "/acme/v1/transactions/7"), true},
		{"303, whose body names it", 303, `{"code":201,"transaction_id":7}`, "/transactions/8", false, receipt(201, "", 7, "/transactions/7"), true},
		{"303, whose body has its address", 303, `{"purge_response":{"transaction_status_uri":"/transactions/7"}}`, "/transactions/8", false, receipt(303, "", 7, "/transactions/7"), true},
		{"303 with an id below 0", 303, `{"transaction_id":-5}`, "/transactions/7", false, receipt(303, "", 7, "/transactions/7"), true},
		{"303 with an id of 0", 303, `{"transaction_id":0}`, "/transactions/7", false, receipt(303, "", 7, "/transactions/7"), true},
		{"303, not decoded", 303, `{"purge_response":{"transaction_status_uri":"/transactions/8"}}`, "/transactions/7", true, receipt(303, "", 7, "/transactions/7"), true},
		{"a location that is no 303", 200, `{}`, "/transactions/7", false, nil, false},
		{"303 without a location", 303, `{"code":201}`, "", false, nil, false},
		{"303 to elsewhere", 303, `{}`, "/elsewhere/transactions/7", false, nil, false},
		{"201 without a transaction", 201, `{}`, "", false, nil, true},
		{"200 without a transaction", 200, `{}`, "", false, nil, false},
		{"200 with a code", 200, `{"code":200}`, "", false, nil, true},
		{"200 with a code that is none", 200, `{"code":199}`, "", false, nil, false},
		{"200 with an address of no transaction", 200, `{"purge_response":{"transaction_status_uri":"/transactions/x"}}`, "", false, nil, true},
		{"an address that is none of a transaction", 201, `{"purge_response":{"transaction_status_uri":"/tasks/7"}}`, "", false, nil, true},
		{"an address with an id of 0", 200, `{"purge_response":{"transaction_status_uri":"/transactions/0"}}`, "", false, nil, true},
		{"an address with an id that is too large", 200, `{"purge_response":{"transaction_status_uri":"/transactions/9223372036854775808"}}`, "", false, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var body purgewire.ReceiptBody
			require.NoError(t, wire.Decode([]byte(tt.body), &body))
			got, taken := body.Receipt(tt.status, tt.location, !tt.broken, resolve)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.taken, taken)
		})
	}
}

// What a response says of a transaction; nil without a status.
func TestTransactions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body string
		want       *purgewire.Transaction
	}{
		{
			"ended", `{"code":200,"description":"d","transaction_id":7,"transaction_response":{"begin_ts":1795163400,
			"end_ts":"1795163460","percent_received_responses":100,"transaction_status":"COMPLETE","transaction_status_description":"s"}}`,
			&purgewire.Transaction{
				Code: 200, Description: "d", TransactionID: 7, // 2026-11-20T08:30:00Z
				BeginTS: time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC), EndTS: time.Date(2026, 11, 20, 8, 31, 0, 0, time.UTC),
				PercentReceivedResponses: 100, TransactionStatus: "COMPLETE", TransactionStatusDescription: "s",
			},
		},
		{
			"no times, and the id that was asked for", `{"transaction_response":{"begin_ts":0,"end_ts":-1,"transaction_status":"PENDING"}}`,
			&purgewire.Transaction{TransactionID: 77, TransactionStatus: "PENDING"},
		},
		{
			"a second after the epoch", `{"transaction_id":7,"transaction_response":{"begin_ts":1,"transaction_status":"x"}}`,
			&purgewire.Transaction{TransactionID: 7, TransactionStatus: "x", BeginTS: time.Date(1970, 1, 1, 0, 0, 1, 0, time.UTC)},
		},
		{
			"a percent of more than 32 bits", `{"transaction_id":-1,"transaction_response":{"percent_received_responses":4294967297,"transaction_status":"x"}}`,
			&purgewire.Transaction{TransactionID: -1, TransactionStatus: "x", PercentReceivedResponses: 2147483647},
		},
		{"a code in place of a status", `{"code":400}`, &purgewire.Transaction{Code: 400, TransactionID: 77}},
		{"no status", `{"code":399,"transaction_id":7}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var body purgewire.TransactionBody
			require.NoError(t, wire.Decode([]byte(tt.body), &body))
			assert.Equal(t, tt.want, body.Transaction("77"))
		})
	}
}

// Every status but PENDING is an end (open point 9), and some words and codes are a bad one.
func TestEndsOfTransactions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code    int
		status  string
		pending bool
		badly   bool
	}{
		{200, "PENDING", true, false},
		{200, "Pending", true, false},
		{200, "PENDING ", false, false},
		{200, "COMPLETE", false, false},
		{399, "COMPLETE", false, false},
		{400, "COMPLETE", false, true},
		{200, "failed", false, true},
		{200, "ERROR", false, true},
		{200, "Aborted", false, true},
		{200, "CANCELED", false, true},
		{200, "PARTLY_REJECTED", false, true},
		{0, "", false, false},
	} {
		assert.Equal(t, tt.pending, purgewire.Pending(tt.status), tt.status)
		assert.Equal(t, tt.badly, purgewire.EndedBadly(tt.code, tt.status), "%d %s", tt.code, tt.status)
	}
}
