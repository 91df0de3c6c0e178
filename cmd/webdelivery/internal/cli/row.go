package cli

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// AppendRow appends the JSON object of a row. Values are written as they were received, so that no number loses a digit;
// but the timestamp is that of at, unless it is zero.
func AppendRow(line []byte, row webdelivery.Row, columns []string, at time.Time) []byte {
	before := byte('{')
	for _, column := range columns {
		line = strconv.AppendQuote(append(line, before), column)
		before = ','
		value, _ := row.Get(column)
		text, _ := value.MarshalJSON() // never fails
		if column == webdelivery.DimEventTimestamp && !at.IsZero() {
			text = strconv.AppendQuote(nil, Timestamp(at))
		}
		line = append(append(line, ':'), text...)
	}
	return append(line, '}')
}

// Timestamp returns the text of a time with milliseconds, and with finer digits if there are some.
func Timestamp(at time.Time) string {
	if at.Nanosecond()%int(time.Millisecond) != 0 {
		return at.UTC().Format("2006-01-02T15:04:05.000000000Z")
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z")
}

// CSV returns a function that makes lines of CSV, each valid until the next one.
func CSV() func(cells []string) []byte {
	var line bytes.Buffer
	out := csv.NewWriter(&line)
	return func(cells []string) []byte {
		line.Reset()
		_ = out.Write(cells) // a buffer does not fail
		out.Flush()
		if line.Len() == 1 { // one empty cell; a blank line would be no row
			return []byte("\"\"\n")
		}
		return line.Bytes()
	}
}
