package rowjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// rowSource is the text of rows: all of it, or as much as has arrived and is not used up.
type rowSource struct {
	text  []byte
	next  int       // the first byte that is not used up
	from  io.Reader // what is still to come; nil for nothing
	limit Limit     // of one row, if more is to come
	scan  rowScan   // of the next row
}

const rowBuffer = 32 << 10

// more reads on. It moves the rest of the text to its beginning, which invalidates what was returned before.
func (s *rowSource) more() error {
	if s.from == nil {
		return io.ErrUnexpectedEOF
	}
	if s.next > 0 {
		s.text = s.text[:copy(s.text, s.text[s.next:])]
		s.next = 0
	}
	if int64(len(s.text)) >= s.limit.Bytes {
		return fmt.Errorf("%w: one row has more than %d bytes", s.limit.Err, s.limit.Bytes)
	}
	if len(s.text) == cap(s.text) {
		s.text = slices.Grow(s.text, max(rowBuffer, len(s.text)))
	}
	free := s.text[len(s.text):min(int64(cap(s.text)), s.limit.Bytes)]
	for range 100 {
		n, err := s.from.Read(free)
		s.text = s.text[:len(s.text)+n]
		switch {
		case n > 0:
			return nil // an error comes again
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}

// peek returns the next byte that is no blank, and uses up the blanks before it.
func (s *rowSource) peek() (byte, error) {
	for {
		if s.next = skipAnyBlanks(s.text, s.next); s.next < len(s.text) {
			return s.text[s.next], nil
		}
		if err := s.more(); err != nil {
			return 0, err
		}
	}
}

// row splits the next row and uses it up. Its marks are those of the scan. Text and marks are valid until the next
// call.
func (s *rowSource) row() (text []byte, err error) {
	for {
		text := s.text[s.next:]
		text = text[:min(len(text), mostMark)]
		end, err := s.scan.scan(text)
		switch {
		case err == nil:
			s.next += end
			return text[:end:end], nil
		case errors.Is(err, errShort) && len(text) == mostMark:
			return nil, fmt.Errorf("%w: one row has more than %d bytes", s.limit.Err, mostMark)
		case errors.Is(err, errShort):
			if err := s.more(); err != nil {
				return nil, err
			}
		case errors.Is(err, errNested):
			return nil, err
		default:
			return nil, s.explain()
		}
	}
}

// write lets a writer write the next row. It returns nil if the row does not follow a comma at once, or has to be split.
func (s *rowSource) write(w *writer) (text []byte) {
	text = s.text[s.next:]
	if len(text) < 2 || text[0] != ',' || text[1] != '[' {
		return nil
	}
	end := w.write(&s.scan, text[1:min(len(text), mostMark)])
	if end == 0 {
		return nil
	}
	s.next += end + 1
	return text[1 : end+1 : end+1]
}

// explain lets jsontext say what is wrong with a row.
func (s *rowSource) explain() error {
	_, err := jsontext.NewDecoder(bytes.NewReader(s.text[s.next:]), s.scan.texts()).ReadValue()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF) { // which would say that the response was cut
		return fmt.Errorf("is no JSON: %w", syntax.Err)
	}
	return errors.New("is no JSON")
}

// rest returns what comes behind the rows, for rows that are read as they arrive.
func (s *rowSource) rest() io.Reader {
	return io.MultiReader(bytes.NewReader(s.text[s.next:]), s.from)
}

// meter bounds what is read for one row, or for everything but the rows together.
type meter struct {
	from  io.Reader
	limit Limit
	left  int64 // bytes
}

// Read returns no more than what is left. One more byte is too much then, but the end is not.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.from.Read(p[:min(int64(len(p)), max(m.left, 1))])
	if n > 0 && m.left <= 0 {
		return 0, m.tooMuch()
	}
	m.left -= int64(n)
	return n, err
}

func (m *meter) tooMuch() error {
	return fmt.Errorf("%w: a row, or all but the rows, has more than %d bytes", m.limit.Err, m.limit.Bytes)
}
