package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
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

// deviations of a service, with exactly the rules about it.
var deviations = map[string]deviated{
	"next_uri leads elsewhere": {
		deviate: answer("/config/networklists", func(b object) {
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
		deviate: question("/config/networklists", parameter("count", "1000", "x")),
		seen:    map[string]string{"4.6 a count of 1,000 of lists": "returned 400"},
	},
	"rows are null although there are some": {
		deviate: answer("/stats/security/events/data", func(b object) { b["rows"] = nil }),
		differ:  []string{"2.4 rows are arrays with a value for each column"},
		seen:    map[string]string{"2.4 rows and total_results of a result without rows": "rows: null, total_results: 0"},
	},
	"total is that of a full page": differing(answer("/config/networklists/[^/]+/entries", func(b object) {
		if items, _ := b["items"].([]any); len(items) > 99 {
			b["total"] = len(items)
		}
	}), "8 paging of entries begins with page 1 and count 100"),
	"a purge returns 303 and code 201": {
		deviate: status("POST", "/cache/purge", 201, 303),
	},
	"a purge returns 303 and code 303": differing(response("POST", "/cache/purge", func(answer *httptest.ResponseRecorder) {
		if answer.Code == 201 {
			answer.Code = 303
			answer.Body = bytes.NewBuffer(bytes.ReplaceAll(answer.Body.Bytes(), []byte(`"code":201`), []byte(`"code":303`)))
		}
	}), "2.3 members of a purge response have their types", "4.4 a purge returns 201, or with 303 and code 201"),
	"limit is 20 by default": differing(question("/stats/security/events/data", parameter("limit", "", "20")),
		"4.2 limit is 10 by default"),
	"a minus sign is not known": differing(
		question("/stats/security/events/data", parameter("sortby", "-event_timestamp_ms", "event_timestamp_ms")),
		"4.2 sortby with a minus sign is descending"),
	"filters are joined by OR whatever joins them": differing(
		question("/stats/security/events/data", func(r *http.Request) {
			if q := r.URL.Query(); strings.Count(q.Get("filters"), "event_action") == 2 {
				r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "%3Bevent_action", "%2Cevent_action")
			}
		}), "4.2 a semicolon joins filters by AND"),
	"a comma joins filters by AND": differing(
		question("/stats/security/events/data", func(r *http.Request) {
			r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "%2Cevent_action", "%3Bevent_action")
		}), "4.2 a comma joins filters by OR"),
	"a rejected query is an internal error": differing(status("GET", "/stats/security/events/data", 400, 500),
		"4.2 a dimension that does not exist is rejected", "4.2 a time with a numeric zone designator is rejected",
		"4.2 a time with the zone designator Z is rejected", "4.2 starttime and endtime must not be empty",
		"4.2 starttime must be earlier than endtime", "4.3 starttime, endtime and dimensions of raw events are required"),
	"times of tasks are local": differing(answer("/tasks", eachItem("last_updated", "2026-11-20T13:00:00+01:00")),
		"2.1 members of a task have their types"),
	"lists have their entries": differing(answer("/config/networklists(/[^/]+)?", func(b object) {
		b["list"] = []any{}
		eachItem("list", []any{})(b)
	}), "4.6 includelist=false leaves the list out", "4.6 items of networklists have no list",
		"4.6 the entries are those of the member list of the list"),
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
func question(path string, change func(*http.Request)) deviation {
	meant := about("GET", path)
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

// answer changes the bodies of responses to GET that are JSON objects.
func answer(path string, change func(object)) deviation {
	return response("GET", path, inBody(func(v any) any {
		if body, ok := v.(object); ok {
			change(body)
		}
		return v
	}))
}

// Ways to change a response so that it no longer says what it did.
var changes = map[string]func(*httptest.ResponseRecorder){
	"an acceptance is refused": func(r *httptest.ResponseRecorder) {
		if r.Code < http.StatusBadRequest {
			r.Code, r.Body = http.StatusForbidden, bytes.NewBufferString("{}")
		}
	},
	"a refusal is accepted": func(r *httptest.ResponseRecorder) {
		if r.Code >= http.StatusBadRequest {
			r.Code, r.Body = http.StatusOK, bytes.NewBufferString(`{"code":200,"transaction_id":1,"items":[],"rows":[],"columns":[],"total_results":0}`)
		}
	},
	"lists are empty": inBody(eachList(func([]any) []any { return []any{} })),
	"rows and items are too many": inBody(func(v any) any {
		if body, ok := v.(object); ok {
			for _, name := range []string{"rows", "items", "tasks"} {
				if list, ok := body[name].([]any); ok && len(list) > 0 {
					body[name] = slices.Repeat(list, 1+1_000/len(list))
				}
			}
		}
		return v
	}),
	"values are of another type": inBody(eachValue(func(v any) any {
		if _, ok := v.(string); ok {
			return 7
		}
		return "seven"
	})),
	"lists are reversed":       inBody(eachList(func(list []any) []any { slices.Reverse(list); return list })),
	"lists lack the first one": inBody(eachList(func(list []any) []any { return list[1:] })),
	"nothing is there":         func(r *httptest.ResponseRecorder) { r.Code = http.StatusNotFound },
	"numbers are 0": inBody(eachValue(func(v any) any {
		if _, ok := v.(json.Number); ok {
			return 0
		}
		return v
	})),
	"numbers of rows are texts": inBody(eachList(func(list []any) []any {
		for i, v := range list {
			if n, ok := v.(json.Number); ok {
				list[i] = "about " + n.String()
			}
		}
		return list
	})),
	"texts are all one": inBody(eachText(func(string) any { return "one" })),
	"texts go on":       inBody(eachText(func(text string) any { return text + "9" })),
	"an empty list has an item": inBody(func(v any) any {
		if body, ok := v.(object); ok {
			if list, ok := body["items"].([]any); ok && len(list) == 0 {
				body["items"], body["total"] = []any{object{"id": "1", "uri": "/1", "entry": "US", "added_by": "x"}}, 1
			}
		}
		return v
	}),
	"numbers grow":     inBody(eachValue(grown)),
	"texts are others": inBody(eachText(func(text string) any { return "x" + text })),
	"times are others": inBody(eachText(func(text string) any { return strings.Replace(text, "20", "19", 1) })),
	"null becomes a text": inBody(eachValue(func(v any) any {
		if v == nil {
			return "/elsewhere?page=9"
		}
		return v
	})),
	"an object is empty": inBody(func(any) any { return object{} }),
	"there is a body": func(r *httptest.ResponseRecorder) {
		r.Code, r.Body = http.StatusMethodNotAllowed, bytes.NewBufferString("{}")
	},
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

// eachValue changes every value that is neither an object nor an array.
func eachValue(change func(any) any) func(any) any {
	return each(change, func(list []any) []any { return list })
}

func eachText(change func(string) any) func(any) any {
	return eachValue(func(v any) any {
		if text, ok := v.(string); ok {
			return change(text)
		}
		return v
	})
}

// eachList changes every array that is not empty, from the inside.
func eachList(change func([]any) []any) func(any) any {
	return each(func(v any) any { return v }, change)
}

func each(value func(any) any, list func([]any) []any) func(any) any {
	var in func(any) any
	in = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				v[name] = in(member)
			}
			return v
		case []any:
			for i := range v {
				v[i] = in(v[i])
			}
			if len(v) > 0 {
				return list(v)
			}
			return v
		default:
			return value(v)
		}
	}
	return in
}

