package conformance_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	pathpkg "path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// deviation makes a service differ from the document in one point, which only certain requests show.
type deviation func(http.Handler) http.Handler

type deviated struct {
	deviate deviation
	differ  []string
}

func breaks(d deviation, rules ...string) deviated { return deviated{d, rules} }

// Paths of requests, a member, and the value of one that is not there.
const (
	data        = "/stats/security/events/data"
	pages       = "/config/networklists"
	list        = pages + "/[^/]+"
	waf         = "/stats/security/waf/trends/data"
	requests    = "/stats/security/request/trends/data"
	transaction = "/transactions/[^/]+"
	purge       = "POST /cache/purge"
	of          = "transaction_response."
	gone        = "(gone)"
)

// deviations of a service, with the beginnings of exactly the rules about them.
var deviations = map[string]deviated{
	"times of tasks are local": breaks(answer("/tasks", set("items.last_updated", "2026-11-20T13:00:00+01:00")), "2.1 members of a task"),
	"complete is a text":       breaks(answer("/tasks", set("items.complete", "true")), "2.1 members of a task", "2.1 a task that runs"),
	"progress has a fraction":  breaks(answer("/tasks", set("items.progress", 0.5)), "2.1 members of a task"),
	"a detail has no text":     breaks(answer("/tasks", set("items.error_info.details.message", gone)), "2.1 members of a task"),
	"a target has no uri":      breaks(answer("/tasks", set("items.target.uri", gone)), "2.1 members of a task"),
	"operation is a number":    breaks(answer("/tasks", set("items.operation", 7)), "2.1 members of a task"),
	"one task is open to all":  breaks(status("GET /tasks/[^/]+", 401, 200), "5 tasks reject"),

	"a purge returns 303":           breaks(status(purge, 201, 303)),
	"a purge returns 200":           breaks(status(purge, 201, 200), "4.4 a purge returns 201"),
	"a purge returns code 303":      breaks(response(purge, inBody(set("code", 303))), "4.4 a purge returns 201", "7 the body of a rejected purge"),
	"begin_ts is in milliseconds":   breaks(answer(transaction, set(of+"begin_ts", 1795176000000)), "2.3 members of a transaction"),
	"a percentage is more than 100": breaks(answer(transaction, set(of+"percent_received_responses", 101)), "2.3 members of a transaction"),
	"a pending end_ts is 0":         breaks(answer(transaction, set(of+"end_ts", 0)), "3 a transaction in progress"),
	"what is pending is RUNNING":    breaks(answer(transaction, set(of+"transaction_status", "RUNNING")), "3 a transaction in progress"),

	"rows are null":                       breaks(answer(data, set("rows", nil)), "2.4 rows are arrays"),
	"times of rows have a zone":           breaks(response("GET "+data, text(`(\.\d{3})"`, `${1}Z"`)), "2.4 timestamps of rows"),
	"an ASN is a text":                    breaks(response("GET "+data, text(`,(\d+)\]`, `,"$1"]`)), "2.4 timestamps of rows"),
	"events are from 1926":                breaks(response("GET "+data, text(`"20([^"]*\.\d{3})"`, `"19$1"`)), "4.2 a time is in the span"),
	"a Z is left out":                     breaks(question(data, "starttime", "Z", ""), "4.2 a time with a zone"),
	"+00:00 is left out":                  breaks(question(data, "endtime", `\+00:00`, ""), "4.2 a time with a zone"),
	"metrics may be absent":               breaks(question(requests, "metrics", "^$", "hits"), "4.3 dimensions, starttime, endtime, metrics of r"),
	"granularity may be absent":           breaks(question(waf, "granularity", "^$", "hour"), "4.3 dimensions, starttime, endtime, metrics, granularity of W"),
	"columns are in another order":        breaks(question(data, "dimensions", ",event_type,client_ip$", ",client_ip,event_type"), "2.4 columns"),
	"a column is added":                   breaks(question(data, "dimensions", "^client_ip$", "event_type,client_ip"), "2.4 columns"),
	"limit is one less than it should be": breaks(question(data, "limit", "^13$", "12"), "4.2 limit is the maximum"),
	"total_results is that of one row":    breaks(response("GET "+data, text(`("rows":\[\[[^]]*\]\],"total_results":)\d+`, "${1}1")), "4.2 limit is the maximum"),
	"no minus sign is one":                breaks(question(data, "sortby", "^event_timestamp_ms$", "-event_timestamp_ms"), "4.2 sortby is ascending"),
	"a filter is ignored":                 breaks(question(data, "filters", `.*\\,absent.*`, "event_action!=x"), "4.2 a comma and a"),
	"old events are kept":                 breaks(question(data, "endtime", "^2026-11-17T00:00:00$", "2026-11-18T00:00:00"), "6 raw events"),
	"limit is 20 by default":              breaks(question(data, "limit", "^$", "20"), "4.2 limit is 10"),
	"a minus sign is not known":           breaks(question(data, "sortby", "^-event_timestamp_ms$", "event_timestamp_ms"), "4.2 sortby is ascending"),
	"a semicolon is an OR":                breaks(question(data, "filters", ";event_action==", ",event_action=="), "4.2 a comma joins"),
	"a comma is an AND":                   breaks(question(data, "filters", ",event_action", ";event_action"), "4.2 a comma joins"),
	"no comma is escaped":                 breaks(question(data, "filters", `\\,absent`, ",absent"), "4.2 a comma and a"),
	"a value loses its comma":             breaks(question(data, "filters", `\\, the`, " the"), "4.2 a comma and a"),
	"three days are kept as two":          breaks(question(data, "starttime", "^2026-11-17T00:00:00$", "2026-11-17T23:59:59"), "6 raw events"),
	"a rejected query returns 500": breaks(status("GET "+data, 400, 500), "4.2 a dimension that does not exist", "4.2 a time with a zone",
		"4.2 an empty starttime or endtime", "4.2 a starttime that is not earlier", "4.3 dimensions, starttime, endtime of raw events"),

	"a list has another type":           breaks(answer(pages, set("items.type", "ASN")), "2.6 members of a network list", "4.6 type of networklists"),
	"lists of a page have entries":      breaks(answer(pages, set("items.list", []any{})), "4.6 items of networklists"),
	"includelist=false is not known":    breaks(question(list, "includelist", "^false$", "true"), "4.6 GET of a list returns"),
	"a list has no entries":             breaks(answer(list, set("list", gone)), "4.6 GET of a list returns"),
	"another list is read":              breaks(answer(list, set("id", "00000000-0000-4000-8000-000000000000")), "4.6 GET of a list returns"),
	"an entry leaves with all others":   breaks(request("DELETE "+list+"/[^/]+", func(r *http.Request) { r.Method, r.URL.Path = "POST", pathpkg.Dir(r.URL.Path)+"/entries/deletions" }), "4.6 DELETE of an entry"),
	"entries are not added":             breaks(request("POST "+list+"/entries", func(r *http.Request) { r.Method = http.MethodGet }), "4.6 POST of entries adds"),
	"an entry leaves without a task":    breaks(response("DELETE "+list+"/[^/]+", inBody(set("id", gone))), "4.6 DELETE of an entry"),
	"page_index is 0":                   breaks(answer(pages, set("page_index", 0)), "2.6 page_index", "8 page of lists"),
	"page_count is that for count 3":    breaks(answer(pages, set("page_count", 5)), "2.6 page_index", "8 page of lists"),
	"page_count is that for count 1":    breaks(answer(pages, set("page_count", 14)), "2.6 page_index", "8 page of lists"),
	"has_more is true":                  breaks(answer(pages, set("has_more", true)), "2.6 page_index"),
	"has_more is false":                 breaks(answer(pages, set("has_more", false)), "2.6 page_index"),
	"uri has no query":                  breaks(answer(pages, set("uri", pages)), "2.6 uri, prev_uri and next_uri of a page of l"),
	"prev_uri is a number":              breaks(answer(list+"/entries", set("prev_uri", 7)), "2.6 members of a page of entries", "2.6 uri, prev_uri and next_uri of a page of e"),
	"prev_uri is null":                  breaks(answer(pages, set("prev_uri", nil)), "2.6 uri, prev_uri and next_uri of a page of l"),
	"next_uri is null":                  breaks(answer(pages, set("next_uri", nil)), "2.6 uri, prev_uri and next_uri of a page of l"),
	"next_uri is never null":            breaks(answer(pages, set("next_uri", pages+"?page=2&count=1")), "2.6 uri, prev_uri and next_uri of a page of l"),
	"prev_uri is never null":            breaks(answer(pages, set("prev_uri", pages+"?page=13&count=1")), "2.6 uri, prev_uri and next_uri of a page of l"),
	"a page of two has three":           breaks(question(pages, "count", "^2$", "3"), "4.6 count and page cut the lists"),
	"the second page is the first":      breaks(question(pages, "page", "^2$", "1"), "4.6 count and page cut the lists"),
	"count is 20 by default":            breaks(question(pages, "count", "^$", "20"), "8 page of lists"),
	"a page behind the last is refused": breaks(question(pages, "page", "^15$", "x"), "2.6 a page of lists behind the last: returned 400"),
	"total is that of a full page": breaks(answer(list+"/entries", func(v any) any {
		if items, _ := v.(object)["items"].([]any); len(items) > 99 {
			v.(object)["total"] = 100
		}
		return v
	}), "8 page of entries"),
}

