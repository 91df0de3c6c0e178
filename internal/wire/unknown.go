package wire

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A service may send members that nobody has documented. They are kept as the text of one object: a map for each object
// would more than double the memory of 50,000 entries.

// lenient makes a time that cannot be read the zero time, so that one item does not cost those around it.
var lenient = optionsWith(func(b []byte, at *time.Time) error {
	if unmarshalTime(b, at) != nil {
		*at = time.Time{}
	}
	return nil
})

// DecodeKnown is [Decode] for a struct, except that a time that cannot be read is zero. It sets unknown to an object with
// the members that the struct does not have, or to nil if there are none.
func DecodeKnown[T any](text []byte, out *T, unknown *stdjson.RawMessage) error {
	*unknown = nil
	err := json.Unmarshal(text, out, lenient, json.RejectUnknownMembers(true))
	if !errors.Is(err, json.ErrUnknownName) {
		return err
	}
	in := struct {
		Known *T             `json:",embed"`
		Rest  jsontext.Value `json:",embed"`
	}{Known: out}
	err = json.Unmarshal(text, &in, lenient)
	if len(in.Rest) > 0 { // otherwise the unknown member is in an object within
		_ = in.Rest.Compact() // as json.Marshal writes it
		*unknown = stdjson.RawMessage(bytes.Clone(in.Rest))
	}
	return err
}

// Unknown returns an object with the unknown members of two levels: those of an object, and those of its member with
// this name; nil if there are none.
func Unknown(of jsontext.Value, name string, within jsontext.Value) stdjson.RawMessage {
	all := stdjson.RawMessage(bytes.Clone(of))
	if within != nil {
		all = merge(of, fmt.Appendf(nil, "{%q:%s}", name, within))
	}
	if all != nil {
		_ = (*jsontext.Value)(&all).Compact() // as json.Marshal writes it
	}
	return all
}

// EncodeKnown writes a struct as encoding/json does, and adds the members of unknown, an object or nil, that the struct
// does not have: in a struct of two levels, one of them may have the name of a member of the other level.
func EncodeKnown(known any, unknown stdjson.RawMessage) ([]byte, error) {
	text, err := stdjson.Marshal(known)
	if err != nil || len(unknown) == 0 {
		return text, err
	}
	var own, more map[string]jsontext.Value
	if err := errors.Join(json.Unmarshal(text, &own), json.Unmarshal(unknown, &more)); err != nil {
		return nil, err
	}
	maps.DeleteFunc(more, func(name string, _ jsontext.Value) bool { return own[name] != nil })
	if len(more) == 0 {
		return text, nil
	}
	rest, err := json.Marshal(more, json.Deterministic(true))
	return merge(text, rest), err
}

// merge returns an object with the members of two. Either may be nil.
func merge(a, b []byte) []byte {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	if len(a) <= len("{}") {
		return bytes.Clone(b)
	}
	return append(append(bytes.Clone(a[:len(a)-1]), ','), b[1:]...)
}