func grown(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v) + 1_000_000
	case bool:
		return !v
	}
	return v
}

// A rule that no response can break proves nothing. For each stated rule, one of the changes to one of its responses makes
// it differ.
func TestEveryStatedRuleCanFail(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, d := range deviations {
		for _, text := range d.differ {
			named[text] = true
		}
	}
	for i, rule := range quickRules() {
		if i%5 > 0 && testing.Short() {
			continue
		}
		if rule.Open || rule.Unseen != "" || rule.Text == "a list has at most 50,000 entries" { // the last one needs a list that is full
			continue
		}
		t.Run(rule.Text, func(t *testing.T) {
			t.Parallel()
			if named[rule.Section+" "+rule.Text] {
				return // TestDeviationsAreFound breaks it
			}
			_, all := changed(t, rule, 0, 0, nil)
			for _, alone := range []bool{false, true} { // later responses are changed, too, or not
				for nth := all; nth > 0; nth-- {
					last := math.MaxInt
					if alone {
						last = nth
					}
					for _, change := range changes {
						if verdict, _ := changed(t, rule, nth, last, change); verdict == conformance.Differs {
							return
						}
					}
					if verdict, _ := changed(t, rule, nth, nth, nil); verdict == conformance.Differs {
						return
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
	target.BaseURL = "http://127.0.0.1"
	var before *httptest.ResponseRecorder
	target.Transport = direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response := httptest.NewRecorder()
		server.ServeHTTP(response, r)
		switch n++; {
		case n < from || n > to:
		case change != nil:
			change(response)
		case before != nil:
			response.Code, response.Body = before.Code, bytes.NewBuffer(before.Body.Bytes())
		}
		before = response
		response.Header().Del("Content-Length")
		maps.Copy(w.Header(), response.Header())
		w.WriteHeader(response.Code)
		_, _ = w.Write(response.Body.Bytes())
	})}
	service, err := conformance.NewService(target)
	require.NoError(t, err)
	return service.Try(t.Context(), rule).Verdict, n
}
