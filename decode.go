package webdelivery

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
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
		err = decodeExactly(r.body, out)
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
	if mended := mendedJSON(r.body); mended != "" {
		return r.bad(mended, nil)
	}
	return nil
}

// mendedJSON tells what encoding/json would mend in a text that is UTF-8; "" if nothing.
func mendedJSON(text []byte) string {
	if jsontext.Value(text).IsValid() || !json.Valid(text) {
		return ""
	}
	_, err := jsontext.NewDecoder(bytes.NewBuffer(text)).ReadValue()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName) {
		return syntax.JSONPointer.LastToken() + " comes twice"
	}
	return "half of a surrogate pair"
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
func (r *reply) refusedBy(in *resultReader) *Error {
	r.exchange.last.code, r.exchange.answered.code = in.code, in.code
	e := r.exchange.newError(nil)
	e.Description = r.exchange.client.auth.text(in.said.words(in.code))
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

// clip is what an error repeats of a value. A long one is not cut, as the secrets are taken out only later: a piece of one
// at the end would stay.
func clip(value []byte) []byte {
	if len(value) > maxShown {
		return fmt.Appendf(nil, "a value of %d bytes", len(value))
	}
	return value
}

// errorBody is every shape in which an error's text is read (open point 31).
type errorBody struct {
	Description string     `json:"description"`
	Message     string     `json:"message"`
	ErrorInfo   *ErrorInfo `json:"error_info"`
}

// describe finds the words of an error reply; without any, those of the status.
func describe(status int, h http.Header, body []byte) string {
	if status >= http.StatusMultipleChoices && status < http.StatusBadRequest {
		return "redirect to " + h.Get("Location") + " not followed"
	}
	var e errorBody
	_ = decodeExactly(body, &e) // a member of another type than usual does not take the words away
	return e.words(status)
}

// words are those of the service, or of the status.
func (e *errorBody) words(status int) string {
	info := cmp.Or(e.ErrorInfo, &ErrorInfo{})
	return cmp.Or(e.Description, e.Message, info.Message, http.StatusText(status))
}

// envelopeCode reads the code of a reply's envelope; 0 without one. It may contradict the HTTP status (open point 7). It
// takes the name in any letter case, the gravest of several codes, and what stands before the text goes wrong: to overhear
// a refusal is worse than to hear one too many. Of a body that may be a transaction the code is 0: it says how the
// transaction ended, not whether it could be read.
func envelopeCode(body []byte, maybeTransaction bool) int {
	if !mentionsCode(body) {
		return 0
	}
	text := bytes.TrimPrefix(body, []byte("\ufeff"))
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), unboundedNames, jsontext.AllowInvalidUTF8(true))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return 0
	}
	code := 0
	for dec.PeekKind() == '"' {
		token, _ := dec.ReadToken()
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			break
		}
		switch {
		case strings.EqualFold(name, "code"):
			code = graver(code, value)
		case maybeTransaction && (name == "transaction_id" || name == "transaction_response") && value.Kind() != 'n':
			return 0
		}
	}
	return code
}

// graver is the graver of a code and another one, in JSON. A number that is no whole one is a fault of the service; a
// word, an array and an object are no code.
func graver(code int, value jsontext.Value) int {
	var other looseCode
	switch kind := value.Kind(); {
	case kind != '0' && kind != '"':
	case other.UnmarshalJSON(value) != nil:
		other = http.StatusInternalServerError
	}
	return max(code, int(other))
}

// present tells whether a member is there, and not null.
type present bool

func (p *present) UnmarshalJSON(b []byte) error {
	*p = string(b) != "null"
	return nil
}

// mentionsCode spares most replies a second decoding. Decoding takes a name in any letter case, and with escapes.
func mentionsCode(body []byte) bool {
	const name = "code"
	for {
		i := bytes.IndexAny(body, `cC\`)
		if i < 0 {
			return false
		}
		body = body[i:]
		if bytes.HasPrefix(body, []byte(`\u`)) || len(body) >= len(name) && bytes.EqualFold(body[:len(name)], []byte(name)) {
			return true
		}
		body = body[1:]
	}
}

// looseCode reads a code that should be a number, in whatever way it is written; of a word it is 0, as the HTTP status
// tells the same. It has 32 bits everywhere: a larger number counts as the largest of these, and never as a small one.
type looseCode int

func (c *looseCode) UnmarshalJSON(b []byte) error {
	if n, ok := plainInt(b); ok { // as most services write it
		*c = max(*c, looseCode(clamp(looseInt(n))))
		return nil
	}
	text, quoted := string(b), b[0] == '"'
	if quoted {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		text = strings.TrimSpace(text)
	}
	if text == "" || text == "null" {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64) // an infinite one, if it is too large
	isNumber := strings.IndexByte("-0123456789", text[0]) >= 0 && (err == nil || errors.Is(err, strconv.ErrRange))
	switch {
	case isNumber && f == math.Trunc(f):
		*c = max(*c, looseCode(min(max(f, math.MinInt32), math.MaxInt32)))
	case isNumber || !quoted:
		return fmt.Errorf("the code %s is no whole number", clip(b))
	}
	return nil
}

// clamp makes an int of a number, also where an int has 32 bits: a larger number is the largest of these.
func clamp(n looseInt) int { return int(min(max(n, math.MinInt32), math.MaxInt32)) }

// looseInt reads a whole number that may stand in quotes; all its digits are kept.
type looseInt int64

func (n *looseInt) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		return nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not a whole number of 64 bits", clip(b))
	}
	*n = looseInt(v)
	return nil
}

// timestamp reads the service's ISO 8601 UTC timestamps into a time in UTC. The document shows no pattern for them, so
// all usual ones are read; one without a zone is UTC. Empty and null are the zero time.
type timestamp struct{ time.Time }

var timestampLayouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05",
	time.DateOnly,
}

func (t *timestamp) UnmarshalJSON(b []byte) error {
	if v := (Value{b}); v.isText() {
		if at, ok := plainTimestamp(bytes.TrimSuffix(v.text(), []byte("Z")), new(date)); ok {
			t.Time = at
			return nil
		}
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	if text == "" {
		return nil
	}
	at, err := parseTimestamp(text)
	t.Time = at
	return err
}

// parseTimestamp reads one of the layouts, as UTC.
func parseTimestamp(text string) (time.Time, error) {
	for _, layout := range timestampLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not an ISO 8601 timestamp", clip([]byte(strconv.Quote(text))))
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
