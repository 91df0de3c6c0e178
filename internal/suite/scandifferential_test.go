package suite_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// TestScanAgainstEncodingJSON compares Scan with encoding/json over generated responses. The structs are in
// scanshapes_test.go, the values in scanvalues_test.go. All rows are compared twice: when they come, and after the last
// one, as a caller may keep them. The last part of a subtest's name is its seed.
func TestScanAgainstEncodingJSON(t *testing.T) {
	t.Parallel()
	for name, compare := range scanShapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(6) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					compare(t, seed)
				})
			}
		})
	}
}

// FuzzScan is TestScanAgainstEncodingJSON with any seed.
func FuzzScan(f *testing.F) {
	names := slices.Sorted(maps.Keys(scanShapes))
	for i := range names {
		f.Add(uint8(i), uint64(1000+i))
	}
	f.Fuzz(func(t *testing.T, shape uint8, seed uint64) { scanShapes[names[int(shape)%len(names)]](t, seed) })
}

func comparing[T any](t *testing.T, seed uint64) {
	t.Helper()
	w := &scanWriter{Rand: rand.New(rand.NewPCG(seed, 19))}
	query := fixture.ADay
	query.Limit = 1 << 30
	for _, rows := range []int{1, 2 + w.IntN(3), 60 + w.IntN(200), 2, 3, 1} {
		cells, body := w.response(scanFieldsOf(reflect.TypeFor[T]()), rows)
		client := fixture.Answered(t, func(*http.Request) *http.Response {
			r := fixture.Response(http.StatusOK, nil)
			r.Body = io.NopCloser(w.inPieces(body))
			return r
		})
		compareScan(t, webdelivery.Scan[T](client.Stats.Events.All(t.Context(), query)), cells)
		if w.oneIn(4) {
			result, err := client.Stats.Events.Query(t.Context(), query)
			require.NoError(t, err)
			compareScan(t, webdelivery.Scan[T](result.All()), cells)
		}
	}
}

// inPieces delivers a body byte by byte if it is short, in larger pieces, or at once.
func (w *scanWriter) inPieces(body []byte) io.Reader {
	if len(body) < 16<<10 && w.oneIn(3) {
		return iotest.OneByteReader(bytes.NewReader(body))
	}
	pieces := []io.Reader{iotest.DataErrReader(bytes.NewReader(body))}
	if at := w.IntN(len(body)); w.oneIn(2) {
		pieces = []io.Reader{iotest.HalfReader(bytes.NewReader(body[:at])), bytes.NewReader(body[at:])}
	}
	return io.MultiReader(pieces...)
}

// compareScan compares what a scan yields with what the cells of its rows say.
func compareScan[T any](t *testing.T, scan iter.Seq2[T, error], cells []map[string]string) {
	t.Helper()
	fields := scanFieldsOf(reflect.TypeFor[T]())
	var kept []T
	var at []int // the rows of these
	var failed error
	n := 0
	for value, err := range scan {
		require.NoError(t, failed, "a scan ends with an error that is not of one value")
		misfit, one := errors.AsType[*webdelivery.ScanError](err)
		if failed = err; one {
			failed = nil
			checkMisfit(t, fields, misfit, n, cells[n])
		} else if err == nil {
			kept, at = append(kept, value), append(at, n)
			sameRow(t, fields, reflect.ValueOf(&kept[len(kept)-1]).Elem(), cells[n], "when it came")
		}
		n++
	}
	pointers := map[any]bool{}
	for i := range kept {
		row := reflect.ValueOf(&kept[i]).Elem()
		sameRow(t, fields, row, cells[at[i]], "at the end")
		for _, f := range fields {
			for at := row.FieldByIndex(f.index); f.column != "" && at.Kind() == reflect.Pointer && !at.IsNil(); at = at.Elem() {
				require.False(t, pointers[at.Interface()], "row %d, field %s: its pointer is that of another row or field", i+1, f.name)
				pointers[at.Interface()] = true
			}
		}
	}
	if failed == nil {
		require.Len(t, cells, n)
		return
	}
	require.ErrorIs(t, failed, webdelivery.ErrBadResponse)
	require.True(t, slices.ContainsFunc(fields, func(f scanField) bool {
		_, there := cells[n-1][f.column]
		return f.column != "" && !there
	}), failed)
}

// checkMisfit checks that a value of a row does not fit its field.
func checkMisfit(t *testing.T, fields []scanField, got *webdelivery.ScanError, row int, cells map[string]string) {
	t.Helper()
	require.EqualValues(t, row+1, got.Row)
	at := slices.IndexFunc(fields, func(f scanField) bool { // the documentation does not say which of several misfits it names
		return f.column == got.Column && strings.HasPrefix(got.Err.Error(), fmt.Sprintf("field %s (%s), value ", f.name, f.typ))
	})
	require.GreaterOrEqual(t, at, 0, "%v", got)
	cell := cells[got.Column]
	require.Error(t, setWanted(reflect.New(fields[at].typ).Elem(), cell), "%v", got)
	whole, _ := got.Whole().Get(got.Column)
	require.Equal(t, cell, string(whole.Raw()))
}

