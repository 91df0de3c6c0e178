package webdelivery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// This is the one file that knows the tokenizer. It validates every byte (UTF-8 included); a row is
// taken from it whole, and cut into cells here, which is easy once it is known to be good JSON.

// resultReader reads one statistics reply (service-interface section 2.4). Its members may come in any order (open point
// 30); unknown ones are skipped.
type resultReader struct {
	dec   *jsontext.Decoder
	meter *meter // nil when the whole reply is in memory

	auth    *authenticator // whose secrets stay out of errors
	columns *columns
	known   map[string]bool // members that have come
	echo    QueryEcho
	total   int64 // -1 until total_results has come
	rows    int64 // read so far
	held    []byte
}

// newStreamReader reads a reply as it arrives; no single value may be longer than limit.
func newStreamReader(body io.Reader, limit int64) *resultReader {
	m := &meter{from: body, limit: limit, left: limit}
	return &resultReader{dec: jsontext.NewDecoder(m, unboundedNames), meter: m, total: -1}
}

// newBufferReader reads a reply that is in memory. Rows are slices of it.
func newBufferReader(body []byte) *resultReader {
	return &resultReader{dec: jsontext.NewDecoder(bytes.NewBuffer(body), unboundedNames), total: -1}
}

// unboundedNames keeps the tokenizer from remembering every name of an object, to tell one that comes twice: a member
// that is skipped may have millions. Those that matter are told apart in member.
var unboundedNames = jsontext.AllowDuplicateNames(true)

// errStopped ends a reading that its user does not want to go on.
var errStopped = errors.New("stopped")

// read reads the reply to its end and gives each row to the function, with its place in the reply. The bytes are valid
// until the function returns.
func (r *resultReader) read(each func(row []byte, at int64) error) error {
	if err := r.expect('{'); err != nil {
		return err
	}
	for r.dec.PeekKind() != '}' {
		name, err := r.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := r.member(name.String(), each); err != nil {
			return err
		}
	}
	if err := r.expect('}'); err != nil {
		return err
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.Join(errors.New("bytes after the reply"), err)
	}
	switch {
	case r.columns == nil:
		return errors.New("no columns")
	case !r.known["rows"]:
		return errors.New("no rows")
	case r.total < 0:
		return errors.New("no total_results")
	}
	if r.held != nil {
		return r.readHeld(each)
	}
	return nil
}

func (r *resultReader) member(name string, each func([]byte, int64) error) error {
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
		if r.columns != nil {
			return r.readRows(r.dec, each)
		}
		// Without columns a row means nothing, so they wait, within the limit for one value.
		value, err := r.value()
		r.held = value
		if r.meter != nil {
			r.held = bytes.Clone(value) // the next read would overwrite it
		}
		return err
	case "total_results":
		value, err := r.value()
		if err != nil {
			return err
		}
		if err := json.Unmarshal(value, &r.total); err != nil || r.total < 0 {
			return fmt.Errorf("total_results is %s", clip(value))
		}
		return nil
	case "query":
		value, err := r.value()
		if err != nil {
			return err
		}
		_ = json.Unmarshal(value, &r.echo) // an echo of another shape takes no row away
		return nil
	default:
		return r.skip()
	}
}

func (r *resultReader) expect(kind jsontext.Kind) error {
	token, err := r.dec.ReadToken()
	if err == nil && token.Kind() != kind {
		err = fmt.Errorf("%v where %v should be", token.Kind(), kind)
	}
	return err
}

func (r *resultReader) value() (jsontext.Value, error) {
	r.meter.reset()
	return r.dec.ReadValue()
}

// skip passes over a member, however long, in constant memory.
func (r *resultReader) skip() error {
	for depth := r.dec.StackDepth(); ; {
		r.meter.reset()
		if _, err := r.dec.ReadToken(); err != nil {
			return err
		}
		if r.dec.StackDepth() == depth {
			return nil
		}
	}
}

func (r *resultReader) readColumns() error {
	value, err := r.value()
	if err != nil {
		return err
	}
	var wire []struct {
		Name *string `json:"name"`
	}
	if err := json.Unmarshal(value, &wire); err != nil {
		return fmt.Errorf("columns is %s", clip(value))
	}
	c := &columns{index: map[string]int{}, auth: r.auth}
	for i, w := range wire {
		if w.Name == nil {
			return fmt.Errorf("column %d has no name", i)
		}
		if _, double := c.index[*w.Name]; double {
			return fmt.Errorf("column %q comes twice", *w.Name)
		}
		c.index[*w.Name] = i
		c.names = append(c.names, *w.Name)
	}
	r.columns = c
	return nil
}

func (r *resultReader) readHeld(each func([]byte, int64) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(r.held))
	return r.readRows(dec, each)
}

func (r *resultReader) readRows(dec *jsontext.Decoder, each func([]byte, int64) error) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '[' {
		return fmt.Errorf("rows is no array, but %v", token.Kind())
	}
	for dec.PeekKind() != ']' {
		r.meter.reset()
		row, err := dec.ReadValue()
		if err != nil {
			return err
		}
		r.rows++
		if row.Kind() != '[' {
			return fmt.Errorf("row %d is no array, but %v", r.rows, row.Kind())
		}
		if err := each(row, dec.InputOffset()-int64(len(row))); err != nil {
			return err
		}
	}
	_, err = dec.ReadToken()
	return err
}

// rowError tells which row is wrong.
func (r *resultReader) rowError(err error) error {
	if err != nil {
		err = fmt.Errorf("row %d %w", r.rows, err)
	}
	return err
}

// cut appends the cells of a row, which is a valid JSON array, to the table. offset is the place of the row in the
// table's text.
func (t *table) cut(row []byte, offset int64) error {
	if offset+int64(len(row)) > math.MaxUint32 {
		return ErrResponseTooLarge
	}
	count, i := 0, blanks(row, 1)
	for row[i] != ']' {
		begin := i
		switch row[i] {
		case '"':
			for i++; row[i] != '"'; i++ {
				if row[i] == '\\' {
					i++
				}
			}
			i++
		case '[', '{':
			return errors.New("holds a value that is neither text, number, true, false nor null")
		default:
			for row[i] != ',' && row[i] != ']' && row[i] > ' ' {
				i++
			}
		}
		t.cells = append(t.cells, cell{uint32(offset) + uint32(begin), uint32(offset) + uint32(i)}) //nolint:gosec // bounded above
		count++
		if i = blanks(row, i); row[i] == ',' {
			i = blanks(row, i+1)
		}
	}
	if want := len(t.columns.names); count != want {
		return fmt.Errorf("has %d values, and there are %d columns", count, want)
	}
	return nil
}

// blanks is the place of the next byte that is no blank.
func blanks(text []byte, i int) int {
	for text[i] <= ' ' {
		i++
	}
	return i
}

// meter bounds what is read for one value: a tokenizer must hold a value in memory before it can give it.
type meter struct {
	from        io.Reader
	limit, left int64
}

func (m *meter) reset() {
	if m != nil {
		m.left = m.limit
	}
}

// Read gives no more than what is left for the value under way.
func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, fmt.Errorf("%w: one value has more than %d bytes", ErrResponseTooLarge, m.limit)
	}
	n, err := m.from.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}
