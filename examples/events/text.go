package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// writer writes rows in one format.
type writer interface {
	write(row webdelivery.Row) error
	close() error // writes what is still held back
}

// formats makes the writer of each format.
var formats = map[string]func(out io.Writer, columns []string) (writer, error){
	"csv": newCSV, "ndjson": newNDJSON, "parquet": newParquet,
}

// csvWriter writes CSV (RFC 4180). Package encoding/csv, when it ends lines as the RFC has it, changes the line ends within
// cells as well, and it makes no difference between null and a text without characters.
type csvWriter struct {
	out  *bufio.Writer
	line []byte
}

func newCSV(out io.Writer, columns []string) (writer, error) {
	w := &csvWriter{out: bufio.NewWriter(out)}
	for _, name := range columns {
		w.add(name)
	}
	return w, w.end()
}

func (w *csvWriter) write(row webdelivery.Row) error {
	for i := range row.Len() {
		if value := row.At(i); value.IsNull() {
			w.line = append(w.line, ',')
		} else {
			w.add(value.String())
		}
	}
	return w.end()
}

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

func (w *csvWriter) close() error { return w.out.Flush() }

// ndjsonWriter writes a JSON object a line. Values stand as they came, so that no number loses a digit.
type ndjsonWriter struct {
	out   *bufio.Writer
	names []string // each with what stands before and behind it
	line  []byte
}

func newNDJSON(out io.Writer, columns []string) (writer, error) {
	w := &ndjsonWriter{out: bufio.NewWriter(out)}
	before := "{"
	for _, name := range columns {
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		w.names = append(w.names, before+string(quoted)+":")
		before = ","
	}
	return w, nil
}

func (w *ndjsonWriter) write(row webdelivery.Row) error {
	w.line = w.line[:0]
	for i, name := range w.names {
		w.line = append(append(w.line, name...), row.At(i).Raw()...)
	}
	w.line = append(w.line, "}\n"...)
	_, err := w.out.Write(w.line)
	return err
}

func (w *ndjsonWriter) close() error { return w.out.Flush() }
