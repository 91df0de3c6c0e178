package transport

import (
	"io"
	"net/http"
	"slices"
)

// Class says what it does to send a request again. The zero value is the careful one.
type Class int

const (
	// Once is a write that is retried only if the service certainly did not process it; at most 3 attempts.
	Once Class = iota
	// Read changes nothing.
	Read
	// Delete removes by id. If a retry gets 404 because an earlier attempt may have succeeded, the call has succeeded.
	Delete
	// Repeatable is a write that does no harm if it happens twice.
	Repeatable
	// Login carries the password: at most 2 attempts, and it needs and renews no session.
	Login
)

// Request describes one call. Rules that hold for every request need no field. A code of 400 or more in the envelope of
// a success is a refusal. A refused session is renewed once. Only what is safe is retried.
type Request struct {
	Class  Class
	Method string
	Path   string // below the base, escaped
	Query  string // encoded

	Body []byte // JSON; nil for none

	Gate   *Gate   // each attempt needs a permit of this gate; nil: no permit
	Permit *Permit // of the first attempt, if the caller has it already

	// Take reads a success as it arrives. Begin reads only its beginning, and the Response has the rest as a stream.
	// Both are called in each attempt that has a success. Without either, Send reads the whole body.
	Take, Begin Reader

	Rules Rules
}

// Reader reads a body, or its beginning. It returns the code of the envelope that it read: 0 without an envelope, and
// below 0 if it could not read that far. err says what is wrong with the body.
type Reader func(body io.Reader) (code int, err error)

// Rules say how the service treats a request, as far as HTTP does not say it. The zero value has no rules.
type Rules struct {
	Success       []int    // statuses that are a success beside 2xx
	Refuse        []int    // statuses that refuse the credentials beside 401
	MayRefuse     []int    // statuses that may refuse the credentials, or mean something else
	NotInEnvelope []string // members that show that the code of a success is no refusal
}

func (r *Rules) isSuccess(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices || slices.Contains(r.Success, status)
}

func (r *Rules) refusesCredentials(status int) bool {
	return status == http.StatusUnauthorized || slices.Contains(r.Refuse, status)
}

// credentials returns what a status says of the session of its request.
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
