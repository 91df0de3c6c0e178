package rowjson_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// Whatever response comes: no panic; the rows are the same when they come at once and byte by byte, and when they are
// kept. What is accepted is what encoding/json reads. As JSON it is valid for every reader, also if the texts that came
// are not.
func FuzzRows(f *testing.F) {
	for _, seed := range []string{
		`{"query":{"limit":1},"columns":[{"name":"a"},{"name":"b"}],"rows":[["x",1],[null,-1.5e3]],"total_results":2}`,
		`{"rows":[["x\ud800` + "\xff" + `"]],"columns":[{"name":"a"}],"total_results":1}`,
		`{"columns":[{"name":"a"}],"rows":[[[1]]],"total_results":1}`,
		`{"columns":[{"name":"a"},{"name":"a"}],"rows":[null],"total_results":1e400}`,
		`{"columns":[{"name":"a"}],"rows":[["\ud800\"\\"]],"total_results":1,"x":{}} `,
		`{"columns":[],"rows":[[]],"total_results":0}x`,
		"{\"columns\":[{\"name\":\"\xff\"}]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var all [2][]string
		var wrong [2]bool
		for i, arrive := range []func(io.Reader) io.Reader{iotest.DataErrReader, iotest.OneByteReader} {
			var store rowjson.Store
			r := readerOf(arrive(bytes.NewReader(body)))
			for r.Next() {
				all[i] = append(all[i], string(r.Row().JSON()))
				store.Add(r.Row())
			}
			wrong[i] = r.Err() != nil
			var kept []string
			for row := range store.All() {
				kept = append(kept, string(row.JSON()))
			}
			require.Equal(t, all[i], kept)
		}
		require.Equal(t, wrong[0], wrong[1])
		if wrong[0] {
			return
		}
		require.Equal(t, all[0], all[1])
		var want struct {
			Rows []jsontext.Value `json:"rows"`
		}
		dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		require.NoError(t, jsonv2.UnmarshalDecode(dec, &want)) // names are exact in version 2
		require.Len(t, all[0], len(want.Rows))
		for i, row := range want.Rows {
			assert.Equal(t, decoded(t, string(row)), decoded(t, all[0][i]))
		}
	})
}

// decoded returns what encoding/json reads in a row, numbers as they are written.
func decoded(t *testing.T, row string) (values []any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(row))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&values))
	return values
}

// Whatever row comes: the reader accepts it if the tokenizer does. Its values, and what is read into a struct, are what
// encoding/json reads, also when it is written into the struct while it is split, as the third row of a Target is.
func FuzzRow(f *testing.F) {
	for i, seed := range []string{
		` "\u00fc" , -0 ,"2026-11-20T00:00:00Z" , "::1",255,"x",1e3,"false",1.5,null,"::/0",32767,0 ] x`, `"a",]`, `"abcdefghij`, "[1]]", `{}]`, `,]`,
		`"12345678",123456789012345678,"2026-11-20T00:00:00","x"]`, `"1234567",01]`, `"",1]`, `"\ud800",1,2]`, `1,2,3`, `"a" "b"]`, `]`, ` ] `,
		"\"\u00fc\xff\"]", "\"\x01\"]", "\"12345678\x7f\"]", `-]`, `1.]`, `1e]`, `+1]`, `nul]`, `nulll]`, `"]\"]","\\"]`, "\"\\\xff\"]", `"\u12"]`, `"\ud83d\ude00"]`,
		"9223372036854775807,9223372036854775808,99999999999999999999,1]", strings.Repeat("1,-1,", 50) + "7]", // more fields than a fieldSet has bits
	} {
		f.Add([]byte(seed), uint8(i))
		f.Add([]byte(seed), uint8(200+i%4))
	}
	for kind := range fieldTypes {
		row := rowsFor(rand.New(rand.NewPCG(uint64(kind), 0)), shapeOf(10, uint8(kind)), 10)[0]
		f.Add([]byte(strings.Join(row, ",")+"]"), uint8(kind))
	}
	f.Fuzz(func(t *testing.T, rest []byte, kind uint8) {
		text := "[" + string(rest)
		values, size, ok := tokenized(text)
		columns := len(values)
		if !ok {
			columns = 1 + int(kind)%3
		}
		shape := shapeOf(columns, kind)
		if shape.NumField() == 0 {
			return
		}
		nulls := strings.Split(strings.Repeat("null,", columns)+"null", ",")[1:]
		begin := columnsOf(columns) + strings.Repeat("["+strings.Join(nulls, ",")+"],", 2)
		if ok {
			rows := [][]string{nulls, nulls, values, values} // the second time from what is kept of the columns
			compare(t, shape, rows, begin+text[:size]+","+text[:size]+`],"total_results":4}`)
			return
		}
		r := readerOf(strings.NewReader(begin + text))
		target, err := fields.Target(reflect.New(shape).Interface())
		require.NoError(t, err)
		for range 2 {
			require.True(t, r.Next())
			target.Store(r.Row())
		}
		require.False(t, r.Next(), "%q", text)
		require.Error(t, r.Err())
	})
}

// tokenized takes apart the row at the beginning of a text with the tokenizer alone.
func tokenized(text string) (values []string, size int, ok bool) {
	dec := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowInvalidUTF8(true))
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

// sameValues checks that a row has these values, also as texts, numbers and addresses, and their content, however it was
// read.
func sameValues(t *testing.T, row rowjson.Row, want []string) {
	t.Helper()
	require.Equal(t, decoded(t, "["+strings.Join(want, ",")+"]"), decoded(t, string(row.JSON())))
	require.True(t, jsontext.Value(row.JSON()).IsValid())
	for i, raw := range want {
		v := row.At(i)
		require.Equal(t, raw, string(v.Raw()))
		_, timeErr := v.Time()
		addr, addrErr := v.Addr()
		if raw[0] != '"' {
			require.True(t, timeErr != nil && addrErr != nil, raw)
			var n int64
			if raw != "null" && json.Unmarshal([]byte(raw), &n) == nil {
				got, err := v.Int64()
				require.NoError(t, err)
				require.Equal(t, n, got)
			}
			continue
		}
		var text string
		require.NoError(t, json.Unmarshal([]byte(raw), &text))
		require.Equal(t, text, v.String())
		if known, err := netip.ParseAddr(text); !strings.ContainsRune(text, '\ufffd') {
			require.Equal(t, known, addr, raw)
			require.Equal(t, err == nil, addrErr == nil, raw)
		}
	}
	for i := range min(len(want), 3) {
		for _, r := range []rowjson.Row{row, row.Clone()} {
			content, value := r.Content([]byte("before"), i, nil)
			require.Equal(t, want[i], string(value.Raw()))
			require.Equal(t, "before"+contentOf(want, i), string(content))
		}
	}
}

// contentOf returns the content of a row, by which an export knows it again: its JSON without one value, white space and
// needless escapes. An invalid text stays as it is, so that rows that differ have different contents.
func contentOf(values []string, without int) string {
	values = slices.Clone(values)
	for i, raw := range values {
		if text := jsontext.Value(raw); raw[0] != '"' {
			continue
		} else if text.Canonicalize() == nil {
			values[i] = string(text)
		} else {
			values[i] = "b" + raw
		}
	}
	values[without] = ""
	return "[" + strings.Join(values, ",") + "]"
}
