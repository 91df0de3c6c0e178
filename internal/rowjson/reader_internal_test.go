package rowjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errTooLarge = errors.New("too large")

// readAll reads a response and returns each row as JSON, as it comes and as it was kept.
func readAll(body io.Reader) (rows, kept []string, err error) {
	r := NewReader(body, Config{Limit: Limit{1 << 20, errTooLarge}})
	var store Store
	for r.Next() {
		rows = append(rows, string(r.Row().JSON()))
		store.Add(r.Row())
	}
	for row := range store.All() {
		kept = append(kept, string(row.JSON()))
	}
	return rows, kept, r.Err()
}

// oneByOne gives its bytes one at a time, as a slow network does.
type oneByOne struct{ *bytes.Reader }

func (r oneByOne) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }

// Whatever bytes come: no panic; the rows are the same when they come at once and byte by byte, and when they are kept.
// What is accepted is what encoding/json reads. As JSON it is valid for every reader, also if the texts that came are
// not.
func FuzzRows(f *testing.F) {
	for _, seed := range []string{
		`{"query":{"limit":1},"columns":[{"name":"a"},{"name":"b"}],"rows":[["x",1],[null,-1.5e3]],"total_results":2}`,
		`{"rows":[["x"]],"columns":[{"name":"a"}],"total_results":1}`,
		`{"columns":[{"name":"a"}],"rows":[[[1]]],"total_results":1}`,
		`{"columns":[{"name":"a"},{"name":"a"}],"rows":[null],"total_results":1e400}`,
		`{"columns":[{"name":"a"}],"rows":[["\ud800\"\\"]],"total_results":1,"x":{}} `,
		`{"columns":[],"rows":[[]],"total_results":0}x`,
		"{\"columns\":[{\"name\":\"\xff\"}]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		rows, kept, err := readAll(bytes.NewReader(body))
		slowly, keptSlowly, slowErr := readAll(oneByOne{bytes.NewReader(body)})
		assert.Equal(t, err == nil, slowErr == nil, "%v, %v", err, slowErr)
		if err != nil {
			return
		}
		require.Equal(t, rows, slowly)
		require.Equal(t, rows, kept)
		require.Equal(t, rows, keptSlowly)

		var want struct {
			Rows []jsontext.Value `json:"rows"`
		}
		dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		require.NoError(t, jsonv2.UnmarshalDecode(dec, &want)) // names are exact in version 2
		for i, row := range want.Rows {
			require.True(t, jsontext.Value(rows[i]).IsValid(), "%q", rows[i])
			assert.Equal(t, decoded(t, string(row)), decoded(t, rows[i]))
			var cells []json.RawMessage
			require.NoError(t, json.Unmarshal(row, &cells))
			for _, cell := range cells {
				checkValue(t, cell, rows[i])
			}
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

// checkValue reads a cell in every way; as a text and as a number it is what encoding/json makes of it.
func checkValue(t *testing.T, cell json.RawMessage, row string) {
	t.Helper()
	var scan rowScan
	only := []byte("[" + string(cell) + "]")
	require.Equal(t, len(only), scan.scan(only), row)
	v := valueAt(only, scan.marks, 0)
	_, _ = v.Time()
	_, _ = v.Addr()
	var text string
	if !v.IsNull() && json.Unmarshal(cell, &text) == nil {
		assert.Equal(t, text, v.String(), row)
	}
	var n int64
	if !v.IsNull() && json.Unmarshal(cell, &n) == nil {
		got, err := v.Int64()
		require.NoError(t, err, row)
		assert.Equal(t, n, got)
	}
	var f float64
	if !v.IsNull() && json.Unmarshal(cell, &f) == nil {
		got, err := v.Float64()
		require.NoError(t, err, row)
		assert.InDelta(t, f, got, 0)
	}
}
