package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// A service that decided otherwise where the document leaves it open keeps every rule, and what it decided is told.
func TestDialectsAreTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dialect testserver.Dialect
		told    map[string]string // by section and text of the rule
		differ  []string          // what the dialect spells against the words of the document
	}{
		"default": {
			told: map[string]string{
				"4.1 body of GET tasks":                           "the paged envelope of section 2.6",
				"4.2 spelling of starttime":                       "starttime is taken, startime is answered with 400",
				"4.5 body of POST sessions":                       "an object with id",
				"4.6 key of an entry in the body of POST entries": "entry",
				"4.6 path of DELETE of an entry":                  "{list}/{entry}",
				"2.6 method on entries_batch_deletion_uri":        "POST",
				"8 more than two purge requests in one second":    `the third was answered with 429, Retry-After: "1"`,
				"7 status of a rejected query":                    "400",
				"5 failed authentication at transactions":         "answered with 403",
				"2.6 form of next_uri of lists":                   "relative to the base",
			},
		},
		"other requests": {
			dialect: testserver.Dialect{
				TasksPrefix: "/operations", StartTimeParam: "startime", EntryKey: "value", BatchDeletionMethod: "DELETE",
				EntryDeletePath: "/config/networklists/{list}/entries/{entry}",
			},
			told: map[string]string{
				"4.1 path prefix of the tasks":                    `"/operations" is answered with 200`,
				"4.2 spelling of starttime":                       "startime is taken, starttime is answered with 400",
				"4.6 key of an entry in the body of POST entries": "value",
				"4.6 path of DELETE of an entry":                  "{list}/entries/{entry}",
				"2.6 method on entries_batch_deletion_uri":        "DELETE",
			},
		},
		"other replies": {
			dialect: testserver.Dialect{
				TaskPage: "array", SessionReply: "cookie", NextURI: "absolute", Timestamps: "+0000", Final: "DONE",
				EntriesReply: "entries", ListDeleteReply: "task_id", MemberOrder: "rows-first", Names: "items", TopKTotal: "groups",
			},
			told: map[string]string{
				"4.1 body of GET tasks":                    "an array",
				"4.5 body of POST sessions":                "a cookie",
				"2.6 form of next_uri of entries":          "absolute",
				"2.3 form of transaction_status_uri":       "absolute",
				"3 a transaction that is over":             `transaction_status "DONE", code 200, end_ts negative: false`,
				"4.6 body of POST entries":                 "200, an array",
				"4.6 body of DELETE of a list":             "200, an object with task_id",
				"2.4 order of the members of a result":     "rows, columns, total_results, query",
				"4.3 body of dimensions of request trends": "an object {items: an array, each item an object {name: a string}}",
			},
		},
		"yet other replies": {
			dialect: testserver.Dialect{
				TaskPage: "tasks", SessionReply: "text", NextURI: "prefixed", Timestamps: "none", EntriesReply: "empty",
				ListDeleteReply: "task_id", MemberOrder: "total-first", Names: "member", Groupings: "joined",
			},
			told: map[string]string{
				"4.1 body of GET tasks":                "an object with tasks",
				"4.5 body of POST sessions":            "a text",
				"2.6 form of next_uri of entries":      "with the path of the base in front",
				"4.6 body of POST entries":             "204, no body",
				"2.4 order of the members of a result": "total_results, query, columns, rows",
				"4.3 body of groupings of WAF trends":  "an object {groupings: an array, each item a string}",
			},
		},
		"a purge without 201": {
			dialect: testserver.Dialect{PurgeReply: "303-body", SessionReply: "string"},
			told: map[string]string{
				"4.4 what a purge is answered with": "303, Location: true, body: true",
				"4.5 body of POST sessions":         "a JSON string",
			},
			differ: []string{"4.4 a purge is answered with 201"},
		},
		"errors of another shape": {
			dialect: testserver.Dialect{Errors: "message"},
			told: map[string]string{
				"7 body of an error that is not one of a purge": "application/json, an object with message",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, target := fake(c.dialect, little)
			differ, all := try(t, target, server, quickRules())
			assert.ElementsMatch(t, c.differ, differ)
			for rule, want := range c.told {
				got := all[rule]
				assert.Equal(t, conformance.Seen, got.Verdict, "%s: %s", rule, got.Detail)
				assert.Equal(t, want, got.Detail, rule)
			}
		})
	}
}
