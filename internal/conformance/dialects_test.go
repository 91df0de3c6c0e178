package conformance_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

const ofEntry = "/config/networklists/{list}/entries/{entry}"

// Where the document leaves something open, a service may choose another form, and the report shows it: by section and
// text of the rule, for the default dialect and for a field with a value.
var told = map[string]map[string]string{
	"2.1 meaning of the uri of a task":    {"": "relative to the base, returned 200; the path of GET of that task: true"},
	"2.3 form of transaction_status_uri":  {"NextURI absolute": "absolute"},
	"2.4 a dimension that an event lacks": {"Absent empty": `"client_asn: ", "client_browser: ", "rule_id: ", "waf_action: "`},
	"2.4 order of the members of a result": {
		"MemberOrder rows-first": "rows, columns, total_results, query", "MemberOrder total-first": "total_results, query, columns, rows",
	},
	"2.4 rows and total_results of a result without rows": {
		"": "rows: an array, total_results: 0", "Total float": "rows: null, total_results: 0.0", // with NoRows null
	},
	"2.5 event_timestamp_ms of an aggregated row": {
		"": "by hour, of 2026-11-19T11:00:00 to 2026-11-20T11:00:00, it is 2026-11-19T11:00:00.000 to 2026-11-20T10:00:00.000",
	},
	"2.5 words of event_type, event_action and event_severity": {
		"": `event_type: ["BLOCK_COUNTRY" "BLOCK_IP" "CUSTOM" "RATE_LIMIT_COUNTRY" "RATE_LIMIT_IP" "WAF"]; ` +
			`event_action: ["BLOCK" "WARN"]; event_severity: ["CRITICAL" "ERROR" "HIGH" "NOTICE" "WARNING"]`,
	},
	"2.6 a page of lists behind the last": {"": "returned 200 and 0 of 14 items"},
	"2.6 form of next_uri of entries": {
		"NextURI absolute": "absolute", "NextURI prefixed": "with the path of the base in front", "NextURI query": "a query alone",
		"NextURI last-element": "relative to the page", "NextURI no-scheme": "without a scheme", "NextURI other-scheme": "with another scheme",
		"NextURI other-host": "with another host", "NextURI other-prefix": "with another path",
	},
	"2.6 form of next_uri of lists":                   {"": "relative to the base"},
	"2.6 letter case of country codes":                {"": "2 in upper case, 0 not"},
	"2.6 method on entries_batch_deletion_uri":        {"": "POST", "BatchDeletionMethod DELETE": "DELETE"},
	"2.6 spelling of the timestamps of network lists": {"": `"0000-00-00T00:00:00Z"`},
	"3 transactions that are over or have failed":     {"": `those of the run, over or not: "COMPLETE, code 200, ended: true"`},
	"4.1 body of GET tasks": {
		"": "the paged envelope of section 2.6", "TaskPage array": "an array", "TaskPage tasks": "an object with tasks",
	},
	"4.1 path prefix of the tasks":                                                    {"": `"" returns 200`, "TasksPrefix /operations": `"/operations" returns 200`},
	"4.2 a backslash in a value of a filter, before a letter and at the end":          {"": "returned 200 and 200"},
	"4.2 an event at the very start and at the very end of a span":                    {"": "it is found at the start: true, at the end: false"},
	"4.2 sortby a column that is not in the result, and a dimension that comes twice": {"": "returned 400 and 400"},
	"4.2 spelling of starttime": {
		"": "starttime is accepted, startime returns 400", "StartTimeParam startime": "startime is accepted, starttime returns 400",
	},
	"4.2 start as a parameter":                  {"": "returned 400"},
	"4.3 HEAD of WAF trends without parameters": {"": "returned 200"},
	"4.3 body of dimensions of request trends":  {"Names items": "an object {items: an array, each item an object {name: a string}}"},
	"4.3 body of groupings of WAF trends":       {"Groupings joined": "an array, each item an object {name: a string}"},
	"4.4 a transaction that does not exist":     {"": "returned 404"},
	"4.4 a uri_pattern with a fragment":         {"": "returned 201"},
	"4.4 response to a purge":                   {"PurgeReply 303-body": "303, Location: true, body: true"},
	"4.5 body of POST sessions": {
		"": "an object with id", "SessionReply cookie": "a cookie", "SessionReply text": "a text", "SessionReply string": "a JSON string",
		"SessionReply token": "an object with token",
	},
	"4.6 DELETE of an entry that does not exist": {"": "returned 404"},
	"4.6 POST to the address of an entry":        {"": "returned 405, then the list has 1 entries; POST to the entries adds them"},
	"4.6 a count of 1,000 of entries":            {"": "returned 200 and 120 of 120 items"},
	"4.6 a network list that does not exist":     {"": "returned 404"},
	"4.6 an entry that does not exist":           {"": "returned 404"},
	"4.6 body of DELETE of a list":               {"ListDeleteReply task_id": "200, an object with task_id"},
	"4.6 body of POST entries": {
		"EntriesReply id": "200, an object with id", "EntriesReply entries": "200, an array", "EntriesReply empty": "204, no body",
	},
	"4.6 key of an entry in the body of POST entries": {"": "entry", "EntryKey value": "value"},
	"4.6 one address in several spellings":            {"": `returned 200, then the list has ["192.0.2.1"]`},
	"4.6 path of DELETE of an entry":                  {"": "{list}/{entry}", "EntryDeletePath " + ofEntry: "{list}/entries/{entry}"},
	"5 failed authentication at sessions, statistics and transactions": {
		"":                      "a bad password returns 401, 401 and 403, an invalid session at transactions 403",
		"TransactionDenied 400": "a bad password returns 401, 401 and 400, an invalid session at transactions 400",
	},
	"7 body of an error that is not one of a purge":              {"Errors message": "application/json, an object with message"},
	"7 status of a query without endtime, and with an empty one": {"": "returned 400 and 400"},
	"8 more than two purge requests in one second": {
		"": `the third returned 503, Retry-After: ""`, "TooFast 429-retry-after": `the third returned 429, Retry-After: "1"`,
	},
	"8 purges rejected as too fast count against the rate": {"": "after two rejected ones, and none accepted in the last second, a purge returned 201"},
}

