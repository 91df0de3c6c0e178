package webdelivery

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go/internal/transport"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

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

// broken returns the error for a stream that cannot be read to its end: the connection or the caller cut it, or it does
// not follow the service document.
func (r *response) broken(err error) *Error {
	if cause := r.Stream.Broken(); cause != nil {
		return r.conn.newError(r.Response, cause)
	}
	return r.bad("", err)
}

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