// A suite that cannot fail proves nothing. For each deviation of a service, exactly the rules about it must differ.
func TestDeviationsAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range deviations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, target := fake(testserver.Dialect{}, little)
			differ, all := try(t, target, c.deviate(server), quickRules())
			for i, rule := range differ {
				if known := slices.IndexFunc(c.differ, func(begin string) bool { return strings.HasPrefix(rule, begin) }); known >= 0 {
					differ[i] = c.differ[known]
				}
			}
			for rule, r := range all { // also what a row has of a rule about what is open
				if told := rule + ": " + r.Detail; slices.Contains(c.differ, told) {
					differ = append(differ, told)
				}
			}
			assert.ElementsMatch(t, c.differ, differ)
		})
	}
}

type object = map[string]any

// about returns whether a request has the method and the path relative to the base.
func about(of string, r *http.Request) bool {
	method, path, _ := strings.Cut(of, " ")
	return regexp.MustCompile("^" + method + " /acme/v1" + path + "$").MatchString(r.Method + " " + r.URL.Path)
}

// response changes the responses to a request.
func response(of string, change func(*httptest.ResponseRecorder)) deviation {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			if about(of, r) {
				change(answer)
			}
			answer.Header().Del("Content-Length")
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		})
	}
}

func status(of string, from, to int) deviation {
	return response(of, func(answer *httptest.ResponseRecorder) {
		if answer.Code == from {
			answer.Code = to
		}
	})
}

