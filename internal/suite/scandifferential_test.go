package suite_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// TestScanAgainstEncodingJSON compares Scan with encoding/json over generated responses (scangenerator_test.go). What a
// field must hold is in scanoracle_test.go, the structs are in scanshapes_test.go. All rows are compared twice: when
// they come, and after the last one, as a caller may keep them. The last part of a subtest's name is its seed.
func TestScanAgainstEncodingJSON(t *testing.T) {
	t.Parallel()
	const seeds = 3
	for _, shape := range scanShapes {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			var rows, runs atomic.Int64
			t.Cleanup(func() {
				if runs.Load() == int64(seeds) { // -run may choose one seed
					assert.Greater(t, rows.Load(), int64(20*seeds), "the generator must reach many rows before a misfit")
				}
			})
			for seed := range uint64(seeds) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					rows.Add(shape.compare(t, seed))
					runs.Add(1)
				})
			}
		})
	}
}

// FuzzScan is TestScanAgainstEncodingJSON with any seed.
func FuzzScan(f *testing.F) {
	for i := range scanShapes {
		f.Add(uint8(i), uint64(1000+i))
	}
	f.Fuzz(func(t *testing.T, shape uint8, seed uint64) {
		scanShapes[int(shape)%len(scanShapes)].compare(t, seed)
	})
}

// scanShape compares Scan into one type of struct, and returns the number of compared rows.
type scanShape struct {
	name    string
	compare func(t *testing.T, seed uint64) int64
}

func shapeOf[T any](name string) scanShape {
	return scanShape{name, func(t *testing.T, seed uint64) int64 {
		t.Helper()
		d := &scanDifference[T]{T: t, Rand: rand.New(rand.NewPCG(seed, 19)), fields: scanFieldsOf(reflect.TypeFor[T]())}
		return d.compare()
	}}
}

// scanDifference compares what Scan yields with the expected rows.
type scanDifference[T any] struct {
	*testing.T
	*rand.Rand
	fields []scanField
}

// compare scans rows as they arrive, those of a Result, and then short streams with values that hardly fit.
func (d *scanDifference[T]) compare() int64 {
	n := d.aStream()
	if d.IntN(4) == 0 {
		n += d.aResult()
	}
	var body []byte
	client := fixture.Answered(d.T, func(*http.Request) *http.Response { return fixture.Response(http.StatusOK, body) })
	for range 6 {
		body = generateScan(d.Rand, d.fields, true)
		want := d.wanted(readWithEncodingJSON(d.T, body))
		d.all(webdelivery.Scan[T](client.Stats.Events.All(d.Context(), everyRow())), want)
	}
	return n
}

// aStream scans rows as they arrive, once or twice: each range over the sequence sends a new request.
func (d *scanDifference[T]) aStream() int64 {
	client, response := d.response()
	seq := webdelivery.Scan[T](client.Stats.Events.All(d.Context(), everyRow()))
	var n int64
	for range 1 + d.IntN(5)/4 {
		n += d.all(seq, d.wanted(response))
	}
	return n
}

// aResult scans the rows of a Result, which lie in large blocks.
func (d *scanDifference[T]) aResult() int64 {
	result, response := d.result()
	seq := webdelivery.Scan[T](result.All())
	return d.all(seq, d.wanted(response)) + d.all(seq, d.wanted(response))
}

// all ranges over a whole scan.
func (d *scanDifference[T]) all(seq iter.Seq2[T, error], want *wantedScan) int64 {
	d.Helper()
	p := scanProgress[T]{T: d.T, want: want}
	for value, err := range seq {
		p.step(value, err)
	}
	return p.end()
}

// everyRow is a query that any number of rows answers.
func everyRow() webdelivery.EventsQuery {
	query := fixture.ADay
	query.Limit = 1 << 30
	return query
}

// response generates a response, and returns a client that gets it in pieces.
func (d *scanDifference[T]) response() (*webdelivery.Client, *plainResponse) {
	d.Helper()
	body := generateScan(d.Rand, d.fields, false)
	plain := readWithEncodingJSON(d.T, body)
	most := []int{1, 16, 300, 4 << 10, 64 << 10}[d.IntN(5)]
	if len(body) > 64<<10 {
		most = max(most, 300)
	}
	seed := d.Uint64()
	client := fixture.Answered(d.T, func(*http.Request) *http.Response {
		r := fixture.Response(http.StatusOK, nil)
		r.Body = io.NopCloser(&inPieces{body, rand.New(rand.NewPCG(seed, 0)), most})
		return r
	})
	return client, plain
}

func (d *scanDifference[T]) result() (*webdelivery.Result, *plainResponse) {
	d.Helper()
	client, response := d.response()
	result, err := client.Stats.Events.Query(d.Context(), everyRow())
	require.NoError(d, err)
	require.Len(d, result.Rows, len(response.cells))
	return result, response
}

