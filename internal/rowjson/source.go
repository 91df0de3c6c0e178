package rowjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
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
		return fmt.Errorf("%w: one row exceeds %d bytes", s.limit.Err, s.limit.Bytes)
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
	text = s.text[s.next:]
	end := s.scan.scan(text)
	if end == 0 {
		size, err := s.whole()
		text = s.text[s.next : s.next+size]
		if end = s.scan.scan(text); end == 0 {
			return nil, s.explain(text, err)
		}
	}
	s.next += end
	return text[:end:end], nil
}

// whole reads on up to the first bracket that is not in a text. It returns how many bytes these are; with an error, how
// many have come. Only then is a row that was cut worth splitting again. Otherwise a long row that arrives in many pieces
// would be split once for each piece.
func (s *rowSource) whole() (size int, err error) {
	i, isText := 1, false
	for {
		text := s.text[s.next:]
		if isText {
			i = wire.PlainText(text, i)
		}
		if i >= len(text) {
			if err := s.more(); err != nil {
				return len(text), err
			}
			continue
		}
		switch text[i] {
		case '"':
			isText = !isText
		case '\\':
			i++ // no row has one outside of a text
		case ']':
			if !isText {
				return i + 1, nil
			}
		}
		i++
	}
}

// explain says what is wrong with a row of these bytes; err if that is only what has ended it.
func (s *rowSource) explain(text []byte, err error) error {
	_, wrong := jsontext.NewDecoder(bytes.NewReader(text), wire.UnboundedNames, jsontext.AllowInvalidUTF8(true)).ReadValue()
	switch syntax, ok := errors.AsType[*jsontext.SyntacticError](wrong); {
	case ok && !errors.Is(wrong, io.ErrUnexpectedEOF):
		return fmt.Errorf("is not JSON: %w", syntax.Err)
	case err != nil:
		return err
	default:
		return errors.New("contains a value that is not a string, a number, true, false or null")
	}
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
	return fmt.Errorf("%w: a row, or everything except the rows, exceeds %d bytes", m.limit.Err, m.limit.Bytes)
}
