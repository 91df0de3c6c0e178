// Package table writes rows of security statistics one after the other, in constant memory.
//
// All formats write the columns in the order of the header. CSV follows RFC 4180 and begins with a header line; null is
// nothing, and an empty text is "". A cell that begins with = + - or @ is written as it is, so do not open such a file
// in a spreadsheet. NDJSON has one object per line.
//
// CSV and NDJSON write event_timestamp_ms in UTC in RFC 3339 format, in milliseconds and with Z, even if the service
// omits the zone. If it has finer digits, all nine are written. Parquet has a timestamp in milliseconds of UTC, and
// client_asn as a 64-bit number; all other columns are text.
package table

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// Writer writes rows in one format. Close writes the buffered rows and ends the table. Flush is for a table that breaks
// off: it writes the buffered rows if they are useful without an end.
type Writer interface {
	Write(row webdelivery.Row) error
	Flush() error
	Close() error
}

// Column is a column of a table.
type Column struct {
	Name string
	At   int // its place in a row of the response, from 0
}

// Pick returns the columns with these names, in this order, of rows with the received ones. It returns an error if one
// is missing.
func Pick(names, received []string) ([]Column, error) {
	columns := make([]Column, len(names))
	for i, name := range names {
		at := slices.Index(received, name)
		if at < 0 {
			return nil, fmt.Errorf("the response has no column %q, only %q", name, received)
		}
		columns[i] = Column{name, at}
	}
	return columns, nil
}

// Formats create the writer of each format. If begun is true, the header and some rows are there already, and the
// writer writes rows only; a Parquet file cannot be continued.
var Formats = map[string]func(out io.Writer, columns []Column, begun bool) (Writer, error){
	"csv": newCSV, ECS: newECS, "ndjson": newNDJSON, "parquet": newParquet,
}

// appendTime appends a timestamp in UTC.
func appendTime(line []byte, v webdelivery.Value) ([]byte, error) {
	at, err := v.Time()
	if err != nil {
		return line, err
	}
	layout := "2006-01-02T15:04:05.000Z"
	if at.Nanosecond()%int(time.Millisecond) != 0 {
		layout = "2006-01-02T15:04:05.000000000Z"
	}
	return at.UTC().AppendFormat(line, layout), nil
}

// isTime reports whether a value of a column is a timestamp.
func isTime(column string, v webdelivery.Value) bool {
	return column == webdelivery.DimEventTimestamp && !v.IsNull()
}
