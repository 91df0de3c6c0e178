package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Members that a struct does not have are kept, in their order, and written again.
func TestUnknownMembers(t *testing.T) {
	t.Parallel()
	type link struct {
		ID string `json:"id"`
	}
	type object struct {
		A  int  `json:"a"`
		To link `json:"to,omitzero"`
	}
	for text, want := range map[string]string{
		`{"a":1}`: ``, `{"a":1,"to":{"id":"x"}}`: ``, `{"a":1,"to":{"id":"x","name":"n"}}`: ``,
		`{"x":[1, 2],"a":1,"y":null}`: `{"x":[1,2],"y":null}`, ` { "x" : "é" } `: `{"x":"é"}`, `{}`: ``,
	} {
		var o object
		unknown := json.RawMessage("old")
		require.NoError(t, wire.DecodeKnown([]byte(text), &o, &unknown))
		assert.Equal(t, want, string(unknown), text)
		assert.Equal(t, want == "", unknown == nil, text)
		again, err := wire.EncodeKnown(o, unknown)
		require.NoError(t, err)
		var second json.RawMessage
		require.NoError(t, wire.DecodeKnown(again, &o, &second), "%s", again)
		assert.Equal(t, want, string(second), text)
	}
	var o object
	var unknown json.RawMessage
	for _, text := range []string{`{"x":1,"x":2}`, `{"a":"y","x":1}`, `{"x":1`, `[]`} {
		require.Error(t, wire.DecodeKnown([]byte(text), &o, &unknown), text)
	}
	for unknown, want := range map[string]string{`{"a":2,"b":3}`: `{"a":1,"b":3}`, `{"a":2}`: `{"a":1}`, `{}`: `{"a":1}`, `null`: `{"a":1}`} {
		text, err := wire.EncodeKnown(object{A: 1}, json.RawMessage(unknown))
		require.NoError(t, err)
		assert.Equal(t, want, string(text), "a known member is written once")
	}
	assert.Nil(t, wire.Unknown(nil, "within", nil))
	assert.Equal(t, `{"x":1}`, string(wire.Unknown([]byte(`{"x":1}`), "within", nil)))
	assert.Equal(t, `{"within":{"y":2}}`, string(wire.Unknown(nil, "within", []byte(`{"y":2}`))))
	assert.Equal(t, `{"x":1,"within":{"y":2}}`, string(wire.Unknown([]byte(`{"x":1}`), "within", []byte(`{"y":2}`))))
}
