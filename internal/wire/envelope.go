package wire

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// unreadableCode stands for a code that is a number but not a whole one. That is a fault of the service.
const unreadableCode = 500

// EnvelopeCode reads the code of an envelope; 0 if there is none. The code may contradict the HTTP status.
//
// A missed refusal is worse than an invented one. So EnvelopeCode recognizes the member in any letter case, takes the
// highest of several codes, and also reads a code before a syntax error. If the body has a member with one of the names
// in unless that is not null, it is no envelope, and EnvelopeCode returns 0.
func EnvelopeCode(body []byte, unless ...string) int {
	if !mentionsCode(body) {
		return 0
	}
	text := bytes.TrimPrefix(body, []byte("\ufeff"))
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), UnboundedNames, jsontext.AllowInvalidUTF8(true))
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

// mentionsCode spares most responses a second decoding. It finds the name in any letter case, and any name with
// escapes.
func mentionsCode(body []byte) bool {
	return bytes.Contains(body, []byte(`\u`)) || mentionsFrom(body, 'c') || mentionsFrom(body, 'C')
}

// mentionsFrom finds the name with this first letter.
func mentionsFrom(body []byte, first byte) bool {
	const name = "code"
	for {
		i := bytes.IndexByte(body, first)
		if i < 0 || len(body) < i+len(name) {
			return false
		}
		if bytes.EqualFold(body[i:i+len(name)], []byte(name)) {
			return true
		}
		body = body[i+1:]
	}
}

// ErrorWords has every member in which a service may say what went wrong. (Open point 31.)
type ErrorWords struct {
	Description string     `json:"description"`
	Message     string     `json:"message"`
	ErrorInfo   *errorInfo `json:"error_info"`
}

type errorInfo struct {
	Message string `json:"message"`
}

// ErrorText returns what the service says in the body of an error; "" if it says nothing.
func ErrorText(body []byte) string {
	var w ErrorWords
	_ = Decode(body, &w) // a member of an unexpected type does not take the words away
	return w.Text()
}

// Add reads one member of such a body. It ignores a member of an unexpected type.
func (w *ErrorWords) Add(name string, value []byte) {
	_ = Decode([]byte(`{"`+name+`":`+string(value)+`}`), w)
}

// Text returns what the service says; "" if it says nothing.
func (w *ErrorWords) Text() string {
	return cmp.Or(w.Description, w.Message, cmp.Or(w.ErrorInfo, &errorInfo{}).Message)
}
