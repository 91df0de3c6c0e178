package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// deviation makes a service differ from the document in one point, which only certain requests show.
type deviation struct {
	meant func(*http.Request) bool
	wrap  func(http.Handler) http.Handler
}

type deviated struct {
	deviate deviation
	differ  []string
	seen    map[string]string // of rules about what is open
}

func differing(d deviation, rules ...string) deviated { return deviated{deviate: d, differ: rules} }

const purged = "www.example.com/conformance"

// deviations of a service, with exactly the rules about it.
var deviations = map[string]deviated{
	"has_more is always true": differing(
		answer("GET", "/config/networklists/[^/]+/entries", func(b object) { b["has_more"] = true }),
		"2.6 has_more of entries is true before the last page and false on it"),
	"next_uri is missing": differing(answer("GET", "/config/networklists", func(b object) { delete(b, "next_uri") }),
		"2.6 members of a page of lists have their types",
		"2.6 next_uri of lists is null on the last page and the next page otherwise"),
	"next_uri leads too far": differing(answer("GET", "/config/networklists", func(b object) {
		if b["next_uri"] != nil {
			b["next_uri"] = strings.ReplaceAll(fmt.Sprint(b["next_uri"]), "page=2", "page=3")
		}
	}), "2.6 next_uri of lists is null on the last page and the next page otherwise"),
	"next_uri leads elsewhere": {
		deviate: answer("GET", "/config/networklists", func(b object) {
			if b["next_uri"] != nil {
				b["next_uri"] = "https://elsewhere.example.net" + fmt.Sprint(b["next_uri"])
			}
		}),
		seen: map[string]string{"2.6 form of next_uri of lists": "with another host"},
	},
	"a page behind the last is not found": {
		deviate: response("GET", "/config/networklists/[^/]+/entries", func(answer *httptest.ResponseRecorder) {
			if strings.Contains(answer.Body.String(), `"items":[]`) {
				answer.Code = 404
			}
		}),
		seen: map[string]string{"2.6 a page of entries behind the last": "returned 404"},
	},
	"a count of 1,000 is refused": {
		deviate: question("GET", "/config/networklists", parameter("count", "1000", "x")),
		seen:    map[string]string{"4.6 a count of 1,000 of lists": "returned 400"},
	},
	"rows are null although there are some": {
		deviate: answer("GET", "/stats/security/events/data", func(b object) { b["rows"] = nil }),
		differ:  []string{"2.4 rows are arrays with a value for each column"},
		seen:    map[string]string{"2.4 rows and total_results of a result without rows": "rows: null, total_results: 0"},
	},
	"pages are counted from 0": differing(
		answer("GET", "/config/networklists", func(b object) { b["page_index"] = number(b["page_index"]) - 1 }),
		"2.6 page_index of lists is the current page, from 1 on",
		"4.6 page of networklists is 1 by default"),
	"total is that of a full page": differing(answer("GET", "/config/networklists/[^/]+/entries", func(b object) {
		if items, _ := b["items"].([]any); len(items) > 99 {
			b["total"] = len(items)
		}
	}), "8 paging of entries begins with page 1 and count 100"),
	"lists have their entries in the collection": differing(answer("GET", "/config/networklists", eachItem("list", []string{})),
		"4.6 items of networklists have no list"),
	"includelist is not known": differing(
		question("GET", "/config/networklists/[^/]+", parameter("includelist", "false", "true")),
		"4.6 includelist=false leaves the list out"),
	"deprecated lists are shown": differing(question("GET", "/config/networklists", parameter("deprecated", "", "true")),
		"9 deprecated lists are hidden unless deprecated=true is passed"),
	"timestamps are local": differing(
		answer("GET", "/config/networklists/[^/]+/entries", eachItem("creation_timestamp", "2026-11-20T13:00:00+01:00")),
		"2.6 members of an entry have their types"),
	"an entry has no type": differing(
		answer("GET", "/config/networklists/[^/]+/entries/[^/]+", func(b object) { delete(b, "type") }),
		"2.6 an entry read by itself has uri, id, type and network_list_uri"),
	"who may not view configuration gets 401": differing(status("GET", "/config/.*", 403, 401),
		"5 a user who may not view configuration gets 403 for network lists"),
	"an entry is deleted without a task": differing(
		answer("DELETE", "/config/networklists/[^/]+/[^/]+", func(b object) { delete(b, "id") }),
		"4.6 DELETE of an entry returns a task"),

	"a task that does not exist is gone": differing(status("GET", "/tasks/conformance-absent", 404, 410),
		"4.1 GET of a task that does not exist returns 404"),
	"progress is a string": differing(answer("GET", "/tasks", eachItem("progress", "done")),
		"2.1 members of a task have their types"),
	"status of tasks is not known": differing(question("GET", "/tasks", parameter("status", "conformance-absent", "COMPLETE")),
		"4.1 status of tasks leaves tasks of that status"),

	"code is absent from a purge": differing(answer("POST", "/cache/purge", func(b object) {
		if number(b["code"]) < 400 {
			delete(b, "code")
		}
	}), "2.3 members of a purge response have their types"),
	"a purge returns 202": differing(status("POST", "/cache/purge", 201, 202),
		"2.3 members of a purge response have their types",
		"4.4 a purge returns 201, or with 303 and code 201"),
	"a purge returns 303 and code 201": {
		deviate: status("POST", "/cache/purge", 201, 303),
	},
	"a purge returns 303 and code 303": differing(response("POST", "/cache/purge", func(answer *httptest.ResponseRecorder) {
		if answer.Code == 201 {
			answer.Code = 303
			answer.Body = bytes.NewBuffer(bytes.ReplaceAll(answer.Body.Bytes(), []byte(`"code":201`), []byte(`"code":303`)))
		}
	}), "2.3 members of a purge response have their types", "4.4 a purge returns 201, or with 303 and code 201"),
	"GET of purge is not found": differing(status("GET", "/cache/purge", 405, 404),
		"4.4 purge rejects a method other than POST with 405"),
	"the Content-Type of a purge does not matter": differing(
		question("POST", "/cache/purge", func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }),
		"4.4 purge rejects a Content-Type other than JSON with 406"),
	"code is absent from a refused purge": differing(answer("POST", "/cache/purge", func(b object) {
		if number(b["code"]) >= 400 {
			delete(b, "code")
		}
	}), "7 the body of a rejected purge has code, the HTTP status, and description"),
	"purge does not answer 403 to an invalid authtoken": differing(question("POST", "/cache/purge", func(r *http.Request) {
		if r.Header.Get("Cookie") == "authtoken=conformance-absent" {
			r.URL.Path = "/acme/v1/tasks" // where GET returns 405
		}
	}), "7 purge rejects an invalid authtoken with 403"),
	"EXACT_LITERAL with a modifier is accepted": differing(question("POST", "/cache/purge", content(
		`"cache_key_modifier_regex":"conformance","match_mode":"EXACT_LITERAL"`, `"match_mode":"EXACT_LITERAL"`)),
		"4.4 cache_key_modifier_regex with EXACT_LITERAL is rejected with 400"),
	"a pattern without protocol is rejected": differing(question("POST", "/cache/purge", content(
		`"match_mode":"EXACT_LITERAL","uri_pattern":"`+purged, `"match_mode":"EXACT_LITERAL","uri_pattern":"unknown.example.org`)),
		"4.4 EXACT_LITERAL without protocol is accepted"),
	"begin_ts is in milliseconds": differing(answer("GET", "/transactions/.*", func(b object) {
		if of, ok := b["transaction_response"].(object); ok {
			of["begin_ts"] = number(of["begin_ts"]) * 1000
		}
	}), "2.3 begin_ts is in epoch seconds"),
	"end_ts is 0 while pending": differing(answer("GET", "/transactions/.*", func(b object) {
		if of, ok := b["transaction_response"].(object); ok && of["transaction_status"] == "PENDING" {
			of["end_ts"] = 0
		}
	}), "2.3 end_ts is negative while pending"),

	"total_results is missing": differing(
		answer("GET", "/stats/security/events/data", func(b object) { delete(b, "total_results") }),
		"2.4 total_results is an integer"),
	"the customer filter is missing": differing(answer("GET", "/stats/security/events/data", func(b object) {
		if echo, ok := b["query"].(object); ok {
			echo["filters"] = strings.TrimSuffix(fmt.Sprint(echo["filters"]), ";customer==acme")
		}
	}), "2.4 a filter on the customer is appended to the supplied filters with AND"),
	"client_asn is a string": differing(answer("GET", "/stats/security/events/data", func(b object) {
		columns := fmt.Sprint(b["columns"])
		rows, _ := b["rows"].([]any)
		for _, row := range rows {
			if cells := row.([]any); strings.HasSuffix(columns, "client_asn]]") && cells[1] != nil {
				cells[1] = fmt.Sprint(cells[1])
			}
		}
	}), "2.4 numeric dimensions are numbers"),
	"a time in UTC by name is accepted": differing(
		question("GET", "/stats/.*", func(r *http.Request) { r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "00Z", "00") }),
		"4.2 a time with the zone designator Z is rejected"),
	"granularity has a default": differing(
		question("GET", "/stats/security/waf/trends/data", parameter("granularity", "", "day")),
		"4.3 granularity of WAF trends is required"),
	"limit is 20 by default": differing(question("GET", "/stats/security/events/data", parameter("limit", "", "20")),
		"4.2 limit is 10 by default"),
	"a minus sign is not known": differing(
		question("GET", "/stats/security/events/data", parameter("sortby", "-event_timestamp_ms", "event_timestamp_ms")),
		"4.2 sortby with a minus sign is descending"),
	"filters are joined by OR whatever joins them": differing(
		question("GET", "/stats/security/events/data", func(r *http.Request) {
			if q := r.URL.Query(); strings.Count(q.Get("filters"), "event_action") == 2 {
				r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "%3Bevent_action", "%2Cevent_action")
			}
		}), "4.2 a semicolon joins filters by AND"),
	"a top-K is longer": differing(answer("GET", "/stats/security/waf/topk/severity/data", func(b object) {
		rows, _ := b["rows"].([]any)
		for len(rows) > 0 && len(rows) <= 20 {
			rows = append(rows, rows...)
		}
		b["rows"] = rows
	}), "8 a WAF top-K by severity has at most 20 rows"),
	"HEAD has a body": differing(response("HEAD", "/stats/security/waf/trends", func(answer *httptest.ResponseRecorder) {
		_, _ = answer.WriteString("{}")
	}), "4.3 HEAD of WAF trends is answered like data, without a body"),
	"a family is not there": differing(status("(GET|HEAD)", "/stats/security/request/trends.*", 200, 501),
		"4.3 data of request trends returns 200 and a result",
		"4.3 dimensions of request trends returns 200",
		"4.3 groupings of request trends returns 200",
		"4.3 metrics of request trends returns 200"),
}

