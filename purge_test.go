package webdelivery_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	tests := []struct {
		name    string
		request webdelivery.PurgeRequest
		want    string
	}{
		{
			"exact",
			webdelivery.PurgeRequest{
				Action: webdelivery.ActionPurge,
				URIs:   []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/app.css")},
			},
			`{"purge_request":{"action":"PURGE","uris":[{"match_mode":"EXACT_LITERAL","uri_pattern":"https://www.example.com/app.css"}]}}`,
		},
		{
			"expire prefix",
			webdelivery.PurgeRequest{
				Action: webdelivery.ActionExpire,
				URIs:   []webdelivery.PurgeURI{webdelivery.Prefix("www.example.com/img/")},
			},
			`{"purge_request":{"action":"EXPIRE","uris":[{"match_mode":"PREFIX_LITERAL","uri_pattern":"www.example.com/img/"}]}}`,
		},
		{
			"modifiers, in order",
			webdelivery.PurgeRequest{Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{
				webdelivery.Prefix("www.example.com/b").WithCacheKeyModifier("v1*"),
				webdelivery.Prefix("www.example.com/a").WithCacheKeyModifier("*"),
				webdelivery.Prefix("www.example.com/a").WithCacheKeyModifier(`a.b-<c>&"d e`),
				webdelivery.Prefix("www.example.com/c").WithCacheKeyModifier(""),
			}},
			`{"purge_request":{"action":"PURGE","uris":[` +
				`{"match_mode":"PREFIX_LITERAL","uri_pattern":"www.example.com/b","cache_key_modifier_regex":"v1*"},` +
				`{"match_mode":"PREFIX_LITERAL","uri_pattern":"www.example.com/a","cache_key_modifier_regex":"*"},` +
				`{"match_mode":"PREFIX_LITERAL","uri_pattern":"www.example.com/a","cache_key_modifier_regex":"a.b-<c>&\"d e"},` +
				`{"match_mode":"PREFIX_LITERAL","uri_pattern":"www.example.com/c"}]}}`,
		},
		{
			"HTML characters and quotes", fixture.PurgeOf(`http://www.example.com/?a=<b>&c="d"'`),
			`{"purge_request":{"action":"PURGE","uris":[{"match_mode":"EXACT_LITERAL","uri_pattern":"http://www.example.com/?a=<b>&c=\"d\"'"}]}}`,
		},
		{
			"backslash", fixture.PurgeOf(`http://www.example.com/a\b\\c`),
			`{"purge_request":{"action":"PURGE","uris":[{"match_mode":"EXACT_LITERAL","uri_pattern":"http://www.example.com/a\\b\\\\c"}]}}`,
		},
		{
			"unicode", fixture.PurgeOf("http://www.example.com/ü/日本/😀e\u0301"),
			`{"purge_request":{"action":"PURGE","uris":[{"match_mode":"EXACT_LITERAL","uri_pattern":"http://www.example.com/ü/日本/😀e` + "\u0301" + `"}]}}`,
		},
		{
			"escapes", fixture.PurgeOf("HTTP://WWW.Example.com/%2f%2F%zz/a/../b//c/."),
			`{"purge_request":{"action":"PURGE","uris":[{"match_mode":"EXACT_LITERAL","uri_pattern":"HTTP://WWW.Example.com/%2f%2F%zz/a/../b//c/."}]}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				_, err := f.Client.Purge.Submit(f.Context(), tt.request)
				require.NoError(f, err)
				require.Len(f, f.Srv.Requests(), 1)
				sent := f.Srv.Requests()[0]
				assert.Equal(f, "POST /acme/v1/cache/purge", sent.Method+" "+sent.Path)
				assert.Equal(f, tt.want, string(sent.Body))
				assert.Equal(f, "application/json", sent.Header.Get("Content-Type"))
			})
		})
	}
}

// purge_internal_test.go has what is invalid in a URI.
func TestPurgeRefusesWhatTheDocumentCallsInvalid(t *testing.T) {
	t.Parallel()
	ok := webdelivery.Exact(fixture.AnObject)
	with := func(uris ...webdelivery.PurgeURI) webdelivery.PurgeRequest {
		return webdelivery.PurgeRequest{Action: webdelivery.ActionPurge, URIs: uris}
	}
	one := []webdelivery.PurgeURI{ok}
	tests := []struct {
		name    string
		request webdelivery.PurgeRequest
		fields  []string
	}{
		{"nothing", webdelivery.PurgeRequest{}, []string{"uris"}},
		{"action in lower case", webdelivery.PurgeRequest{Action: "purge", URIs: one}, []string{"action"}},
		{"action with a blank", webdelivery.PurgeRequest{Action: "EXPIRE ", URIs: one}, []string{"action"}},
		{"unknown action", webdelivery.PurgeRequest{Action: "DELETE", URIs: one}, []string{"action"}},
		{"no uris", with(), []string{"uris"}},
		{"empty uris", with([]webdelivery.PurgeURI{}...), []string{"uris"}},
		{
			"all at once",
			webdelivery.PurgeRequest{Action: "X", URIs: []webdelivery.PurgeURI{
				webdelivery.Exact(""), ok, ok.WithCacheKeyModifier("v1"), {URIPattern: "a"},
			}},
			[]string{"action", "uris[0].uri_pattern", "uris[2].cache_key_modifier_regex", "uris[3].match_mode"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := new(permits)
			fixture.InFakeTime(t, countingPermits(p), func(f *fixture.Fixture) {
				before := slices.Clone(tt.request.URIs)
				receipt, err := f.Client.Purge.Submit(f.Context(), tt.request)
				assert.Nil(f, receipt)
				assertRefusedHere(f, err, tt.fields...)
				for _, field := range tt.fields {
					assert.ErrorContains(f, err, field)
				}
				assert.Zero(f, p.taken.Load())
				assert.Equal(f, before, tt.request.URIs)
			})
		})
	}
}

// Every way to submit a purge checks a pattern and a modifier by the same rule, and sends nothing if they break it.
func TestEveryWayInRefusesTheSamePatterns(t *testing.T) {
	t.Parallel()
	for uri, field := range map[webdelivery.PurgeURI]string{
		webdelivery.Prefix("www.example.com/img/*"):                        "uris[0].uri_pattern",
		webdelivery.Exact("www.example.com/a b"):                           "uris[0].uri_pattern",
		webdelivery.Exact("www.example.com/a\n"):                           "uris[0].uri_pattern",
		webdelivery.Prefix("www.example.com/").WithCacheKeyModifier("v*1"): "uris[0].cache_key_modifier_regex",
		webdelivery.Exact("www.example.com/a"):                             "uris[0].uri_pattern",
		webdelivery.Exact("https://www.example.com/img/*"):                 "uris[0].uri_pattern",
		webdelivery.Prefix("/img/"):                                        "uris[0].uri_pattern",
	} {
		inQueue(t, fixture.Setup{}, webdelivery.QueueOptions{}, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
			request := webdelivery.PurgeRequest{Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{uri}}
			_, err := f.Client.Purge.Submit(f.Context(), request)
			refusedAs(f.T, field, err, "Submit")
			_, err = f.Client.Purge.SubmitAndWait(f.Context(), request)
			refusedAs(f.T, field, err, "SubmitAndWait")
			_, err = q.Purge(f.Context(), uri)
			refusedAs(f.T, field, err, "PurgeQueue")
			assert.Empty(f, f.Srv.Requests())
		})
	}
}

// An error with thousands of problems is of no use, but it must contain the number of problems that it leaves out.
func TestPurgeWithManyProblemsTellsHowManyItLeavesOut(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		_, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf("https://www.example.com/", "https://www.example.com/a b"))
		assert.ErrorContains(f, err, `uris[1].uri_pattern: "https://www.example.com/a b" contains a blank`)
		_, err = f.Client.Purge.Submit(f.Context(), fixture.PurgeOf(make([]string, 5000)...))
		assert.ErrorIs(f, err, webdelivery.ErrInvalid)
		fields := invalidFields(err)
		require.Len(f, fields, 100)
		assert.Equal(f, "uris[99].uri_pattern", fields[99])
		assert.ErrorContains(f, err, "4900 more")
		assert.Empty(f, f.Srv.Requests())
	})
}

func TestPurgeThatTheServiceRefusesIsABadRequest(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, uri, want string }{
		{"unknown host", "https://www.example.org/", "no configuration for a specified path"},
		{"forbidden domain", "https://www.example.net/", "user is not allowed to purge the domain"},
		{"wildcard of no property", "https://*.www.example.com/", "no configuration for a specified path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := new(permits)
			s := countingPermits(p)
			s.Server.Users = []testserver.User{{Name: fixture.Username, Password: fixture.Password, Domains: []string{"*.example.com"}}}
			fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
				receipt, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf(fixture.AnObject, tt.uri))
				assert.Nil(f, receipt)
				assert.ErrorIs(f, err, webdelivery.ErrBadRequest)
				var e *webdelivery.Error
				require.ErrorAs(f, err, &e)
				assert.Equal(f, []any{400, 400, "POST", "/acme/v1/cache/purge", 1}, []any{e.StatusCode, e.Code, e.Method, e.Path, e.Attempts})
				assert.Contains(f, e.Description, tt.want)
				assert.Contains(f, e.Description, tt.uri)
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				assert.Len(f, f.Srv.Requests(), 1)
				assert.Empty(f, f.Srv.Purged())
				assert.EqualValues(f, 1, p.taken.Load())
			})
		})
	}
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
			t.Run(shape+" "+form, func(t *testing.T) {
				t.Parallel()
				dialect := testserver.Dialect{PurgeReply: shape, NextURI: form}
				fixture.InFakeTime(t, fixture.Setup{Server: testserver.Config{Dialect: dialect}}, func(f *fixture.Fixture) {
					receipt, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf(fixture.AnObject))
					require.NoError(f, err)
					assert.Regexp(f, "/transactions/9007199254740993$", receipt.StatusURI)
					if shape != "303-location" && form == "relative" {
						assert.Equal(f, "/transactions/9007199254740993", receipt.StatusURI)
					}
					assert.Equal(f, webdelivery.PurgeReceipt{
						Code: want.Code, Description: want.Description, TransactionID: firstTransaction, StatusURI: receipt.StatusURI,
					}, *receipt)
					assert.Len(f, f.Srv.Requests(), 1, "a 303 is not followed")

					_, err = f.Client.Purge.Wait(f.Context(), receipt.TransactionID)
					require.NoError(f, err)
					assert.Equal(f, "/acme/v1/transactions/9007199254740993", f.Srv.Requests()[1].Path)
				})
			})
		}
	}
}

func TestPurgeReadsTheTransactionFromLocation(t *testing.T) {
	t.Parallel()
	for _, location := range []string{
		"/acme/v1/transactions/9223372036854775807", "/transactions/9223372036854775807", "{url}/acme/v1/transactions/9223372036854775807",
	} {
		t.Run(location, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				f.AddFault(testserver.Fault{
					Path: "/cache/purge", Status: http.StatusSeeOther,
					Header: http.Header{"Location": {strings.ReplaceAll(location, "{url}", f.Srv.URL())}},
				})
				receipt, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf(fixture.AnObject))
				require.NoError(f, err)
				assert.Equal(f, int64(9223372036854775807), receipt.TransactionID)
				assert.Len(f, f.Srv.Requests(), 1)
			})
		})
	}
}

func TestPurgeKeepsEveryDigitOfTheTransaction(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		`1`: 1, `9007199254740993`: firstTransaction, `9223372036854775807`: 9223372036854775807, `"9007199254740993"`: firstTransaction,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				const status = `{"code":200,"transaction_id":%s,"transaction_response":{"transaction_status":"COMPLETE"}}`
				f.AddFault(testserver.Fault{Path: "/cache/purge", Status: http.StatusCreated, Body: `{"code":201,"transaction_id":` + text + `}`})
				fixture.AnswerWith(f, fmt.Sprint("/transactions/", want), fmt.Sprintf(status, text))
				receipt, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf(fixture.AnObject))
				require.NoError(f, err)
				assert.Equal(f, want, receipt.TransactionID)
				tx, err := f.Client.Purge.Status(f.Context(), receipt.TransactionID)
				require.NoError(f, err)
				assert.Equal(f, want, tx.TransactionID)
			})
		})
	}
}

// The service may say that it accepted the purge, by 201 (section 4.4) or in the body. Then the error must not invite
// a caller to send it again. If the response contains nothing about a purge, the outcome is unknown.
func TestPurgeWithoutTransaction(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusAccepted} {
		for _, body := range []string{
			`{"code":201,"description":"request submitted"}`, `{"code":201,"transaction_id":null}`, `{}`,
			`{"purge_response":{"transaction_status_uri":"/transactions/"}}`, `{"purge_response":{"transaction_status_uri":"/transactions/x"}}`,
			`{"purge_response":null,"transaction_id":0}`, `{"message":"under maintenance"}`,
		} {
			outcome := webdelivery.OutcomeUnknown
			if status == http.StatusCreated || strings.Contains(body, "201") || strings.Contains(body, "/transactions/") {
				outcome = webdelivery.OutcomeApplied
			}
			t.Run(fmt.Sprint(status, " ", body), func(t *testing.T) {
				t.Parallel()
				fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
					f.AddFault(testserver.Fault{Path: "/cache/purge", Status: status, Body: body})
					receipt, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf(fixture.AnObject))
					assert.Nil(f, receipt)
					assert.ErrorIs(f, err, webdelivery.ErrBadResponse)
					assert.Equal(f, outcome, webdelivery.OutcomeOf(err))
					assert.Len(f, f.Srv.Requests(), 1)
				})
			})
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
		{"/acme/v1/transactions/5", 5, ""},
		{"https://api.example.com/acme/v1/transactions/5", 5, ""},
		{"https://other.example/acme/v1/transactions/5", 0, "leads to another origin, https://other.example"},
		{"http://api.example.com/acme/v1/transactions/5", 0, "leads to another origin, http://api.example.com"},
		{"https://api.example.com/other/v1/transactions/5", 0, "is not below /acme/v1"},
		{"//host/transactions/5", 0, "leads to another origin, //host"},
		{"transactions/5", 0, "does not begin with a slash"},
		{"5", 0, "does not begin with a slash"},
		{"https:transactions/5", 0, "must consist of a path and a query only"},
		{"/transactions/../tasks/5", 0, ""},
		{"/transactions/+5", 0, ""},
		{"/transactions/-5", 0, ""},
		{"/transactions/9223372036854775808", 0, ""},
		{"/tasks/5", 0, ""},
	} {
		t.Run(tt.address, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				host := strings.ToLower(rand.Text()) + ".example.com" // purges of one origin share their permits, across bubbles too
				address := strings.ReplaceAll(tt.address, "api.example.com", host)
				submit := func(status int, id string) (*webdelivery.PurgeReceipt, error) {
					body := fmt.Sprintf(`{"code":201,"description":"d"%s,"purge_response":{"transaction_status_uri":%q}}`, id, address)
					client, err := webdelivery.NewClient("https://"+host, fixture.Customer, webdelivery.BasicAuth(fixture.Username, fixture.Password),
						webdelivery.WithHTTPClient(&http.Client{Transport: fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
							return fixture.Response(status, []byte(body)), nil
						})}))
					require.NoError(t, err)
					return client.Purge.Submit(t.Context(), fixture.PurgeOf(fixture.AnObject))
				}
				for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusSeeOther} {
					receipt, err := submit(status, "")
					if tt.id != 0 {
						require.NoError(t, err)
						assert.Equal(t, webdelivery.PurgeReceipt{Code: 201, Description: "d", TransactionID: tt.id, StatusURI: address}, *receipt)
					} else {
						assert.Nil(t, receipt)
						require.ErrorIs(t, err, webdelivery.ErrBadResponse)
						require.NotErrorIs(t, err, webdelivery.ErrInvalid)
						require.ErrorContains(t, err, "no transaction id")
						require.ErrorContains(t, err, strings.ReplaceAll(tt.reason, "api.example.com", host))
						if tt.reason != "" {
							assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err), status)
						}
					}
					for id, want := range map[int64]string{5: "/transactions/5", 7: "/transactions/7"} {
						if id == tt.id {
							want = address
						}
						receipt, err := submit(status, fmt.Sprintf(`,"transaction_id":%d`, id))
						require.NoError(t, err)
						assert.Equal(t, webdelivery.PurgeReceipt{Code: 201, Description: "d", TransactionID: id, StatusURI: want}, *receipt)
					}
				}
			})
		})
	}
}

// A negative end_ts is the placeholder of section 2.3, so a status that nobody knows is no end.
func TestANegativeEndIsPending(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]bool{"RUNNING": true, "QUEUED": true, "FAILED": false, "ABORTED": false} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			fixture.AnswerWith(f, "/transactions/7", `{"transaction_response":{"end_ts":-1,"transaction_status":"`+status+`"}}`)
			tx, err := f.Client.Purge.Status(f.Context(), 7)
			require.NoError(f, err)
			assert.Equal(f, want, tx.Pending(), status)
		})
	}
}

func TestTransactionFieldsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		want       webdelivery.Transaction
	}{
		{
			"ended", `{"code":200,"description":"d","transaction_id":7,"new":{},"transaction_response":{"begin_ts":1795163400,
			"end_ts":1795163460,"percent_received_responses":100,"transaction_status":"COMPLETE","transaction_status_description":"s","new":1}}`,
			webdelivery.Transaction{
				Code: 200, Description: "d", TransactionID: 7, // 2026-11-20T08:30:00Z
				BeginTS: time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC), EndTS: time.Date(2026, 11, 20, 8, 31, 0, 0, time.UTC),
				PercentReceived: 100, Status: "COMPLETE", StatusDescription: "s", Unknown: json.RawMessage(`{"new":{},"transaction_response":{"new":1}}`),
			},
		},
		{
			"pending", `{"code":200,"transaction_id":7,"transaction_response":{"begin_ts":1795163400,"end_ts":-1,
			"percent_received_responses":33,"transaction_status":"PENDING"}}`,
			webdelivery.Transaction{
				Code: 200, TransactionID: 7, BeginTS: time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
				PercentReceived: 33, Status: "PENDING",
			},
		},
		{
			"another placeholder", `{"transaction_response":{"end_ts":-62135596800000,"transaction_status":"pending"}}`,
			webdelivery.Transaction{TransactionID: 7, Status: "pending"}, // the requested id
		},
		{
			"null", `{"code":null,"description":null,"transaction_id":null,"transaction_response":{"begin_ts":null,"end_ts":null,
			"percent_received_responses":null,"transaction_status":"x","transaction_status_description":null}}`,
			webdelivery.Transaction{TransactionID: 7, Status: "x"}, // the requested id
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				fixture.AnswerWith(f, "/transactions/7", tt.body)
				tx, err := f.Client.Purge.Status(f.Context(), 7)
				require.NoError(f, err)
				assert.Equal(f, tt.want, *tx)
				assert.Equal(f, strings.EqualFold(tt.want.Status, "pending"), tx.Pending())
				encoded, err := json.Marshal(tx)
				require.NoError(f, err)
				assert.Equal(f, tt.want.EndTS.IsZero(), !bytes.Contains(encoded, []byte("end_ts")), "%s", encoded)
			})
		})
	}
}

// A URI alone is checked as in a request, and the field has no index.
func TestValidateOneURI(t *testing.T) {
	t.Parallel()
	require.NoError(t, webdelivery.Exact("https://www.example.com/a").Validate())
	err := webdelivery.Exact("www.example.com/a").Validate()
	var invalid *webdelivery.ValidationError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "uri_pattern", invalid.Field)
}
