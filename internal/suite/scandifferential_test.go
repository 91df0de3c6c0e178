package suite_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range scanShapes {
			if !yield(name) {
				return
			}
		}
	})
	for i := range names {
		f.Add(uint8(i), uint64(1000+i))
	}
	f.Fuzz(func(t *testing.T, shape uint8, seed uint64) { scanShapes[names[int(shape)%len(names)]](t, seed) })
}

// comparing returns a comparison for one type of struct.
func comparing[T any](t *testing.T, seed uint64) {
	t.Helper()
	w := &scanWriter{Rand: rand.New(rand.NewPCG(seed, 19))}
	for _, rows := range []int{1, 2 + w.IntN(3), 60 + w.IntN(200), 2, 3, 1} {
		cells, body := w.response(scanFieldsOf(reflect.TypeFor[T]()), rows)
		most := []int{1, 16, 300, 4 << 10, 64 << 10}[w.IntN(5)]
		if len(body) > 64<<10 {
			most = max(most, 300)
		}
		client := fixture.Answered(t, func(*http.Request) *http.Response {
			r := fixture.Response(http.StatusOK, nil)
			r.Body = io.NopCloser(&inPieces{body, rand.New(rand.NewPCG(seed, 0)), most})
			return r
		})
		compareScan(t, webdelivery.Scan[T](client.Stats.Events.All(t.Context(), everyRow())), cells)
		if w.oneIn(4) {
			result, err := client.Stats.Events.Query(t.Context(), everyRow())
			require.NoError(t, err)
			compareScan(t, webdelivery.Scan[T](result.All()), cells)
		}
	}
}

// everyRow is a query that any number of rows answers.
func everyRow() webdelivery.EventsQuery {
	query := fixture.ADay
	query.Limit = 1 << 30
	return query
}

// inPieces delivers a body in pieces of random length.
type inPieces struct {
	rest []byte
	rng  *rand.Rand
	most int
}

func (p *inPieces) Read(b []byte) (n int, err error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n = copy(b[:min(len(b), 1+p.rng.IntN(p.most))], p.rest)
	p.rest = p.rest[n:]
	if len(p.rest) == 0 && p.rng.IntN(2) == 0 {
		err = io.EOF // it may come with the last bytes
	}
	return n, err
}

// compareScan compares what a scan yields with what the cells of its rows say.
func compareScan[T any](t *testing.T, scan iter.Seq2[T, error], cells []map[string]string) {
	t.Helper()
	fields := scanFieldsOf(reflect.TypeFor[T]())
	var kept []T
	var failed error
	for value, err := range scan {
		require.NoError(t, failed, "a scan ends with its first error")
		if failed = err; err != nil {
			continue
		}
		require.Less(t, len(kept), len(cells))
		kept = append(kept, value)
		sameRow(t, fields, reflect.ValueOf(&kept[len(kept)-1]).Elem(), cells[len(kept)-1], "when it came")
	}
	pointers := map[any]bool{}
	for i := range kept {
		row := reflect.ValueOf(&kept[i]).Elem()
		sameRow(t, fields, row, cells[i], "at the end")
		for _, f := range fields {
			for at := row.FieldByIndex(f.index); f.column != "" && at.Kind() == reflect.Pointer && !at.IsNil(); at = at.Elem() {
				require.False(t, pointers[at.Interface()], "row %d, field %s: its pointer is that of another row or field", i+1, f.name)
				pointers[at.Interface()] = true
			}
		}
	}
	if failed == nil {
		require.Len(t, kept, len(cells))
		return
	}
	var got *webdelivery.ScanError // the documentation does not say which of several misfits of a row it names
	require.ErrorAs(t, failed, &got)
	require.Equal(t, int64(len(kept)+1), got.Row)
	at := slices.IndexFunc(fields, func(f scanField) bool {
		return f.name == got.Field && f.column == got.Column && f.typ.String() == got.Type
	})
	require.GreaterOrEqual(t, at, 0, "%v", got)
	cell, there := cells[len(kept)][got.Column]
	if there {
		require.Error(t, setWanted(reflect.New(fields[at].typ).Elem(), cell), "%v", got)
	}
	assert.Equal(t, there, got.Value != "")
}