// A suite that cannot fail proves nothing. For each deviation of a service, exactly the rules about it must differ.
func TestDeviationsAreFound(t *testing.T) {
	t.Parallel()
	sent := requests(t)
	for name, c := range deviations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, target := fake(testserver.Dialect{}, little)
			var rules []conformance.Rule // a rule that sends no such request cannot notice the deviation
			for _, rule := range quickRules() {
				if slices.ContainsFunc(sent[rule.Text], c.deviate.meant) {
					rules = append(rules, rule)
				}
			}
			differ, all := try(t, target, c.deviate.wrap(server), rules)
			assert.ElementsMatch(t, c.differ, differ)
			for rule, want := range c.seen {
				assert.Equal(t, want, all[rule].Detail, rule)
			}
		})
	}
}

// requests are the requests of each rule to a service without a deviation.
func requests(t *testing.T) map[string][]*http.Request {
	t.Helper()
	server, target := fake(testserver.Dialect{}, little)
	sent := map[string][]*http.Request{}
	of := ""
	target.BaseURL = "http://127.0.0.1"
	target.Transport = direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent[of] = append(sent[of], r)
		server.ServeHTTP(w, r)
	})}
	service, err := conformance.NewService(target)
	require.NoError(t, err)
	for _, rule := range quickRules() {
		of = rule.Text
		require.NotEqual(t, conformance.Differs, service.Try(t.Context(), rule).Verdict, of)
	}
	return sent
}

