package webdelivery

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// response is the response to a call that succeeded.
type response struct {
	*transport.Response

	conn *conn
	id   string // requested id, see call
}

// loginHeaders are the headers that are kept of the response to a login, which may contain a session anywhere.
var loginHeaders = []string{"Content-Type", "Date", "Location", "Retry-After"}

// newError returns the error of a call. cause is what failed besides the status, or nil. The client's secrets are
// removed here from every text of the service or a transport.
func (c *conn) newError(r *transport.Response, cause error) *Error {
	e := &Error{
		StatusCode: r.Status, Code: r.Code, Method: r.Request.Method, Host: c.base.Host(), Path: c.secrets.Text(c.base.Path(r.Request.Path)),
		Header: c.safeHeader(r), RequestID: c.secrets.RequestID(r.Header), Attempts: r.Attempts, outcome: Outcome(r.Outcome), tooFast: r.TooFast, authFailed: r.Unauthorized,
	}
	body := r.Body
	if r.Request.Class == transport.Login {
		body = nil
	}
	switch to := e.Header.Get("Location"); {
	case !e.redirected():
		e.Description = c.secrets.Text(cmp.Or(wire.ErrorText(body), http.StatusText(e.status())))
		e.Body = c.secrets.Excerpt(body, redact.Most)
	case to == "": // the body of a redirect repeats its target
		e.Description = "redirect without a Location not followed"
	default:
		e.Description = "redirect to " + to + " not followed"
	}
	if cause != nil {
		e.cause = c.secrets.Error(cause)
	}
	if login, ok := errors.AsType[*Error](cause); ok && r.LoginFailed && r.Status == 0 {
		// The error of a failed login has the status of the login's own response.
		e.StatusCode, e.Code, e.Description, e.Header, e.RequestID = login.StatusCode, login.Code, login.Description, login.Header, login.RequestID
		e.authFailed, e.login = login.authFailed, login.login
	}
	return e
}

// unsafeHeaders carry credentials or ask for them, so they are left out of errors.
var unsafeHeaders = []string{
	"Authentication-Info", "Authorization", "Cookie", "Location", "Proxy-Authenticate", "Proxy-Authentication-Info",
	"Proxy-Authorization", "Set-Cookie", "Set-Cookie2", "Www-Authenticate",
}

// safeHeader returns a copy of a response's header without credentials. Of a Location it keeps only the origin.
func (c *conn) safeHeader(r *transport.Response) http.Header {
	h := r.Header
	safe := make(http.Header, len(h))
	for name, values := range h {
		if slices.Contains(unsafeHeaders, http.CanonicalHeaderKey(name)) || c.secrets.Text(name) != name {
			continue
		}
		for _, v := range values {
			safe[name] = append(safe[name], c.secrets.Text(v))
		}
	}
	if location := h.Get("Location"); location != "" {
		safe.Set("Location", c.secrets.Text(c.base.OriginOf(location)))
	}
	if r.Request.Class == transport.Login {
		maps.DeleteFunc(safe, func(name string, _ []string) bool { return !slices.Contains(loginHeaders, name) })
	}
	return safe
}

// redactAll removes the client's secrets from texts that become a part of an error.
func (c *conn) redactAll(texts ...*string) {
	for _, text := range texts {
		*text = c.secrets.Text(*text)
	}
}

// decodeObject reads a JSON object.
func (r *response) decodeObject(out any) error {
	if err := r.checkText(); err != nil {
		return err
	}
	if first := bytes.TrimLeft(r.Body, " \t\r\n"); first[0] != '{' {
		return r.bad("not a JSON object", nil)
	}
	return r.unmarshal(out)
}

// unmarshal reads a JSON value. checkText must have accepted the body.
func (r *response) unmarshal(out any) error {
	if err := wire.Decode(r.Body, out); err != nil {
		return r.bad("", err)
	}
	return nil
}

// checkPresent refuses an empty body.
func (r *response) checkPresent() error {
	if len(bytes.TrimSpace(r.Body)) == 0 {
		return r.bad("an empty body", nil)
	}
	return nil
}

// checkText also refuses a body that is not text.
func (r *response) checkText() error {
	if err := r.checkPresent(); err != nil {
		return err
	}
	if !utf8.Valid(r.Body) {
		return r.bad("broken UTF-8", nil)
	}
	return nil
}

