package rowjson

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// A row is simple: an array of texts, numbers, true, false and null. So rows are split here, in one pass over the bytes
// as they lie in the buffer. A text that an attacker chose may hold bytes that are not UTF-8, or half of a surrogate pair.
// Unless the scan is strict it is counted, and its Value replaces them.

// rowScan splits a row while it arrives. It looks at each byte once: if the text ends within the row, the next scan
// goes on there. Otherwise a long row that arrives in many pieces would be scanned once for each piece.
type rowScan struct {
	marks []mark // the place of the bracket, and the end of each complete value
	at    int    // the next byte to look at; 0: a new row
	value int    // where the incomplete value begins
	stage stage  // what stands at that place

	escaped, broken bool // the value that valueEnd reads, as far as it has come

	strict   bool  // broken texts are errors
	replaced int64 // broken texts of all rows so far
}

// mark is the end of a value in the text of a row. Its highest bit says that the value is a text which differs from
// what stands between its quotes: it has escapes, or is broken.
type mark uint32

const (
	differs  mark = 1 << 31
	mostMark      = 1<<31 - 1
)

func (m mark) end() int { return int(m &^ differs) }

type stage int

const (
	firstValue stage = iota // or the end of a row without values
	nextValue               // behind a comma
	inValue
	behindValue
)

// scan splits the row at the beginning of the text, from its bracket on, and returns the index behind it. After
// errShort call it again with the same text and more behind it.
func (s *rowScan) scan(text []byte) (end int, err error) {
	i, marks := 1, s.marks[:0]
	marks = append(marks, 0)
	if s.at > 0 || !beginsWithValue(text) {
		if i, err = s.resume(text); err != nil || s.at == 0 {
			return i, err
		}
		marks = s.marks
	}
	for i < len(text) {
		start, isPlain := i, false
		if text[i] == '"' {
			i, isPlain = behindQuote(text, wire.PlainText(text, i+1))
		} else {
			i, isPlain = plainNumber(text, i)
		}
		if !isPlain {
			s.escaped, s.broken = false, false
			if i, err = s.valueEnd(text, start, i); err != nil {
				return s.stop(err, marks, i, start, inValue)
			}
			marks = append(marks, s.mark(i))
		} else {
			marks = append(marks, mark(i)) //nolint:gosec // who calls bounds the text
		}
		if i = skipBlanks(text, i); i == len(text) {
			return s.stop(errShort, marks, i, 0, behindValue)
		}
		switch text[i] {
		case ',':
			i = skipBlanks(text, i+1)
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

// The next four functions are small enough to be inlined, which scan depends on.

// beginsWithValue reports whether the first value of a row follows its bracket, or may do so when more of it arrives.
func beginsWithValue(text []byte) bool { return len(text) < 2 || text[1] > ' ' && text[1] != ']' }

// behindQuote returns the index behind the quote at text[i]; or, if another byte is there or none, i and false.
func behindQuote(text []byte, i int) (int, bool) {
	if i < len(text) && text[i] == '"' {
		return i + 1, true
	}
	return i, false
}

// plainNumber returns the index behind the whole number that begins at start. If the value is not a plain number, it
// returns false and the index up to which it may be one.
func plainNumber(text []byte, start int) (int, bool) {
	i := start + 1
	for i < len(text) && text[i]-'0' <= 9 {
		i++
	}
	return i, i < len(text) && isBehind(text[i]) && (text[start]-'1' < 9 || text[start] == '0' && i == start+1)
}

// skipBlanks is [skipAnyBlanks] for places where there is almost never a blank.
func skipBlanks(text []byte, i int) int {
	if i < len(text) && text[i] <= ' ' {
		return skipAnyBlanks(text, i)
	}
	return i
}

// stop notes where the next scan goes on.
func (s *rowScan) stop(err error, marks []mark, at, value int, stage stage) (int, error) {
	s.marks, s.at, s.value, s.stage = marks, at, value, stage
	return 0, err
}

// resume goes on from where the last scan stopped. It returns the index of the next value; or, if the row ends before
// one, the index behind the row, and then at is 0.
func (s *rowScan) resume(text []byte) (i int, err error) {
	if s.at == 0 {
		s.marks, s.at, s.stage = append(s.marks[:0], 0), 1, firstValue
	}
	if s.stage == inValue {
		if s.at, err = s.valueEnd(text, s.value, s.at); err != nil {
			return 0, err
		}
		s.marks = append(s.marks, s.mark(s.at))
		s.stage = behindValue
	}
	if s.at = skipAnyBlanks(text, s.at); s.at == len(text) {
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
	if s.at = skipAnyBlanks(text, s.at+1); s.at == len(text) {
		return 0, errShort
	}
	return s.at, nil
}

var (
	errShort     = errors.New("the text ends within a row") // more of it may come
	errMalformed = errors.New("no JSON")
	errNested    = errors.New("holds a value that is neither text, number, true, false nor null")
)

// isBehind reports whether a byte may stand behind a value.
func isBehind(c byte) bool {
	return c == ',' || c == ']' || c == ' ' || c == '\n' || c == '\t' || c == '\r'
}

// mark returns the mark of the value that valueEnd has read.
func (s *rowScan) mark(end int) mark {
	m := mark(end) //nolint:gosec // who calls bounds the text
	if s.escaped || s.broken {
		m |= differs
	}
	return m
}

// anyText returns the index behind a text, of which everything before i has been looked at. With errShort it returns the
// next index to look at. It counts a broken text.
func (s *rowScan) anyText(text []byte, i int) (int, error) {
	for {
		if i = wire.PlainText(text, i); i >= len(text) {
			return i, errShort
		}
		if text[i] == '"' {
			break
		}
		size, broken := character(text[i:])
		if size == 0 {
			return i, errShort
		}
		if size < 0 || broken && s.strict {
			return 0, errMalformed
		}
		s.escaped, s.broken = s.escaped || text[i] == '\\', s.broken || broken
		i += size
	}
	if s.broken {
		s.replaced++
	}
	return i + 1, nil
}

// anyNumber is like anyText, for a number that begins at text[start].
func anyNumber(text []byte, start, i int) (int, error) {
	for ; i < len(text); i++ {
		if isBehind(text[i]) {
			if !isNumber(text[start:i]) {
				return 0, errMalformed
			}
			return i, nil
		}
	}
	return i, errShort
}

// texts returns the option with which jsontext accepts the texts that the scan accepts.
func (s *rowScan) texts() jsontext.Options { return jsontext.AllowInvalidUTF8(!s.strict) }

// valueEnd returns the index behind the value that begins at text[start], of which everything before i is plain. With
// an error it returns the next index to look at.
func (s *rowScan) valueEnd(text []byte, start, i int) (int, error) {
	switch c := text[start]; {
	case c == '"':
		return s.anyText(text, i)
	case c-'0' <= 9 || c == '-':
		return anyNumber(text, start, i)
	default:
		end, err := word(text, start)
		return max(end, start), err
	}
}

// word returns the index behind true, false or null.
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
