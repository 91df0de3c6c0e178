package wire_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

func TestRepairTextReplacesWhatIsNoText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\"\xff\"":                 "\"\ufffd\"",
		"\"a\xff\xfeb\"":           "\"a\ufffd\ufffdb\"", // one for each byte
		"\"\xe2\x98\"":             "\"\ufffd\ufffd\"",   // the beginning of a character
		"\"\xed\xa0\x80\"":         "\"\ufffd\ufffd\ufffd\"",
		`"\ud800"`:                 "\"\ufffd\"",
		`"\uDFFF\ud800x"`:          "\"\ufffd\ufffdx\"",
		`"\ud800\u0041"`:           "\"\ufffd\\u0041\"",
		`"\ud800\ud83d\ude00"`:     "\"\ufffd\\ud83d\\ude00\"",
		`"\\ud800\/\"` + "\xc0\"":  `"\\ud800\/\"` + "\ufffd\"",
		"\"12345678\xff12345678\"": "\"12345678\ufffd12345678\"",
	} {
		assert.Equal(t, want, string(wire.RepairText([]byte(text))), "%q", text)
	}
	for _, whole := range []string{`""`, `"a"`, `"ü☃😀"`, `"\ud83d\ude00\n\u00fc\\"`, `"` + "\ufffd" + `\ufffd"`} {
		text := []byte(whole)
		assert.Same(t, &text[0], &wire.RepairText(text)[0], "%s is not copied", whole)
	}
}

// A repaired string is what encoding/json reads, and valid for a strict reader. Only strings with something to repair
// change.
func FuzzRepairText(f *testing.F) {
	for _, seed := range []string{"a", "\xff", `\ud800`, `\ud83d\ude00`, `\ud83d\ud83d\ude00`, `\\ud800`, "ü\xc3", `\uD800\uDC0`, `\"`, "\ufffd"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, inner []byte) {
		quoted := []byte(`"` + string(inner) + `"`)
		if !json.Valid(quoted) || quoted[0] != '"' {
			return
		}
		var want, got string
		require.NoError(t, json.Unmarshal(quoted, &want))
		repaired := wire.RepairText(quoted)
		require.NoError(t, json.Unmarshal(repaired, &got))
		assert.Equal(t, want, got)
		assert.True(t, jsontext.Value(repaired).IsValid(), "%q", repaired)
		assert.True(t, utf8.Valid(repaired))
		assert.Equal(t, jsontext.Value(quoted).IsValid(), string(repaired) == string(quoted))
	})
}
