package rowjson_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// whole keeps a whole Value, as the Value of the SDK does.
type whole struct{ value rowjson.Value }

var fields = rowjson.Fields{Tag: "column", Value: func(pointer any) *rowjson.Value {
	if w, ok := pointer.(*whole); ok {
		return &w.value
	}
	return nil
}}

// Unmarshalers as callers write them. ownMemory adds to what it holds, ownAppend writes over the text that it gets and
// behind it, and ownHex rejects most texts.
type (
	word      string
	small     int16
	ownMemory []byte
	ownAppend string
	ownHex    uint32
)

func (o *ownMemory) UnmarshalText(text []byte) error {
	*o = append(*o, text...)
	return nil
}

func (o *ownAppend) UnmarshalText(text []byte) error {
	*o = ownAppend(text)
	_ = append(append(text[:0], make([]byte, len(text))...), "[,,,,,,,,,,,,]"...)
	return nil
}

func (o *ownHex) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 32)
	*o = ownHex(n)
	return err
}

var fieldTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[int64](), reflect.TypeFor[time.Time](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[uint8](),
	reflect.TypeFor[*string](), reflect.TypeFor[float64](), reflect.TypeFor[bool](), reflect.TypeFor[json.Number](), reflect.TypeFor[*netip.Addr](),
	reflect.TypeFor[netip.Prefix](), reflect.TypeFor[int16](), reflect.TypeFor[uint64](), reflect.TypeFor[int](), reflect.TypeFor[int8](),
	reflect.TypeFor[int32](), reflect.TypeFor[uint](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uintptr](),
	reflect.TypeFor[float32](), reflect.TypeFor[whole](), reflect.TypeFor[***word](), reflect.TypeFor[*int](), reflect.TypeFor[**time.Time](),
	reflect.TypeFor[small](), reflect.TypeFor[netip.AddrPort](), reflect.TypeFor[big.Int](), reflect.TypeFor[ownMemory](), reflect.TypeFor[ownAppend](),
	reflect.TypeFor[*ownHex](),
}

// shapeOf returns a struct with fields for the first and most other columns, two for some. The choice of their types starts
// with kind; from 200 on, all are integers.
func shapeOf(columns int, kind uint8) reflect.Type {
	var all []reflect.StructField
	for i := range columns {
		typ := fieldTypes[(i*7+int(kind))%len(fieldTypes)]
		if kind >= 200 {
			typ = reflect.TypeFor[int64]()
		}
		for range max(1-i, []int{1, 1, 2, 0}[(i+int(kind))%4]) {
			tag := reflect.StructTag(fmt.Sprintf(`column:"%d"`, i))
			all = append(all, reflect.StructField{Name: "F" + strconv.Itoa(len(all)), Type: typ, Tag: tag})
			typ = reflect.TypeFor[string]()
		}
	}
	return reflect.StructOf(all)
}

// columnOf returns the index of the column of a field.
func columnOf(f reflect.StructField) int {
	i, _ := strconv.Atoi(f.Tag.Get("column"))
	return i
}

// TestScanAgainstEncodingJSON compares what is read into structs with encoding/json: generated rows, structs with
// generated fields. The name of a subtest is its seed.
func TestScanAgainstEncodingJSON(t *testing.T) {
	t.Parallel()
	for seed := range uint64(fixture.Cases(2*len(fieldTypes), len(fieldTypes)/2)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 19))
			columns := []int{1, 2, 4, 12}[random.IntN(4)]
			shape := shapeOf(columns, uint8(seed))
			rows := rowsFor(random, shape, columns)
			for _, blanks := range []string{"", "\n\t"} {
				var texts []string
				for _, cells := range rows {
					texts = append(texts, blanks+"["+blanks+strings.Join(cells, blanks+","+blanks)+blanks+"]")
				}
				compare(t, shape, rows, columnsOf(columns)+strings.Join(texts, ",")+`],"total_results":1}`)
			}
		})
	}
}

func readerOf(body io.Reader) *rowjson.Reader {
	return rowjson.NewReader(body, rowjson.Config{Limit: rowjson.Limit{Bytes: 1 << 20, Err: errors.New("too large")}, Redactor: unchanged{}})
}

// unchanged redacts nothing.
type unchanged struct{}

func (unchanged) Excerpt(text []byte, _ int) []byte { return text }
func (unchanged) Error(err error) error             { return err }

