package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// UnboundedNames is an option of jsontext that accepts duplicate names. Without it the tokenizer remembers every name
// of an object to detect a duplicate, and a member that is skipped may have millions.
var UnboundedNames = jsontext.AllowDuplicateNames(true)

// Defect returns what encoding/json would silently repair in a UTF-8 text; "" if there is nothing. encoding/json takes
// the last of duplicate members. It replaces one half of a surrogate pair by U+FFFD, so two ids may become equal.
// Invalid JSON is not a defect, because every decoder rejects it.
func Defect(text []byte) string {
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
