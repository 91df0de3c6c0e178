package transport

import (
	"io"
	"net/http"
	"slices"
)

// Class says what it does to send a request again. The zero value is the careful one.
type Class int

const (
	// Once is a write that is sent again only if the service certainly did not process it; at most 3 attempts.
	Once Class = iota
	// Read changes nothing.
	Read
	// Delete removes by id. If a repeated one gets 404 because an earlier attempt may have succeeded, it has succeeded.
	Delete
	// Repeatable is a write that does no harm when it happens twice.
	Repeatable
	// Login shows the password: at most 2 attempts, and no session is needed or renewed for it.
	Login
)

// Request describes one call. Rules that hold for every request need no field: a code of 400 or more in the envelope of
// a success is a refusal, a refused session is renewed once, and only what is safe is sent again.
type Request struct {
	Class  Class
	Method string
	Path   string // below the base, escaped
	Query  string // encoded

	Body    []byte  // JSON; nil for none
	Encoder Encoder // in its place

	Gate   *Gate   // each attempt needs a permit of it; nil: of none
	Permit *Permit // of the first attempt, if the caller has it already

	// Take reads a success as it arrives, in each attempt that has one. Begin reads its beginning, in each attempt, and
	// the Response has the rest as a stream. Without either, the body is read whole.
	Take, Begin Reader

	Rules       Rules
	HasBody     bool // a success has a body, so an empty one was cut if only its connection ended it
	KeepSession bool // a refused session is not renewed for this request
}

// Reader reads a body, or its beginning. It returns the code of the envelope that it read: 0 without one, and below 0 if
// it could not read so far. err is what is wrong with the body.
type Reader func(body io.Reader) (code int, err error)

// Encoder is a body that is written anew for each attempt.
type Encoder interface {
	Open() (io.Reader, error) // a reader with Len, the size of the whole body in bytes
	Close()                   // nothing is read from it any more
}

// Rules are what a service says of one of its requests beyond HTTP. The zero value has none.
type Rules struct {
	Success       []int    // statuses that are a success beside 2xx
	Refuse        []int    // statuses that refuse the credentials beside 401
	MayRefuse     []int    // statuses that may refuse the credentials, or mean something else
	NotInEnvelope []string // members of a success whose code tells something else than a refusal
}

func (r *Rules) isSuccess(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices || slices.Contains(r.Success, status)
}

func (r *Rules) refusesCredentials(status int) bool {
	return status == http.StatusUnauthorized || slices.Contains(r.Refuse, status)
}

func (r *Rules) mayRefuseCredentials(status int) bool { return slices.Contains(r.MayRefuse, status) }

// Outcome says what became of a write.
type Outcome int

// The outcomes. Unknown is the zero value.
const (
	Unknown    Outcome = iota // the service may have processed it, or not
	NotApplied                // the service certainly did not process it
	Applied                   // the service processed it
)

// Failure is a call that did not succeed. It holds no secret.
type Failure struct {
	Status, Code int // of the last response; 0 without one
	Method, Path string
	Host         string      // and port
	Description  string      // the service's words, or those of the status
	Body         []byte      // the beginning of the last response
	Header       http.Header // of the last response, without credentials
	Attempts     int
	Outcome      Outcome
	TooFast      bool  // the service refused a limited request because requests come too fast
	Unauthorized bool  // the service refused the credentials
	Login        bool  // the session that the call needs could not be created; Cause has the error of the login
	Cause        error // what failed beside the status; may be nil
}

// Error gives method and path. Whoever shows a Failure to a user makes an error of his own of it.
func (f *Failure) Error() string { return f.Method + " " + f.Path + " failed" }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Cause }
