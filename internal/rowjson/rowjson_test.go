package rowjson_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// wordRedactor redacts the word "secret", as an example.
type wordRedactor struct{}

func (wordRedactor) Excerpt(text []byte, most int) []byte {
	shown := bytes.ReplaceAll(text, []byte("secret"), []byte("[redacted]"))
	return shown[:min(len(shown), most)]
}

func (r wordRedactor) Error(err error) error {
	return errors.New(string(r.Excerpt([]byte(err.Error()), math.MaxInt)))
}

var errTooLarge = errors.New("too large")

func newReader(body string, limit int64) *rowjson.Reader {
	return readerOf(strings.NewReader(body), limit)
}

func readerOf(body io.Reader, limit int64) *rowjson.Reader {
	return rowjson.NewReader(body, rowjson.Config{Limit: rowjson.Limit{Bytes: limit, Err: errTooLarge}, Redactor: wordRedactor{}})
}

// one returns a row of one column, a.
func one(t *testing.T, row string) rowjson.Row {
	t.Helper()
	r := newReader(`{"columns":[{"name":"a"}],"rows":[`+row+`],"total_results":1}`, 1<<20)
	require.True(t, r.Next(), r.Err())
	return r.Row()
}

// valueOf returns a value as that of a row.
func valueOf(t *testing.T, json string) rowjson.Value {
	t.Helper()
	return one(t, "["+json+"]").At(0)
}

func TestTheLimitIsThatOfOneRowAndOfEverythingElse(t *testing.T) {
	t.Parallel()
	const limit = 1000
	many := strings.TrimSuffix(strings.Repeat("[1],", 10*limit), ",")
	body := func(before, rows, after string) string {
		return `{` + before + `"columns":[{"name":"a"}],"rows":[` + rows + `],` + after + `"total_results":0}`
	}
	other := `"x":"` + strings.Repeat("x", limit/2) + `",`
	for name, tt := range map[string]struct {
		body string
		fits bool
	}{
		"many rows":             {body("", many, ""), true},
		"a long row":            {body("", `["`+strings.Repeat("x", limit-4)+`"]`, ""), true},
		"a longer row":          {body("", `["`+strings.Repeat("x", limit-3)+`"]`, ""), false},
		"others before":         {body(other, many, ""), true},
		"others behind":         {body("", many, other), true},
		"others on both sides":  {body(other, many, other), false},
		"others before, larger": {body(other+other, many, ""), false},
		"rows before columns":   {`{"rows":[` + many + `],"columns":[{"name":"a"}],"total_results":0}`, false},
		"blanks between rows":   {body("", "[1]"+strings.Repeat(" ", 2*limit)+",[1]", ""), false},
		"some blanks in a row":  {body("", "[1"+strings.Repeat(" ", limit/2)+"]", ""), true},
		"many blanks in a row":  {body("", "[1"+strings.Repeat(" ", limit)+"]", ""), false},
		"others behind, larger": {body("", many, other+other), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, source := range []io.Reader{strings.NewReader(tt.body), iotest.OneByteReader(strings.NewReader(tt.body))} {
				r := readerOf(source, limit)
				r.ReadAll(nil)
				assert.Equal(t, !tt.fits, errors.Is(r.Err(), errTooLarge), r.Err())
				assert.Equal(t, tt.fits, r.Err() == nil)
			}
		})
	}
}

