package rowjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Reader reads one statistics response as it arrives. Its members may come in any order; unknown ones are skipped.
// jsontext reads up to the rows and from behind them on, and validates every byte, UTF-8 included. The scanner splits
// the rows. Their texts need not be UTF-8 unless Config says so. (Service document, section 2.4; open point 30.)
type Reader struct {
	dec   *jsontext.Decoder
	meter *meter

	redactor Redactor
	query    any             // what the member query is decoded into; nil for nothing
	known    map[string]bool // members that have come
	total    int64           // -1 until total_results has come
	rows     int64           // read so far
	code     int             // of an envelope, in place of a result or beside one
	words    wire.ErrorWords // of that envelope
	place    string          // of what the decoder reads, if it is not at the offset that it counts; or ""
	held     []byte          // rows that came before the columns
	table    table           // the last row

	inRows, ended bool
	left          int64     // of the limit for everything but the rows, while the rows are read
	source        rowSource // the rows that are being read, if inRows
	err           error     // that ended the reading
}

// NewReader returns a Reader of a response body.
func NewReader(body io.Reader, config Config) *Reader {
	config.Limit.Bytes = min(config.Limit.Bytes, mostMark) // the texts of rows are within it
	m := &meter{from: body, limit: config.Limit, left: config.Limit.Bytes}
	r := &Reader{dec: jsontext.NewDecoder(m, wire.UnboundedNames), meter: m, redactor: config.Redactor, query: config.Query, total: -1}
	r.table.arrives = true
	return r
}

// ReadOn changes where the rest of the body comes from.
func (r *Reader) ReadOn(from io.Reader) { r.meter.from = from }

// Next reads the next row. It returns false at the end of the response, and if Err returns an error. Rows that come
// before their columns are read when the response has ended.
func (r *Reader) Next() bool {
	if r.table.written = r.table.writer != nil && r.writeRow(); r.table.written {
		return true
	}
	found := false
	for !found && r.err == nil && (r.inRows || !r.ended) {
		if r.inRows {
			found, r.err = r.nextRow()
		} else {
			r.err = r.readMembers()
		}
	}
	return found
}

// ReadAll reads the rows to the end of the response, and keeps them unless kept is nil.
func (r *Reader) ReadAll(kept *Store) {
	for r.Next() {
		if kept != nil {
			kept.Add(r.Row())
		}
	}
}

// Row returns the row that Next read. It is valid until the next call of Next.
func (r *Reader) Row() Row { return Row{table: &r.table} }

// Err returns the error that ended the reading; nil while there is none, and after a complete response.
func (r *Reader) Err() error { return r.err }

// Columns returns the names of the columns; nil until they have come. The list belongs to the caller.
func (r *Reader) Columns() []string { return slices.Clone(r.Row().columns().names) }

// Count returns the number of rows that Next has read.
func (r *Reader) Count() int64 { return r.rows }

// Total returns total_results; -1 until it has come.
func (r *Reader) Total() int64 { return r.total }

// Envelope returns the code of an envelope that came in place of a result or beside one, and its words.
func (r *Reader) Envelope() (code int, words string) { return r.code, r.words.Text() }

// EnvelopeCode returns the code of an envelope if it is certain. It is certain after the end of the response, or after
// a member that an envelope does not have. Otherwise it returns a number below 0.
func (r *Reader) EnvelopeCode() int {
	if r.ended || r.known["columns"] || r.known["rows"] {
		return r.code
	}
	return -1
}

// readMembers reads on to the rows, or to the end of the response. jsontext names the member in which an error occurred,
// and shortens a long name. So its error could hold a piece of a secret, which the redaction would not find.
func (r *Reader) readMembers() error {
	err := r.toRows()
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case !ok:
		return err
	case r.place != "":
		return fmt.Errorf("%s: %w", r.place, syntax.Err)
	default:
		return &jsontext.SyntacticError{ByteOffset: syntax.ByteOffset, Err: syntax.Err}
	}
}

