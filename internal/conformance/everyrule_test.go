package conformance_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

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
	for _, rule := range quickRules() {
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
		maps.DeleteFunc(response.Header(), func(name string, _ []string) bool { return name == "Content-Length" })
		maps.Copy(w.Header(), response.Header())
		w.WriteHeader(response.Code)
		_, _ = w.Write(response.Body.Bytes())
	})}
	service, err := conformance.NewService(target)
	require.NoError(t, err)
	return service.Try(t.Context(), rule).Verdict, n
}