// columnsOf returns the beginning of a response with n columns, up to its rows.
func columnsOf(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`{"name":"%d"}`, i)
	}
	return `{"columns":[` + strings.Join(names, ",") + `],"rows":[`
}

// compare reads the rows of a body into a struct, and compares each with its cells, when it comes and after the last
// one, as a caller may keep it.
func compare(t *testing.T, shape reflect.Type, rows [][]string, body string) {
	t.Helper()
	for _, arrive := range []func(io.Reader) io.Reader{iotest.DataErrReader, iotest.OneByteReader} {
		into := reflect.New(shape)
		target, err := fields.Target(into.Interface())
		require.NoError(t, err)
		r, kept := readerOf(arrive(strings.NewReader(body))), map[int]reflect.Value{}
		for i, cells := range rows {
			require.True(t, r.Next(), "%v", r.Err())
			wrong := target.Store(r.Row())
			sameRow(t, into.Elem(), cells, wrong)
			sameValues(t, r.Row(), cells)
			if wrong == nil {
				kept[i] = reflect.New(shape).Elem()
				kept[i].Set(into.Elem())
			}
		}
		require.False(t, r.Next())
		require.NoError(t, r.Err())
		for i, row := range kept {
			sameRow(t, row, rows[i], nil)
		}
	}
}

// sameRow compares a struct with the cells of its row, of which one may not fit.
func sameRow(t *testing.T, row reflect.Value, cells []string, wrong *rowjson.Misfit) {
	t.Helper()
	for i := range row.NumField() {
		f, got := row.Type().Field(i), row.Field(i).Interface()
		want, cell := reflect.New(f.Type).Elem(), cells[columnOf(f)]
		err := setWanted(want, cell)
		w, isWhole := got.(whole)
		switch {
		case wrong != nil && wrong.Field == f.Name:
			require.Error(t, err, "%v of %s", f.Type, cell)
			require.Equal(t, rowjson.Misfit{Column: f.Tag.Get("column"), Field: f.Name, Type: f.Type.String(), Value: cell, Err: wrong.Err}, *wrong)
			return
		case wrong != nil:
			continue
		case isWhole:
			require.Equal(t, cell, string(w.value.Raw()))
		case err != nil || !reflect.DeepEqual(want.Interface(), got):
			require.Fail(t, "another value", "%v, cell %s\ngot  %#v\nwant %#v, %v", f.Type, cell, got, want, err)
		}
	}
	require.Nil(t, wrong)
}

var errMisfit = errors.New("does not fit")

// setWanted sets a field to what a cell of JSON says, as encoding/json does, or returns an error. Beyond that, Scan
// documents that null fits pointers alone, that a text takes every value, that numbers may be in quotes, and the forms of
// times.
func setWanted(field reflect.Value, cell string) (err error) {
	isText, text := cell[0] == '"', cell
	if isText {
		if err = json.Unmarshal([]byte(cell), &text); err != nil {
			return err
		}
	}
	switch p := field.Addr().Interface().(type) {
	case *whole:
		return nil
	case *time.Time:
		*p, err = timestampIn(text)
		return err
	case *json.Number:
		if *p = json.Number(text); isText || text[0] > '9' { // true, false or null
			err = errMisfit
		}
		return err
	case *netip.Addr, *netip.Prefix:
		if text == "" || strings.Contains(cell, "%") && strings.ContainsRune(text, '\ufffd') { // a zone may be any text, but not a broken one
			return errMisfit
		}
	}
	own, isOwn := field.Addr().Interface().(encoding.TextUnmarshaler)
	switch {
	case field.Kind() == reflect.Pointer && cell == "null":
		return nil
	case field.Kind() == reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		return setWanted(field.Elem(), cell)
	case cell == "null":
		return errMisfit
	case isOwn:
		return own.UnmarshalText([]byte(text))
	case field.Kind() == reflect.String:
		field.SetString(text)
		return nil
	case text == "null" || text != strings.TrimSpace(text):
		return errMisfit
	default:
		return json.Unmarshal([]byte(text), field.Addr().Interface())
	}
}

// timestampIn reads a timestamp with or without a fraction and a zone, and with a blank in place of the T, or a date.
func timestampIn(text string) (at time.Time, err error) {
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02",
	} {
		if at, err = time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, err
}

