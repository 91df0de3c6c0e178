package wire_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

func TestDecodeMatchesExactNamesOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"id":"a"}`:                             "a",
		`{"id":"a","ID":"b","Id":"c"}`:           "a",
		`{"\u0049d":"b"}`:                        "",
		`{"\u0069d":"a"}`:                        "a",
		`{"nested":{"ID":"b"},"id" : "a"}`:       "a",
		`{"x":"\\","ID":"b"}`:                    "",
		`{"x":"\"id\":","ID"` + "\n\t" + `:"b"}`: "",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			var got struct {
				ID string `json:"id"`
			}
			require.NoError(t, wire.Decode([]byte(text), &got))
			assert.Equal(t, want, got.ID)
		})
	}
	var got struct {
		Skin string `json:"skin"`
	}
	require.NoError(t, wire.Decode([]byte(`{"\u017fkin":"b","s\u212ain":"c"}`), &got))
	assert.Empty(t, got.Skin, "encoding/json folds these letters to s and k")
}

func TestExactNamesMarksEachNameWithACapitalLetter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":"Z","z":["A",{"b":"Ü"}]}`: `{"a":"Z","z":["A",{"b":"Ü"}]}`,
		`{"A":1,"Z":2,"aZ":3,"zA":4}`:   `{"-A":1,"-Z":2,"-aZ":3,"-zA":4}`,
		`{"@":1,"[":2,"9_":3}`:          `{"@":1,"[":2,"9_":3}`,
		`{"ü":{"B" : "C"}}`:             `{"-ü":{"-B" : "C"}}`,
		"{\"A\"\r\n:1}":                 `{"-A"` + "\r\n:1}",
		`{"\u0061":1,"\u0041":2}`:       `{"\u0061":1,"-\u0041":2}`,
		`"A"`:                           `"A"`,
		`{"A"`:                          `{"A"`,
		``:                              ``,
	} {
		assert.Equal(t, want, string(wire.ExactNames([]byte(text))), text)
	}
}

func TestSkipBlanks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "x ": 0, " \n\t\rx": 4, "\r": 1, "\v": 0, "\u00a0": 0} {
		assert.Equal(t, want, wire.SkipBlanks([]byte(text), 0), "%q", text)
	}
	assert.Equal(t, 3, wire.SkipBlanks([]byte("x  y"), 1))
}

// Whatever the text: it stays valid or invalid, and only names change.
func FuzzExactNames(f *testing.F) {
	for _, seed := range []string{`{"a":1,"B":[{"C":"D:"}]}`, `{"\u0041":"\\\""}`, `"A"`, `{"A":1e1000}`, `1e1000`, `{"A" :`, `{"A`, `{"\`, "{\"\u017f\":null}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		exact := wire.ExactNames(text)
		require.Equal(t, json.Valid(text), json.Valid(exact))
		if !json.Valid(text) {
			return
		}
		if bytes.TrimLeft(text, " \t\r\n")[0] != '{' {
			return
		}
		var object, changed map[string]json.RawMessage // their values may be numbers that no float64 holds
		require.NoError(t, json.Unmarshal(text, &object))
		require.NoError(t, json.Unmarshal(exact, &changed))
		for name := range object {
			plain := strings.IndexFunc(name, func(r rune) bool { return r >= 0x80 || 'A' <= r && r <= 'Z' }) < 0
			if plain {
				assert.Contains(t, changed, name)
			} else {
				assert.Contains(t, changed, "-"+name)
			}
		}
	})
}

func TestMembersAreThoseOfTheObjectItself(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{}`: nil,
		`{"a":1,"b":"c","a":{"d":1,"e":[{"f":2}]}}`: {"a", "b", "a"},
		`{"\u0061":["x","y"],"z\"":"{"}`:            {"a", `z"`},
		`{ "A" : "a,b" , "c" : [ ] }`:               {"A", "c"},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			var got []string
			for name := range wire.Members([]byte(text)) {
				got = append(got, string(name))
			}
			assert.Equal(t, want, got)
		})
	}
}
