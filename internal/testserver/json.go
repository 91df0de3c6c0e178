package testserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

const jsonType = "application/json"

// The functions below are stricter than json.Unmarshal. Unmarshal accepts names in other letter case, duplicate names,
// null for any type, and broken UTF-8.

// readObject splits a JSON object into its members. It rejects members that names does not list, and duplicates.
func readObject(raw []byte, names ...string) (map[string]json.RawMessage, error) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return nil, errors.New("malformed JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("a JSON object is expected")
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("unknown member %q", name)
		}
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("member %q is given twice", name)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		members[name] = value
	}
	return members, nil
}

func readString(name string, raw json.RawMessage) (string, error) {
	return readMember[string](name, raw, "a string")
}

func readArray(name string, raw json.RawMessage) ([]json.RawMessage, error) {
	return readMember[[]json.RawMessage](name, raw, "an array")
}

// readMember reads a member that must have the type T, which what names.
func readMember[T any](name string, raw json.RawMessage, what string) (value T, err error) {
	var read *T // nil for null
	if raw == nil {
		return value, fmt.Errorf("%s is missing", name)
	}
	if err := json.Unmarshal(raw, &read); err != nil || read == nil {
		return value, fmt.Errorf("%s must be %s", name, what)
	}
	return *read, nil
}