// answer changes the bodies of responses to GET.
func answer(path string, change func(any) any) deviation {
	return response("GET "+path, inBody(change))
}

// request changes a request before the service gets it.
func request(of string, change func(*http.Request)) deviation {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if about(of, r) {
				change(r)
			}
			h.ServeHTTP(w, r)
		})
	}
}

// question changes the value of a parameter of GET, which is empty if it is absent.
func question(path, name, from, to string) deviation {
	pattern := regexp.MustCompile(from)
	return request("GET "+path, func(r *http.Request) {
		if q := r.URL.Query(); pattern.MatchString(q.Get(name)) {
			q.Set(name, pattern.ReplaceAllString(q.Get(name), to))
			r.URL.RawQuery = q.Encode()
		}
	})
}

func inBody(change func(any) any) func(*httptest.ResponseRecorder) {
	return func(r *httptest.ResponseRecorder) {
		dec := json.NewDecoder(bytes.NewReader(r.Body.Bytes()))
		dec.UseNumber()
		var body any
		if dec.Decode(&body) == nil {
			text, _ := json.Marshal(change(body))
			r.Body = bytes.NewBuffer(text)
		}
	}
}

// set changes a member of an object, or of each item on the way to it.
func set(path string, to any) func(any) any {
	name, rest, within := strings.Cut(path, ".")
	var in func(any) any
	in = func(v any) any {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				in(item)
			}
		case object:
			switch {
			case within:
				set(rest, to)(v[name])
			case to == gone:
				delete(v, name)
			default:
				v[name] = to
			}
		}
		return v
	}
	return in
}

