// Package wire reads JSON the way the SDK needs it. Member names must match exactly, and a member that comes twice or a
// text with a broken character is an error. It accepts the different ways in which services write a number, a time or an
// error.
//
// The package knows JSON texts. It must not know HTTP, the operations of the service, or the errors of the SDK. Its
// entry points are [Decode], [Members], [Reason], [EnvelopeCode] and the types of single values: [Code], [Int] and
// [Timestamp].
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// options: a null leaves a value unchanged, as in encoding/json, and a time.Time is a timestamp of the service.
var options = json.JoinOptions(jsonv1.MergeWithLegacySemantics(true), json.WithUnmarshalers(json.UnmarshalFunc(unmarshalTime)))

// Decode reads a whole JSON text. Unlike encoding/json it does not mend what is ambiguous: a name in another letter case
// is another name, and two members with one name are an error. With an error, out may hold a part of the text.
func Decode(text []byte, out any) error { return json.Unmarshal(text, out, options) }

// UnboundedNames is an option of jsontext that accepts duplicate names. Without it the tokenizer remembers every name
// of an object to detect a duplicate, and a member that is skipped may have millions.
var UnboundedNames = jsontext.AllowDuplicateNames(true)

// Members returns the members of a JSON object, in order, with every duplicate. It ends before a syntax error, and
// returns nothing of a text that is no object.
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

// Reason describes an error of a decoder and the field that it is about. It returns "" for nil.
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

// maxShown is how many bytes of a value an error shows.
const maxShown = 200

// Clip returns what an error shows of a value: the value, or only the length of a long one. Secrets are removed from
// the error later, and at the end of a cut value a piece of a secret could remain.
func Clip(value []byte) []byte {
	if len(value) > maxShown {
		return fmt.Appendf(nil, "a value of %d bytes", len(value))
	}
	return value
}

// IsHTML reports whether a response is a page for people, which no service sends.
func IsHTML(h http.Header) bool {
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	mediaType = strings.TrimSpace(mediaType)
	return strings.EqualFold(mediaType, "text/html") || strings.EqualFold(mediaType, "application/xhtml+xml")
}
