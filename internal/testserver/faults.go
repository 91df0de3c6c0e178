package testserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Cut says where a connection is closed.
type Cut int

// Where a connection is closed.
const (
	CutNone         Cut = iota
	CutBeforeRead       // before the body is read; nothing is executed
	CutAfterRead        // after the body was read; nothing is executed
	CutAfterExecute     // after the request was executed; no reply
	CutBody             // in the middle of the reply's body, which has a Content-Length
	CutChunked          // in the middle of the reply's body, which is sent chunked
)

// Fault makes requests go wrong. What it matches comes first, then what it does; the zero value of a field leaves that
// part alone, so that Fault{Path: "/tasks", Header: h} executes requests and adds h to the replies. Delay, Stall and
// Dribble pass in the time of the process (the fake one inside a testing/synctest bubble), not on the server's Clock.
type Fault struct {
	Method string // "" means any
	Path   string // relative to /{customer}/v1, escaped; "*" is one element, a last "**" any rest, also none; "" any address at all
	Skip   int    // so many matching requests pass first
	Count  int    // so many are hit; 0 means every one until the rule is removed

	// Probability is the part of the matching requests that is hit, chosen by Seed and their order of arrival alone, so
	// that the same requests are hit in every run. Those that pass because of Skip, or met an earlier rule, are not
	// counted. 0 means every one.
	Probability float64
	Seed        uint64

	Delay    time.Duration    // before anything else; a client that goes away ends it, and nothing is executed
	Status   int              // answered instead of executing the request
	Header   http.Header      // set in the reply; nil values remove a header (Content-Type above all)
	Body     string           // body for Status; with Status 0 the request is executed and, unless this is "", its reply's body replaced
	Execute  bool             // with Status: the request is executed first
	Cut      Cut              // closes the connection
	CutAfter int              // for CutBody, CutChunked and Stall: bytes of the body before it, at most all; 0 means half, of a stream 500
	Stall    time.Duration    // the reply's body pauses once for so long, at CutAfter; a cut comes after the pause
	Dribble  time.Duration    // the reply's body comes byte by byte, each after so long
	Handler  http.HandlerFunc // answers in place of all of the above but Delay; the request is not executed
}

// Check returns an error if a field is invalid. The text begins with the name of the field, so that callers can put the
// name of their own type in front of it.
func (f Fault) Check() error {
	switch {
	case f.Status != 0 && (f.Status < http.StatusOK || f.Status > 999):
		return invalid("Status", f.Status, "use 200 to 999, or 0 to execute the request")
	case math.IsNaN(f.Probability) || f.Probability < 0 || f.Probability > 1:
		return invalid("Probability", f.Probability, "use 0 to 1; 0 hits every request")
	case f.Cut < CutNone || f.Cut > CutChunked:
		return invalid("Cut", f.Cut, "use one of the Cut constants")
	}
	for _, field := range []struct {
		name  string
		value int
	}{{"Skip", f.Skip}, {"Count", f.Count}, {"CutAfter", f.CutAfter}} {
		if field.value < 0 {
			return invalid(field.name, field.value, "use 0 or more")
		}
	}
	for _, field := range []struct {
		name  string
		value time.Duration
	}{{"Delay", f.Delay}, {"Stall", f.Stall}, {"Dribble", f.Dribble}} {
		if field.value < 0 {
			return invalid(field.name, field.value, "use 0 or more")
		}
	}
	return nil
}

func invalid(field string, value any, advice string) error {
	return fmt.Errorf("%s is %v: %s", field, value, advice)
}

// Fail adds a rule; remove removes it. The first rule, in order of addition, that matches a request, has hits left and
// selects it by Probability, hits it. Fail panics if [Fault.Check] returns an error.
func (s *Server) Fail(f Fault) (remove func()) {
	if err := f.Check(); err != nil {
		panic("testserver: Fault." + err.Error())
	}
	rule := &faultRule{Fault: f, dice: dice(mix(f.Seed))}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.rules = append(s.faults.rules, rule)
	return func() {
		s.faults.mu.Lock()
		defer s.faults.mu.Unlock()
		s.faults.rules = slices.DeleteFunc(s.faults.rules, func(r *faultRule) bool { return r == rule })
	}
}

// FaultHits returns how many requests were hit by a rule so far.
func (s *Server) FaultHits() int {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return s.faults.hits
}

type faultRules struct {
	mu    sync.Mutex
	rules []*faultRule
	hits  int // of all rules, also of those that are gone
}

type faultRule struct {
	Fault

	passed, hits int
	dice         dice
}

// take finds the fault for a request and uses up one of its hits. Without one it returns a fault that does nothing.
func (f *faultRules) take(method string, at place) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range f.rules {
		spent := rule.Count > 0 && rule.hits >= rule.Count
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
		f.hits++
		return rule.Fault
	}
	return Fault{}
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

// rewrite turns the service's reply into the faulty one, and executes the request only where the fault says so.
func (f Fault) rewrite(execute func() reply) reply {
	var answer reply
	if f.Status == 0 || f.Execute {
		answer = execute()
	}
	if f.Status != 0 {
		answer = reply{status: f.Status, header: http.Header{}}
	}
	if f.Body != "" {
		answer.body, answer.stream = []byte(f.Body), nil
	}
	if f.Status != 0 && f.Body != "" {
		answer.header.Set("Content-Type", contentTypeOf(answer.body))
	}
	for name, values := range f.Header {
		maps.Copy(answer.header, http.Header{http.CanonicalHeaderKey(name): values})
	}
	return answer
}

func contentTypeOf(body []byte) string {
	if json.Valid(body) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
