package webdelivery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// permits is a Limiter that grants every permit at once and counts them.
type permits struct{ taken atomic.Int32 }

func (p *permits) Wait(context.Context) error {
	p.taken.Add(1)
	return nil
}

// countingPermits is a setup whose purges take their permits from p, which counts them.
func countingPermits(p *permits) fixture.Setup {
	return fixture.Setup{
		Server:  testserver.Config{PurgeRate: -1},
		Options: []webdelivery.Option{webdelivery.WithPurgeLimiter(p)},
	}
}

func TestPurgeReachesTheServiceByteForByte(t *testing.T) {
	t.Parallel()
	const exact, prefix = `{"match_mode":"EXACT_LITERAL","uri_pattern":`, `{"match_mode":"PREFIX_LITERAL","uri_pattern":`
	const modifier = `,"cache_key_modifier_regex":`
	one := func(uri string) []webdelivery.PurgeURI { return fixture.PurgeOf(uri).URIs }
	for _, tt := range []struct {
		action webdelivery.PurgeAction
		uris   []webdelivery.PurgeURI
		want   string
	}{
		{"PURGE", exacts("https://www.example.com/app.css"), `PURGE","uris":[` + exact + `"https://www.example.com/app.css"}`},
		{"EXPIRE", []webdelivery.PurgeURI{webdelivery.Prefix("www.example.com/img/")}, `EXPIRE","uris":[` + prefix + `"www.example.com/img/"}`},
		{
			"",
			[]webdelivery.PurgeURI{ // in this order
				modified("www.example.com/b", "v1*"),
				modified("www.example.com/a", "*"),
				modified("www.example.com/a", `a.b-<c>&"d e`),
				modified("www.example.com/c", ""),
			},
			`PURGE","uris":[` + prefix + `"www.example.com/b"` + modifier + `"v1*"},` + prefix + `"www.example.com/a"` + modifier + `"*"},` +
				prefix + `"www.example.com/a"` + modifier + `"a.b-<c>&\"d e"},` + prefix + `"www.example.com/c"}`,
		},
		{"", one(`http://www.example.com/?a=<b>&c="d"'`), `PURGE","uris":[` + exact + `"http://www.example.com/?a=<b>&c=\"d\"'"}`},
		{"", one(`http://www.example.com/a\b\\c`), `PURGE","uris":[` + exact + `"http://www.example.com/a\\b\\\\c"}`},
		{"", one("http://www.example.com/ü/日本/😀e\u0301"), `PURGE","uris":[` + exact + `"http://www.example.com/ü/日本/😀e` + "\u0301" + `"}`},
		{"", one("HTTP://WWW.Example.com/%2f%2F%zz/a/../b//c/."), `PURGE","uris":[` + exact + `"HTTP://WWW.Example.com/%2f%2F%zz/a/../b//c/."}`},
	} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			_, err := f.Client.Purge.Submit(f.Context(), webdelivery.PurgeRequest{Action: tt.action, URIs: tt.uris})
			require.NoError(f, err)
			require.Len(f, f.Srv.Requests(), 1)
			sent := f.Srv.Requests()[0]
			assert.Equal(f, "POST /acme/v1/cache/purge", sent.Method+" "+sent.Path)
			assert.Equal(f, `{"purge_request":{"action":"`+tt.want+"]}}", string(sent.Body))
			assert.Equal(f, "application/json", sent.Header.Get("Content-Type"))
		})
	}
}

func modified(uri, modifier string) webdelivery.PurgeURI {
	return webdelivery.PurgeURI{MatchMode: "PREFIX_LITERAL", URIPattern: uri, CacheKeyModifierRegex: modifier}
}

// Every way to submit a purge checks its URIs by the rules of PurgeRequest.Validate (purgeuri_test.go), and sends nothing if
// they break one.
func TestEveryWayInRefusesTheSamePatterns(t *testing.T) {
	t.Parallel()
	inQueue(t, fixture.Setup{}, webdelivery.QueueOptions{}, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
		for uri, field := range map[webdelivery.PurgeURI]string{
			webdelivery.Prefix("www.example.com/img/*"): "uris[0].uri_pattern",
			modified("www.example.com/", "v*1"):         "uris[0].cache_key_modifier_regex",
		} {
			request := webdelivery.PurgeRequest{Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{uri}}
			_, err := f.Client.Purge.Submit(f.Context(), request)
			refusedAs(f.T, field, err, "Submit")
			_, err = f.Client.Purge.SubmitAndWait(f.Context(), request)
			refusedAs(f.T, field, err, "SubmitAndWait")
			_, err = q.Purge(f.Context(), uri)
			refusedAs(f.T, field, err, "PurgeQueue")
		}
		assert.Empty(f, f.Srv.Requests())
	})
}

