// Package table writes rows of security statistics one after the other, in constant memory.
//
// CSV is that of RFC 4180 with a header line; null is nothing, and a text without characters is "". Cells are data for
// machines: one that begins with = + - or @ stands as it came, so do not open such a file in a spreadsheet. NDJSON has an
// object a line. Parquet has a timestamp in milliseconds of UTC, client_asn as a number of 64 bits, all else as text.
package table

import (
	"io"

	"github.com/webdelivery/webdelivery-go"
)

// Writer writes rows in one format. Close writes the rows that are held back and ends the file. Flush is for those that
// break off: it writes the rows that are held back where they are of use without an end.
type Writer interface {
	Write(row webdelivery.Row) error
	Flush() error
	Close() error
}

// Formats create the writer of each format. If a table is begun, its head and some rows are there already, and the writer
// writes rows alone; nothing can be added to a Parquet file.
var Formats = map[string]func(out io.Writer, columns []string, begun bool) (Writer, error){
	"csv": newCSV, "ndjson": newNDJSON, "parquet": newParquet,
}
