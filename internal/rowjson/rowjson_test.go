package rowjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

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
	return rowjson.NewReader(strings.NewReader(body), rowjson.Config{Limit: rowjson.Limit{Bytes: limit, Err: errTooLarge}, Redactor: wordRedactor{}})
}

// rowsOf reads a response to its end.
func rowsOf(r *rowjson.Reader) (rows []string) {
	for r.Next() {
		rows = append(rows, string(r.Row().JSON()))
	}
	return rows
}

// one returns the first row of a response with these columns.
func one(t *testing.T, columns, row string) rowjson.Row {
	t.Helper()
	r := newReader(`{"columns":[`+columns+`],"rows":[`+row+`],"total_results":1}`, 1<<20)
	require.True(t, r.Next(), r.Err())
	return r.Row()
}

// valueOf returns a value as that of a row.
func valueOf(t *testing.T, json string) rowjson.Value {
	t.Helper()
	return one(t, `{"name":"a"}`, "["+json+"]").At(0)
}

func TestReaderTakesMembersInAnyOrder(t *testing.T) {
	t.Parallel()
	const (
		columns = `"columns":[{"name":"a"},{"name":"b","type":"int"}]`
		rows    = `"rows":[["x",1],["y",null]]`
		total   = `"total_results":7`
		query   = `"query":{"limit":2}`
	)
	for _, body := range []string{
		"{" + columns + "," + rows + "," + total + "," + query + "}",
		"{" + query + "," + total + "," + rows + "," + columns + "}",
		"{" + rows + `,"new":{"rows":[[1]],"rows":[]},` + total + "," + columns + "," + query + "} ",
		`{"columns":null,"rows":null,` + columns + "," + query + `,"Rows":[],"code":0,` + rows + "," + total + "}",
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			var echo struct {
				Limit int `json:"limit"`
			}
			r := rowjson.NewReader(strings.NewReader(body), rowjson.Config{Limit: rowjson.Limit{Bytes: 1 << 20, Err: errTooLarge}, Query: &echo})
			assert.Equal(t, int64(-1), r.Total())
			assert.Equal(t, []string{`["x",1]`, `["y",null]`}, rowsOf(r))
			require.NoError(t, r.Err())
			assert.False(t, r.Next())
			assert.Equal(t, []string{"a", "b"}, r.Columns())
			assert.Equal(t, int64(2), r.Count())
			assert.Equal(t, int64(7), r.Total())
			assert.Equal(t, 2, echo.Limit)
			assert.Equal(t, 0, r.EnvelopeCode())
		})
	}
}

func TestReaderRefusesWhatIsNoResult(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                           "unexpected EOF",
		`[]`:                         "[ where { should be",
		`{}`:                         "no columns",
		`{"columns":[]}`:             "no rows",
		`{"columns":[],"rows":[]}`:   "no total_results",
		`{"columns":[],"rows":7}`:    "rows is no array",
		`{"columns":[],"columns":[]`: "duplicate member columns",
		`{"rows":7,"columns":[],"total_results":0}`:                                    "rows is no array",
		`{"columns":[{}],"rows":[]}`:                                                   "column 0 has no name",
		`{"columns":[{"name":"a"},{"name":"a"}]}`:                                      `column "a" comes twice`,
		`{"columns":{"name":"a"}}`:                                                     `columns is {"name":"a"}`,
		`{"columns":[{"name":"a"}],"rows":[[1,2]]}`:                                    "row 1 has 2 values, and there are 1 columns",
		`{"columns":[{"name":"a"}],"rows":[[1] [2]]}`:                                  `'[' behind row 1`,
		`{"columns":[{"name":"a"}],"rows":[[1],2]}`:                                    "row 2 is no array",
		`{"columns":[{"name":"a"}],"rows":[[{}]]}`:                                     "row 1 holds a value that is neither",
		`{"columns":[{"name":"a"}],"rows":[[01]]}`:                                     "row 1 is no JSON",
		`{"columns":[{"name":"a"}],"rows":[[1]`:                                        "unexpected EOF",
		`{"columns":[{"name":"a"}],"rows":[[1]],"total_results":-1}`:                   "total_results is -1",
		`{"columns":[{"name":"a"}],"rows":[[1]],"total_results":1}}`:                   "bytes after the rows",
		`{"rows":[],"columns":[],"total_results":1}1`:                                  "bytes after the response",
		`{"columns":[{"name":"a"}],"rows":[[1]]:1}`:                                    "bytes after the rows",
		`{"columns":[],"rows":[],"total_results":0,"secret` + strings.Repeat("x", 200): "unexpected EOF",
		`{"secret":{"a":x}}`:                                                           "invalid character 'x'",
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			r := newReader(body, 1<<20)
			rowsOf(r)
			require.ErrorContains(t, r.Err(), want)
			assert.NotContains(t, r.Err().Error(), "secret", "no names of members")
			assert.False(t, r.Next())
		})
	}
}

