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

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Rows are most of what this package reads, and a row is simple: an array of texts, numbers, true, false and null. So
// rows are taken apart here, in one pass over the bytes as they lie in the buffer. What is plain (ASCII without escapes,
// digits) is judged here; of all else only the end is found here, and the tokenizer says whether it is JSON.

// rowScan is a row that is taken apart while it arrives. Each byte is looked at once: where the text ends within the row,
// the next scan goes on there. Otherwise a long row that arrives in many pieces would be scanned once for each piece.
type rowScan struct {
	marks []uint32 // the place of the bracket, and the end of each value that is whole
	at    int      // the next byte to look at; 0: a new row
	value int      // where the value begins that is not whole
	stage stage    // what stands at that place
}

type stage int

const (
	firstValue stage = iota // or the end of a row without values
	nextValue               // behind a comma
	inValue
	behindValue
)

// scan takes apart the row at the beginning of the text, from its bracket on, and returns the place behind it. After
// errShort it is called again with the same text and more behind it.
func (s *rowScan) scan(text []byte) (end int, err error) {
	i, marks := 1, s.marks[:0]
	marks = append(marks, 0)
	if s.at > 0 || len(text) > 1 && (text[1] <= ' ' || text[1] == ']') {
		if i, err = s.resume(text); err != nil || s.at == 0 {
			return i, err
		}
		marks = s.marks
	}
	for i < len(text) {
		start := i
		switch c := text[i]; {
		case c == '"':
			i = plainText(text, i+1)
			if i < len(text) && text[i] == '"' {
				i++
			} else if i, err = anyText(text, start, i); err != nil {
				return s.stop(err, marks, i, start, inValue)
			}
		case c-'0' <= 9 || c == '-':
			for i++; i < len(text) && text[i]-'0' <= 9; i++ {
			}
			if i < len(text) && isBehind(text[i]) && (c != '-' && c != '0' || i == start+1 && c == '0') {
				break
			}
			if i, err = anyNumber(text, start, i); err != nil {
				return s.stop(err, marks, i, start, inValue)
			}
		default:
			if i, err = word(text, i); err != nil {
				return s.stop(err, marks, start, start, inValue)
			}
		}
		marks = append(marks, uint32(i)) // who calls bounds the text
		if i < len(text) && text[i] <= ' ' {
			i = wire.SkipBlanks(text, i)
		}
		if i == len(text) {
			return s.stop(errShort, marks, i, 0, behindValue)
		}
		switch text[i] {
		case ',':
			if i++; i < len(text) && text[i] <= ' ' {
				i = wire.SkipBlanks(text, i)
			}
		case ']':
			s.marks, s.at = marks, 0
			return i + 1, nil
		default:
			return 0, errMalformed
		}
	}
	stage := nextValue
	if len(marks) == 1 {
		stage = firstValue
	}
	return s.stop(errShort, marks, i, 0, stage)
}

// stop notes where the next scan goes on.
func (s *rowScan) stop(err error, marks []uint32, at, value int, stage stage) (int, error) {
	*s = rowScan{marks, at, value, stage}
	return 0, err
}

// resume goes on from where the last scan stopped up to the next value, whose place it returns; or to the end of the
// row, the place behind which it returns, and at is 0 then.
func (s *rowScan) resume(text []byte) (i int, err error) {
	if s.at == 0 {
		*s = rowScan{marks: append(s.marks[:0], 0), at: 1}
	}
	if s.stage == inValue {
		switch text[s.value] {
		case '"':
			s.at, err = anyText(text, s.value, s.at)
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			s.at, err = anyNumber(text, s.value, s.at)
		default:
			var end int
			if end, err = word(text, s.value); err == nil {
				s.at = end
			}
		}
		if err != nil {
			return 0, err
		}
		s.marks = append(s.marks, uint32(s.at)) //nolint:gosec // who calls bounds the text
		s.stage = behindValue
	}
	if s.at = wire.SkipBlanks(text, s.at); s.at == len(text) {
		return 0, errShort
	}
	switch c := text[s.at]; {
	case c == ']' && s.stage != nextValue:
		i, s.at = s.at+1, 0
		return i, nil
	case s.stage != behindValue:
		return s.at, nil
	case c != ',':
		return 0, errMalformed
	}
	s.stage = nextValue
	if s.at = wire.SkipBlanks(text, s.at+1); s.at == len(text) {
		return 0, errShort
	}
	return s.at, nil
}

var (
	errShort     = errors.New("the text ends within a row") // and may go on
	errMalformed = errors.New("no JSON")
	errNested    = errors.New("holds a value that is neither text, number, true, false nor null")
)

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

// anyText is the place behind the text that begins at text[start], of which all before i has been looked at. With errShort
// it is the next place to look at.
func anyText(text []byte, start, i int) (int, error) {
	for i = plainText(text, i); i < len(text); i = plainText(text, i) {
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
	return i, errShort // behind a backslash at the end of the text it is one more
}

// anyNumber is anyText for numbers.
func anyNumber(text []byte, start, i int) (int, error) {
	for ; i < len(text); i++ {
		if isBehind(text[i]) {
			return i, checkScalar(text[start:i])
		}
	}
	return i, errShort
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
	scan rowScan   // of the row that comes next
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

// peek is the next byte that is no blank. What comes before it is used up.
func (s *rowSource) peek() (byte, error) {
	for {
		if s.next = wire.SkipBlanks(s.text, s.next); s.next < len(s.text) {
			return s.text[s.next], nil
		}
		if err := s.more(); err != nil {
			return 0, err
		}
	}
}

// row takes apart the row that comes next, and uses it up. Its marks are those of the scan. It is valid until the next one
// is.
func (s *rowSource) row() (text []byte, err error) {
	for {
		text := s.text[s.next:]
		if int64(len(text)) > math.MaxUint32 {
			return nil, ErrResponseTooLarge
		}
		end, err := s.scan.scan(text)
		switch {
		case err == nil:
			s.next += end
			return text[:end:end], nil
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

// explain has the tokenizer say what is wrong with a row.
func (s *rowSource) explain() error {
	_, err := jsontext.NewDecoder(bytes.NewReader(s.text[s.next:])).ReadValue()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF) { // which would say that the response was cut
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