func sameRow(t *testing.T, fields []scanField, row reflect.Value, cells map[string]string, when string) {
	t.Helper()
	for _, f := range fields {
		got, want := row.FieldByIndex(f.index), reflect.New(f.typ).Elem()
		cell, ok := cells[f.column]
		require.True(t, ok || f.column == "", "a scan without column %s yields rows", f.column)
		if f.column != "" {
			require.NoError(t, setWanted(want, cell), "field %s of %s: Scan overlooks a misfit", f.name, cell)
		}
		value, isValue := got.Interface().(webdelivery.Value)
		switch {
		case isValue:
			require.Equal(t, cell, string(value.Raw()), when)
		case f.typ == reflect.PointerTo(valueType):
			require.Equal(t, cell == "null", got.IsNil(), when)
		case !reflect.DeepEqual(want.Interface(), got.Interface()):
			require.Fail(t, "another value", "field %s (%v), %s, cell %s\ngot  %#v\nwant %#v", f.name, f.typ, when, cell, got, want)
		}
	}
}

var errMisfit = errors.New("does not fit")

// setWanted sets a field to what a cell of JSON says, as encoding/json does, or returns an error. Beyond that, Scan
// documents that null fits pointers alone, that a text takes every value, that numbers may be in quotes, and the forms of
// times.
func setWanted(field reflect.Value, cell string) error {
	isText, text := cell[0] == '"', cell
	if isText {
		if err := json.Unmarshal([]byte(cell), &text); err != nil {
			return err
		}
	}
	var err error
	switch p := field.Addr().Interface().(type) {
	case *webdelivery.Value:
		return nil
	case *time.Time:
		*p, err = timestampIn(text)
		return err
	case *netip.Addr:
		*p, err = netip.ParseAddr(text)
		return err
	case *netip.Prefix:
		*p, err = netip.ParsePrefix(text)
		return err
	case *json.Number:
		if *p = json.Number(text); isText || text[0] > '9' { // true, false or null
			err = errMisfit
		}
		return err
	}
	switch {
	case field.Kind() == reflect.Pointer && cell == "null":
		return nil
	case field.Kind() == reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		return setWanted(field.Elem(), cell)
	case cell == "null":
		return errMisfit
	}
	if own, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return own.UnmarshalText([]byte(text))
	}
	switch {
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

type scanField struct {
	index  []int
	name   string
	typ    reflect.Type
	column string // "" if Scan must leave the field alone
}

// scanFieldsOf lists the fields that Scan documents to set, and all others as those that it leaves alone.
func scanFieldsOf(t reflect.Type) (fields []scanField) {
	for _, field := range reflect.VisibleFields(t) {
		if column := field.Tag.Get("stats"); !field.Anonymous || column != "" {
			fields = append(fields, scanField{field.Index, field.Name, field.Type, strings.TrimPrefix(column, "-")})
		}
	}
	return fields
}

var valueType = reflect.TypeFor[webdelivery.Value]()

// response writes rows for some fields, and returns the cells of each row by column. The last row may not fit, or a
// column may be missing.
func (w *scanWriter) response(fields []scanField, rows int) (cells []map[string]string, body []byte) {
	types := map[string][]reflect.Type{}
	for _, f := range fields {
		if f.column != "" {
			types[f.column] = append(types[f.column], f.typ)
		}
	}
	names := slices.Sorted(maps.Keys(types))
	w.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if w.oneIn(30) {
		names = names[1:]
	}
	for _, other := range []string{"unasked", "Zürich", "A", "", "x\"y\\", "-"} {
		if types[other] == nil && w.oneIn(4) {
			names = append(names, other)
		}
	}
	pools := map[string][]string{}
	for _, name := range names {
		pools[name] = w.pool(types[name], min(rows, []int{1, 3, 40, 500}[w.IntN(4)]))
	}
	for size := 0; len(cells) < rows && size < 400<<10; {
		row := map[string]string{}
		for _, name := range names {
			row[name] = pools[name][w.IntN(len(pools[name]))]
			size += len(row[name])
		}
		cells = append(cells, row)
	}
	rows = len(cells)
	if name := names[w.IntN(len(names))]; w.oneIn(2) {
		cells[rows-1][name] = w.nearMiss(cells[rows-1][name])
	}
	blank := func() string { return w.pick("", "", "", "", "", "", " ", "\n\t", "\r\n ") }
	list := func(n int, text func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = blank() + text(i)
		}
		return blank() + "[" + strings.Join(all, blank()+",") + blank() + "]"
	}
	columns := list(len(names), func(i int) string { return `{"name":` + w.spelled(names[i]) + "}" })
	all := list(rows, func(row int) string {
		return list(len(names), func(i int) string { return cells[row][names[i]] })
	})
	members := []string{`"columns":` + columns, `"rows"` + blank() + ":" + all, fmt.Sprintf(`"total_results":%d`, rows)}
	if w.oneIn(3) {
		w.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	return cells, []byte("{" + strings.Join(members, blank()+",") + "}" + blank())
}
