package rowjson

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tokenized takes apart the row at the beginning of a text with the tokenizer alone.
func tokenized(text []byte) (values []string, end int, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '[' {
		return nil, 0, false
	}
	for dec.PeekKind() != ']' {
		value, err := dec.ReadValue()
		if err != nil || value.Kind() == '[' || value.Kind() == '{' {
			return nil, 0, false
		}
		values = append(values, string(value))
	}
	_, err := dec.ReadToken()
	return values, int(dec.InputOffset()), err == nil
}

// valuesOf are the values between the marks of a row.
func valuesOf(text []byte, marks []mark) (values []string) {
	for i := range marks[1:] {
		values = append(values, string(valueAt(text, marks, i).Raw()))
	}
	return values
}

// The scanner accepts what the tokenizer accepts, with the same values at the same places. It accepts no part of a
// row.
func FuzzScanRow(f *testing.F) {
	for _, seed := range []string{
		`]`, ` ] `, `1]`, `"a","b" , -0, 0.5e-7,null,true,false]x`, `"2026-11-20T00:00:00.123","192.0.2.1","CN",64496,"942100","BLOCK",7]`,
		`"\u00fc\"\\\/\ud83d\ude00"]`, "\"ü\xff\"]", "\"\x01\"]", "\"12345678\x7f\"]", `01]`, `-]`, `1.]`, `1e]`, `+1]`, `nul]`, `nulll]`, `"a"]]`,
		"\"\xff\",\"\\ud800\",\"\ufffd\",1]", `"\ud83d\ud83d\ude00"]`, "\xff]", "\"\\\xff\"]", `"\u12"]`, "\"\xe2\x98\"]",
		`,]`, `1,]`, `1 2]`, `[1]]`, `{}]`, `"\x"]`, `"\ud800"]`, `"`, `"\`, "\v1]", "1\u00a0]", `-0]`, `-01]`, `9007199254740993]`, `"12345678"]`, `"1234567\"8"]`,
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, rest []byte, missing int) {
		text := append([]byte("["), rest...)
		scan := rowScan{}
		end := scan.scan(text)
		want, wantEnd, ok := tokenized(text)
		require.Equal(t, ok, end > 0, "%q", text)
		if !ok {
			return
		}
		got := scan.marks
		assert.Equal(t, want, valuesOf(text, got))
		assert.Equal(t, wantEnd, end)
		if missing > 0 && missing < end {
			again := rowScan{}
			require.Zero(t, again.scan(text[:end-missing]), "%q without %d", text[:end], missing)
		}

		source := rowSource{from: oneByOne{bytes.NewReader(text)}, limit: Limit{Bytes: 1 << 20}, scan: rowScan{}}
		require.NoError(t, source.more())
		streamed, err := source.row()
		require.NoError(t, err)
		assert.Equal(t, got, source.scan.marks)
		assert.Equal(t, string(text[:end]), string(streamed))
	})
}

// A row that arrives byte by byte is split twice at most, not once for each byte. That would be 34,359,738,368 bytes for
// a row of 256 KiB.
func TestRowsInTinyPieces(t *testing.T) {
	t.Parallel()
	const size = 1 << 18
	for name, values := range map[string]string{
		"one text":            `"` + strings.Repeat("a", size) + `"`,
		"60 KiB":              `"` + strings.Repeat("a", 60<<10) + `"`,
		"a text of escapes":   `"` + strings.Repeat(`\n`, size/2) + `"`,
		"a text of quotes":    `"` + strings.Repeat(`\"`, size/2) + `"`,
		"a text of brackets":  `"` + strings.Repeat("]", size) + `"`,
		"texts of brackets":   strings.Repeat(`"]",`, size/4) + `""`,
		"a text beyond ASCII": `"` + strings.Repeat("ü", size/2) + `"`,
		"one number":          strings.Repeat("1", size),
		"many texts":          strings.Repeat(`"abc",`, size/6) + `""`,
		"many numbers":        strings.Repeat("12,", size/3) + "1",
		"many words":          strings.Repeat("null,", size/5) + "true",
		"blanks before":       strings.Repeat(" ", size) + "1",
		"blanks between":      "1" + strings.Repeat(" ", size) + "," + strings.Repeat(" ", size) + "1",
		"blanks behind":       "1" + strings.Repeat(" ", size),
		"no value":            strings.Repeat(" ", size),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := []byte("[" + values + "]")
			source := rowSource{text: []byte("["), from: oneByOne{bytes.NewReader(text[1:])}, limit: Limit{Bytes: 4 * size}}
			got, err := source.row()
			require.NoError(t, err)
			require.Equal(t, string(text), string(got))
			var whole rowScan
			require.Equal(t, len(text), whole.scan(text))
			assert.Equal(t, whole.marks, source.scan.marks)
		})
	}
}

// What is wrong with a row does not depend on the pieces in which it arrives. A row that is cut is no wrong one.
func TestRowsThatAreWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[1,x]`: "is not JSON", `[1,x`: "is not JSON", `[1 2]`: "is not JSON", `[1}]`: "is not JSON", `["\x"]`: "is not JSON", "[\"\x01\"]": "is not JSON",
		`[tru]`: "is not JSON", `[01`: "is not JSON", `["\ud8"]`: "is not JSON", `[1\]`: "is not JSON", `[,]`: "is not JSON", `[1,]`: "is not JSON",
		`[[1],2]`: "contains a value", `[1,[2]]`: "contains a value", `[1,{"]":2}]`: "contains a value", `[{}]`: "contains a value",
		`[[1,2`: "unexpected EOF", `[1,{"]":2`: "unexpected EOF", `[tru`: "unexpected EOF", `["\u00`: "unexpected EOF", "[\"\xe2\x98": "unexpected EOF",
		`["\ud83d\ude`: "unexpected EOF", `["a]\"]`: "unexpected EOF",
	} {
		for _, first := range []int{1, len(text)} {
			source := rowSource{text: []byte(text[:first]), from: oneByOne{bytes.NewReader([]byte(text[first:]))}, limit: Limit{Bytes: 100}}
			_, err := source.row()
			require.ErrorContains(t, err, want, text)
			require.Equal(t, want == "unexpected EOF", errors.Is(err, io.ErrUnexpectedEOF), text)
		}
	}
}
