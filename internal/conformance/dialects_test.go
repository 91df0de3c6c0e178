package conformance_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Where the document leaves something open, a service may choose another form: no rule differs, and the report shows
// the form.
func TestDialectsAreTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dialect testserver.Dialect
		report  map[string]string // by section and text of the rule
	}{
		"default": {
			report: map[string]string{
				"4.1 body of GET tasks":                           "the paged envelope of section 2.6",
				"4.2 spelling of starttime":                       "starttime is accepted, startime returns 400",
				"4.5 body of POST sessions":                       "an object with id",
				"4.6 key of an entry in the body of POST entries": "entry",
				"4.6 path of DELETE of an entry":                  "{list}/{entry}",
				"2.6 method on entries_batch_deletion_uri":        "POST",
				"8 more than two purge requests in one second":    `the third returned 503, Retry-After: ""`,
				"7 status of a rejected query":                    "400",
				"5 failed authentication at transactions":         "a bad password returns 403, an invalid session returns 403",
				"8 purges rejected as too fast count against the rate": "after two rejected ones, and none accepted in the last second, " +
					"a purge returned 201",
				"2.1 meaning of the uri of a task": "relative to the base, returned 200; the path of GET of that task: true",
				"2.5 event_timestamp_ms of an aggregated row": "by hour, of 2026-11-19T11:00:00 to 2026-11-20T11:00:00, " +
					"it is 2026-11-19T11:00:00.000 to 2026-11-20T10:00:00.000",
				"2.5 words of event_type, event_action and event_severity": `event_type: "BLOCK_COUNTRY", "BLOCK_IP", "CUSTOM", ` +
					`"RATE_LIMIT_COUNTRY", "RATE_LIMIT_IP", "WAF"; event_action: "BLOCK", "WARN"; ` +
					`event_severity: "CRITICAL", "ERROR", "HIGH", "NOTICE", "WARNING"`,
				"2.6 letter case of country codes":                                                "2 in upper case, 0 not",
				"2.6 spelling of the timestamps of network lists":                                 `"0000-00-00T00:00:00Z"`,
				"3 transaction_status of transactions that failed":                                `those of the run, failed or not: "COMPLETE, code 200", "PENDING, code 200"`,
				"4.2 a backslash in a value of a filter":                                          "before a letter it returns 200, at the end it returns 200",
				"4.2 an event at the very start and at the very end of a span":                    "it is found at the start: true, at the end: false",
				"4.2 sortby a column that is not in the result, and a dimension that comes twice": "returned 400 and 400",
				"4.2 start as a parameter":                                                        "returned 400",
				"4.3 HEAD of WAF trends without parameters":                                       "returned 200",
				"4.4 a transaction that does not exist":                                           "returned 404",
				"4.4 a uri_pattern with a fragment":                                               "returned 201",
				"4.6 DELETE of an entry that does not exist":                                      "returned 404",
				"4.6 POST to the address of an entry":                                             "returned 405, then the list has 1 entries; POST to the entries adds them",
				"4.6 a network list that does not exist":                                          "returned 404",
				"4.6 an entry that does not exist":                                                "returned 404",
				"4.6 one address in several spellings":                                            `returned 200, then the list has ["192.0.2.1"]`,
				"2.6 form of next_uri of lists":                                                   "relative to the base",
				"2.6 a page of lists behind the last":                                             "returned 200 and 0 items",
				"4.6 a count of 1,000 of entries":                                                 "returned 200 and 120 of 120 items",
				"2.4 rows and total_results of a result without rows":                             "rows: an array, total_results: 0",
			},
		},
		"other requests": {
			dialect: testserver.Dialect{
				TasksPrefix: "/operations", StartTimeParam: "startime", EntryKey: "value", BatchDeletionMethod: "DELETE",
				EntryDeletePath: "/config/networklists/{list}/entries/{entry}",
			},
			report: map[string]string{
				"4.1 path prefix of the tasks":                    `"/operations" returns 200`,
				"4.2 spelling of starttime":                       "startime is accepted, starttime returns 400",
				"4.6 key of an entry in the body of POST entries": "value",
				"4.6 path of DELETE of an entry":                  "{list}/entries/{entry}",
				"2.6 method on entries_batch_deletion_uri":        "DELETE",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, target := fake(c.dialect, little)
			differ, all := try(t, target, server, quickRules())
			assert.Empty(t, differ)
			seen(t, all, c.report)
		})
	}
}