func TestEnvelopesInPlaceOfAResult(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		certain, code int
		words         string
	}{
		`{"code":503,"description":"later"}`:                                          {503, 503, "later"},
		`{"CODE":"400","code":503,"message":"later"}`:                                 {503, 503, "later"},
		`{"code":503,"error_info":{"message":"later"}`:                                {-1, 503, "later"},
		`{"code":503,"rows":null`:                                                     {-1, 503, ""},
		`{"code":503,"rows":`:                                                         {503, 503, ""},
		`{"code":{"x":503},"columns":[],"rows":[],"total_results":0}`:                 {0, 0, ""},
		`{"columns":[],"rows":[],"total_results":0,"code":503,"description":"after"}`: {503, 503, "after"},
		`{"description":"` + strings.Repeat("x", 64<<10) + `"}`:                       {0, 0, ""},
	} {
		t.Run(body[:min(len(body), 80)], func(t *testing.T) {
			t.Parallel()
			r := newReader(body, 1<<20)
			rowsOf(r)
			code, words := r.Envelope()
			assert.Equal(t, want.certain, r.EnvelopeCode())
			assert.Equal(t, want.code, code)
			assert.Equal(t, want.words, words)
		})
	}
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
				r := rowjson.NewReader(source, rowjson.Config{Limit: rowjson.Limit{Bytes: limit, Err: errTooLarge}})
				rowsOf(r)
				if tt.fits {
					require.NoError(t, r.Err())
				} else {
					require.ErrorIs(t, r.Err(), errTooLarge)
				}
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
					r := rowjson.NewReader(slowly(strings.NewReader(exact+spoilt)), rowjson.Config{Limit: rowjson.Limit{Bytes: limit, Err: errTooLarge}})
					rowsOf(r)
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
		source := io.MultiReader(strings.NewReader(whole[:end]), iotest.ErrReader(assert.AnError))
		r := rowjson.NewReader(source, rowjson.Config{Limit: rowjson.Limit{Bytes: 1000, Err: errTooLarge}})
		rowsOf(r)
		require.ErrorIs(t, r.Err(), assert.AnError, whole[:end])
		cut := newReader(whole[:end], 1000)
		rowsOf(cut)
		require.ErrorIs(t, cut.Err(), io.ErrUnexpectedEOF, whole[:end])
	}
	silent := rowjson.NewReader(io.MultiReader(strings.NewReader(whole[:35]), stuck{}), rowjson.Config{Limit: rowjson.Limit{Bytes: 1000}})
	rowsOf(silent)
	require.ErrorIs(t, silent.Err(), io.ErrNoProgress)
}

// stuck returns nothing, forever.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestKeptRowsStayValid(t *testing.T) {
	t.Parallel()
	const count = 50_000 // several blocks
	var body strings.Builder
	body.WriteString(`{"columns":[{"name":"a"},{"name":"b"}],"rows":[`)
	for i := range count {
		if i > 0 {
			body.WriteString(" , ")
		}
		fmt.Fprintf(&body, `["text %d", %d ]`, i, i)
	}
	body.WriteString(`],"total_results":50000}`)
	r := newReader(body.String(), 1000)
	var store rowjson.Store
	var clone rowjson.Row
	for r.Next() {
		if r.Count() == 7 {
			clone = r.Row().Clone()
		}
		store.Add(r.Row())
	}
	require.NoError(t, r.Err())
	assert.Equal(t, `["text 6",6]`, string(clone.JSON()))
	i := 0
	for row := range store.All() {
		if want := fmt.Sprintf(`["text %d",%d]`, i, i); string(row.JSON()) != want {
			t.Fatal(string(row.JSON()), want)
		}
		i++
	}
	assert.Equal(t, count, i)
	for row := range store.All() {
		if row.At(1).String() == "0" {
			continue // the first one begins where its block does
		}
		var again rowjson.Store
		again.Add(row.Clone())
		again.Add(row)
		for same := range again.All() {
			assert.Equal(t, row.JSON(), same.JSON())
		}
		break
	}
}

