package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/webdelivery/webdelivery-go"
)

// groupBytes is about how much is held of a row group, which is in memory until it is whole.
const groupBytes = 16 << 20

type parquetWriter struct {
	out  *parquet.GenericWriter[any]
	read []func(webdelivery.Value) (parquet.Value, error) // by column
	row  parquet.Row
	held int // bytes of the row group, about
}

func newParquet(out io.Writer, columns []string) (writer, error) {
	w := &parquetWriter{}
	nodes := parquet.Group{}
	for _, name := range columns {
		if strings.Contains(name, ",") { // which the library takes for a mistake of its user
			return nil, fmt.Errorf("column %q cannot be written to Parquet", name)
		}
		node, read := columnOf(name)
		nodes[name] = parquet.Optional(node)
		w.read = append(w.read, read)
	}
	schema := parquet.NewSchema("event", inOrder{nodes, columns})
	w.out = parquet.NewGenericWriter[any](out, schema, parquet.Compression(&parquet.Snappy), parquet.CreatedBy("webdelivery-go events", "", ""))
	return w, nil
}

// columnOf gives a column its type by its name alone, so that all files of the same dimensions can be read together.
func columnOf(name string) (parquet.Node, func(webdelivery.Value) (parquet.Value, error)) {
	switch name {
	case webdelivery.DimEventTimestamp:
		return parquet.Timestamp(parquet.Millisecond), func(v webdelivery.Value) (parquet.Value, error) {
			at, err := v.Time()
			return parquet.Int64Value(at.UnixMilli()), err
		}
	case webdelivery.DimClientASN:
		return parquet.Int(64), func(v webdelivery.Value) (parquet.Value, error) {
			n, err := v.Int64()
			return parquet.Int64Value(n), err
		}
	default:
		return parquet.Encoded(parquet.String(), &parquet.RLEDictionary), func(v webdelivery.Value) (parquet.Value, error) {
			return parquet.ByteArrayValue([]byte(v.String())), nil
		}
	}
}

func (w *parquetWriter) write(row webdelivery.Row) error {
	w.row = w.row[:0]
	for i, read := range w.read {
		value, defined := parquet.NullValue(), 0
		if v := row.At(i); !v.IsNull() {
			var err error
			if value, err = read(v); err != nil {
				return fmt.Errorf("column %s: %w", row.Columns()[i], err)
			}
			defined = 1
			w.held += len(v.Raw())
		}
		w.row = append(w.row, value.Level(0, defined, i))
		w.held += 8 // its place in a column, about
	}
	if _, err := w.out.WriteRows([]parquet.Row{w.row}); err != nil {
		return err
	}
	if w.held < groupBytes {
		return nil
	}
	w.held = 0
	return w.out.Flush()
}

func (w *parquetWriter) close() error { return w.out.Close() }

// inOrder is a group whose fields are in the order of the columns; those of a parquet.Group are in that of the alphabet.
type inOrder struct {
	parquet.Group
	columns []string
}

// Fields lists the fields.
func (g inOrder) Fields() []parquet.Field {
	fields := g.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(g.columns, a.Name()) - slices.Index(g.columns, b.Name())
	})
	return fields
}