func (d *scanDifference[T]) wanted(r *plainResponse) *wantedScan {
	want := &wantedScan{fields: d.fields}
	for i := range r.cells {
		want.add(r, i)
	}
	return want
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

// scanProgress compares the rows of one scan, and keeps them.
type scanProgress[T any] struct {
	*testing.T
	want *wantedScan
	kept []T
	err  error
}

func (p *scanProgress[T]) step(value T, err error) {
	p.Helper()
	require.NoError(p, p.err, "a scan ends with its first error")
	if err != nil {
		p.err = err
		return
	}
	require.Less(p, len(p.kept), len(p.want.rows), "more rows than expected, or a misfit that Scan overlooks: %v", p.want.misfits)
	p.kept = append(p.kept, value)
	p.same(len(p.kept)-1, "when it came")
}

// same compares one of the kept rows.
func (p *scanProgress[T]) same(i int, when string) {
	p.Helper()
	value := reflect.ValueOf(&p.kept[i]).Elem()
	for at, field := range p.want.fields {
		if got, want := field.held(value.FieldByIndex(field.index)), p.want.rows[i][at]; got != want {
			require.Fail(p, "another value", "row %d, field %s (%v), column %q, %s\ngot  %#v\nwant %#v", i+1, field.name, field.typ, field.column, when, got, want)
		}
	}
}

// end compares the error, and all rows again, which must not have changed since.
func (p *scanProgress[T]) end() int64 {
	p.Helper()
	require.Len(p, p.kept, len(p.want.rows), "rows; then %v", p.err)
	if len(p.want.misfits) == 0 {
		require.NoError(p, p.err)
	} else {
		p.misfit()
	}
	pointers := map[any]bool{}
	for i := range p.kept {
		p.same(i, "at the end")
		value := reflect.ValueOf(&p.kept[i]).Elem()
		for _, field := range p.want.fields {
			for at := value.FieldByIndex(field.index); field.column != "" && at.Kind() == reflect.Pointer && !at.IsNil(); at = at.Elem() {
				require.False(p, pointers[at.Interface()], "row %d, field %s: its pointer is that of another row or field", i+1, field.name)
				pointers[at.Interface()] = true
			}
		}
	}
	return int64(len(p.kept))
}

// misfit compares the error with the values of the first row that has any misfit. The documentation does not say which
// of several values in this row the error names.
func (p *scanProgress[T]) misfit() {
	p.Helper()
	var got *webdelivery.ScanError
	require.ErrorAs(p, p.err, &got, "expected one of %v", p.want.misfits)
	assert.Error(p, got.Err)
	named := func(m webdelivery.ScanError) bool {
		return got.Row == m.Row && got.Column == m.Column && got.Field == m.Field && got.Type == m.Type && sameShown(got.Value, m.Value)
	}
	require.True(p, slices.ContainsFunc(p.want.misfits, named), "got %#v\nwant one of %#v", *got, p.want.misfits)
}

// sameShown compares the JSON of a value in an error. An error may cut it or replace characters that do not print.
func sameShown(got, want string) bool {
	plain := func(r rune) bool { return r >= ' ' && r <= '~' }
	if len(want) > 100 || strings.IndexFunc(want, func(r rune) bool { return !plain(r) }) >= 0 {
		return got != ""
	}
	return got == want
}

// plainResponse is a response as encoding/json reads it.
type plainResponse struct {
	index map[string]int // of the columns
	cells [][]any
	raw   [][]json.RawMessage
}

func readWithEncodingJSON(t *testing.T, body []byte) *plainResponse {
	t.Helper()
	var cells struct {
		Columns []struct {
			Name string `json:"name"`
		} `json:"columns"`
		Rows  [][]any `json:"rows"`
		Total int     `json:"total_results"`
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&cells))
	var raw struct {
		Rows [][]json.RawMessage `json:"rows"`
	}
	require.NoError(t, json.Unmarshal(body, &raw))
	require.Len(t, cells.Rows, cells.Total)
	r := &plainResponse{map[string]int{}, cells.Rows, raw.Rows}
	for i, column := range cells.Columns {
		r.index[column.Name] = i
	}
	return r
}

// wantedScan is what a scan must yield: rows, and then an error if there are misfits.
type wantedScan struct {
	fields  []scanField
	rows    [][]any                 // of each row, what each of the fields must hold
	misfits []webdelivery.ScanError // of the row after them; the error is one of these
}

// add appends a row of a response. Rows after a misfit are never reached.
func (w *wantedScan) add(r *plainResponse, i int) {
	if len(w.misfits) > 0 {
		return
	}
	var missing, misfits []webdelivery.ScanError
	row := make([]any, len(w.fields))
	for at, field := range w.fields {
		if field.column == "" {
			row[at] = untouched
			continue
		}
		misfit := webdelivery.ScanError{Row: int64(len(w.rows) + 1), Column: field.column, Field: field.name, Type: field.typ.String()}
		column, ok := r.index[field.column]
		if !ok {
			missing = append(missing, misfit)
			continue
		}
		raw := string(r.raw[i][column])
		if row[at], ok = wantedIn(field.typ, r.cells[i][column], raw); !ok {
			misfit.Value = raw
			misfits = append(misfits, misfit)
		}
	}
	if w.misfits = misfits; missing != nil { // Scan looks for the columns before it reads a value
		w.misfits = missing
	}
	if w.misfits == nil {
		w.rows = append(w.rows, row)
	}
}
