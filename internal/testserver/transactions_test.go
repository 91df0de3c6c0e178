package testserver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// transactionAt returns the status of a transaction that began and ended at noon, which is 1795176000 in epoch seconds.
func transactionAt(id int64, code int, status, description string) string {
	return fmt.Sprintf(`{"code":%d,"description":"transaction status","transaction_id":%d,"transaction_response":{
		"begin_ts":1795176000,"end_ts":1795176000,"percent_received_responses":100,"transaction_status":"%s",
		"transaction_status_description":"%s"}}`, code, id, status, description)
}

// Open point 9: endings of a transaction.
func TestSection3TransactionEndings(t *testing.T) {
	t.Parallel()
	const first int64 = 9007199254740993
	f := start(t, testserver.Config{PurgeRate: -1, PurgeDuration: -1, Dialect: testserver.Dialect{Final: "Done"}})
	f.FailTransactions(2, "FAILED", "cache 17 does not answer", 502)
	f.FailTransactions(1, "ABORTED", "by operator", 0)
	for range 4 {
		require.Equal(t, 201, f.purge(onePurge).status)
	}
	for i, want := range []string{
		transactionAt(first, 502, "FAILED", "cache 17 does not answer"),
		transactionAt(first+2, 502, "FAILED", "cache 17 does not answer"),
		transactionAt(first+4, 200, "ABORTED", "by operator"),
		transactionAt(first+6, 200, "Done", "all caches have answered"),
	} {
		r := f.get(fmt.Sprintf("/transactions/%d", first+2*int64(i)))
		assert.Equal(t, 200, r.status)
		assert.JSONEq(t, want, r.body)
	}
}
