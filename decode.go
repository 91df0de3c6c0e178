package webdelivery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// decodeObject reads a JSON object. It is stricter than json.Unmarshal, which takes null for an empty object and
// mends broken UTF-8 in silence.
func (r *response) decodeObject(out any) error {
	if err := r.checkJSON(); err != nil {
		return err
	}
	if first := bytes.TrimLeft(r.Body, " \t\r\n"); first[0] != '{' {
		return r.bad("not a JSON object", nil)
	}
	return r.unmarshal(out)
}

// unmarshal reads a JSON value that checkJSON has judged into a type of this package.
func (r *response) unmarshal(out any) error {
	var err error
	if known, ok := out.(json.Unmarshaler); ok {
		err = known.UnmarshalJSON(r.Body) // which checks it; json.Unmarshal would check it once more before
	} else {
		err = wire.Decode(r.Body, out)
	}
	if err != nil {
		return r.bad("", err)
	}
	return nil
}

// checkPresent refuses what cannot be a reply of the service: nothing, or a page made for people, as proxies send it.
func (r *response) checkPresent() error {
	switch {
	case wire.IsHTML(r.Header):
		return r.bad("an HTML page", nil)
	case len(bytes.TrimSpace(r.Body)) == 0:
		return r.bad("an empty body", nil)
	default:
		return nil
	}
}

// checkText refuses that, and what is no text.
func (r *response) checkText() error {
	if err := r.checkPresent(); err != nil {
		return err
	}
	if !utf8.Valid(r.Body) {
		return r.bad("broken UTF-8", nil)
	}
	return nil
}

// checkJSON refuses that, and what encoding/json mends in silence: of a member that comes twice it takes the last, and for
// one half of a surrogate pair it writes U+FFFD, so that two ids may become one. What is no JSON is told by the decoder.
func (r *response) checkJSON() error {
	if err := r.checkText(); err != nil {
		return err
	}
	if defect := wire.Defect(r.Body); defect != "" {
		return r.bad(defect, nil)
	}
	return nil
}

// bad is the error for a response that cannot be used. It never matches ErrInvalid, as the request was sent, although a
// type that Do reads into may return it, for example a Plan.
func (r *response) bad(what string, cause error) *Error {
	if errors.Is(cause, ErrInvalid) {
		cause = errors.New(cause.Error())
	}
	secrets := r.funnel.secrets
	beginning := secrets.Excerpt(r.Body, maxShown, false)
	return newError(r.Failure(&badResponse{what, secrets.Text(r.Header.Get("Content-Type")), beginning, cause}))
}

// badResponse says what is wrong with a response, and shows its beginning.
type badResponse struct {
	what, contentType string
	body              []byte
	cause             error
}

func (e *badResponse) Error() string {
	text := "unusable reply (Content-Type " + strconv.Quote(e.contentType) + "): " +
		joinNonEmpty(": ", e.what, decodeReason(e.cause))
	if len(e.body) > 0 {
		text += ": " + strconv.Quote(string(e.body))
	}
	return text
}

func (e *badResponse) Is(target error) bool { return target == ErrBadReply }
func (e *badResponse) Unwrap() error        { return e.cause }

// broken is the error for a stream that cannot be read to its end: cut short by the connection or the caller, or not
// what the service document says.
func (r *response) broken(err error) *Error {
	if f := r.Broken(err); f != nil {
		return newError(f)
	}
	return r.bad("", err)
}

// decodeReason tells a JSON error with the field it is about.
func decodeReason(err error) string {
	var typed *json.UnmarshalTypeError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &typed):
		// The path names the embedded struct by which Task reads its timestamps.
		field := strings.ReplaceAll(typed.Field, "plain.", "")
		return fmt.Sprintf("%s: %s does not fit %v", field, typed.Value, typed.Type)
	default:
		return err.Error()
	}
}

// maxShown bounds how much of an unusable body its error repeats.
const maxShown = 200

// marshalJSON encodes a request body. Characters that only matter in HTML stay as they are.
func marshalJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, invalid("request", "%v", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