// text changes the body by patterns and replacements.
func text(changes ...string) func(*httptest.ResponseRecorder) {
	return func(r *httptest.ResponseRecorder) {
		body := r.Body.String()
		for i := 0; i < len(changes); i += 2 {
			body = regexp.MustCompile(changes[i]).ReplaceAllString(body, changes[i+1])
		}
		r.Body = bytes.NewBufferString(body)
	}
}

// Ways to change a response so that it no longer says what it did.
var changes = map[string]func(*httptest.ResponseRecorder){
	"it is the one before": nil,
	"an acceptance is refused": func(r *httptest.ResponseRecorder) {
		if r.Code < http.StatusBadRequest {
			r.Code = http.StatusForbidden
		}
	},
	"a refusal is accepted": func(r *httptest.ResponseRecorder) {
		if r.Code >= http.StatusBadRequest {
			r.Code, r.Body = http.StatusOK, bytes.NewBufferString(`{"code":200,"transaction_id":1,"items":[],"rows":[],"columns":[],"total_results":0}`)
		}
	},
	"lists are empty":           lists(func([]any) []any { return []any{} }),
	"lists are too long":        lists(func(list []any) []any { return slices.Repeat(list, 1+1_000/len(list)) }),
	"values are others":         text(`(:|\[)"`, `${1}"x`, `([:,\[])-?\d+`, "${1}1000000", ":true", ":false"),
	"an object is empty":        text(`(?s)^\{.*\}`, "{}"),
	"an empty list has an item": text(`"items":\[\]`, `"items":[{"id":"1","uri":"/1","entry":"US","added_by":"x"}]`),
}

// lists changes the rows and items that are there.
func lists(change func([]any) []any) func(*httptest.ResponseRecorder) {
	return inBody(func(v any) any {
		body, _ := v.(object)
		for _, name := range []string{"rows", "items"} {
			if list, ok := body[name].([]any); ok && len(list) > 0 {
				body[name] = change(list)
			}
		}
		return v
	})
}

// A rule that no response can break proves nothing. For each stated rule, one of the changes to one of its responses, or
// also to all later ones, makes it differ, if no deviation does.
func TestEveryStatedRuleCanFail(t *testing.T) {
	t.Parallel()
	var named []string
	for _, d := range deviations {
		named = append(named, d.differ...)
	}
	for i, rule := range quickRules() {
		text := rule.Section + " " + rule.Text
		if i%5 > 0 && testing.Short() || rule.Open || rule.Unseen != "" ||
			rule.Text == "a list has at most 50,000 entries" || // it needs a list that is full
			slices.ContainsFunc(named, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
			continue
		}
		t.Run(rule.Text, func(t *testing.T) {
			t.Parallel()
			_, all := changed(t, rule, 0, 0, nil)
			for _, later := range []int{1000, 0} {
				for nth := all; nth > 0; nth-- {
					for _, change := range changes {
						if verdict, _ := changed(t, rule, nth, nth+later, change); verdict == conformance.Differs {
							return
						}
					}
				}
			}
			assert.Fail(t, "no change of a response breaks this rule")
		})
	}
}

// changed tries a rule at a service whose responses are changed from one to another, and returns how many there were.
// Without a change, the one before comes again.
func changed(
	t *testing.T, rule conformance.Rule, from, to int, change func(*httptest.ResponseRecorder),
) (verdict conformance.Verdict, n int) {
	t.Helper()
	server, target := fake(testserver.Dialect{}, little)
	var before *httptest.ResponseRecorder
	_, all := try(t, target, response("[A-Z]+ .*", func(response *httptest.ResponseRecorder) {
		switch n++; {
		case n < from || n > to:
		case change != nil:
			change(response)
		case before != nil:
			response.Code, response.Body = before.Code, bytes.NewBuffer(before.Body.Bytes())
		}
		before = response
	})(server), []conformance.Rule{rule})
	return all[rule.Section+" "+rule.Text].Verdict, n
}
