package testserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// transactionAt returns the status of a transaction that began at noon, which is 1795176000 in epoch seconds.
func transactionAt(id int64, code int, end int64, percent int, status, description string) string {
	return fmt.Sprintf(`{"code":%d,"description":"transaction status","transaction_id":%d,"transaction_response":{
		"begin_ts":1795176000,"end_ts":%d,"percent_received_responses":%d,"transaction_status":"%s",
		"transaction_status_description":"%s"}}`, code, id, end, percent, status, description)
}

// Section 2.3: PENDING with a negative end_ts, then final.
func TestSection23TransactionStatus(t *testing.T) {
	t.Parallel()
	const id = 9007199254740993
	f := start(t, testserver.Config{PurgeDuration: 10 * time.Second})
	require.Equal(t, 201, f.purge(onePurge).status)
	const waiting, done = "waiting for caches to answer", "all caches have answered"
	for _, tc := range []struct {
		advance time.Duration
		want    string
	}{
		{0, transactionAt(id, 200, -1, 0, "PENDING", waiting)},
		{4590 * time.Millisecond, transactionAt(id, 200, -1, 45, "PENDING", waiting)},
		{5409999999, transactionAt(id, 200, -1, 99, "PENDING", waiting)},
		{1, transactionAt(id, 200, 1795176010, 100, "COMPLETE", done)},
		{time.Hour, transactionAt(id, 200, 1795176010, 100, "COMPLETE", done)},
	} {
		f.Clock().Advance(tc.advance)
		r := f.get("/transactions/9007199254740993")
		assert.Equal(t, 200, r.status)
		assert.JSONEq(t, tc.want, r.body)
		assert.Contains(t, r.body, `"transaction_id":9007199254740993,`)
	}
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
		transactionAt(first, 502, 1795176000, 100, "FAILED", "cache 17 does not answer"),
		transactionAt(first+2, 502, 1795176000, 100, "FAILED", "cache 17 does not answer"),
		transactionAt(first+4, 200, 1795176000, 100, "ABORTED", "by operator"),
		transactionAt(first+6, 200, 1795176000, 100, "Done", "all caches have answered"),
	} {
		r := f.get(fmt.Sprintf("/transactions/%d", first+2*int64(i)))
		assert.Equal(t, 200, r.status)
		assert.JSONEq(t, want, r.body)
	}
}

// Section 2.3: transaction ids are integers.
func TestSection23TransactionIDs(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	require.Equal(t, 201, f.purge(onePurge).status)
	for id, status := range map[string]int{
		"9007199254740993": 200, "%39007199254740993": 200, "9007199254740992": 404, "9007199254740994": 404, "0": 404,
		"99999999999999999999999": 404, "-1": 400, "+1": 400, "abc": 400, "9.007199254740993e15": 400, "%20": 400, "1%2F2": 400,
	} {
		assert.Equal(t, status, f.get("/transactions/"+id).status, id)
	}
}

// Open point 6: failed authentication for a transaction returns 403 by default. For purges it always returns 403
// (section 7).
func TestSection5DeniedTransactions(t *testing.T) {
	t.Parallel()
	for spelling, want := range map[string]int{"": 403, "403": 403, "401": 401, "400": 400} {
		t.Run("as "+spelling, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{SessionLifetime: time.Minute, Dialect: testserver.Dialect{TransactionDenied: spelling}})
			require.Equal(t, 201, f.purge(onePurge).status)
			const path = "/transactions/9007199254740993"
			id, _ := f.do("POST", "/sessions", "").object(t)["id"].(string)
			session := func(r *http.Request) { r.Header = http.Header{"Cookie": {"authtoken=" + id}} }
			assert.Equal(t, 200, f.get(path, session).status)
			f.Clock().Advance(time.Minute)
			for name, who := range map[string]func(*http.Request){
				"expired session": session, "nobody": anonymous, "bad password": basic("alice", "wrong"),
				"unknown session": func(r *http.Request) { r.Header = http.Header{"Cookie": {"authtoken=none"}} },
			} {
				r := f.get(path, who)
				assert.Equal(t, want, r.status, name)
				assert.Equal(t, json.Number(strconv.Itoa(want)), r.object(t)["code"], name)
				assert.Equal(t, 403, f.purge(onePurge, who).status, name)
			}
			assert.Equal(t, 200, f.get(path).status)
		})
	}
}