type object = map[string]any

func number(value any) int64 {
	n, _ := strconv.ParseInt(fmt.Sprint(value), 10, 64)
	return n
}

// about returns whether a request is for a path relative to the base.
func about(method, path string) func(*http.Request) bool {
	pattern := regexp.MustCompile("^" + method + " /acme/v1" + path + "$")
	return func(r *http.Request) bool { return pattern.MatchString(r.Method + " " + r.URL.Path) }
}

// question changes requests before the service gets them.
func question(method, path string, change func(*http.Request)) deviation {
	meant := about(method, path)
	return deviation{meant, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if meant(r) {
				change(r)
			}
			h.ServeHTTP(w, r)
		})
	}}
}

// parameter changes the value of a query parameter. An absent parameter has the value "".
func parameter(name, from, to string) func(*http.Request) {
	return func(r *http.Request) {
		if q := r.URL.Query(); q.Get(name) == from && (from != "" || !q.Has(name)) {
			q.Set(name, to)
			r.URL.RawQuery = q.Encode()
		}
	}
}

// content changes the body of requests.
func content(from, to string) func(*http.Request) {
	return func(r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		r.Body = io.NopCloser(strings.NewReader(strings.ReplaceAll(body.String(), from, to)))
	}
}

// response changes responses.
func response(method, path string, change func(*httptest.ResponseRecorder)) deviation {
	meant := about(method, path)
	return deviation{meant, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !meant(r) {
				h.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			change(answer)
			for name, values := range answer.Header() {
				w.Header()[name] = values
			}
			w.Header().Del("Content-Length")
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		})
	}}
}

// eachItem sets a member of each item of a page.
func eachItem(name string, value any) func(object) {
	return func(b object) {
		items, _ := b["items"].([]any)
		for _, item := range items {
			item.(object)[name] = value
		}
	}
}

func status(method, path string, from, to int) deviation {
	return response(method, path, func(answer *httptest.ResponseRecorder) {
		if answer.Code == from {
			answer.Code = to
		}
	})
}

// answer changes the bodies of responses that are JSON objects.
func answer(method, path string, change func(object)) deviation {
	return response(method, path, func(answer *httptest.ResponseRecorder) {
		whole := answer.Body.Bytes()
		dec := json.NewDecoder(bytes.NewReader(whole))
		dec.UseNumber()
		var body object
		if dec.Decode(&body) != nil {
			answer.Body = bytes.NewBuffer(whole)
			return
		}
		change(body)
		text, _ := json.Marshal(body)
		answer.Body = bytes.NewBuffer(text)
	})
}