// bad returns the error for a response that cannot be used. It never matches ErrInvalid, because the request was sent;
// but a type that Do decodes into, such as a Plan, may return ErrInvalid.
func (r *response) bad(what string, cause error) *Error {
	if errors.Is(cause, ErrInvalid) {
		cause = errors.New(cause.Error())
	}
	secrets := r.conn.secrets
	var beginning []byte
	if r.Request.Class != transport.Login { // its response may contain the session in an unknown form
		beginning = secrets.Excerpt(r.Body, maxShown)
	}
	return r.conn.newError(r.Response, &badResponse{what, secrets.Text(r.Header.Get("Content-Type")), beginning, cause})
}

// badResponse says what is wrong with a response, and shows the beginning of its body.
type badResponse struct {
	what, contentType string
	body              []byte
	cause             error
}

func (e *badResponse) Error() string {
	text := "bad response (Content-Type " + strconv.Quote(e.contentType) + "): " +
		joinNonEmpty(": ", e.what, wire.Reason(e.cause))
	if len(e.body) > 0 {
		text += ": " + strconv.Quote(string(e.body))
	}
	return text
}

func (e *badResponse) Is(target error) bool { return target == ErrBadResponse }
func (e *badResponse) Unwrap() error        { return e.cause }

// maxShown limits how many bytes of a body an error shows.
const maxShown = 200

// marshalJSON encodes a request body, without escaping characters for HTML.
func marshalJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, invalid("request", "%v", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// JSON decodes any object into any struct: {"message":"under maintenance"} becomes a task. So every object that has an
// id in the service document must have the members without which it is useless, and the id that was requested.

// resource is an object of section 2 of the service document that has an id of its own.
type resource interface {
	identity() string // its id or name
	lacks() string    // the required member that is missing; "" if none is
}

// resourceOf is a pointer to a T that is a resource.
type resourceOf[T any] interface {
	*T
	resource
}

func lacksID(id string) string {
	if id == "" {
		return "id"
	}
	return ""
}

// decodeResource reads an object and checks that it is the requested resource.
func (r *response) decodeResource(value resource) error {
	if err := r.decodeObject(value); err != nil {
		return err
	}
	if missing := value.lacks(); missing != "" {
		return r.bad("no "+missing, nil)
	}
	return r.checkID(value.identity())
}

// fetch sends a call and reads the response into a new resource.
func fetch[T any, P resourceOf[T]](ctx context.Context, c *conn, cl call) (*T, error) {
	r, err := c.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	value := new(T)
	if err := r.decodeResource(P(value)); err != nil {
		return nil, err
	}
	return value, nil
}

// checkID checks that the object has the requested id. The letter case of a UUID may differ.
func (r *response) checkID(id string) error {
	if want := r.id; want != "" && !sameID(id, want) {
		return r.bad("another object, whose id is "+strconv.Quote(string(wire.Clip([]byte(id)))), nil)
	}
	return nil
}

// sameID compares ids of lists and entries: UUIDs, in which the letter case does not matter (RFC 9562, section 4).
func sameID(a, b string) bool { return strings.EqualFold(a, b) }

// send sends a call and returns its response.
func (c *conn) send(ctx context.Context, cl call) (response, error) {
	if cl.invalid != nil {
		return response{}, cl.invalid
	}
	var err error
	if cl.Header, err = headerOf(ctx); err != nil {
		return response{}, err
	}
	if cl.limited {
		cl.Permits = c.permits
	}
	r := c.transport.Send(ctx, cl.Request)
	if sink, _ := ctx.Value(responseKey{}).(*Response); sink != nil {
		*sink = Response{
			Operation: r.Request.Operation, StatusCode: r.Status, Header: c.safeHeader(r), RequestID: c.secrets.RequestID(r.Header),
			Attempts: r.Attempts, Duration: r.Duration,
		}
	}
	if wrong, ok := errors.AsType[*address.Error](r.Err); ok && r.Attempts == 0 {
		return response{}, asValidation(wrong)
	}
	if !r.OK {
		return response{}, c.newError(r, r.Err)
	}
	result := response{r, c, cl.id}
	// The service sends no page, but a proxy with a login page does, under any label, so nothing is known of a write.
	body := bytes.TrimSpace(r.Body)
	if bytes.HasPrefix(body, []byte("<")) || isHTML(r.Header) && (r.Stream != nil || len(body) > 0) {
		if r.Stream != nil {
			r.Stream.Close()
		}
		return response{}, result.bad("an HTML page", nil)
	}
	return result, nil
}

// isHTML reports whether a response is an HTML page, which the service never sends.
func isHTML(h http.Header) bool {
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	mediaType = strings.TrimSpace(mediaType)
	return strings.EqualFold(mediaType, "text/html") || strings.EqualFold(mediaType, "application/xhtml+xml")
}
