package wire

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// unreadableCode is used for a code that is a number but not an integer, which is a fault of the service.
const unreadableCode = 500

// EnvelopeCode returns the code of an envelope, or 0 if there is none. The code may contradict the HTTP status.
//
// A missed refusal is worse than a wrongly assumed one, so EnvelopeCode returns the highest of several codes, and finds
// a code before a syntax error. A body with a member named in unless that is not null is not an envelope, so
// EnvelopeCode returns 0.
func EnvelopeCode(body []byte, unless ...string) int {
	if !bytes.Contains(body, []byte(`"code"`)) { // most responses have none and need no second decoding
		return 0
	}
	code := 0
	for name, value := range Members(body) {
		switch {
		case name == "code":
			code = HigherCode(code, value)
		case value.Kind() != 'n' && slices.Contains(unless, name):
			return 0
		}
	}
	return code
}

// HigherCode returns the higher of a code and one in JSON. A number that is not an integer counts as 500. A word, an
// array and an object are not codes and count as 0.
func HigherCode(code int, value jsontext.Value) int {
	var other Code
	switch kind := value.Kind(); {
	case kind != '0' && kind != '"':
	case other.UnmarshalJSON(value) != nil:
		other = unreadableCode
	}
	return max(code, int(other))
}

// ErrorWords is the error message in the body of an error response. (Open point 31.)
type ErrorWords struct{ description, message, info string }

// Add reads one member of the body. It ignores members of an unexpected type.
func (w *ErrorWords) Add(name string, value []byte) {
	switch name {
	case "description":
		w.description = textOf(value)
	case "message":
		w.message = textOf(value)
	case "error_info":
		for name, value := range Members(value) {
			if name == "message" {
				w.info = textOf(value)
			}
		}
	}
}

func textOf(value jsontext.Value) string {
	if value.Kind() != '"' {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, value) // invalid UTF-8 becomes U+FFFD
	return string(text)
}

// Text returns the message, or "" if there is none.
func (w *ErrorWords) Text() string { return cmp.Or(w.description, w.message, w.info) }

// ErrorText returns the error message in a body. It returns "" if there is none, or if the body is not valid JSON,
// because a part of a text could be a part of a secret.
func ErrorText(body []byte) string {
	var w ErrorWords
	if !jsontext.Value(body).IsValid(UnboundedNames, jsontext.AllowInvalidUTF8(true)) {
		return ""
	}
	for name, value := range Members(body) {
		w.Add(name, value)
	}
	return w.Text()
}