// Validate and Submit name everything that is wrong, up to 100 problems and the number of the others, and change nothing. No
// permit is taken.
func TestPurgeNamesItsProblems(t *testing.T) {
	t.Parallel()
	one := exacts(fixture.AnObject)
	wrong := append(exacts("", fixture.AnObject), webdelivery.PurgeURI{MatchMode: "EXACT_LITERAL", URIPattern: fixture.AnObject, CacheKeyModifierRegex: "v1"}, webdelivery.PurgeURI{URIPattern: "a"})
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("uris[%d].uri_pattern", i))
	}
	p := new(permits)
	fixture.InFakeTime(t, countingPermits(p), func(f *fixture.Fixture) {
		for _, tt := range []struct {
			action webdelivery.PurgeAction
			uris   []webdelivery.PurgeURI
			fields []string
			says   string
		}{
			{"", nil, []string{"uris"}, "is empty"},
			{webdelivery.ActionPurge, []webdelivery.PurgeURI{}, []string{"uris"}, "is empty"},
			{"purge", one, []string{"action"}, `"purge" is neither PURGE nor EXPIRE`},
			{"EXPIRE ", one, []string{"action"}, `"EXPIRE " is neither`},
			{"X", wrong, []string{"action", "uris[0].uri_pattern", "uris[2].cache_key_modifier_regex", "uris[3].match_mode"}, ""},
			{"", exacts(fixture.AnObject, "https://www.example.com/a b"), []string{"uris[1].uri_pattern"}, `"https://www.example.com/a b" contains a blank`},
			{"", exacts(make([]string, 5000)...), many, "4900 more"},
		} {
			before := slices.Clone(tt.uris)
			request := webdelivery.PurgeRequest{Action: tt.action, URIs: tt.uris}
			receipt, err := f.Client.Purge.Submit(f.Context(), request)
			assert.Nil(f, receipt)
			assertRefusedHere(f, err, tt.fields...)
			require.ErrorContains(f, err, tt.says)
			assert.Equal(f, err, request.Validate())
			assert.Equal(f, before, tt.uris)
		}
		assert.Zero(f, p.taken.Load())
	})
}

// A refusal of section 7 is final, and its error has the service's own words. It cost one permit.
func TestPurgeThatTheServiceRefusesIsABadRequest(t *testing.T) {
	t.Parallel()
	const uri = "https://www.example.org/"
	p := new(permits)
	fixture.InFakeTime(t, countingPermits(p), func(f *fixture.Fixture) {
		receipt, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf(fixture.AnObject, uri))
		assert.Nil(f, receipt)
		require.ErrorIs(f, err, webdelivery.ErrBadRequest)
		var e *webdelivery.Error
		require.ErrorAs(f, err, &e)
		assert.Equal(f, []any{400, 400, "POST", "/acme/v1/cache/purge", 1}, []any{e.StatusCode, e.Code, e.Method, e.Path, e.Attempts})
		assert.Contains(f, e.Description, "no configuration for a specified path")
		assert.Contains(f, e.Description, uri)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		assert.Len(f, f.Srv.Requests(), 1)
		assert.EqualValues(f, 1, p.taken.Load())
	})
}

// 2^53 + 1, the fake's first transaction: a float64 would change the number.
const firstTransaction = 9007199254740993

