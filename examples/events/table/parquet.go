package table

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/webdelivery/webdelivery-go"
)

type parquetWriter struct {
	out     *parquet.GenericWriter[any]
	columns []Column
}

func newParquet(out io.Writer, columns []Column, _ bool) (Writer, error) {
	fields, names := parquet.Group{}, make([]string, len(columns))
	for i, column := range columns {
		if strings.Contains(column.Name, ",") { // the library would panic
			return nil, fmt.Errorf("column %q cannot be written to Parquet; use csv or ndjson", column.Name)
		}
		fields[column.Name], names[i] = parquet.Optional(typeOf(column.Name)), column.Name
	}
	return &parquetWriter{parquet.NewGenericWriter[any](out, parquet.NewSchema("event", inOrder{fields, names}),
		parquet.Compression(&parquet.Snappy),
		parquet.MaxRowsPerRowGroup(50_000), // a row group is in memory until it is whole
	), columns}, nil
}

// Write adds a row to the row group.
func (w *parquetWriter) Write(row webdelivery.Row) error {
	cells := make(parquet.Row, len(w.columns))
	for i, column := range w.columns {
		value, err := read(column.Name, row.At(column.At))
		if err != nil {
			return fmt.Errorf("column %s: %w", column.Name, err)
		}
		cells[i] = value.Level(0, 1, i)
		if value.IsNull() {
			cells[i] = value.Level(0, 0, i)
		}
	}
	_, err := w.out.WriteRows([]parquet.Row{cells})
	return err
}

// Flush writes nothing, because a Parquet file is useless without its end. Close writes the last row group and the
// index of all of them.
func (w *parquetWriter) Flush() error { return nil }
func (w *parquetWriter) Close() error { return w.out.Close() }

// typeOf depends only on the name, so that all files with the same columns can be read together.
func typeOf(column string) parquet.Node {
	switch column {
	case webdelivery.DimEventTimestamp:
		return parquet.Timestamp(parquet.Millisecond)
	case webdelivery.DimClientASN:
		return parquet.Int(64)
	default:
		return parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	}
}

// read converts a value to the type of its column.
func read(column string, v webdelivery.Value) (parquet.Value, error) {
	switch {
	case v.IsNull():
		return parquet.NullValue(), nil
	case column == webdelivery.DimEventTimestamp:
		at, err := v.Time()
		return parquet.Int64Value(at.UnixMilli()), err
	case column == webdelivery.DimClientASN:
		n, err := v.Int64()
		return parquet.Int64Value(n), err
	default:
		return parquet.ByteArrayValue([]byte(v.String())), nil
	}
}

// inOrder has its fields in the order of the columns. Those of a parquet.Group are in alphabetical order.
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