func (r *Reader) toRows() error {
	if r.dec.StackDepth() == 0 {
		if err := r.expect('{'); err != nil {
			return err
		}
	}
	for r.dec.PeekKind() != '}' {
		name, err := r.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := r.member(name.String()); err != nil || r.inRows {
			return err
		}
	}
	if err := r.expect('}'); err != nil {
		return err
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.Join(errors.New("bytes after the response"), err)
	}
	r.ended = true
	switch {
	case r.table.columns == nil:
		return errors.New("no columns")
	case !r.known["rows"]:
		return errors.New("no rows")
	case r.total < 0:
		return errors.New("no total_results")
	case r.held == nil:
		return nil
	}
	r.source, r.inRows = rowSource{text: r.held, next: 1, limit: r.meter.limit, scan: r.source.scan}, true
	return nil
}

// maxWords is how long a member may be in which an envelope says what is wrong.
const maxWords = 64 << 10

// member reads a member. Those of a result must not come twice. Columns and rows that are null count as missing.
func (r *Reader) member(name string) error {
	kind := r.dec.PeekKind()
	switch name {
	case "columns", "rows", "total_results", "query":
		if r.known[name] {
			return fmt.Errorf("duplicate member %s", name)
		}
		if kind == 'n' && (name == "columns" || name == "rows") {
			return r.dec.SkipValue()
		}
		if r.known == nil {
			r.known = map[string]bool{}
		}
		r.known[name] = true
	case "description", "message", "error_info":
	default:
		if !strings.EqualFold(name, "code") {
			return r.dec.SkipValue()
		}
	}
	if name == "rows" {
		return r.openRows()
	}
	value, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	switch name {
	case "columns":
		return r.readColumns(value)
	case "total_results":
		return r.readTotal(value)
	case "query":
		if r.query != nil {
			_ = wire.Decode(value, r.query) // one of an unexpected shape takes no row away
		}
	case "description", "message", "error_info":
		if len(value) <= maxWords {
			r.words.Add(name, value)
		}
	default:
		r.code = wire.HigherCode(r.code, value)
	}
	return nil
}

func (r *Reader) readTotal(value []byte) error {
	if err := json.Unmarshal(value, &r.total); err != nil || r.total < 0 {
		return fmt.Errorf("total_results is %s", wire.Clip(value))
	}
	return nil
}

func (r *Reader) expect(kind jsontext.Kind) error {
	token, err := r.dec.ReadToken()
	if err == io.EOF { //nolint:errorlint // the decoder's own, where nothing has come
		return io.ErrUnexpectedEOF
	}
	if err == nil && token.Kind() != kind {
		err = fmt.Errorf("%v where %v should be", token.Kind(), kind)
	}
	return err
}

func (r *Reader) readColumns(value []byte) error {
	var described []struct {
		Name *string `json:"name"`
	}
	if err := wire.Decode(value, &described); err != nil {
		return fmt.Errorf("columns is %s", wire.Clip(value))
	}
	c := &columns{index: map[string]int{}, redactor: r.redactor}
	for i, w := range described {
		if w.Name == nil {
			return fmt.Errorf("column %d has no name", i)
		}
		if _, double := c.index[*w.Name]; double {
			return fmt.Errorf("column %q comes twice", *w.Name)
		}
		c.index[*w.Name] = i
		c.names = append(c.names, *w.Name)
	}
	r.table.columns, r.source.scan.marks = c, make([]mark, 0, len(c.names)+1)
	return nil
}

