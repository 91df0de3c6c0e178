package webdelivery

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Rows are most of what this package reads, and a row is simple: an array of texts, numbers, true, false and null. So
// rows are taken apart here, in one pass over the bytes as they lie in the buffer. What is plain (ASCII without escapes,
// digits) is judged here; of all else only the end is found here, and the tokenizer says whether it is JSON.

// scanRow takes apart the row at the beginning of the text, from its bracket on. It appends the marks of the row and
// returns the place behind it.
func scanRow(text []byte, marks []uint32) (_ []uint32, end int, err error) {
	marks = append(marks, 0)
	i := skipBlanks(text, 1)
	if i < len(text) && text[i] == ']' {
		return marks, i + 1, nil
	}
	for i < len(text) {
		start := i
		switch c := text[i]; {
		case c == '"':
			i = plainText(text, i+1)
			if i < len(text) && text[i] == '"' {
				i++
			} else if i, err = anyText(text, start); err != nil {
				return marks, 0, err
			}
		case c-'0' <= 9 || c == '-':
			for i++; i < len(text) && text[i]-'0' <= 9; i++ {
			}
			if i < len(text) && isBehind(text[i]) && (c != '-' && c != '0' || i == start+1 && c == '0') {
				break
			}
			if i, err = anyNumber(text, start); err != nil {
				return marks, 0, err
			}
		default:
			if i, err = word(text, i); err != nil {
				return marks, 0, err
			}
		}
		marks = append(marks, uint32(i)) //nolint:gosec // who calls bounds the text
		if i < len(text) && text[i] <= ' ' {
			i = skipBlanks(text, i)
		}
		if i == len(text) {
			break
		}
		switch text[i] {
		case ',':
			if i++; i < len(text) && text[i] <= ' ' {
				i = skipBlanks(text, i)
			}
		case ']':
			return marks, i + 1, nil
		default:
			return marks, 0, errMalformed
		}
	}
	return marks, 0, errShort
}

var (
	errShort     = errors.New("the text ends within a row") // and may go on
	errMalformed = errors.New("no JSON")
	errNested    = errors.New("holds a value that is neither text, number, true, false nor null")
)

// skipBlanks is the place of the next byte that is no blank of JSON.
func skipBlanks(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// isBehind: a byte that may stand behind a value.
func isBehind(c byte) bool {
	return c == ',' || c == ']' || c == ' ' || c == '\n' || c == '\t' || c == '\r'
}

// plainText is the place of the first byte that is not plain: a quote, a backslash, a control character, or not ASCII.
// It looks at eight bytes at a time.
func plainText(text []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		quote, backslash := w^(ones*'"'), w^(ones*'\\')
		// A byte's high bit is set where it is below the number subtracted from it, and was not set before.
		found := (w | (w - ones*' ') | (quote - ones) | (backslash - ones)) & highs
		if found != 0 {
			// Borrows only spread upwards, so that the lowest mark is right.
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(text) && text[i] >= ' ' && text[i] != '"' && text[i] != '\\' && text[i] < 0x80 {
		i++
	}
	return i
}

// anyText is the place behind the text that begins at text[start].
func anyText(text []byte, start int) (int, error) {
	for i := plainText(text, start+1); i < len(text); i = plainText(text, i) {
		switch c := text[i]; {
		case c == '"':
			return i + 1, checkScalar(text[start : i+1])
		case c == '\\':
			i += 2
		case c < ' ':
			return 0, errMalformed
		default:
			i++
		}
	}
	return 0, errShort
}

// anyNumber is the place behind the number that begins at text[start].
func anyNumber(text []byte, start int) (int, error) {
	for i := start; i < len(text); i++ {
		if isBehind(text[i]) {
			return i, checkScalar(text[start:i])
		}
	}
	return 0, errShort
}

func checkScalar(text []byte) error {
	if !jsontext.Value(text).IsValid() {
		return errMalformed
	}
	return nil
}

// word is the place behind true, false or null.
func word(text []byte, start int) (int, error) {
	if text[start] == '[' || text[start] == '{' {
		return 0, errNested
	}
	for _, known := range [...]string{"null", "true", "false"} {
		n := min(len(known), len(text)-start)
		if string(text[start:start+n]) != known[:n] {
			continue
		}
		if n < len(known) {
			return 0, errShort
		}
		return start + n, nil
	}
	return 0, errMalformed
}

// rowSource is the text of rows: all of it, or as much as has arrived and is not used up.
type rowSource struct {
	text []byte
	next int       // the first byte that is not used up
	from io.Reader // what is still to come; nil for nothing
	max  int64     // bytes of one row, when there is more to come
}

const rowBuffer = 32 << 10

// more reads on. It moves the rest of the text to its beginning, so that what was handed out is no longer valid.
func (s *rowSource) more() error {
	if s.from == nil {
		return io.ErrUnexpectedEOF
	}
	if s.next > 0 {
		s.text = s.text[:copy(s.text, s.text[s.next:])]
		s.next = 0
	}
	if int64(len(s.text)) >= s.max {
		return fmt.Errorf("%w: one row has more than %d bytes", ErrResponseTooLarge, s.max)
	}
	if len(s.text) == cap(s.text) {
		s.text = slices.Grow(s.text, max(rowBuffer, len(s.text)))
	}
	free := s.text[len(s.text):min(int64(cap(s.text)), s.max)]
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

// moreOfRow reads on within a row, which is then scanned from its beginning once more. A long one has to grow by an
// eighth before that, so that a service that sends it byte by byte does not make that a lot of work.
func (s *rowSource) moreOfRow() error {
	const long = 64 << 10
	had := len(s.text) - s.next
	want := had + 1
	if had > long {
		want = had + had/8
	}
	for len(s.text)-s.next < want {
		if err := s.more(); err != nil {
			if len(s.text)-s.next > had {
				return nil // it may be whole, and the error comes again
			}
			return err
		}
	}
	return nil
}

// peek is the next byte that is no blank. What comes before it is used up.
func (s *rowSource) peek() (byte, error) {
	for {
		if s.next = skipBlanks(s.text, s.next); s.next < len(s.text) {
			return s.text[s.next], nil
		}
		if err := s.more(); err != nil {
			return 0, err
		}
	}
}

// row takes apart the row that comes next, and uses it up. It is valid until the next one is.
func (s *rowSource) row(marks []uint32) (_ []uint32, text []byte, err error) {
	for {
		if int64(len(s.text)-s.next) > math.MaxUint32 {
			return marks, nil, ErrResponseTooLarge
		}
		text := s.text[s.next:]
		end := 0
		marks, end, err = scanRow(text, marks[:0])
		switch {
		case err == nil:
			s.next += end
			return marks, text[:end:end], nil
		case errors.Is(err, errShort):
			if err := s.moreOfRow(); err != nil {
				return marks, nil, err
			}
		case errors.Is(err, errNested):
			return marks, nil, err
		default:
			return marks, nil, s.explain()
		}
	}
}

// explain has the tokenizer say what is wrong with a row.
func (s *rowSource) explain() error {
	_, err := jsontext.NewDecoder(bytes.NewReader(s.text[s.next:])).ReadValue()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Errorf("is no JSON: %w", syntax.Err)
	}
	return errors.New("is no JSON")
}

// rest is what comes behind the rows.
func (s *rowSource) rest() io.Reader {
	rest := bytes.NewReader(s.text[s.next:])
	if s.from == nil {
		return rest
	}
	return io.MultiReader(rest, s.from)
}
