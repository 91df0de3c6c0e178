package webdelivery

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

// A reply is read by the tokenizer, which validates every byte (UTF-8 included), up to its rows and from there on; the
// rows are taken apart by the scanner.

// resultReader reads one statistics reply (service-interface section 2.4). Its members may come in any order (open point
// 30); unknown ones are skipped.
type resultReader struct {
	dec   tokenizer
	meter *meter

	auth  *authenticator  // whose secrets stay out of errors
	known map[string]bool // members that have come
	echo  QueryEcho
	total int64           // -1 until total_results has come
	rows  int64           // read so far
	code  int             // of an envelope, in place of a result or beside one
	said  wire.ErrorWords // the words of that envelope
	moved bool            // the tokenizer began anew, behind the rows
	held  []byte          // rows that came before the columns
	table table           // the last row

	begun, ended bool
	inRows       bool
	left         int64     // of the limit for all but the rows, while they are read
	source       rowSource // the rows that are being read, where inRows

	found bool  // table has the row that came next
	err   error // that ended the reading
}

// newResultReader reads a reply as it arrives. No row may be longer than limit, nor may all else together.
func newResultReader(body io.Reader, limit int64, auth *authenticator) *resultReader {
	m := &meter{from: body, limit: limit, left: limit}
	return &resultReader{dec: newTokenizer(m), meter: m, auth: auth, total: -1}
}

// tokenizer is that of jsontext, whose errors here do not say in which member they are: their text shortens long names,
// and so may hold a piece of a secret that nobody finds.
type tokenizer struct{ *jsontext.Decoder }

func newTokenizer(from io.Reader) tokenizer {
	return tokenizer{jsontext.NewDecoder(from, wire.UnboundedNames)}
}

func (t tokenizer) ReadToken() (jsontext.Token, error) {
	token, err := t.Decoder.ReadToken()
	return token, withoutPointer(err)
}

func (t tokenizer) ReadValue() (jsontext.Value, error) {
	value, err := t.Decoder.ReadValue()
	return value, withoutPointer(err)
}

func withoutPointer(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // the tokenizer's own; almost always, and without an allocation
		return err
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return &jsontext.SyntacticError{ByteOffset: syntax.ByteOffset, Err: syntax.Err}
	}
	return err
}

// next reads on to the next row, which is in table then. It is false at the end of the reply, or with err. Rows that come
// before their columns are read when the reply has ended.
func (r *resultReader) next() bool {
	for r.found = false; !r.found && r.err == nil; {
		switch {
		case r.inRows:
			r.found, r.err = r.nextRow()
		case r.ended:
			return false
		default:
			r.err = r.readMembers()
		}
	}
	return r.found
}

// readMembers reads on to the rows, or to the end of the reply.
func (r *resultReader) readMembers() error {
	err := r.toRows()
	if err == nil || !r.moved {
		return err
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Errorf("bytes after the rows: %w", syntax.Err) // the offset it tells is not that in the reply
	}
	return err
}

