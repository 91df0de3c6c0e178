package rowjson_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// Bytes that are not UTF-8 and halves of surrogate pairs in the texts of rows are replaced. The place of the rows
// in the response makes no difference.
func TestBrokenTextsOfRows(t *testing.T) {
	t.Parallel()
	const (
		columns = `"columns":[{"name":"a"},{"name":"b"}]`
		total   = `"total_results":3`
	)
	rows := `"rows":[["/a` + "\xff\xfe" + `","\ud800\n"],["ü` + "\ufffd" + `","\ufffd"],[1,"` + strings.Repeat("x", 40<<10) + "\xc3" + `"]]`
	long := strings.Repeat("x", 40<<10)
	for name, body := range map[string]string{
		"as documented": "{" + columns + "," + rows + "," + total + "}",
		"rows first":    "{" + rows + "," + total + "," + columns + "}",
		"in between":    `{"new":[{}],` + rows + " ,\n" + columns + "," + total + `,"last":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, from := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body))} {
				r, store := readerOf(from, 1<<20), rowjson.Store{}
				r.ReadAll(&store)
				require.NoError(t, r.Err())
				assert.Equal(t, int64(3), r.Total())
				var got []string
				for row := range store.All() {
					for i := range row.Len() {
						got = append(got, row.At(i).String())
					}
					assert.True(t, jsontext.Value(row.JSON()).IsValid())
				}
				assert.Equal(t, []string{"/a\ufffd\ufffd", "\ufffd\n", "ü\ufffd", "\ufffd", "1", long + "\ufffd"}, got)
			}
		})
	}
}

// Invalid bytes outside of the texts of rows stay an error, and so do all other defects of such texts.
func TestOnlyTextsOfRowsMayBeBroken(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"columns":[{"name":"` + "\xff" + `"}],"rows":[[1]],"total_results":1}`,
		`{"columns":[{"name":"\ud800"}],"rows":[[1]],"total_results":1}`,
		`{"query":{"filters":"` + "\xff" + `"},"columns":[{"name":"a"}],"rows":[[1]],"total_results":1}`,
		`{"columns":[{"name":"a"}],"rows":[[1]],"total_results":1,"new":"` + "\xff" + `"}`,
		`{"rows":[["` + "\xff" + `"]],"columns":[{"name":"` + "\xff" + `"}],"total_results":1}`,
		`{"rows":[["` + "\xff" + `"]],"columns":[{"name":"a"}],"total_results":1,"` + "\xff" + `":1}`,
		`{"columns":[{"name":"a"}],"rows":[[` + "\xff" + `]],"total_results":1}`,
		`{"columns":[{"name":"a"}],"rows":[["` + "\xff\x01" + `"]],"total_results":1}`,
		`{"columns":[{"name":"a"}],"rows":[["` + "\xff" + `\x"]],"total_results":1}`,
		`{"columns":[{"name":"a"}],"rows":[["\ud80"]],"total_results":1}`,
		`{"columns":[{"name":"a"}],"rows":[["` + "\xff" + `",01]],"total_results":1}`,
		`{"columns":[{"name":"a"}],"rows":[["` + "\xff",
		`{"columns":[{"name":"a"}],"rows":[["\ud8`,
		`{"rows":[["` + "\xff" + `",01]],"columns":[{"name":"a"},{"name":"b"}],"total_results":1}`,
		`{"rows":[["` + "\xff" + `"]}],"columns":[{"name":"a"}],"total_results":1}`,
		`{"rows":[["` + "\xff" + `"]]:1,"columns":[{"name":"a"}],"total_results":1}`,
		`{"rows":[["` + "\xff",
	} {
		r := newReader(body, 1<<20)
		r.ReadAll(nil)
		require.Error(t, r.Err(), "%q", body)
		assert.True(t, utf8.ValidString(r.Err().Error()), "%q", r.Err())
	}
}
