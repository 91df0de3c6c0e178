package rowjson

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Row is a row of a response. The zero value has no values.
type Row struct {
	table *table
	first int // of its marks, in table.marks
}

// table holds one or more rows.
type table struct {
	columns *columns
	text    []byte
	marks   []mark // for each row the place of its bracket in the text, and the end of each of its values

	arrives bool    // holds the last row of a Reader
	writer  *writer // writes the next rows of that Reader; nil for none
	written bool    // it has written the last one
}

// columns are the names of the columns of a response, in row order.
type columns struct {
	names    []string
	index    map[string]int // by name
	redactor Redactor
}

// valueAt returns the i-th value of a row with these marks.
func valueAt(text []byte, marks []mark, i int) Value {
	raw := text[marks[i].end()+1 : marks[i+1].end()]
	for raw[0] == ',' || raw[0] <= ' ' {
		raw = raw[1:]
	}
	return Value{raw, marks[i+1]&differs != 0}
}

// Len returns the number of values, which is that of the columns.
func (r Row) Len() int { return len(r.columns().names) }

// Columns returns the names of the values, in order; nil for the zero Row. The list belongs to the caller.
func (r Row) Columns() []string { return slices.Clone(r.columns().names) }

// At returns the i-th value, from 0. Like the index of a slice it panics outside of 0 to Len()-1.
func (r Row) At(i int) Value { return valueAt(r.table.text, r.marks(), i) }

// Get returns the value of a column; false if there is no such column.
func (r Row) Get(column string) (Value, bool) {
	i, ok := r.columns().index[column]
	if !ok {
		return Value{}, false
	}
	return r.At(i), true
}

// Clone returns a copy that stays valid.
func (r Row) Clone() Row {
	if r.Len() == 0 {
		return r
	}
	marks := slices.Clone(r.marks())
	begin, end := marks[0], marks[r.Len()].end()
	for i := range marks {
		marks[i] -= begin // which has no highest bit
	}
	return Row{table: &table{columns: r.table.columns, text: bytes.Clone(r.table.text[begin:end]), marks: marks}}
}

// columns returns those of the row; no columns for the zero Row, and before those of a response have come.
func (r Row) columns() *columns {
	if r.table == nil || r.table.columns == nil {
		return &columns{}
	}
	return r.table.columns
}

func (r Row) marks() []mark { return r.table.marks[r.first : r.first+r.Len()+1] }

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

// AppendContent appends the content of the row, except the values of one column. Rows of the same columns have the same
// content if and only if all other values have the same kind and text. Different escapes of a text make no difference,
// unless the text is broken: then its bytes are compared as they came.
func (r Row) AppendContent(b []byte, without int) []byte {
	for i := range r.Len() {
		if i == without {
			continue
		}
		value := r.At(i)
		kind, text := byte(jsontext.Value(value.raw).Kind()), value.text()
		if value.isBroken() {
			kind, text = 'b', value.raw
		}
		b = append(b, kind)
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// Store keeps rows. It keeps them in blocks, so that no row is copied twice and no block is larger than it needs to be.
// The zero value is an empty Store.
type Store struct{ blocks []*table }

const blockBytes = 256 << 10

// Add keeps a copy of a row, which must have the columns of the rows before it.
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
		block = &table{columns: columns} // grows, as most responses are small
		s.blocks = append(s.blocks, block)
	case len(block.text)+len(text) > blockBytes:
		likely := len(block.marks) + len(block.marks)/16
		block = &table{columns: columns, text: make([]byte, 0, max(blockBytes, len(text))), marks: make([]mark, 0, likely)}
		s.blocks = append(s.blocks, block)
	}
	base := mark(len(block.text)) //nolint:gosec // blockBytes at most
	block.text = append(roomFor(block.text, len(text)), text...)
	block.marks = roomFor(block.marks, len(marks))
	for _, m := range marks {
		block.marks = append(block.marks, base+m-begin)
	}
}

// roomFor makes room for n more by doubling. Where a slice becomes long, append alone copies it more often.
func roomFor[T any](s []T, n int) []T {
	if cap(s)-len(s) < n {
		s = slices.Grow(s, max(n, len(s)))
	}
	return s
}

// All returns the rows in order. They stay valid, and any number of goroutines may read them.
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