// With each value of each dialect field, every rule is tried, no rule differs except those named here, and the report shows
// the form. The n-th dialect has the n-th value of every field.
func TestEverySpellingKeepsTheRules(t *testing.T) {
	t.Parallel()
	differ := map[string][]string{ // open point 7: forms that the SDK reads, but the document does not show
		"PurgeReply 200":          {"4.4 a purge returns 201 or 303, and code 201"},
		"PurgeReply 303-location": {"2.3 members of a purge response have their types", "4.4 a purge returns 201 or 303, and code 201"},
		"Total float":             {"2.4 members of a result have their types"}, // open point 50
	}
	notTried := map[string][]string{
		"PurgeReply 303-location": {"2.3 transaction_status_uri has the form transactions, id", "2.3 form of transaction_status_uri"},
	}
	fields := append(testserver.Spellings(), // a field that takes any value has another one once
		testserver.Spelling{Field: "TasksPrefix", Values: []string{"", "/operations"}},
		testserver.Spelling{Field: "StartTimeParam", Values: []string{"", "startime"}},
		testserver.Spelling{Field: "EntryKey", Values: []string{"", "value"}},
		testserver.Spelling{Field: "BatchDeletionMethod", Values: []string{"", "DELETE"}},
		testserver.Spelling{Field: "EntryDeletePath", Values: []string{"", ofEntry}},
	)
	for n := 0; ; n++ {
		var dialect testserver.Dialect
		var names, wantDiffer, wantLeft []string
		for _, field := range fields {
			if n > 0 && n < len(field.Values) {
				dialect = dialect.With(field.Field, field.Values[n])
				name := field.Field + " " + field.Values[n]
				names, wantDiffer, wantLeft = append(names, name), append(wantDiffer, differ[name]...), append(wantLeft, notTried[name]...)
			}
		}
		if n == 0 {
			names = []string{""} // the default
		} else if names == nil {
			return
		}
		t.Run(strings.Join(names, ","), func(t *testing.T) {
			t.Parallel()
			server, target := fake(dialect, little)
			got, all := try(t, target, server, quickRules())
			assert.ElementsMatch(t, wantDiffer, got)
			for rule, forms := range told {
				for _, name := range names {
					if want := forms[name]; want != "" {
						assert.Equal(t, want, all[rule].Detail, rule)
						assert.Equal(t, conformance.Seen, all[rule].Verdict, rule)
					}
				}
			}
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
