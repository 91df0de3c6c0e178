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

	Body    []byte  // JSON; nil for none
	Encoder Encoder // instead of Body

	Gate   *Gate   // each attempt needs a permit of this gate; nil: no permit
	Permit *Permit // of the first attempt, if the caller has it already

	// Take reads a success as it arrives. Begin reads only its beginning, and the Response has the rest as a stream.
	// Both are called in each attempt that has a success. Without either, Send reads the whole body.
	Take, Begin Reader

	Rules       Rules
	HasBody     bool // a success has a body, so an empty one was cut if only the end of the connection ended it
	KeepSession bool // a refused session is not renewed for this request
}

// Reader reads a body, or its beginning. It returns the code of the envelope that it read: 0 without an envelope, and
// below 0 if it could not read that far. err says what is wrong with the body.
type Reader func(body io.Reader) (code int, err error)

// Encoder encodes the body again for each attempt.
type Encoder interface {
	Open() (io.Reader, error) // a reader with Len, the size of the whole body in bytes
	Close()                   // called when nothing reads from it any more
}

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

func (r *Rules) mayRefuseCredentials(status int) bool { return slices.Contains(r.MayRefuse, status) }

// Outcome says whether the service carried out a write.
type Outcome int

// The outcomes. Unknown is the zero value.
const (
	Unknown    Outcome = iota // the service may have processed it, or not
	NotApplied                // the service certainly did not process it
	Applied                   // the service processed it
)

// Failure is the error of a call. It contains no secret.
type Failure struct {
	Status, Code int // of the last response; 0 without one
	Method, Path string
	Host         string      // and port
	Description  string      // text from the service, or the text of the status
	Body         []byte      // the beginning of the last response
	Header       http.Header // of the last response, without credentials
	Attempts     int
	Outcome      Outcome
	TooFast      bool  // the service refused a limited request because requests come too fast
	Unauthorized bool  // the service refused the credentials
	Login        bool  // the session that the call needs could not be created; Cause has the error of the login
	Cause        error // what failed besides the status; may be nil
}

// Error returns method and path. The SDK turns a Failure into an error of its own before a user sees it.
func (f *Failure) Error() string { return f.Method + " " + f.Path + " failed" }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }
