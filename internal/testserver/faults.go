package testserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Cut selects where a connection is closed. The zero value is CutNone.
type Cut int

// Places where a connection is closed.
const (
	CutNone         Cut = iota
	CutBeforeRead       // before the server reads the body; the request is not executed
	CutAfterRead        // after the server has read the body; the request is not executed
	CutAfterExecute     // after the request was executed; there is no response
	CutBody             // within the body of a response with Content-Length
	CutChunked          // within the body of a chunked response
)

// Fault injects faults into the requests that it matches. Its fields are those of webdeliverytest.FaultRule, which says
// what they do.
type Fault struct {
	// These select the requests.
	Method, Path string
	Skip, Count  int
	Probability  float64
	Seed         uint64

	// These are the faults.
	Delay          time.Duration
	Status         int
	Header         http.Header
	Body           string
	Execute        bool
	Cut            Cut
	CutAfter       int
	Stall, Dribble time.Duration
	Handler        http.HandlerFunc
}

// Check returns an error if a field is invalid. The text begins with the name of the field, so that callers can put the
// name of their own type in front of it.
func (f Fault) Check() error {
	switch {
	case belowCustomer.MatchString(f.Path) || strings.HasSuffix(f.Path, "/") || strings.Contains(f.Path, "?"):
		return invalid("Path", f.Path, "the service has no such path; use one below /{customer}/v1, such as /tasks/*")
	case f.Status != 0 && (f.Status < http.StatusOK || f.Status > 999):
		return invalid("Status", f.Status, "use 200 to 999, or 0 to execute the request")
	case math.IsNaN(f.Probability) || f.Probability < 0 || f.Probability > 1:
		return invalid("Probability", f.Probability, "use 0 to 1; 0 hits every request")
	case f.Cut < CutNone || f.Cut > CutChunked:
		return invalid("Cut", f.Cut, "use one of the Cut constants")
	}
	for _, name := range []string{"Skip", "Count", "CutAfter", "Delay", "Stall", "Dribble"} {
		if value := reflect.ValueOf(f).FieldByName(name); value.Int() < 0 {
			return invalid(name, value, "use 0 or more")
		}
	}
	return nil
}

var belowCustomer = regexp.MustCompile(`^/[^/]+/v1/`)

func invalid(field string, value any, advice string) error {
	return fmt.Errorf("%s is %v: %s", field, value, advice)
}

// Fail adds a rule; remove removes it. Each rule that matches a request, has hits left and selects it by Probability,
// hits it. Delays add up, and headers are joined; of rules that decide on the response, only the first one, in order of
// addition, hits. Fail panics if [Fault.Check] returns an error.
func (s *Server) Fail(f Fault) (remove func()) {
	if err := f.Check(); err != nil {
		panic("testserver: Fault." + err.Error())
	}
	rule := &faultRule{Fault: f, dice: dice(mix(f.Seed))}
	s.log.note(func() { s.faults = append(s.faults, rule) })
	return func() {
		s.log.note(func() { s.faults = slices.DeleteFunc(s.faults, func(r *faultRule) bool { return r == rule }) })
	}
}

type faultRule struct {
	Fault

	passed, hits int
	dice         dice
}

// decides reports whether the fault is more than a delay or headers.
func (f Fault) decides() bool {
	return f.Status != 0 || f.Body != "" || f.Execute || f.Cut != CutNone || f.Stall > 0 || f.Dribble > 0 || f.Handler != nil
}

// take joins the faults that hit a request, and uses up one hit of each. If there is none, it returns the zero Fault,
// which has no effect. The caller holds s.log.mu.
func (s *Server) take(method string, at place) (joined Fault) {
	for _, rule := range s.faults {
		spent := rule.Count > 0 && rule.hits >= rule.Count || rule.decides() && joined.decides()
		if spent || !matches(rule.Method, rule.Path, method, at) {
			continue
		}
		if rule.passed < rule.Skip {
			rule.passed++
			continue
		}
		if rule.Probability > 0 && rule.dice.unit() >= rule.Probability {
			continue
		}
		rule.hits++
		both := joined
		if rule.decides() {
			both = rule.Fault
		}
		both.Delay, both.Header = joined.Delay+rule.Delay, http.Header{}
		maps.Copy(both.Header, rule.Header)
		maps.Copy(both.Header, joined.Header)
		joined = both
	}
	return joined
}

// matches compares a request with the method and path of a rule.
func matches(wantMethod, wantPath, method string, at place) bool {
	if wantMethod != "" && wantMethod != method {
		return false
	}
	if wantPath == "" {
		return true
	}
	want := strings.Split(strings.TrimPrefix(wantPath, "/"), "/")
	open := want[len(want)-1] == "**"
	if open {
		want = want[:len(want)-1]
	}
	if !at.inside || len(at.escaped) < len(want) || !open && len(at.escaped) > len(want) {
		return false
	}
	for i, element := range want {
		if element != "*" && element != at.escaped[i] {
			return false
		}
	}
	return true
}

// rewrite returns the faulty response. It executes the request only if the fault allows it.
func (f Fault) rewrite(execute func() response) response {
	var answer response
	if f.Status == 0 || f.Execute {
		answer = execute()
	}
	if f.Status != 0 {
		answer = response{status: f.Status, header: http.Header{}}
	}
	if f.Body != "" {
		answer.body, answer.stream = []byte(f.Body), nil
	}
	if f.Status != 0 && f.Body != "" {
		kind := "text/plain; charset=utf-8"
		if json.Valid(answer.body) {
			kind = jsonType
		}
		answer.header.Set("Content-Type", kind)
	}
	for name, values := range f.Header {
		maps.Copy(answer.header, http.Header{http.CanonicalHeaderKey(name): values})
	}
	return answer
}
