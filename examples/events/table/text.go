package table

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// csvWriter is there because package encoding/csv, when it ends lines as RFC 4180 has it, changes the line ends within
// cells as well, and makes no difference between null and a text without characters.
type csvWriter struct {
	out  *bufio.Writer
	line []byte
}

func newCSV(out io.Writer, columns []string) (Writer, error) {
	w := &csvWriter{out: bufio.NewWriter(out)}
	for _, name := range columns {
		w.add(name)
	}
	return w, w.end()
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
	return w.end()
}

func (w *csvWriter) Close() error { return w.out.Flush() }

func (w *csvWriter) add(cell string) {
	if cell == "" || strings.ContainsAny(cell, "\",\r\n") {
		cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
	}
	w.line = append(append(w.line, cell...), ',')
}

func (w *csvWriter) end() error {
	_, err := w.out.Write(append(w.line[:len(w.line)-1], "\r\n"...))
	w.line = w.line[:0]
	return err
}

type ndjsonWriter struct {
	out   *bufio.Writer
	names []string // each as it stands in every line, with what is before and behind it
	line  []byte
}

func newNDJSON(out io.Writer, columns []string) (Writer, error) {
	w := &ndjsonWriter{out: bufio.NewWriter(out)}
	before := "{"
	for _, column := range columns {
		quoted, _ := json.Marshal(column) //nolint:errchkjson // no text is refused
		w.names = append(w.names, before+string(quoted)+":")
		before = ","
	}
	return w, nil
}

// Write writes a line. Values stand as they came, so that no number loses a digit.
func (w *ndjsonWriter) Write(row webdelivery.Row) error {
	w.line = w.line[:0]
	for i, name := range w.names {
		w.line = append(append(w.line, name...), row.At(i).Raw()...)
	}
	_, err := w.out.Write(append(w.line, "}\n"...))
	return err
}

func (w *ndjsonWriter) Close() error { return w.out.Flush() }
