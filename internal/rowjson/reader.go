package rowjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Reader reads a statistics response as it arrives. Its members may come in any order; unknown ones are skipped. The
// rows are split by a rowScan, and their texts need not be valid UTF-8. Everything else is read by jsontext, which
// validates every byte. (Service document, section 2.4; open point 30.)
type Reader struct {
	dec   *jsontext.Decoder
	meter *meter

	redactor Redactor
	query    any             // what the member query is decoded into; may be nil
	members  map[string]bool // members that have been read
	total    int64           // -1 until total_results has been read
	rows     int64           // number of rows read so far
	code     int             // of an envelope instead of or besides a result; 0 if there is none
	words    wire.ErrorWords // message of that envelope
	place    string          // what the decoder is reading, for errors; "" if its offsets are those of the response
	early    []byte          // rows that arrived before the columns
	table    table           // the last row

	inRows, ended bool
	noRows        bool      // rows is null
	left          int64     // while rows are read, what is left of the limit for everything else
	source        rowSource // the rows being read, if inRows
	err           error     // the error that ended reading
}

// NewReader returns a Reader of a response body.
func NewReader(body io.Reader, config Config) *Reader {
	config.Limit.Bytes = min(config.Limit.Bytes, mostMark) // so that a mark can hold every index in a row
	m := &meter{from: body, limit: config.Limit, left: config.Limit.Bytes}
	r := &Reader{dec: jsontext.NewDecoder(m, wire.UnboundedNames), meter: m, redactor: config.Redactor, query: config.Query, total: -1}
	r.table.arrives, r.table.scan = true, &r.source.scan
	return r
}

// ReadOn changes where the rest of the body comes from.
func (r *Reader) ReadOn(from io.Reader) { r.meter.from = from }

// Next reads the next row. It returns false at the end of the response or after an error; see Err. Rows that come
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

// ReadAll reads all remaining rows, and adds them to kept unless it is nil.
func (r *Reader) ReadAll(kept *Store) {
	for r.Next() {
		if kept != nil {
			kept.Add(r.Row())
		}
	}
}

// Row returns the row that Next read. It is valid until the next call to Next.
func (r *Reader) Row() Row { return Row{table: &r.table} }

// Err returns the error that ended reading, or nil if there is none.
func (r *Reader) Err() error { return r.err }

// Columns returns a copy of the names of the columns, or nil if they have not been read yet.
func (r *Reader) Columns() []string { return slices.Clone(r.Row().columns().names) }

// Count returns the number of rows that Next has read.
func (r *Reader) Count() int64 { return r.rows }

// Total returns total_results, or -1 if it has not been read yet.
func (r *Reader) Total() int64 { return r.total }

// Envelope returns the code and the message of an envelope instead of or besides a result.
func (r *Reader) Envelope() (code int, words string) { return r.code, r.words.Text() }

// EnvelopeCode returns the code of an envelope, or a negative number if it is not certain yet. It is certain at the end
// of the response, or after a member that an envelope does not have.
func (r *Reader) EnvelopeCode() int {
	if r.ended || r.members["columns"] || r.members["rows"] {
		return r.code
	}
	return -1
}

// readMembers reads to the rows, or to the end of the response. It removes the member's name from errors of jsontext,
// which may truncate it: a part of a secret could not be redacted.
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
	case !r.members["rows"] && (!r.noRows || r.total != 0): // many services write null for an empty list
		return errors.New("no rows")
	case r.total < 0:
		return errors.New("no total_results")
	case r.early == nil:
		return nil
	}
	r.source, r.inRows = rowSource{text: r.early, next: 1, limit: r.meter.limit, scan: r.source.scan}, true
	return nil
}

// maxWords is the maximum size of a member with an error message.
const maxWords = 64 << 10

// member reads a member. Those of a result must not occur twice. Columns and rows that are null count as missing, but
// without a result there need not be rows.
func (r *Reader) member(name string) error {
	kind := r.dec.PeekKind()
	switch name {
	case "columns", "rows", "total_results", "query":
		if r.members[name] {
			return fmt.Errorf("duplicate member %s", name)
		}
		if kind == 'n' && (name == "columns" || name == "rows") {
			r.noRows = r.noRows || name == "rows"
			return r.dec.SkipValue()
		}
		if r.members == nil {
			r.members = map[string]bool{}
		}
		r.members[name] = true
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
			_ = wire.Decode(value, r.query) // an unexpected shape must not cost rows
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
	total := wire.Int(-1)
	if err := total.UnmarshalJSON(value); err != nil || total < 0 {
		return fmt.Errorf("total_results is %s", wire.Clip(value))
	}
	r.total = int64(total)
	return nil
}

func (r *Reader) expect(kind jsontext.Kind) error {
	token, err := r.dec.ReadToken()
	if err == io.EOF { //nolint:errorlint // of an empty response, never wrapped
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

// holdRows reads and keeps rows that come before the columns, from after their bracket, up to the limit. It uses a
// separate decoder, which accepts invalid UTF-8 as the scan does.
func (r *Reader) holdRows() error {
	r.place = "rows before columns"
	rest := io.MultiReader(bytes.NewReader(r.dec.UnreadBuffer()), r.meter)
	dec := jsontext.NewDecoder(io.MultiReader(strings.NewReader("["), rest), wire.UnboundedNames, jsontext.AllowInvalidUTF8(true))
	rows, err := dec.ReadValue()
	if err != nil {
		return err
	}
	r.early = bytes.Clone(rows) // the next read would overwrite it
	return r.behindArray(`{"":[]`, io.MultiReader(bytes.NewReader(dec.UnreadBuffer()), rest))
}

// openRows starts reading the rows at the decoder's position.
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

// closeRows continues with a decoder after the rows. The closing bracket of the rows is left to that decoder.
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

// behindArray makes a new decoder read the rest of the response. The decoder first gets the text of a member with an
// array, so that it checks what may follow one.
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

// writeRow makes the table's writer split and write the next row. It returns false if nextRow has to read the row,
// because it does not immediately follow a comma, is incomplete, or has an error.
func (r *Reader) writeRow() bool {
	s, t := &r.source, &r.table
	text := s.text[s.next:]
	if r.err != nil || !r.inRows || len(text) < 2 || text[0] != ',' || text[1] != '[' {
		return false
	}
	text = text[1:]
	end := t.writer.write(&s.scan, text)
	if end == 0 {
		return false
	}
	s.next += end + 1
	r.rows++
	t.text, t.marks = text[:end:end], t.marks[:0]
	return true
}

// nextRow reads the next row. It returns false after the last one.
func (r *Reader) nextRow() (bool, error) {
	r.meter.left = r.meter.limit.Bytes // for white space, then for the row
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
