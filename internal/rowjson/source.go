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

// rowSource is the text of rows: all of it, or as much as has arrived and is not consumed.
type rowSource struct {
	text  []byte
	next  int       // index of the first byte that is not consumed
	from  io.Reader // source of further bytes; nil if there are none
	limit Limit     // for one row, if from is set
	scan  rowScan   // of the next row
}

const rowBuffer = 64 << 10

// more reads further bytes. It moves the rest of the text to its beginning, which invalidates texts returned before.
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
			return nil // the next Read returns an error again
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}

// peek skips white space and returns the byte after it, without consuming it.
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

// row splits and consumes the next row. Its marks are in s.scan. Text and marks are valid until the next call.
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

// whole reads to the first closing bracket outside a string, and returns how many bytes of the row have arrived.
// Without it, a long row that arrives in many pieces would be split again for each piece.
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
			i++ // a row has none outside of strings
		case ']':
			if !isText {
				return i + 1, nil
			}
		}
		i++
	}
}

// explain returns what is wrong with a row of these bytes. That is err if the row is only incomplete.
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

// meter limits the bytes that are read for one row, or for everything except the rows.
type meter struct {
	from  io.Reader
	limit Limit
	left  int64 // bytes
}

// Read returns at most the bytes that are left. If none are left, it returns an error unless the body ends there.
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
