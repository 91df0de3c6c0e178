package table

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// text holds lines back, and has no end to write.
type text struct {
	*bufio.Writer
	line []byte // each cell with a comma behind it
}

func (t *text) Close() error { return t.Flush() }

// end puts the end of a line in place of its last comma.
func (t *text) end(end string) error {
	_, err := t.Write(append(t.line[:len(t.line)-1], end...))
	t.line = t.line[:0]
	return err
}

// csvWriter is there because package encoding/csv, when it ends lines as RFC 4180 has it, changes the line ends within
// cells as well, and makes no difference between null and a text without characters.
type csvWriter struct{ text }

func newCSV(out io.Writer, columns []string, begun bool) (Writer, error) {
	w := &csvWriter{text{Writer: bufio.NewWriter(out)}}
	if begun {
		return w, nil
	}
	for _, name := range columns {
		w.add(name)
	}
	return w, w.end("\r\n")
}

// Write writes a line.
func (w *csvWriter) Write(row webdelivery.Row) error {
	for i := range row.Len() {
		if value := row.At(i); value.IsNull() {
			w.line = append(w.line, ',')
		} else {
			w.add(value.String())
		}
	}
	return w.end("\r\n")
}

func (w *csvWriter) add(cell string) {
	if cell == "" || strings.ContainsAny(cell, "\",\r\n") {
		cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
	}
	w.line = append(append(w.line, cell...), ',')
}

type ndjsonWriter struct {
	text
	names []string // each as it stands in every line, with its colon
}

func newNDJSON(out io.Writer, columns []string, _ bool) (Writer, error) {
	w := &ndjsonWriter{text: text{Writer: bufio.NewWriter(out)}}
	for _, column := range columns {
		quoted, _ := json.Marshal(column) //nolint:errchkjson // no text is refused
		w.names = append(w.names, string(quoted)+":")
	}
	return w, nil
}

// Write writes a line. Values stand as they came, so that no number loses a digit; but each line is UTF-8.
func (w *ndjsonWriter) Write(row webdelivery.Row) error {
	w.line = append(w.line, '{')
	for i, name := range w.names {
		value, err := row.At(i).MarshalJSON()
		if err != nil {
			return err
		}
		w.line = append(append(append(w.line, name...), value...), ',')
	}
	return w.end("}\n")
}
