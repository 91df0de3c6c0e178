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
				r := rowjson.NewReader(from, rowjson.Config{Limit: rowjson.Limit{Bytes: 1 << 20, Err: errTooLarge}})
				var store rowjson.Store
				for r.Next() {
					store.Add(r.Row())
				}
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
		rowsOf(r)
		require.Error(t, r.Err(), "%q", body)
		assert.True(t, utf8.ValidString(r.Err().Error()), "%q", r.Err())
	}
}

func TestValuesOfBrokenTexts(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]struct{ text, json string }{
		"\"\xff\"":                 {"\ufffd", "\"\ufffd\""},
		"\"a\xf0\x9f\x98b\"":       {"a\ufffd\ufffd\ufffdb", "\"a\ufffd\ufffd\ufffdb\""},
		`"\ud800"`:                 {"\ufffd", "\"\ufffd\""},
		`"\udc00\ud800\u0041\/"`:   {"\ufffd\ufffdA/", "\"\ufffd\ufffdA/\""},
		"\"\\\"\xff\"":             {"\"\ufffd", "\"\\\"\ufffd\""},
		"\"\ufffd\\ufffd ü\"":      {"\ufffd\ufffd ü", "\"\ufffd\\ufffd ü\""},
		"\"2026-11-20T08:30\xff\"": {"2026-11-20T08:30\ufffd", "\"2026-11-20T08:30\ufffd\""},
	} {
		v := valueOf(t, raw)
		assert.Equal(t, want.text, v.String())
		assert.Equal(t, want.json, string(v.JSON()))
		assert.Equal(t, raw, string(v.Raw()), "as it came")
		_, err := v.Time()
		require.Error(t, err)
		_, err = v.Addr()
		require.Error(t, err)

		var got struct {
			First  string   `column:"a"`
			Second string   `column:"a"`
			Own    ownBytes `column:"a"`
		}
		row := one(t, `{"name":"a"}`, "["+raw+"]").Clone()
		target, err := fields.Target(&got)
		require.NoError(t, err)
		for range 2 { // the second time from what is kept of the column
			require.Nil(t, target.Store(row))
			assert.Equal(t, []string{want.text, want.text, want.text}, []string{got.First, got.Second, string(got.Own)})
		}
	}
}

type ownBytes string

func (o *ownBytes) UnmarshalText(text []byte) error {
	*o = ownBytes(text)
	return nil
}

// A Target follows the columns of the rows, and says which one is missing.
func TestTargetFollowsTheColumns(t *testing.T) {
	t.Parallel()
	var got struct {
		A int `column:"a"`
		B int `column:"b"`
	}
	target, err := fields.Target(&got)
	require.NoError(t, err)
	require.Nil(t, target.Store(one(t, `{"name":"a"},{"name":"b"}`, `[1,2]`)))
	assert.Equal(t, []int{1, 2}, []int{got.A, got.B})
	require.Nil(t, target.Store(one(t, `{"name":"b"},{"name":"c"},{"name":"a"}`, `[3,null,4]`)))
	assert.Equal(t, []int{4, 3}, []int{got.A, got.B})
	for range 2 {
		missing := target.Store(one(t, `{"name":"a"}`, `[5]`))
		require.NotNil(t, missing)
		assert.Equal(t, "b", missing.Column)
	}
	require.NotNil(t, target.Store(rowjson.Row{}))
	require.Nil(t, target.Store(one(t, `{"name":"a"},{"name":"b"}`, `[6,7]`)))
}