func TestPurgeReadsEveryResponse(t *testing.T) {
	t.Parallel()
	for shape, want := range map[string]webdelivery.PurgeReceipt{
		"201":          {Code: 201, Description: "request submitted"},
		"200":          {Code: 200, Description: "request submitted"},
		"303-body":     {Code: 201, Description: "request submitted"},
		"303-location": {Code: 303},
	} {
		for _, form := range []string{"relative", "prefixed", "absolute"} {
			dialect := testserver.Dialect{PurgeReply: shape, NextURI: form}
			fixture.InFakeTime(t, fixture.Setup{Server: testserver.Config{Dialect: dialect}}, func(f *fixture.Fixture) {
				receipt, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf(fixture.AnObject))
				require.NoError(f, err, "%s %s", shape, form)
				assert.Regexp(f, "/transactions/9007199254740993$", receipt.StatusURI)
				if shape != "303-location" && form == "relative" {
					assert.Equal(f, "/transactions/9007199254740993", receipt.StatusURI)
				}
				want.TransactionID, want.StatusURI = firstTransaction, receipt.StatusURI
				assert.Equal(f, want, *receipt)
				assert.Len(f, f.Srv.Requests(), 1, "a 303 is not followed")

				_, err = f.Client.Purge.Wait(f.Context(), receipt.TransactionID)
				require.NoError(f, err)
				assert.Equal(f, "/acme/v1/transactions/9007199254740993", f.Srv.Requests()[1].Path)
			})
		}
	}
}

// The service may say that it accepted the purge, by 201 (section 4.4) or in the body. Then the error must not invite
// a caller to send it again. If the response contains nothing about a purge, the outcome is unknown.
func TestPurgeWithoutTransaction(t *testing.T) {
	t.Parallel()
	for body, ofOK := range map[string]webdelivery.Outcome{
		`{"code":201,"transaction_id":null}`:                              webdelivery.OutcomeApplied,
		`{"purge_response":{"transaction_status_uri":"/transactions/"}}`:  webdelivery.OutcomeApplied,
		`{"purge_response":{"transaction_status_uri":"/transactions/x"}}`: webdelivery.OutcomeApplied,
		`{"purge_response":null,"transaction_id":0}`:                      webdelivery.OutcomeUnknown,
		`{"message":"under maintenance"}`:                                 webdelivery.OutcomeUnknown,
		`{"transaction_id":"x"}`:                                          webdelivery.OutcomeUnknown, "": webdelivery.OutcomeUnknown, "null": webdelivery.OutcomeUnknown,
		"[]": webdelivery.OutcomeUnknown, "garbage": webdelivery.OutcomeUnknown,
	} {
		for status, want := range map[int]webdelivery.Outcome{200: ofOK, 201: webdelivery.OutcomeApplied, 202: ofOK} {
			client := fixture.Answered(t, func(*http.Request) *http.Response { return fixture.Response(status, []byte(body)) })
			receipt, err := client.Purge.Submit(t.Context(), fixture.PurgeOf(fixture.AnObject))
			assert.Nil(t, receipt)
			require.ErrorIs(t, err, webdelivery.ErrBadResponse, body)
			assert.Equal(t, want, webdelivery.OutcomeOf(err), "%d %s", status, body)
		}
	}
}

// Only an address of this service names a transaction. Any other one proves nothing, so that the outcome is unknown even
// after a 201. With a transaction_id the receipt is complete, and its address is always that of the transaction.
func TestPurgeWhoseTransactionIsElsewhere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		address string
		id      int64  // that the address names, or 0
		reason  string // what the error says, if the address is not one of this service
	}{
		{"/transactions/5", 5, ""},
		{"https://api.example.com/acme/v1/transactions/5", 5, ""},
		{"https://other.example/acme/v1/transactions/5", 0, "leads to another origin, https://other.example"},
		{"http://api.example.com/acme/v1/transactions/5", 0, "leads to another origin, http://api.example.com"},
		{"https://api.example.com/other/v1/transactions/5", 0, "is not below /acme/v1"},
		{"transactions/5", 0, "does not begin with a slash"},
		{"https:transactions/5", 0, "must consist of a path and a query only"},
		{"/transactions/../tasks/5", 0, ""},
		{"/transactions/+5", 0, ""},
		{"/transactions/9223372036854775808", 0, ""},
	} {
		submit := func(status int, id string) (*webdelivery.PurgeReceipt, error) {
			body := fmt.Sprintf(`{"code":201,"description":"d"%s,"purge_response":{"transaction_status_uri":%q}}`, id, tt.address)
			client := fixture.Answered(t, func(*http.Request) *http.Response { return fixture.Response(status, []byte(body)) })
			return client.Purge.Submit(t.Context(), fixture.PurgeOf(fixture.AnObject))
		}
		for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusSeeOther} {
			receipt, err := submit(status, "")
			if tt.id != 0 {
				require.NoError(t, err)
				assert.Equal(t, webdelivery.PurgeReceipt{Code: 201, Description: "d", TransactionID: tt.id, StatusURI: tt.address}, *receipt)
			} else {
				assert.Nil(t, receipt)
				require.ErrorIs(t, err, webdelivery.ErrBadResponse)
				require.NotErrorIs(t, err, webdelivery.ErrInvalid)
				require.ErrorContains(t, err, "no transaction id")
				require.ErrorContains(t, err, tt.reason)
				if tt.reason != "" {
					assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err), status)
				}
			}
			for id, want := range map[int64]string{5: "/transactions/5", 7: "/transactions/7"} {
				if id == tt.id {
					want = tt.address
				}
				receipt, err := submit(status, fmt.Sprintf(`,"transaction_id":%d`, id))
				require.NoError(t, err)
				assert.Equal(t, webdelivery.PurgeReceipt{Code: 201, Description: "d", TransactionID: id, StatusURI: want}, *receipt)
			}
		}
	}
}