// holdRows reads rows that come before the columns, from behind their bracket on. Without columns a row means nothing, so
// the rows wait, within the limit. A decoder of their own reads them, because it accepts the texts that the scan accepts.
func (r *Reader) holdRows() error {
	r.place = "rows before columns"
	rest := io.MultiReader(bytes.NewReader(r.dec.UnreadBuffer()), r.meter)
	dec := jsontext.NewDecoder(io.MultiReader(strings.NewReader("["), rest), wire.UnboundedNames, jsontext.AllowInvalidUTF8(true))
	rows, err := dec.ReadValue()
	if err != nil {
		return err
	}
	r.held = bytes.Clone(rows) // the next read would overwrite it
	return r.behindArray(`{"":[]`, io.MultiReader(bytes.NewReader(dec.UnreadBuffer()), rest))
}

// openRows begins to read the rows where the decoder stands.
func (r *Reader) openRows() error {
	if err := r.expect('['); err != nil {
		return fmt.Errorf("rows is not an array: %w", err)
	}
	if r.table.columns == nil {
		return r.holdRows()
	}
	unread := r.dec.UnreadBuffer()
	r.left = r.meter.left + int64(len(unread))
	text := append(make([]byte, 0, max(rowBuffer, len(unread))), unread...)
	r.source, r.inRows = rowSource{text: text, from: r.meter, limit: r.meter.limit, scan: r.source.scan}, true
	return nil
}

// closeRows lets a decoder go on behind the rows. It gets the beginning of an array first, which the bracket behind
// the rows ends.
func (r *Reader) closeRows() error {
	r.inRows = false
	if r.ended {
		return nil
	}
	rest := r.source.text[r.source.next:]
	if r.meter.left = r.left - int64(len(rest)); r.meter.left < 0 {
		return r.meter.tooMuch()
	}
	return r.behindArray(`{"":[`, io.MultiReader(bytes.NewReader(rest), r.meter))
}

// behindArray lets a decoder go on with the rest of the response. It gets a member with an array first, so that it
// checks what comes behind an array.
func (r *Reader) behindArray(array string, rest io.Reader) error {
	r.place = "bytes after the rows"
	r.dec = jsontext.NewDecoder(io.MultiReader(strings.NewReader(array), rest), wire.UnboundedNames)
	for range 4 {
		if _, err := r.dec.ReadToken(); err != nil {
			return err
		}
	}
	return nil
}

// writeRow lets the writer of the table write the next row while it splits it. It returns false if nextRow has to read
// that row, because it does not follow a comma at once, has not arrived as a whole, or has an error.
func (r *Reader) writeRow() bool {
	s, t := &r.source, &r.table
	text := s.text[s.next:]
	if r.err != nil || !r.inRows || r.rows == 0 || len(text) < 2 || text[0] != ',' || text[1] != '[' {
		return false
	}
	text = text[1:]
	end := t.writer.write(&s.scan, text)
	if end == 0 {
		return false
	}
	s.next += end + 1
	r.rows++
	t.text, t.marks = text[:end:end], s.scan.marks
	return true
}

// nextRow reads the next row. It returns false behind the last one.
func (r *Reader) nextRow() (bool, error) {
	r.meter.left = r.meter.limit.Bytes // for the blanks, then for the row
	next, err := r.source.peek()
	if err == nil && next == ']' {
		return false, r.closeRows()
	}
	if err == nil && r.rows > 0 {
		if next != ',' {
			return false, fmt.Errorf("%q after row %d", next, r.rows)
		}
		r.source.next++
		next, err = r.source.peek()
	}
	if err == nil && next != '[' {
		err = fmt.Errorf("row %d is not an array", r.rows+1)
	}
	if err != nil {
		return false, err
	}
	r.rows++
	r.meter.left = r.meter.limit.Bytes
	t := &r.table
	if t.text, err = r.source.row(); err != nil {
		return false, fmt.Errorf("row %d %w", r.rows, err)
	}
	t.marks = r.source.scan.marks
	if count, want := len(t.marks)-1, len(t.columns.names); count != want {
		return false, fmt.Errorf("row %d has %d values, and there are %d columns", r.rows, count, want)
	}
	return true, nil
}
