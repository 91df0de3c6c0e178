package transport

import (
	"io"
	"net/http"
	"slices"
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
	Class  Class
	Method string
	Path   string // below the base, escaped
	Query  string // encoded

	Body []byte // JSON; nil for none

	Gate   *Gate   // gives each attempt its permit; nil if none is needed
	Permit *Permit // for the first attempt, if the caller already has one

	// Take reads the body of a success as it arrives. Begin reads only its beginning, and the Response has the rest as a
	// stream. They are called in each attempt that gets a success. If both are nil, Send reads the whole body.
	Take, Begin Reader

	Rules Rules
}

// Reader reads a body, or its beginning. It returns the code of the envelope: 0 if there is no envelope, and a negative
// value if it could not read that far. err says what is wrong with the body.
type Reader func(body io.Reader) (code int, err error)

// Rules says how the service's responses to a request differ from plain HTTP. The zero value has no rules.
type Rules struct {
	Success       []int    // statuses that mean success, besides 2xx
	Refuse        []int    // statuses that refuse the credentials, besides 401
	MayRefuse     []int    // statuses that may refuse the credentials, or mean something else
	NotInEnvelope []string // members whose presence means that a code is not a refusal
}

func (r *Rules) isSuccess(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices || slices.Contains(r.Success, status)
}

func (r *Rules) refusesCredentials(status int) bool {
	return status == http.StatusUnauthorized || slices.Contains(r.Refuse, status)
}

// credentials returns what a status means for the credentials of its request.
func (r *Rules) credentials(status int) credentials {
	switch {
	case status == http.StatusUnauthorized:
		return refused
	case r.refusesCredentials(status), slices.Contains(r.MayRefuse, status):
		return doubtful // it may also be a missing permission
	default:
		return taken
	}
}

// Outcome says whether the service carried out a write whose call returned an error.
type Outcome int

// The outcomes. Unknown is the zero value.
const (
	Unknown    Outcome = iota // the service may have processed it, or not
	NotApplied                // the service certainly did not process it
	Applied                   // the service processed it
)

// String returns "unknown", "not applied" or "applied".
func (o Outcome) String() string {
	switch o {
	case NotApplied:
		return "not applied"
	case Applied:
		return "applied"
	default:
		return "unknown"
	}
}