// A negative end_ts is the placeholder of section 2.3, so a status that nobody knows is no end. A stored transaction is
// pending if it was before, and whatever end_ts is, it can be stored.
func TestPending(t *testing.T) {
	t.Parallel()
	assert.True(t, new(webdelivery.Transaction).Pending(), "never read")
	for state, want := range map[string]bool{
		`"end_ts":-1,"transaction_status":"RUNNING"`: true, `"end_ts":-1,"transaction_status":"QUEUED"`: true,
		`"end_ts":-1,"transaction_status":"PENDING"`: true, `"end_ts":0,"transaction_status":"pending"`: true,
		`"end_ts":-1,"transaction_status":"FAILED"`: false, `"end_ts":-1,"transaction_status":"ABORTED"`: false,
		`"transaction_status":"COMPLETE"`: false, `"end_ts":1795163460000,"transaction_status":"COMPLETE"`: false,
	} {
		tx, err := fixture.Always(t, []byte(`{"transaction_response":{`+state+`}}`)).Purge.Status(t.Context(), 7)
		require.NoError(t, err)
		assert.Equal(t, want, tx.Pending(), state)
		stored, err := json.Marshal(tx)
		require.NoError(t, err)
		var again webdelivery.Transaction
		require.NoError(t, json.Unmarshal(stored, &again))
		assert.Equal(t, want, again.Pending(), "%s, stored", state)
	}
}

func TestTransactionFieldsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC) // 1795163400
	for body, want := range map[string]webdelivery.Transaction{
		`{"code":200,"description":"d","transaction_id":7,"new":{},"transaction_response":{"begin_ts":1795163400,
			"end_ts":1795163460,"percent_received_responses":100,"transaction_status":"COMPLETE","transaction_status_description":"s","new":1}}`: {
			Code: 200, Description: "d", TransactionID: 7, BeginTS: begin, EndTS: begin.Add(time.Minute), PercentReceived: 100,
			Status: "COMPLETE", StatusDescription: "s",
		},
		`{"code":"200","transaction_id":"7","transaction_response":{"begin_ts":"1795163400","end_ts":-1,
			"percent_received_responses":33,"transaction_status":"PENDING"}}`: {
			Code: 200, TransactionID: 7, BeginTS: begin, PercentReceived: 33, Status: "PENDING",
		},
		// The id is the requested one.
		`{"transaction_response":{"end_ts":-62135596800000,"transaction_status":"pending"}}`: {TransactionID: 7, Status: "pending"},
		`{"code":null,"description":null,"transaction_id":null,"transaction_response":{"begin_ts":null,"end_ts":null,
			"percent_received_responses":null,"transaction_status":"x","transaction_status_description":null}}`: {TransactionID: 7, Status: "x"},
	} {
		tx, err := fixture.Always(t, []byte(body)).Purge.Status(t.Context(), 7)
		require.NoError(t, err)
		assert.Equal(t, want, *tx)
		assert.Equal(t, strings.EqualFold(want.Status, "pending"), tx.Pending())
		encoded, err := json.Marshal(tx)
		require.NoError(t, err)
		assert.Equal(t, want.EndTS.IsZero(), !bytes.Contains(encoded, []byte("end_ts")), "%s", encoded)
	}
}