// seen compares what the report shows of open rules, by section and text.
func seen(t *testing.T, all map[string]conformance.Result, report map[string]string) {
	t.Helper()
	for rule, want := range report {
		assert.Equal(t, conformance.Seen, all[rule].Verdict, "%s: %s", rule, all[rule].Detail)
		assert.Equal(t, want, all[rule].Detail, rule)
	}
}

// What the report shows of a spelling, by the text of the rule that is about its field.
var spellings = map[string]map[string]string{
	"4.1 body of GET tasks": {"TaskPage array": "an array", "TaskPage tasks": "an object with tasks"},
	"4.5 body of POST sessions": {
		"SessionReply cookie": "a cookie", "SessionReply text": "a text", "SessionReply string": "a JSON string",
		"SessionReply token": "an object with token",
	},
	"2.6 form of next_uri of entries": {
		"NextURI absolute": "absolute", "NextURI prefixed": "with the path of the base in front", "NextURI query": "a query alone",
		"NextURI last-element": "relative to the page", "NextURI no-scheme": "without a scheme", "NextURI other-scheme": "with another scheme",
		"NextURI other-host": "with another host", "NextURI other-prefix": "with another path",
	},
	"2.3 form of transaction_status_uri": {"NextURI absolute": "absolute"},
	"4.6 body of POST entries": {
		"EntriesReply id": "200, an object with id", "EntriesReply entries": "200, an array", "EntriesReply empty": "204, no body",
	},
	"4.6 body of DELETE of a list": {"ListDeleteReply task_id": "200, an object with task_id"},
	"2.4 order of the members of a result": {
		"MemberOrder rows-first": "rows, columns, total_results, query", "MemberOrder total-first": "total_results, query, columns, rows",
	},
	"4.3 body of dimensions of request trends": {"Names items": "an object {items: an array, each item an object {name: a string}}"},
	"4.3 body of groupings of WAF trends":      {"Groupings joined": "an array, each item an object {name: a string}"},
	"4.4 response to a purge":                  {"PurgeReply 303-body": "303, Location: true, body: true"},
	"8 more than two purge requests in one second": {
		"TooFast 429-retry-after": `the third returned 429, Retry-After: "1"`,
	},
	"5 failed authentication at transactions": {
		"TransactionDenied 400": "a bad password returns 400, an invalid session returns 400",
	},
	"2.4 rows and total_results of a result without rows": {"Total float": "rows: null, total_results: 0.0"}, // with NoRows null
	"2.4 a dimension that an event lacks": {
		"Absent empty": `"client_asn: ", "client_browser: ", "rule_id: ", "waf_action: "`,
	},
	"7 body of an error that is not one of a purge": {"Errors message": "application/json, an object with message"},
}

// With each value of each dialect field, every rule is tried, and no rule differs except those named here. The n-th
// dialect has the n-th value of every field; TestDialectsAreTold covers the default.
func TestEverySpellingKeepsTheRules(t *testing.T) {
	t.Parallel()
	const members, answered, address = "2.3 members of a purge response have their types",
		"4.4 a purge returns 201, or with 303 and code 201", "2.3 transaction_status_uri has the form transactions, id"
	differ := map[string][]string{ // open point 7: forms that the SDK reads, but the document does not show
		"PurgeReply 200":          {answered},
		"PurgeReply 303-location": {members, answered},
		"Total float":             {"2.4 total_results is an integer"}, // open point 50
	}
	notTried := map[string][]string{
		"PurgeReply 303-location": {address, "2.3 form of transaction_status_uri"},
	}
	for n := 1; ; n++ {
		var dialect testserver.Dialect
		var names, wantDiffer, wantLeft []string
		report := map[string]string{}
		for _, spelling := range testserver.Spellings() {
			if n < len(spelling.Values) {
				dialect = dialect.With(spelling.Field, spelling.Values[n])
				name := spelling.Field + " " + spelling.Values[n]
				for rule, forms := range spellings {
					if form := forms[name]; form != "" {
						report[rule] = form
					}
				}
				names, wantDiffer, wantLeft = append(names, name), append(wantDiffer, differ[name]...), append(wantLeft, notTried[name]...)
			}
		}
		if names == nil {
			return
		}
		t.Run(strings.Join(names, ","), func(t *testing.T) {
			t.Parallel()
			server, target := fake(dialect, little)
			got, all := try(t, target, server, quickRules())
			assert.ElementsMatch(t, wantDiffer, got)
			seen(t, all, report)
			var left []string
			for rule, result := range all {
				if result.Verdict == conformance.NotTried && result.Unseen == "" && rule != "8 a list has at most 50,000 entries" {
					left = append(left, rule)
				}
			}
			assert.ElementsMatch(t, wantLeft, left)
		})
	}
}