func TestValuesReadAsTheirTypes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)
	for text, want := range map[string]any{
		`9007199254740993`: int64(9007199254740993), `"-5"`: int64(-5), `0`: int64(0),
		`1e3`: 1000.0, `"0.5"`: 0.5, `-0.25`: -0.25,
		`"2026-11-20T08:30:00"`: at, `"2026-11-20 08:30:00Z"`: at, `"2026-11-20T08:30:00\u005a"`: at,
		`"192.0.2.1"`: netip.MustParseAddr("192.0.2.1"), `"2001:db8::1"`: netip.MustParseAddr("2001:db8::1"), `"192.0.2.\u0031"`: netip.MustParseAddr("192.0.2.1"),
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			v := valueOf(t, text)
			readings := map[string]func() (any, error){
				"int64":   func() (any, error) { return v.Int64() },
				"float64": func() (any, error) { return v.Float64() },
				"Time":    func() (any, error) { return v.Time() },
				"Addr":    func() (any, error) { return v.Addr() },
			}
			for name, read := range readings {
				got, err := read()
				switch {
				case strings.HasSuffix(fmt.Sprintf("%T", want), name):
					require.NoError(t, err)
					assert.Equal(t, want, got)
				case name != "float64": // which also reads whole numbers
					require.ErrorContains(t, err, " is no ")
				}
			}
		})
	}
	for _, text := range []string{`null`, `true`, `"+5"`, `"05"`, `" 5"`, `"NaN"`, `"0x5"`, `"5_0"`, `1e400`, `"secret"`} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			v := valueOf(t, text)
			_, err := v.Int64()
			require.Error(t, err)
			_, err = v.Float64()
			require.Error(t, err)
		})
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

type everything struct {
	Text    string          `column:"text"`
	Bool    bool            `column:"bool"`
	Int8    int8            `column:"int"`
	Int64   int64           `column:"int"`
	Uint16  uint16          `column:"int"`
	Float32 float32         `column:"float"`
	Time    time.Time       `column:"time"`
	Addr    netip.Addr      `column:"addr"`
	Prefix  netip.Prefix    `column:"prefix"`
	Number  json.Number     `column:"float"`
	Kept    kept            `column:"text"`
	Pointer *int            `column:"int"`
	Null    **string        `column:"null"`
	Custom  *netip.AddrPort `column:"port"`
	Other   string
}

const (
	everyColumn = `{"name":"text"},{"name":"bool"},{"name":"int"},{"name":"float"},{"name":"time"},{"name":"addr"},{"name":"prefix"},{"name":"null"},{"name":"port"}`
	everyValue  = `["te\"xt","true",-5,2.5,"2026-11-20T08:30:00","192.0.2.1","192.0.2.0/24",null,"192.0.2.1:80"]`
)

func TestTargetStoresRowsIntoAStruct(t *testing.T) {
	t.Parallel()
	var got everything
	target, err := fields.Target(&got)
	require.NoError(t, err)
	require.Nil(t, target.Store(one(t, everyColumn, strings.Replace(everyValue, "-5", "5", 1))))
	five, port := 5, netip.MustParseAddrPort("192.0.2.1:80")
	want := everything{
		Text: `te"xt`, Bool: true, Int8: 5, Int64: 5, Uint16: 5, Float32: 2.5, Time: time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC),
		Addr: netip.MustParseAddr("192.0.2.1"), Prefix: netip.MustParsePrefix("192.0.2.0/24"), Number: "2.5", Kept: got.Kept, Pointer: &five, Custom: &port,
	}
	assert.Equal(t, want, got)
	assert.Equal(t, `"te\"xt"`, string(got.Kept.value.Raw()))
	assert.Nil(t, fields.Names(reflect.TypeFor[int](), ""))
	assert.Equal(t, []string{"text", "bool", "float", "time", "addr", "prefix", "null", "port"}, fields.Names(reflect.TypeFor[everything](), "int"))
	assert.Nil(t, fields.Names(reflect.TypeFor[struct {
		Int int `column:"int"`
	}](), "int"))

	wrong := target.Store(one(t, everyColumn, everyValue))
	require.NotNil(t, wrong)
	assert.Equal(t, "int", wrong.Column, "no uint")
	assert.Equal(t, "-5", wrong.Value)
}

func TestErrorsOfColumnsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	var got struct {
		N int `column:"a"`
	}
	row := one(t, `{"name":"a"}`, `["the secret"]`)
	target, err := fields.Target(&got)
	require.NoError(t, err)
	wrong := target.Store(row)
	require.NotNil(t, wrong)
	assert.Equal(t, `"the [redacted]"`, wrong.Value)
	assert.NotContains(t, wrong.Error(), "secret")
	assert.Equal(t, wrong.Err, errors.Unwrap(wrong))

	null := one(t, `{"name":"a"}`, `[null]`)
	require.ErrorContains(t, target.Store(null), "null does not fit; make the field a pointer")
}

func TestTargetsThatCannotBe(t *testing.T) {
	t.Parallel()
	row := one(t, `{"name":"a"}`, `[1]`)
	for _, tt := range []struct {
		target any
		want   string
	}{
		{new(int), "int is no struct with column tags"},
		{new(struct{ A int }), "is no struct with column tags"},
		{new(struct {
			B int `column:"b"`
		}), `column "b": there is no such column`},
		{new(struct {
			a int `column:"a"`
		}), "cannot set field a of"},
		{new(struct {
			A []int `column:"a"`
		}), "cannot read into field A of"},
		{new(struct {
			A *chan int `column:"a"`
		}), "cannot read into field A of"},
	} {
		target, err := fields.Target(tt.target)
		if err == nil {
			for _, row := range []rowjson.Row{row, {}} { // the zero Row has no columns
				missing := target.Store(row)
				require.ErrorContains(t, missing, tt.want)
				assert.Empty(t, missing.Value)
			}
			continue
		}
		require.ErrorContains(t, err, tt.want)
		assert.NotContains(t, tt.want, "no such column")
	}
}

// The content of a row is that of its values, however they are written; texts, numbers and null differ.
func TestContentOfRows(t *testing.T) {
	t.Parallel()
	content := func(row string) string {
		reader := rowjson.NewReader(strings.NewReader(`{"columns":[{"name":"a"},{"name":"b"}],"rows":[`+row+`],"total_results":1}`), rowjson.Config{
			Limit: rowjson.Limit{Bytes: 1 << 20},
		})
		require.True(t, reader.Next(), row)
		return string(reader.Row().AppendContent([]byte("before"), -1))
	}
	assert.Equal(t, content(`["a/b",1]`), content(` [ "\u0061\/b" , 1 ] `))
	known := map[string]string{}
	for _, row := range []string{
		`["a","bc"]`, `["ab","c"]`, `["",""]`, `["",null]`, `[null,""]`, `["1",1]`, `[1,"1"]`, `[1,1]`, `[true,1]`, `["true",1]`,
		"[\"/\xff\",1]", "[\"/\xfe\",1]", `["/\ud800",1]`, `["/\ufffd",1]`,
	} {
		assert.True(t, strings.HasPrefix(content(row), "before"))
		assert.NotContains(t, known, content(row), row)
		known[content(row)] = row
	}
}

// ReadAll reads to the end of the response. It keeps the rows only if it gets a Store.
func TestReadAll(t *testing.T) {
	t.Parallel()
	const whole = `{"columns":[{"name":"a"}],"rows":[[1],["x"]],"total_results":2}`
	kept := new(rowjson.Store)
	for _, store := range []*rowjson.Store{nil, kept} {
		r := newReader(whole, 1000)
		r.ReadAll(store)
		require.NoError(t, r.Err())
		assert.Equal(t, int64(2), r.Count())
		assert.Equal(t, int64(2), r.Total())
	}
	var rows []string
	for row := range kept.All() {
		rows = append(rows, string(row.JSON()))
	}
	assert.Equal(t, []string{`[1]`, `["x"]`}, rows)

	broken := newReader(whole[:45], 1000)
	broken.ReadAll(nil)
	require.Error(t, broken.Err())
}