// allCells are values that fit some types, hardly fit others, and do not fit the rest. Some texts are such that a careless
// comparison or hash takes them for equal.
var allCells = func() []string {
	cells := []string{
		`null`, `true`, `false`, `"true"`, `"null"`, `""`, `0`, `-0`, `"0"`, `7`, `-12`, `"7"`, `"\u0037"`, `0.5`, `"-2.5e-3"`, `0e5`, `1E+2`, `1e-7`, `16777217`,
		`9007199254740993`, `0.1000000000000000055511151231257827`, `5e-324`, `1e400`, `3.5e38`, `"+5"`, `"05"`, `" 5"`, `"5 "`, `"-"`, `".5"`, `"0x5"`, `"1_0"`,
		`"nan"`, `"1e"`, `"2026-11-20T08:30:00"`, `"2026-11-20T08:30:01.250"`, `"2026-11-21T08:30:00.000000001"`, `"2026-11-20T09:30:00+01:00"`,
		`"2026-11-20T08:30:00Z"`, `"2026-11-20T08:30:00.5Z"`, `"2026-11-20 08:30:00.5"`, `"2026-11-20"`, `"2026-11-20T08:30:00\u002e5"`, `"2024-02-29T23:59:59"`,
		`"2026-02-29T08:30:00"`, `"2026-02-29T08:30:00.250"`, `"2026-11-20T08:30"`, `"0001-01-01T00:00:00"`, `"9999-12-31T23:59:59.999999"`,
		`"192.0.2.1"`, `"255.255.255.255"`, `"192.0.2.\u0031"`, `"256.0.0.1"`, `"192.0.2.01"`, `"192.0.2.1 "`, `"::"`, `"::1"`, `"1::"`, `"1::2:3"`, `"2001:DB8::ff"`,
		`"1:2:3:4:5:6:7:8"`, `"::2:3:4:5:6:7:8"`, `"1:2:3:4:5:6:7::"`, `"::ffff:192.0.2.1"`, `"fe80::1%a%b"`, `"fe80::1%Zürich"`, "\"fe80::1%\xff\"", `"::1%"`,
		`"192.0.2.0/24"`, `"2001:db8::/32"`, `"192.0.2.0\/33"`, `"192.0.2.1:80"`, `"[2001:db8::1]:443"`, `"CN"`, `"a,b]"`, `"]]]]"`, `"\""`, `"\\"`, `"\\u0041"`,
		`"\u003c&>"`, `"\/a/b"`, "\"\x7f\"", `"ü"`, `"\u00FC"`, `"😀"`, `"\ud83d\ude00"`, `"\ud800\u0041"`, `"\udc00\ud83d\ude00"`, "\"a\xff\"", "\"\xe2\x98\"", `"\ufffd"`, `"a\u0000"`,
		`"` + strings.Repeat("longer than the buffer ", 3000) + `"`, `"` + strings.Repeat(`\"]`, 100) + `"`,
	}
	for _, bits := range []uint{7, 8, 15, 16, 31, 32, 63, 64} {
		for by := range int64(3) {
			edge := new(big.Int).Lsh(big.NewInt(1), bits)
			edge.Add(edge, big.NewInt(by-1))
			cells = append(cells, edge.String(), "-"+edge.String(), `"`+edge.String()+`"`)
		}
	}
	for n := range 70 { // of one length
		a := strings.Repeat("a", n)
		cells = append(cells, `"`+a+`bc"`, `"bc`+a+`"`, `"`+a[:n/2]+"bc"+a[n/2:]+`"`, `"`+a+`aa"`)
	}
	return cells
}()

// rowsFor returns rows for these fields; the values of some columns come again and again. In one of eight rows, a value may not fit.
func rowsFor(random *rand.Rand, shape reflect.Type, columns int) [][]string {
	fit := make([][]string, columns)
	for i := range fit {
		fit[i] = allCells
	}
	for i := range shape.NumField() {
		f := shape.Field(i)
		fit[columnOf(f)] = slices.DeleteFunc(slices.Clone(fit[columnOf(f)]), func(cell string) bool {
			return setWanted(reflect.New(f.Type).Elem(), cell) != nil
		})
	}
	for i, cells := range fit {
		if at := random.IntN(len(cells)); random.IntN(2) == 0 {
			fit[i] = cells[at:min(at+12, len(cells))] // neighbours, which are alike
		}
	}
	rows := make([][]string, 1+random.IntN(40))
	for i := range rows {
		for _, cells := range fit {
			rows[i] = append(rows[i], cells[random.IntN(len(cells))])
		}
		if random.IntN(8) == 0 {
			rows[i][random.IntN(columns)] = allCells[random.IntN(len(allCells))]
		}
	}
	return rows
}
