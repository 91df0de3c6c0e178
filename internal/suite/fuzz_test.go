package suite_test

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The fuzz targets of responses give a client bytes as if the service had sent them. They compare the client's result
// with what encoding/json reads into a map.

// plainly reads JSON into maps, slices and json.Number. It returns false if an object has a name twice, in any letter
// case: readers disagree about which of the two counts.
func plainly(body []byte) (value any, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	if onlyOnce(dec) != nil {
		return nil, false
	}
	plain := json.NewDecoder(bytes.NewReader(body))
	plain.UseNumber()
	return value, plain.Decode(&value) == nil
}

// onlyOnce reads a value and returns an error if a name comes twice.
func onlyOnce(dec *jsontext.Decoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	var end jsontext.Kind
	switch token.Kind() {
	case '{':
		end = '}'
	case '[':
		end = ']'
	default:
		return nil
	}
	seen := map[string]bool{}
	for dec.PeekKind() != end {
		if end == '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return err
			}
			folded := strings.ToLower(strings.ToUpper(name.String()))
			if seen[folded] {
				return jsontext.ErrDuplicateName
			}
			seen[folded] = true
		}
		if err := onlyOnce(dec); err != nil {
			return err
		}
	}
	_, err = dec.ReadToken()
	return err
}

// member returns a member of an object; nil if it is null or missing.
func member(object any, name string) any {
	members, _ := object.(map[string]any)
	return members[name]
}

// textOf returns a member that is a text, or "".
func textOf(object any, name string) string {
	text, _ := member(object, name).(string)
	return text
}
