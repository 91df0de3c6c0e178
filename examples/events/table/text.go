package table

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// text buffers lines, and has no end to write.
type text struct {
	*bufio.Writer
	line []byte // each cell with a comma behind it
}

// addTime adds a timestamp between quotes. If the value is not a timestamp, it clears the line and returns an error.
func (t *text) addTime(column Column, v webdelivery.Value, quote string) (err error) {
	t.line, err = appendTime(append(t.line, quote...), v)
	if err != nil {
		t.line = t.line[:0]
		return fmt.Errorf("column %s: %w", column.Name, err)
	}
	t.line = append(append(t.line, quote...), ',')
	return nil
}

func (t *text) Close() error { return t.Flush() }

// end writes the line, with its end in place of the last comma.
func (t *text) end(end string) error {
	_, err := t.Write(append(t.line[:len(t.line)-1], end...))
	t.line = t.line[:0]
	return err
}

// csvWriter replaces package encoding/csv, which changes line ends within cells when it ends lines as RFC 4180
// requires. That package also writes null and an empty text alike.
type csvWriter struct {
	text
	columns []Column
}

func newCSV(out io.Writer, columns []Column, begun bool) (Writer, error) {
	w := &csvWriter{text{Writer: bufio.NewWriter(out)}, columns}
	if begun {
		return w, nil
	}
	for _, column := range columns {
		w.add(column.Name)
	}
	return w, w.end("\r\n")
}

// Write writes a line.
func (w *csvWriter) Write(row webdelivery.Row) error {
	for _, column := range w.columns {
		value := row.At(column.At)
		switch {
		case value.IsNull():
			w.line = append(w.line, ',')
		case isTime(column.Name, value):
			if err := w.addTime(column, value, ""); err != nil {
				return err
			}
		default:
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
	columns []Column
	names   []string // each as it stands in every line, with its colon
}

func newNDJSON(out io.Writer, columns []Column, _ bool) (Writer, error) {
	w := &ndjsonWriter{text: text{Writer: bufio.NewWriter(out)}, columns: columns}
	for _, column := range columns {
		quoted, _ := json.Marshal(column.Name) //nolint:errchkjson // every text can be encoded
		w.names = append(w.names, string(quoted)+":")
	}
	return w, nil
}

// Write writes a line. Values but times are written as they were received, so that no number loses a digit; but each
// line is UTF-8.
func (w *ndjsonWriter) Write(row webdelivery.Row) error {
	w.line = append(w.line, '{')
	for i, column := range w.columns {
		w.line = append(w.line, w.names[i]...)
		value := row.At(column.At)
		if isTime(column.Name, value) {
			if err := w.addTime(column, value, `"`); err != nil {
				return err
			}
			continue
		}
		encoded, err := value.MarshalJSON()
		if err != nil {
			return err
		}
		w.line = append(append(w.line, encoded...), ',')
	}
	return w.end("}\n")
}
