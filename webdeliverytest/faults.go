package webdeliverytest

import (
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// FaultRule makes requests go wrong. What it matches comes first, then what it does. The zero value of a field leaves
// that part alone: FaultRule{Path: "/tasks", Header: h} executes every request and adds h to the replies.
//
// Delay, Stall and Dribble pass in the time of the process, the fake one inside a testing/synctest bubble, and not on
// [Server.Clock].
type FaultRule struct {
	Method string // "" means any
	Path   string // below /{customer}/v1, escaped; "*" is one element, a last "**" any rest, also none; "" any address at all
	Skip   int    // so many matching requests pass first
	Count  int    // so many are hit; 0 means every one until the rule is removed

	// Probability is the part of the matching requests that is hit, chosen by Seed and their order of arrival alone, so
	// that the same requests are hit in every run. Those that pass because of Skip, or met an earlier rule, are not
	// counted. 0 means every one; below 0, above 1 and NaN are refused.
	Probability float64
	Seed        uint64 // any number; 0 is one too

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

// Cut says where a connection is closed. The zero value is CutNone.
type Cut int

// Where a connection is closed.
const (
	CutNone         Cut = iota // nowhere
	CutBeforeRead              // before the body is read; nothing is executed
	CutAfterRead               // after the body was read; nothing is executed
	CutAfterExecute            // after the request was executed; no reply
	CutBody                    // in the middle of the reply's body, which has a Content-Length
	CutChunked                 // in the middle of the reply's body, which is sent chunked
)

// Check tells what makes no sense in a rule: a Probability that is none, a Status that ends no request, a Cut that is
// none of the constants, a number or a duration below 0.
func (r FaultRule) Check() error { return r.fault().Check() }

// Fail adds a rule, until remove is called. A request is hit by the first rule, in order of addition, that matches, has
// hits left, and does not spare it because of its Probability. Fail panics if the rule makes no sense; see
// [FaultRule.Check].
func (s *Server) Fail(rule FaultRule) (remove func()) { return s.fake.Fail(rule.fault()) }

func (r FaultRule) fault() testserver.Fault {
	return testserver.Fault{
		Method: r.Method, Path: r.Path, Skip: r.Skip, Count: r.Count, Probability: r.Probability, Seed: r.Seed,
		Delay: r.Delay, Status: r.Status, Header: r.Header.Clone(), Body: r.Body, Execute: r.Execute,
		Cut: testserver.Cut(r.Cut), CutAfter: r.CutAfter, Stall: r.Stall, Dribble: r.Dribble, Handler: r.Handler,
	}
}