// sameRow compares a row with its cells, of which all fit.
func sameRow(t *testing.T, fields []scanField, row reflect.Value, cells map[string]string, when string) {
	t.Helper()
	for _, f := range fields {
		got, want := row.FieldByIndex(f.index), reflect.New(f.typ).Elem()
		if cell, ok := cells[f.column]; ok && f.column != "" {
			require.NoError(t, setWanted(want, cell), "field %s of %s: Scan overlooks a misfit", f.name, cell)
			if f.typ == valueType {
				require.Equal(t, cell, string(got.Interface().(webdelivery.Value).Raw()), when)
				continue
			}
			if f.typ == reflect.PointerTo(valueType) {
				require.Equal(t, cell == "null", got.IsNil(), when)
				continue
			}
		} else {
			require.Empty(t, f.column, "a scan without column %s yields rows", f.column)
		}
		if !reflect.DeepEqual(want.Interface(), got.Interface()) {
			require.Fail(t, "another value", "field %s (%v), column %q, %s, cell %s\ngot  %#v\nwant %#v", f.name, f.typ, f.column, when, cells[f.column], got, want)
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
		if *p, err = timestampIn(text); !isText {
			err = errMisfit
		}
		return err
	case *netip.Addr:
		if *p, err = netip.ParseAddr(text); !isText {
			err = errMisfit
		}
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

// scanField is a field of a struct, of an embedded one too.
type scanField struct {
	index  []int
	name   string
	typ    reflect.Type
	column string // "" if Scan must leave the field alone
}

// scanFieldsOf lists the fields that Scan documents to set, and all others as those that it leaves alone.
func scanFieldsOf(t reflect.Type) []scanField {
	var fields []scanField
	var list func(in reflect.Type, at []int)
	list = func(in reflect.Type, at []int) {
		for i := range in.NumField() {
			field := in.Field(i)
			index, column := append(slices.Clone(at), i), field.Tag.Get("stats")
			if field.Anonymous && column == "" {
				list(field.Type, index)
				continue
			}
			fields = append(fields, scanField{index, field.Name, field.Type, strings.TrimPrefix(column, "-")})
		}
	}
	list(t, nil)
	for i, f := range fields {
		if slices.ContainsFunc(fields, func(outer scanField) bool { return outer.column == f.column && len(outer.index) < len(f.index) }) {
			fields[i].column = "" // a field nearer to the top has the column
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
	names := make([]string, 0, len(types))
	for name := range types {
		names = append(names, name)
	}
	slices.Sort(names)
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
	var b bytes.Buffer
	blank := func() string { return w.pick("", "", "", "", "", "", " ", "\n\t", "\r\n ") }
	list := func(n int, write func(i int)) {
		b.WriteString(blank() + "[")
		for i := range n {
			if i > 0 {
				b.WriteString(blank() + ",")
			}
			write(i)
		}
		b.WriteString(blank() + "]")
	}
	members := []func(){
		func() {
			b.WriteString(`"columns":`)
			list(len(names), func(i int) { b.WriteString(`{"name":` + w.spelled(names[i]) + "}") })
		},
		func() {
			b.WriteString(`"rows"` + blank() + ":")
			list(rows, func(row int) {
				list(len(names), func(i int) { b.WriteString(blank() + cells[row][names[i]]) })
			})
		},
		func() { fmt.Fprintf(&b, `"total_results":%d`, rows) },
	}
	if w.oneIn(3) {
		w.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	b.WriteString("{")
	for i, member := range members {
		if i > 0 {
			b.WriteString(blank() + ",")
		}
		member()
	}
	b.WriteString("}" + blank())
	return cells, b.Bytes()
}
