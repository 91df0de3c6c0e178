package transport

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Response is the result of a call that succeeded.
type Response struct {
	Status int
	Header http.Header
	Body   []byte  // only the beginning, if the request has Take
	Stream *Stream // instead of Body, if the request has Begin; the caller closes it
	Gone   bool    // a Delete that found nothing to delete

	call *call
}

// finish turns the last attempt into a response or a failure.
func (c *call) finish() (*Response, error) {
	a := &c.last
	gone := c.Class == Delete && c.ambiguous && a.effectiveStatus() == http.StatusNotFound // an earlier attempt has most likely removed it
	if gone {
		c.response = Response{Status: a.status, Header: a.header, Gone: true, call: c}
		return &c.response, nil
	}
	if c.succeeded() {
		c.response = Response{Status: a.status, Header: a.header, Body: a.body, Stream: a.stream, call: c}
		return &c.response, nil
	}
	cause := cmp.Or(a.err, c.why)
	if ended := c.ctx.Err(); ended != nil && !errors.Is(cause, ended) {
		cause = joinCause(ended, cause) // the facts of the last response stay on the failure
	}
	return nil, c.failure(cause)
}

// succeeded: the last attempt got a whole success, and no code says otherwise.
func (c *call) succeeded() bool {
	a := &c.last
	return a.err == nil && c.Rules.isSuccess(a.status) && c.Rules.isSuccess(a.effectiveStatus())
}

// loginHeaders are the headers that a failure keeps of the response to a login.
var loginHeaders = []string{"Content-Type", "Date", "Location", "Retry-After"}

// failure describes the call in its present state.
func (c *call) failure(cause error) *Failure {
	a, secrets := &c.answered, c.t.auth.secrets
	f := &Failure{
		Status: a.status, Code: a.code, Method: c.Method, Path: secrets.Text(c.t.Base.Path(c.Path)), Attempts: c.attempts,
		Outcome: c.outcome(), TooFast: c.Gate != nil && a.tooFast(), Unauthorized: c.Rules.refusesCredentials(c.last.effectiveStatus()),
		Header: secrets.Header(a.header), Host: secrets.Text(c.t.Base.Host()),
	}
	if c.ambiguous {
		f.Outcome = Unknown
	}
	if c.Class == Read {
		f.Outcome = NotApplied
	}
	words := a.body // with its secrets, as without them it may be no JSON; they are removed below
	if c.Class == Login {
		// The response to a login may contain a session in an unknown shape.
		words = nil
		maps.DeleteFunc(f.Header, func(name string, _ []string) bool { return !slices.Contains(loginHeaders, name) })
	}
	f.Description = secrets.Text(describe(a.effectiveStatus(), f.Header, words))
	if c.Class != Login && !isRedirect(a.status) { // the body of a redirect contains its target
		f.Body = secrets.Excerpt(words, maxErrorBody, a.cut)
	}
	f.holdBack(c.last.err)
	if cause != nil {
		_, f.Login = errors.AsType[*loginError](cause)
		f.Cause = secrets.Error(cause)
	}
	return f
}

// holdBack completes the failure of a call if its last attempt was held. Attempts does not count that attempt. If the
// call got no response, the failure has the status of the refusal before.
func (f *Failure) holdBack(err error) {
	switch e := err.(type) { //nolint:errorlint // the transport's own, which nothing wraps
	case *heldError:
		f.Attempts--
		f.Unauthorized = true
		if f.Status == 0 {
			f.Status, f.Code, f.Description = e.refusal.status, e.refusal.code, http.StatusText(e.refusal.effective())
		}
	case *loginError:
		if _, cooling := e.err.(*coolingDownError); cooling { //nolint:errorlint // as above
			f.Attempts--
		}
	}
}

// describe returns the text of a refusal, or that of the status if there is none.
func describe(status int, h http.Header, body []byte) string {
	if isRedirect(status) {
		if to := h.Get("Location"); to != "" {
			return "redirect to " + to + " not followed"
		}
		return "redirect without a Location not followed"
	}
	return cmp.Or(wire.ErrorText(body), http.StatusText(status))
}

func isRedirect(status int) bool {
	return status >= http.StatusMultipleChoices && status < http.StatusBadRequest
}

// Failure returns the failure of a call whose response is unusable because of cause. The outcome of a write is then
// unknown.
func (r *Response) Failure(cause error) *Failure {
	f := r.call.failure(cause)
	if r.call.Class != Read {
		f.Outcome = Unknown
	}
	return f
}

// Broken returns the failure of a stream that its reader could not read to the end because of err. It returns nil if
// neither the connection nor the caller ended the stream. Then the content of the stream is wrong.
func (r *Response) Broken(err error) *Failure {
	if ended := r.call.ctx.Err(); ended != nil {
		return r.call.failure(ended)
	}
	if failed := r.Stream.failed(err); failed != nil {
		return r.call.failure(failed)
	}
	return nil
}

// Refused returns the failure of a stream whose envelope turns out to be a refusal, after rows have been returned
// already.
func (r *Response) Refused(code int, description string) *Failure {
	c := r.call
	c.last.code, c.answered.code = code, code
	c.noteCredentials()
	f := c.failure(nil)
	f.Description = c.t.auth.secrets.Text(cmp.Or(description, http.StatusText(code)))
	return f
}

// Forget keeps the body out of every failure, because it may contain a session in an unknown shape.
func (r *Response) Forget() { r.Body, r.call.answered.body = nil, nil }