func (r *resultReader) toRows() error {
	if !r.begun {
		if err := r.expect('{'); err != nil {
			return err
		}
		r.begun = true
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
		return errors.Join(errors.New("bytes after the reply"), err)
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
	if kind := jsontext.Value(r.held).Kind(); kind != '[' {
		return fmt.Errorf("rows is no array, but %v", kind)
	}
	r.source, r.inRows = rowSource{text: r.held, next: 1}, true
	return nil
}

// envelopeCode is the code of a reply that was read to its end, or up to the first member of a result; below 0 if it could
// not be read so far.
func (r *resultReader) envelopeCode() int {
	if r.ended || r.isResult() {
		return r.code
	}
	return -1
}

// isResult: a member has come that an envelope does not have.
func (r *resultReader) isResult() bool { return r.known["columns"] || r.known["rows"] }

func (r *resultReader) member(name string) error {
	if (name == "columns" || name == "rows") && !r.known[name] && r.dec.PeekKind() == 'n' {
		return r.skip() // null is as good as missing
	}
	switch name {
	case "columns", "rows", "total_results", "query":
		if r.known[name] {
			return fmt.Errorf("duplicate member %s", name)
		}
		if r.known == nil {
			r.known = map[string]bool{}
		}
		r.known[name] = true
	}
	switch name {
	case "columns":
		return r.readColumns()
	case "rows":
		if r.table.columns != nil {
			return r.openRows()
		}
		// Without columns a row means nothing, so they wait, within the limit.
		value, err := r.dec.ReadValue()
		r.held = bytes.Clone(value) // the next read would overwrite it
		return err
	case "total_results":
		value, err := r.dec.ReadValue()
		if err != nil {
			return err
		}
		if err := json.Unmarshal(value, &r.total); err != nil || r.total < 0 {
			return fmt.Errorf("total_results is %s", wire.Clip(value))
		}
		return nil
	case "query":
		value, err := r.dec.ReadValue()
		if err != nil {
			return err
		}
		_ = wire.Decode(value, &r.echo) // an echo of another shape takes no row away
		return nil
	case "description", "message", "error_info":
		value, err := r.dec.ReadValue()
		if err == nil && len(value) <= maxErrorBody {
			r.said.Add(name, value)
		}
		return err
	default:
		if strings.EqualFold(name, "code") && r.dec.PeekKind() != '{' && r.dec.PeekKind() != '[' {
			value, err := r.dec.ReadValue()
			if err == nil {
				r.code = wire.Graver(r.code, value)
			}
			return err
		}
		return r.skip()
	}
}

func (r *resultReader) expect(kind jsontext.Kind) error {
	token, err := r.dec.ReadToken()
	if err == io.EOF { //nolint:errorlint // the tokenizer's own, where nothing has come
		return io.ErrUnexpectedEOF
	}
	if err == nil && token.Kind() != kind {
		err = fmt.Errorf("%v where %v should be", token.Kind(), kind)
	}
	return err
}

// skip passes over a member, in constant memory.
func (r *resultReader) skip() error {
	for depth := r.dec.StackDepth(); ; {
		if _, err := r.dec.ReadToken(); err != nil {
			return err
		}
		if r.dec.StackDepth() == depth {
			return nil
		}
	}
}

func (r *resultReader) readColumns() error {
	value, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	var described []struct {
		Name *string `json:"name"`
	}
	if err := wire.Decode(value, &described); err != nil {
		return fmt.Errorf("columns is %s", wire.Clip(value))
	}
	c := &columns{index: map[string]int{}, auth: r.auth}
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
	r.table.columns = c
	return nil
}

// openRows begins with the rows where they stand.
func (r *resultReader) openRows() error {
	if err := r.expect('['); err != nil {
		return fmt.Errorf("rows is no array: %w", err)
	}
	unread := r.dec.UnreadBuffer()
	r.left = r.meter.left + int64(len(unread))
	text := append(make([]byte, 0, max(rowBuffer, len(unread))), unread...)
	r.source, r.inRows = rowSource{text: text, from: r.meter, max: r.meter.limit}, true
	return nil
}

// closeRows lets the tokenizer go on behind the rows. It begins with the bracket that ends them, so that what is behind
// it has to stand behind an array.
func (r *resultReader) closeRows() error {
	r.inRows = false
	if r.ended {
		return nil
	}
	r.moved = true
	if r.meter.left = r.left - int64(len(r.source.text)-r.source.next); r.meter.left < 0 {
		return r.meter.tooMuch()
	}
	rest := r.source.rest()
	r.dec = newTokenizer(io.MultiReader(strings.NewReader(`{"":[`), rest))
	for range 4 {
		if _, err := r.dec.ReadToken(); err != nil {
			return err
		}
	}
	return nil
}

// nextRow reads the next row; it is false behind the last one.
func (r *resultReader) nextRow() (bool, error) {
	r.meter.left = r.meter.limit // for the blanks, then for the row
	next, err := r.source.peek()
	if err == nil && next == ']' {
		return false, r.closeRows()
	}
	if err == nil && r.rows > 0 {
		if next != ',' {
			return false, fmt.Errorf("%q behind row %d", next, r.rows)
		}
		r.source.next++
		next, err = r.source.peek()
	}
	if err == nil && next != '[' {
		err = fmt.Errorf("row %d is no array", r.rows+1)
	}
	if err != nil {
		return false, err
	}
	r.rows++
	r.meter.left = r.meter.limit
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

// rowStore keeps rows in blocks, so that none is copied twice and none is larger than it needs to be.
type rowStore struct{ blocks []*table }

const blockBytes = 256 << 10

// add keeps a copy of a row.
func (s *rowStore) add(row *table) {
	var block *table
	if n := len(s.blocks); n > 0 {
		block = s.blocks[n-1]
	}
	switch {
	case block == nil:
		block = &table{columns: row.columns} // grows, as most replies are small
		s.blocks = append(s.blocks, block)
	case len(block.text)+len(row.text) > blockBytes:
		marks := len(block.marks) + len(block.marks)/16
		block = &table{row.columns, make([]byte, 0, max(blockBytes, len(row.text))), make([]uint32, 0, marks)}
		s.blocks = append(s.blocks, block)
	}
	base := uint32(len(block.text)) //nolint:gosec // blockBytes at most
	block.text = append(roomFor(block.text, len(row.text)), row.text...)
	block.marks = roomFor(block.marks, len(row.marks))
	for _, mark := range row.marks {
		block.marks = append(block.marks, base+mark)
	}
}

// roomFor makes room for n more by doubling. Where a slice becomes long, append alone copies it more often.
func roomFor[T any](s []T, n int) []T {
	if cap(s)-len(s) < n {
		s = slices.Grow(s, max(n, len(s)))
	}
	return s
}

// rows lists what was kept.
func (s *rowStore) rows(count int64) []Row {
	rows := make([]Row, 0, count)
	for _, block := range s.blocks {
		for first := 0; first < len(block.marks); first += len(block.columns.names) + 1 {
			rows = append(rows, Row{block, first})
		}
	}
	return rows
}

// meter bounds what is read for one row, or for all but the rows together.
type meter struct {
	from        io.Reader
	limit, left int64
}

// Read gives no more than what is left. Then one byte more is too much, and the end is not.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.from.Read(p[:min(int64(len(p)), max(m.left, 1))])
	if n > 0 && m.left <= 0 {
		return 0, m.tooMuch()
	}
	m.left -= int64(n)
	return n, err
}

func (m *meter) tooMuch() error {
	return fmt.Errorf("%w: a row, or all but the rows, has more than %d bytes", ErrResponseTooLarge, m.limit)
}
