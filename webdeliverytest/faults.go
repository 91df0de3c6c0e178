package webdeliverytest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// FaultRule injects faults into the requests that it matches. The fields from Method to Seed select the requests; those
// from Delay to Handler are the faults. A field with its zero value has no effect. For example, FaultRule{Path:
// "/tasks", Header: h} executes each request for /tasks and adds h to the response.
//
// Delay, Stall and Dribble use the time of the process, or the fake time of a testing/synctest bubble. [Server.Clock]
// does not affect them.
type FaultRule struct {
	// Method is the method of the requests; "" matches all.
	Method string

	// Path is the escaped path below /{customer}/v1. An element "*" matches any one element. A last element "**" matches
	// any number of elements, including none. "" matches every path, even outside /{customer}/v1.
	Path string

	Skip  int // number of matching requests that pass before the first hit
	Count int // number of requests to hit; 0 means all until the rule is removed

	// Probability is the share of the matching requests to hit, from 0 to 1; 0 hits all of them. Only Seed and the order
	// of arrival decide which, so each run hits the same requests. Requests that Skip lets pass, or that an
	// earlier rule hits, do not count in that order.
	Probability float64
	Seed        uint64 // seed for Probability; 0 is valid

	Delay time.Duration // wait before all other faults; if the client disconnects meanwhile, the request is not executed

	// Status is the status of the response, from 200 to 999. The request is not executed unless Execute is set.
	// 0 executes it and keeps its status.
	Status int

	Header  http.Header // headers to set in the response; a nil value removes a header, such as Content-Type
	Body    string      // body of the response; "" means none with Status, and the service's own without it
	Execute bool        // execute the request although Status is set

	Cut      Cut           // where to close the connection
	CutAfter int           // bytes of the body before CutBody, CutChunked or Stall; 0 means half, or 500 of a stream
	Stall    time.Duration // one pause within the body of the response, at CutAfter and before a cut
	Dribble  time.Duration // pause before each byte of the body of the response

	// Handler writes the response. The request is not executed. Of the other faults, only Delay, CutBeforeRead and
	// CutAfterRead apply.
	Handler http.HandlerFunc
}

// Cut selects where a connection is closed. The zero value is CutNone.
type Cut int

// Places where a connection is closed.
const (
	CutNone         Cut = iota // the connection is not closed
	CutBeforeRead              // before the server reads the body; the request is not executed
	CutAfterRead               // after the server has read the body; the request is not executed
	CutAfterExecute            // after the request was executed; there is no response
	CutBody                    // within the body of a response with Content-Length
	CutChunked                 // within the body of a chunked response
)

// Check returns an error if a field of the rule is invalid. Path must not begin with the customer and v1, have a query
// or end in a slash, which no path of the service does. Probability must be from 0 to 1, Status 0 or from 200 to
// 999, and Cut one of the constants. The other numbers and the durations must not be negative.
func (r FaultRule) Check() error {
	if err := r.fault().Check(); err != nil {
		return fmt.Errorf("webdeliverytest: FaultRule.%w", err)
	}
	return nil
}

// Fail adds a rule; remove removes it. Each rule that matches a request, has hits left, and selects it by Probability,
// hits it. Delays add up, and headers are joined; of rules that decide on the response, only the first one, in order of
// addition, hits. Fail panics if [FaultRule.Check] returns an error.
func (s *Server) Fail(rule FaultRule) (remove func()) {
	if err := rule.Check(); err != nil {
		panic(err.Error())
	}
	return s.fake.Fail(rule.fault())
}

func (r FaultRule) fault() testserver.Fault {
	return testserver.Fault{
		Method: r.Method, Path: r.Path, Skip: r.Skip, Count: r.Count, Probability: r.Probability, Seed: r.Seed,
		Delay: r.Delay, Status: r.Status, Header: r.Header.Clone(), Body: r.Body, Execute: r.Execute,
		Cut: testserver.Cut(r.Cut), CutAfter: r.CutAfter, Stall: r.Stall, Dribble: r.Dribble, Handler: r.Handler,
	}
}
