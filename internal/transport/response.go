package transport

import (
	"cmp"
	"errors"
	"net/http"
	"time"
)

// Response is what came of a call: the facts of its last attempt, and of the last response if that attempt got none.
type Response struct {
	Request *Request // of the call

	OK   bool // the call has succeeded
	Gone bool // it is a Delete that found nothing to delete, because an earlier attempt has most likely removed it

	Status, Code int // of the response; 0 without one
	Header       http.Header
	Body         []byte  // the beginning only, of a refusal and if the request has Take
	Stream       *Stream // instead of Body, if the request has Begin; the caller closes it

	Attempts     int
	Announced    time.Duration // that the service asked to wait between the attempts
	Outcome      Outcome       // of a write; if the call has succeeded, the outcome in case that the response is unusable
	TooFast      bool          // the service refused a limited request because requests come too fast
	Unauthorized bool          // the service refused the credentials
	LoginFailed  bool          // the session that the call needs could not be created; Err has the error of the login
	Err          error         // what failed besides the status: the connection, the context; may hold secrets

	call *call
}

// finish describes the last attempt.
func (c *call) finish() *Response {
	a, r := &c.last, &c.response
	r.Gone = c.Class == Delete && c.ambiguous && a.effectiveStatus() == http.StatusNotFound
	r.OK = r.Gone || c.succeeded()
	r.Request, r.Attempts, r.Announced, r.call = &c.Request, c.attempts, c.announced, c
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
	a = &c.answered // the facts of the last response stay, also if a later attempt got none
	r.Status, r.Code, r.Header, r.Body = a.status, a.code, a.header, a.body
	return r
}

// Broken returns why a stream could not be read to its end. It returns nil if neither the connection nor the caller
// ended the stream. Then the content of the stream is wrong.
func (r *Response) Broken() error {
	return cmp.Or(r.call.ctx.Err(), r.Stream.err)
}
