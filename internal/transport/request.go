package transport

import (
	"io"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

// Class says when a request may be retried. The zero value is the most cautious one.
type Class int

const (
	// Once is a write that is retried only if the service certainly did not process it; at most 3 attempts.
	Once Class = iota
	// Read changes nothing.
	Read
	// Delete removes by ID. If an earlier attempt may have succeeded, a 404 in response to a retry counts as success.
	Delete
	// Repeatable is a write that can safely happen twice.
	Repeatable
	// Login carries the password and needs no session. It can safely happen twice.
	Login
)

// Request describes one call. In every call, a code of 400 or more in the envelope of a success counts as a refusal, a
// refused session is renewed once, and only what is safe to retry is retried.
type Request struct {
	Operation string // the method of the SDK, for the context of the HTTP requests
	Class     Class
	Method    string
	Path      string // below the base, escaped
	Query     string // encoded

	Body   []byte      // JSON; nil for none
	Header http.Header // further headers, in canonical form

	Permits *Permits // gives each attempt its permit; nil if none is needed
	Permit  *Permit  // for the first attempt, if the caller already has one

	Single   bool            // a transient failure is not retried
	Retrying func(*Response) // called with each attempt that is; may be nil

	// Take reads the body of a success as it arrives. Begin reads only its beginning, and the Response has the rest as a
	// stream. They are called in each attempt that gets a success, and return the code of the envelope: 0 if there is none,
	// and a negative value if they could not read that far. If both are nil, Send reads the whole body.
	Take, Begin func(body io.Reader) (code int)

	Rules Rules
}

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
	Duration     time.Duration
	Outcome      outcomes.Outcome // of a write; if OK, the outcome to report if the response is unusable
	TooFast      bool             // the service refused a limited request as too fast
	Unauthorized bool             // the service refused the credentials
	LoginFailed  bool             // there is no session, because the login failed with Err
	Err          error            // a failure other than the status, such as of the connection; may contain secrets
}
