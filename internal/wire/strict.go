package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// UnboundedNames is an option of jsontext that accepts duplicate names. Without it the tokenizer remembers every name
// of an object to detect a duplicate, and a member that is skipped may have millions.
var UnboundedNames = jsontext.AllowDuplicateNames(true)

// Defect returns what encoding/json would silently repair in a UTF-8 text; "" if there is nothing. encoding/json takes
// the last of duplicate members. It replaces one half of a surrogate pair by U+FFFD, so two ids may become equal.
// Invalid JSON is not a defect, because every decoder rejects it.
func Defect(text []byte) string {
	if flawless(text) {
		return ""
	}
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

// flawless reports whether a text certainly has no defect. It spares most responses the tokenizer, which takes longer
// than all other reading of a small one. It returns false for texts with an escape and for objects with many members.
func flawless(text []byte) bool {
	if bytes.IndexByte(text, '\\') >= 0 || !utf8.Valid(text) {
		return false
	}
	var names [32][]byte // of the objects that are open
	var outer [8]int     // for each object around the innermost one: where its names begin
	first, next, depth := 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			if depth == len(outer) {
				return false
			}
			outer[depth] = first
			first, depth = next, depth+1
		case '}':
			if depth == 0 {
				return false
			}
			depth--
			first, next = outer[depth], first //nolint:gosec // depth was above 0
		case '"':
			end := textEnd(text, i)
			if behind := SkipBlanks(text, end); behind < len(text) && text[behind] == ':' {
				name := text[i:end]
				if next == len(names) || slices.ContainsFunc(names[first:next], func(n []byte) bool { return bytes.Equal(n, name) }) {
					return false
				}
				names[next] = name
				next++
			}
			i = end - 1
		}
	}
	return true
}

// IsCut reports whether a text is only the beginning of a JSON object, array or string. It returns false for an empty
// text.
func IsCut(text []byte) bool {
	text = text[SkipBlanks(text, 0):]
	if len(text) == 0 || text[0] != '{' && text[0] != '[' && text[0] != '"' {
		return false
	}
	_, err := jsontext.NewDecoder(bytes.NewBuffer(text), UnboundedNames).ReadValue()
	return errors.Is(err, io.ErrUnexpectedEOF)
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