// A response of exactly the limit is read, whatever it contains. One byte more is too much, even a blank at the end.
func TestTheLimitIsExact(t *testing.T) {
	t.Parallel()
	const limit = 200
	for name, body := range map[string]string{
		"without rows":  `{"x":"","columns":[{"name":"a"}],"rows":[],"total_results":0}`,
		"rows first":    `{"x":"","rows":[[1]],"columns":[{"name":"a"}],"total_results":1}`,
		"without a row": `{"x":""}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exact := strings.Replace(body, `""`, `"`+strings.Repeat("x", limit-len(body))+`"`, 1)
			for _, slowly := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader} {
				for _, spoilt := range []string{"", " ", "x"} {
					r := readerOf(slowly(strings.NewReader(exact+spoilt)), limit)
					r.ReadAll(nil)
					assert.Equal(t, spoilt != "", errors.Is(r.Err(), errTooLarge), "%q: %v", spoilt, r.Err())
				}
			}
		})
	}
}

func TestErrorsOfTheSourceArrive(t *testing.T) {
	t.Parallel()
	const whole = `{"columns":[{"name":"a"}],"rows":[[1],[2]],"total_results":2}`
	for end := range len(whole) {
		for source, want := range map[io.Reader]error{iotest.ErrReader(assert.AnError): assert.AnError, strings.NewReader(""): io.ErrUnexpectedEOF} {
			r := readerOf(io.MultiReader(strings.NewReader(whole[:end]), source), 1000)
			r.ReadAll(nil)
			require.ErrorIs(t, r.Err(), want, whole[:end])
		}
	}
	silent := readerOf(io.MultiReader(strings.NewReader(whole[:35]), stuck{}), 1000)
	silent.ReadAll(nil)
	require.ErrorIs(t, silent.Err(), io.ErrNoProgress)
}

// stuck returns nothing, forever.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestKeptRowsStayValid(t *testing.T) {
	t.Parallel()
	const count = 50_000 // several blocks
	rows := make([]string, count)
	for i := range rows {
		rows[i] = fmt.Sprintf(`["text %d", %d ]`, i, i)
	}
	r := newReader(`{"columns":[{"name":"a"},{"name":"b"}],"rows":[`+strings.Join(rows, " , ")+`],"total_results":50000}`, 1000)
	var store, again rowjson.Store
	for r.Next() {
		if store.Add(r.Row()); r.Count() == 7 {
			again.Add(r.Row().Clone())
		}
	}
	require.NoError(t, r.Err())
	i := 0
	for row := range store.All() {
		if want := fmt.Sprintf(`["text %d",%d]`, i, i); string(row.JSON()) != want {
			t.Fatal(string(row.JSON()), want)
		}
		if i == 6 { // which does not begin where its block does
			again.Add(row.Clone())
			again.Add(row)
		}
		i++
	}
	assert.Equal(t, count, i)
	for row := range again.All() {
		assert.Equal(t, `["text 6",6]`, string(row.JSON()))
	}
}

// kept is a type of the package's user that keeps a whole Value.
type kept struct{ value rowjson.Value }

var fields = rowjson.Fields{Tag: "column", Value: func(pointer any) *rowjson.Value {
	if k, ok := pointer.(*kept); ok {
		return &k.value
	}
	return nil
}}

func TestErrorsOfColumnsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	var got struct {
		N int `column:"a"`
	}
	row := one(t, `["the secret"]`)
	target, err := fields.Target(&got)
	require.NoError(t, err)
	wrong := target.Store(row)
	require.NotNil(t, wrong)
	assert.Equal(t, `"the [redacted]"`, wrong.Value)
	assert.NotContains(t, wrong.Err.Error(), "secret")

	null := one(t, `[null]`)
	require.ErrorContains(t, target.Store(null).Err, "null does not fit; make the field a pointer")
}

// The content of a row is its JSON without one value, white space and needless escapes, whether the row was written into
// a struct or not.
func TestContentOfRows(t *testing.T) {
	t.Parallel()
	content := func(row string, without int) string {
		var contents []string
		for _, write := range []bool{false, true} {
			reader := newReader(`{"columns":[{"name":"a"},{"name":"b"}],"rows":[["x",0],`+row+`],"total_results":2}`, 1<<20)
			var into struct {
				A *string `column:"a"`
			}
			target, err := fields.Target(&into)
			require.NoError(t, err)
			for range 2 {
				require.True(t, reader.Next(), row)
				if write {
					target.Store(reader.Row())
				}
			}
			b, value := reader.Row().Content([]byte("before"), without, nil)
			assert.JSONEq(t, string(reader.Row().At(without).JSON()), string(value.JSON()))
			contents = append(contents, string(b))
		}
		assert.Equal(t, contents[0], contents[1], row)
		return contents[0]
	}
	for _, tc := range []struct {
		row     string
		without int
		want    string
	}{
		{`["a/b",1]`, 0, `[,1]`},
		{`["a/b",1]`, 1, `["a/b",]`},
		{` [ "\u0061\/b" , 1 ] `, 1, `["a/b",]`},
		{`[-12.5,1]`, 1, `[-12.5,]`},
		{`[12,"a"]`, 0, `[,"a"]`},
		{`["a\"b\u0001",1]`, 1, `["a\"b\u0001",]`},
		{`[null,true]`, 1, `[null,]`},
		{`["é",1]`, 1, `["é",]`},
	} {
		assert.Equal(t, "before"+tc.want, content(tc.row, tc.without), tc.row)
	}
	known := map[string]string{}
	for _, value := range []string{`"a"`, `""`, `null`, `"null"`, `1`, `"1"`, `true`, `"true"`, "\"/\xff\"", "\"/\xfe\"", `"/\ud800"`, `"/\ufffd"`} {
		got := content("["+value+",1]", 1)
		assert.NotContains(t, known, got, value)
		known[got] = value
	}
}
