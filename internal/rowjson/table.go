package rowjson

import (
	"bytes"
	"iter"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Row is a row of a response. The zero Row has no values.
type Row struct {
	table *table
	first int // index of its first mark in table.marks
}

// table holds one or more rows.
type table struct {
	columns *columns
	text    []byte
	marks   []mark // for each row, the position of its bracket in text and the end of each value

	arrives bool     // holds the last row of a Reader
	writer  *writer  // writes the next rows of that Reader; may be nil
	written bool     // writer has written the last row
	scan    *rowScan // splits a written row
}

// columns holds the names of a response's columns, in row order.
type columns struct {
	names    []string
	index    map[string]int // by name
	redactor Redactor
}

// valueAt returns the i-th value of the row with these marks.
func valueAt(text []byte, marks []mark, i int) Value {
	raw := text[marks[i].end()+1 : marks[i+1].end()]
	for raw[0] == ',' || raw[0] <= ' ' {
		raw = raw[1:]
	}
	return Value{raw, marks[i+1]&differs != 0}
}

// Len returns the number of values, which equals the number of columns.
func (r Row) Len() int { return len(r.columns().names) }

// Columns returns a copy of the column names, in order. It returns nil for the zero Row.
func (r Row) Columns() []string { return slices.Clone(r.columns().names) }

// At returns the i-th value, from 0. It panics if i is out of range.
func (r Row) At(i int) Value { return valueAt(r.table.text, r.marks(), i) }

// Get returns the value of a column, or false if there is no such column.
func (r Row) Get(column string) (Value, bool) {
	i, ok := r.columns().index[column]
	if !ok {
		return Value{}, false
	}
	return r.At(i), true
}

// Clone returns a copy that remains valid.
func (r Row) Clone() Row {
	if r.Len() == 0 {
		return r
	}
	marks := slices.Clone(r.marks())
	begin, end := marks[0], marks[r.Len()].end()
	for i := range marks {
		marks[i] -= begin // begin does not have the highest bit
	}
	return Row{table: &table{columns: r.table.columns, text: bytes.Clone(r.table.text[begin:end]), marks: marks}}
}

// columns returns the row's columns. There are none for the zero Row, or before the columns of a response are read.
func (r Row) columns() *columns {
	if r.table == nil || r.table.columns == nil {
		return &columns{}
	}
	return r.table.columns
}

// marks returns the marks of the row. A row that the writer has written is split only now, because rows in a loop over
// structs need no marks.
func (r Row) marks() []mark {
	if len(r.table.marks) == 0 {
		r.table.scan.scan(r.table.text)
		r.table.marks = r.table.scan.marks
	}
	return r.table.marks[r.first : r.first+r.Len()+1]
}

// JSON returns the row as an array of its values, each as [Value.JSON] returns it.
func (r Row) JSON() []byte {
	text := []byte{'['}
	for i := range r.Len() {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, r.At(i).JSON()...)
	}
	return append(text, ']')
}

// Content appends the content of the row, except the value of one column, which it returns. It is the row's JSON without
// white space and with the fewest escapes, so rows with the same columns have the same content if and only if all other
// values have the same kind and text. Invalid texts are compared byte by byte. Columns that are ignored do not count;
// nil means none.
func (r Row) Content(b []byte, without int, ignored []bool) ([]byte, Value) {
	if t := r.table; ignored == nil && t.written && t.writer.plain {
		from, to := plainCell(t.text, without)
		return append(append(b, t.text[:from]...), t.text[to:]...), Value{t.text[from:to], false}
	}
	before := byte('[')
	for i := range r.Len() {
		if ignored != nil && ignored[i] {
			continue
		}
		b = append(b, before)
		switch value := r.At(i); {
		case i == without:
		case value.isBroken():
			b = append(append(b, 'b'), value.raw...)
		case value.isText():
			b, _ = jsontext.AppendQuote(b, value.text()) // valid, because it is not broken
		default:
			b = append(b, value.raw...)
		}
		before = ','
	}
	return append(b, ']'), r.At(without)
}

// plainCell returns where a value of a row is whose values are all plain.
func plainCell(text []byte, column int) (from, to int) {
	for ; column >= 0; column-- {
		from = to + 1
		if to = from; text[from] == '"' {
			to += 2 + bytes.IndexByte(text[from+1:], '"')
			continue
		}
		for text[to] != ',' && text[to] != ']' {
			to++
		}
	}
	return from, to
}

// Store holds copies of rows, in blocks, so that memory need not be copied as it grows. The zero value is an empty
// Store.
type Store struct{ blocks []*table }

const blockBytes = 256 << 10

// Add adds a copy of a row, which must have the same columns as the rows before it.
func (s *Store) Add(row Row) {
	columns, marks := row.table.columns, row.marks()
	begin := marks[0]
	text := row.table.text[begin:marks[len(marks)-1].end()]
	var block *table
	if n := len(s.blocks); n > 0 {
		block = s.blocks[n-1]
	}
	switch {
	case block == nil:
		block = &table{columns: columns} // grows, because most responses are small
		s.blocks = append(s.blocks, block)
	case len(block.text)+len(text) > blockBytes:
		likely := len(block.marks) + len(block.marks)/16
		block = &table{columns: columns, text: make([]byte, 0, max(blockBytes, len(text))), marks: make([]mark, 0, likely)}
		s.blocks = append(s.blocks, block)
	}
	base := mark(len(block.text)) //nolint:gosec // at most blockBytes
	block.text = append(roomFor(block.text, len(text)), text...)
	block.marks = roomFor(block.marks, len(marks))
	for _, m := range marks {
		block.marks = append(block.marks, base+m-begin)
	}
}

// roomFor grows s for n more elements by at least doubling it. For long slices, append would copy more often.
func roomFor[T any](s []T, n int) []T {
	if cap(s)-len(s) < n {
		s = slices.Grow(s, max(n, len(s)))
	}
	return s
}

// All returns the rows in order. They remain valid, and may be read concurrently.
func (s *Store) All() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for _, block := range s.blocks {
			for first := 0; first < len(block.marks); first += len(block.columns.names) + 1 {
				if !yield(Row{block, first}) {
					return
				}
			}
		}
	}
}
