// Package wire decodes the service's JSON. Member names must match exactly, and duplicate members and invalid UTF-8 are
// errors. It accepts the different ways in which services write a number, a time or an error.
//
// The package must not depend on HTTP, the operations of the service, or the errors of the SDK. Its entry points are
// [Decode], [Members], [Reason], [EnvelopeCode], and [Code], [Int] and [ParseTimestamp] for single values.
package wire

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
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

// options makes a null leave a value unchanged, as in encoding/json, and decodes numbers and times as the service writes
// them.
var options = json.JoinOptions(jsonv1.MergeWithLegacySemantics(true), json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFunc(unmarshalTime), json.UnmarshalFunc(unmarshalShown), json.UnmarshalFunc(unmarshalWhole[int64]))))

// Decode decodes a complete JSON text. Unlike encoding/json, it matches names case-sensitively and rejects duplicate
// ones. A time that cannot be read is zero, so that one item does not cost those around it, and so is a number of the type
// int, which is for people; one on which something depends is an int64 or an [Int]. If Decode returns an error, out may
// be partly filled.
func Decode(text []byte, out any) error { return json.Unmarshal(text, out, options) }

// UnboundedNames is a jsontext option that accepts duplicate names. Without it, the tokenizer remembers every name of
// an object, of which a member that is skipped may have millions.
var UnboundedNames = jsontext.AllowDuplicateNames(true)

// Members returns the members of a JSON object, in order and including duplicates. It stops at a syntax error, and
// yields nothing for a text that is not an object.
func Members(object []byte) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		text := bytes.TrimPrefix(object, []byte("\ufeff"))
		dec := jsontext.NewDecoder(bytes.NewBuffer(text), UnboundedNames, jsontext.AllowInvalidUTF8(true))
		if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
			return
		}
		for dec.PeekKind() == '"' {
			token, _ := dec.ReadToken()
			name := token.String()
			if value, err := dec.ReadValue(); err != nil || !yield(name, value) {
				return
			}
		}
	}
}

// Reason returns the text of a decoding error, with the field that it is about. It returns "" for nil.
func Reason(err error) string {
	switch typed, ok := errors.AsType[*json.SemanticError](err); {
	case err == nil:
		return ""
	case ok && typed.JSONPointer != "" && (typed.Err != nil || typed.GoType != nil):
		field := strings.ReplaceAll(strings.TrimPrefix(string(typed.JSONPointer), "/"), "/", ".")
		if typed.Err != nil {
			return field + ": " + typed.Err.Error()
		}
		return fmt.Sprintf("%s: %v does not fit %v", field, typed.JSONKind, typed.GoType.Kind())
	default:
		return err.Error()
	}
}

// maxShown is the maximum number of bytes of a value in an error.
const maxShown = 200

// Clip returns a value for an error text, or only the length of a long one. It does not truncate, because secrets are
// removed from the error later, and a part of a secret could remain at the end.
func Clip(value []byte) []byte {
	if len(value) > maxShown {
		return fmt.Appendf(nil, "a value of %d bytes", len(value))
	}
	return value
}
