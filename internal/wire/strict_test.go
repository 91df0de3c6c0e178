package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

func TestDefects(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1,"b":{"a":1}}`:        "",
		`{"a":1,"b":2,"a":1}`:        "a comes twice",
		`[{"x":{"a":1,"\u0061":2}}]`: "a comes twice",
		`{"a":"\ud83d\ude00"}`:       "",
		`{"a":"\ud83d"}`:             "half of a surrogate pair",
		`{"a":1,"a"`:                 "",
		``:                           "",

		`[{"a":1},{"a":1}]`:                    "",
		`{"a":{"b":1,"c":{"b":2}},"b":3}`:      "",
		`{"a":"a","b":"a : b","c":"{\"a\":1"}`: "",
		`{"a":{"b":1,"c":2,"b":3},"d":4}`:      "b comes twice",
		`{"a":[{"b":1}],"c":{},"a" :2}`:        "a comes twice",
		`{"a":{"x":1},"b":{"x":1},"b":2}`:      "b comes twice",
		"{\"a\":\"\xff\"}":                     "half of a surrogate pair", // no UTF-8: refused all the same
		`}{"a":1`:                              "",

		deep(8, `{"a":1,"a":2}`):        "a comes twice",
		deep(7, `{"a":1,"a":2}`):        "a comes twice",
		`{` + members(40) + `,"m7":1}`:  "m7 comes twice",
		`{` + members(40) + `}`:         "",
		`{` + members(31) + `,"m30":1}`: "m30 comes twice",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want, wire.Defect([]byte(text)))
		})
	}
}

// deep returns a value in so many objects.
func deep(objects int, value string) string {
	return strings.Repeat(`{"a":`, objects) + value + strings.Repeat(`}`, objects)
}

// members returns so many members with different names.
func members(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"m%d":%d`, i, i)
	}
	return strings.Join(all, ",")
}

// jsontext, with its defaults, rejects a valid text that has a defect, and only that.
func FuzzDefects(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[{"a":1,"c":{}},"a"],"c":"}{"}`, `{"a":{"b":1,"b":2}}`, `{"a":"\\","a":1}`, `{"a":"\ud800"}`, deep(9, `{"a":1,"a":2}`), `{` + members(33) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if utf8.Valid(text) && json.Valid(text) {
			require.Equal(t, jsontext.Value(text).IsValid(), wire.Defect(text) == "", "%q", text)
		}
	})
}

func TestIsCut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		``: false, ` `: false, `{"a":1}`: false, `{"a":1`: true, ` [1,`: true, `"text`: true, `"text"`: false, `{"a" 1`: false, `<html`: false,
		`12`: false, `nul`: false, `{"a":1,"a":`: true, `{}x`: false,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want, wire.IsCut([]byte(text)))
		})
	}
}

func TestClipNeverCuts(t *testing.T) {
	t.Parallel()
	assert.Equal(t, strings.Repeat("a", 200), string(wire.Clip([]byte(strings.Repeat("a", 200)))))
	assert.Equal(t, "a value of 201 bytes", string(wire.Clip([]byte(strings.Repeat("a", 201)))))
}
