// Package table writes events as lines of text.
package table

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// Table is a format with its columns.
type Table struct {
	Extension string // of a file
	Header    string // the first line of a file, if the format has one
	// Append appends the line of an event that happened at a time.
	Append func(line []byte, row webdelivery.Row, at time.Time) []byte
}

// New returns a table of a format: csv, ndjson or ecs. Its columns have the given order.
func New(format string, columns []string) Table {
	switch format {
	case "ecs":
		return Table{"ndjson", "", newECS(columns)}
	case "ndjson":
		return Table{"ndjson", "", newNDJSON(columns)}
	default:
		return Table{"csv", strings.Join(columns, ",") + "\n", newCSV(columns)} // no name has a comma
	}
}

func newCSV(columns []string) func([]byte, webdelivery.Row, time.Time) []byte {
	var line bytes.Buffer
	out, cells := csv.NewWriter(&line), make([]string, len(columns))
	return func(before []byte, row webdelivery.Row, at time.Time) []byte {
		for i, column := range columns {
			value, _ := row.Get(column)
			if cells[i] = value.String(); column == webdelivery.DimEventTimestamp {
				cells[i] = timeText(at)
			}
		}
		line.Reset()
		_ = out.Write(cells) // a buffer does not fail
		out.Flush()
		return append(before, line.Bytes()...)
	}
}

// newNDJSON writes values but times as they were received, so that no number loses a digit; but each line is UTF-8.
func newNDJSON(columns []string) func([]byte, webdelivery.Row, time.Time) []byte {
	names := make([]string, len(columns))
	for i, column := range columns {
		names[i] = strconv.Quote(column) + ":"
	}
	return func(line []byte, row webdelivery.Row, at time.Time) []byte {
		before := byte('{')
		for i, column := range columns {
			line = append(append(line, before), names[i]...)
			before = ','
			if column == webdelivery.DimEventTimestamp {
				line = append(line, `"`+timeText(at)+`"`...)
				continue
			}
			value, _ := row.Get(column)
			encoded, _ := value.MarshalJSON() // never fails
			line = append(line, encoded...)
		}
		return append(line, "}\n"...)
	}
}

// timeText has milliseconds, and finer digits if there are some.
func timeText(at time.Time) string {
	if at.Nanosecond()%int(time.Millisecond) != 0 {
		return at.UTC().Format("2006-01-02T15:04:05.000000000Z")
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z")
}
