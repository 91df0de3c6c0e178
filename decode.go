package webdelivery

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// reply is what a call that succeeded brought.
type reply struct {
	status   int
	header   http.Header
	body     []byte  // the beginning alone, for a call that takes it
	stream   *stream // instead of body, for a call that streams
	gone     bool    // a DELETE that found nothing left to do
	exchange *exchange
}

// fetch sends a call and reads the reply into a new T, a resource.
func fetch[T any, P interface {
	*T
	resource
}](ctx context.Context, c *Client, cl call) (*T, error) {
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

// decodeObject reads a JSON object. It is stricter than json.Unmarshal, which takes null for an empty object and
// mends broken UTF-8 in silence.
func (r *reply) decodeObject(out any) error {
	if err := r.checkJSON(); err != nil {
		return err
	}
	if first := bytes.TrimLeft(r.body, " \t\r\n"); first[0] != '{' {
		return r.bad("not a JSON object", nil)
	}
	return r.unmarshal(out)
}

// unmarshal reads a JSON value that checkJSON has judged into a type of this package.
func (r *reply) unmarshal(out any) error {
	var err error
	if known, ok := out.(json.Unmarshaler); ok {
		err = known.UnmarshalJSON(r.body) // which checks it; json.Unmarshal would check it once more before
	} else {
		err = wire.Decode(r.body, out)
	}
	if err != nil {
		return r.bad("", err)
	}
	return nil
}

// checkPresent refuses what cannot be a reply of the service: nothing, or a page made for people, as proxies send it.
func (r *reply) checkPresent() error {
	switch {
	case isHTML(r.header):
		return r.bad("an HTML page", nil)
	case len(bytes.TrimSpace(r.body)) == 0:
		return r.bad("an empty body", nil)
	default:
		return nil
	}
}

// checkText refuses that, and what is no text.
func (r *reply) checkText() error {
	if err := r.checkPresent(); err != nil {
		return err
	}
	if !utf8.Valid(r.body) {
		return r.bad("broken UTF-8", nil)
	}
	return nil
}

// checkJSON refuses that, and what encoding/json mends in silence: of a member that comes twice it takes the last, and for
// one half of a surrogate pair it writes U+FFFD, so that two ids may become one. What is no JSON is told by the decoder.
func (r *reply) checkJSON() error {
	if err := r.checkText(); err != nil {
		return err
	}
	if defect := wire.Defect(r.body); defect != "" {
		return r.bad(defect, nil)
	}
	return nil
}

func isHTML(h http.Header) bool {
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	mediaType = strings.TrimSpace(mediaType)
	return strings.EqualFold(mediaType, "text/html") || strings.EqualFold(mediaType, "application/xhtml+xml")
}

// bad is the error for a reply that cannot be used. Whether the service carried out a write before it sent such a
// thing, nobody knows.
func (r *reply) bad(what string, cause error) *Error {
	beginning := r.exchange.client.auth.excerpt(r.body, maxShown, false)
	e := r.exchange.newError(&badReply{what, r.exchange.client.auth.text(r.header.Get("Content-Type")), beginning, cause})
	if r.exchange.kind != read {
		e.outcome = Unknown
	}
	return e
}

// badReply tells what is wrong with a reply, and shows its beginning.
type badReply struct {
	what, contentType string
	body              []byte
	cause             error
}

func (e *badReply) Error() string {
	text := "unusable reply (Content-Type " + strconv.Quote(e.contentType) + "): " +
		joinNonEmpty(": ", e.what, decodeReason(e.cause))
	if len(e.body) > 0 {
		text += ": " + strconv.Quote(string(e.body))
	}
	return text
}

func (e *badReply) Is(target error) bool { return target == ErrBadReply }
func (e *badReply) Unwrap() error        { return e.cause }

// broken is the error for a stream that cannot be read to its end: cut short by the connection or the caller, or not
// what the service document says.
func (r *reply) broken(err error) *Error {
	if ended := r.exchange.ctx.Err(); ended != nil {
		return r.exchange.newError(ended)
	}
	if failed := r.stream.failed(err); failed != nil {
		return r.exchange.newError(failed)
	}
	return r.bad("", err)
}

// refusedBy is the error for a stream whose envelope refuses after all, behind what has been handed out.
func (r *reply) refusedBy(in *rowjson.Reader) *Error {
	code, words := in.Envelope()
	r.exchange.last.code, r.exchange.answered.code = code, code
	e := r.exchange.newError(nil)
	e.Description = r.exchange.client.auth.text(cmp.Or(words, http.StatusText(code)))
	return e
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

// describe finds the words of an error reply; without any, those of the status.
func describe(status int, h http.Header, body []byte) string {
	if status >= http.StatusMultipleChoices && status < http.StatusBadRequest {
		return "redirect to " + h.Get("Location") + " not followed"
	}
	return cmp.Or(wire.ErrorText(body), http.StatusText(status))
}

// envelopeCode reads the code of an envelope, with one exception: if the body may be a transaction and is one, it
// returns 0, because the code of a transaction says how the transaction ended, not whether it could be read.
func envelopeCode(body []byte, maybeTransaction bool) int {
	if maybeTransaction {
		return wire.EnvelopeCode(body, "transaction_id", "transaction_response")
	}
	return wire.EnvelopeCode(body)
}

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
