package wire

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// unreadableCode stands for a code that is a number but not a whole one. That is a fault of the service.
const unreadableCode = 500

// EnvelopeCode reads the code of an envelope; 0 if there is none. The code may contradict the HTTP status.
//
// A missed refusal is worse than an invented one. So EnvelopeCode takes the highest of several codes, and also reads a
// code before a syntax error. If the body has a member with one of the names in unless that is not null, it is no
// envelope, and EnvelopeCode returns 0.
func EnvelopeCode(body []byte, unless ...string) int {
	if !bytes.Contains(body, []byte(`"code"`)) { // most responses have none, and need no second decoding
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

// HigherCode returns the higher of a code and another one in JSON. A number that is not whole counts as 500. A word, an
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

// ErrorWords is what a service says in the body of an error. (Open point 31.)
type ErrorWords struct{ description, message, info string }

// Add reads one member of such a body. It ignores a member of an unexpected type.
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
	text, _ := jsontext.AppendUnquote(nil, value) // with U+FFFD for broken characters
	return string(text)
}

// Text returns what the service says; "" if it says nothing.
func (w *ErrorWords) Text() string { return cmp.Or(w.description, w.message, w.info) }

// ErrorText returns what the service says in the body of an error; "" if it says nothing, or if the body is no JSON: a
// piece of a text could be a piece of a secret.
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
