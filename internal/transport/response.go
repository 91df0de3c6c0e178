package transport

import (
	"cmp"
	"errors"
	"net/http"
)

// Response is the result of a call. It describes the last attempt, or the last response if that attempt got none.
type Response struct {
	Request *Request // the request of the call

	OK   bool // the call has succeeded
	Gone bool // a Delete got 404, most likely because an earlier attempt had succeeded

	Status, Code int // of the response; 0 without one
	Header       http.Header
	Body         []byte  // of a refusal, or if the request has Take, only the beginning
	Stream       *Stream // instead of Body, if the request has Begin; the caller closes it

	Attempts     int
	Outcome      Outcome // of a write; if OK, the outcome to report if the response is unusable
	TooFast      bool    // the service refused a limited request as too fast
	Unauthorized bool    // the service refused the credentials
	LoginFailed  bool    // there is no session, because the login failed with Err
	Err          error   // a failure other than the status, such as of the connection; may contain secrets

	call *call
}

// finish describes the last attempt.
func (c *call) finish() *Response {
	a, r := &c.last, &c.response
	r.Gone = c.Class == Delete && c.ambiguous && a.effectiveStatus() == http.StatusNotFound
	r.OK = r.Gone || c.succeeded()
	r.Request, r.Attempts, r.call = &c.Request, c.attempts, c
	r.Outcome = c.outcome()
	switch {
	case c.Class == Read:
		r.Outcome = NotApplied
	case c.ambiguous, r.OK:
		r.Outcome = Unknown
	}
	if r.OK {
		r.Status, r.Code, r.Header, r.Body, r.Stream = a.status, a.code, a.header, a.body, a.stream
		return r
	}
	r.TooFast = c.Gate != nil && c.answered.tooFast()
	r.Unauthorized = c.Rules.refusesCredentials(a.effectiveStatus())
	r.Err = cmp.Or(a.err, c.why)
	if ended := c.ctx.Err(); ended != nil {
		r.Err = endedWith(ended, r.Err)
	}
	unsent, ok := errors.AsType[*unsentError](r.Err)
	r.LoginFailed = ok && unsent.login
	a = &c.answered // keep the last response even if a later attempt got none
	r.Status, r.Code, r.Header, r.Body = a.status, a.code, a.header, a.body
	return r
}

// Broken returns why a stream could not be read to its end. If it returns nil, neither the connection nor the caller's
// context ended the stream, so its content is wrong.
func (r *Response) Broken() error {
	return cmp.Or(r.call.ctx.Err(), r.Stream.err)
}
