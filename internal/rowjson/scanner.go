package rowjson

import (
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// A row is an array of strings, numbers, true, false and null, so it can be split in one pass over the buffer. A string
// that an attacker chose may contain invalid UTF-8 or half a surrogate pair, which its Value replaces.

// rowScan splits rows.
type rowScan struct {
	marks []mark // the position of the bracket, and the end of each value
}

// mark is the end of a value in the text of a row. The highest bit is set for a string that differs from the bytes
// between its quotes, because it has escapes or invalid characters.
type mark uint32

const (
	differs  mark = 1 << 31
	mostMark      = 1<<31 - 1
)

func (m mark) end() int { return int(m &^ differs) }

// scan splits the row at the beginning of the text. It returns the index after the row, or 0 if the row is incomplete
// or invalid.
func (s *rowScan) scan(text []byte) (end int) {
	i, marks := skipBlanks(text, 1), s.marks[:0]
	marks = append(marks, 0)
	if i < len(text) && text[i] == ']' {
		s.marks = marks
		return i + 1
	}
	for i < len(text) {
		start, isPlain := i, false
		if text[i] == '"' {
			i, isPlain = behindQuote(text, wire.PlainText(text, i+1))
		} else {
			i, isPlain = plainNumber(text, i)
		}
		if isPlain {
			marks = append(marks, mark(i)) //nolint:gosec // the caller limits the text
		} else {
			var m mark
			if i, m = s.anyValue(text, start, i); i == 0 {
				return 0
			}
			marks = append(marks, m)
		}
		if i = skipBlanks(text, i); i == len(text) {
			return 0
		}
		switch text[i] {
		case ',':
			i = skipBlanks(text, i+1)
		case ']':
			s.marks = marks
			return i + 1
		default:
			return 0
		}
	}
	return 0
}

// The next three functions must be small enough to be inlined, because scan depends on that.

// behindQuote returns the index after the quote at text[i], or i and false if there is no quote.
func behindQuote(text []byte, i int) (int, bool) {
	if i < len(text) && text[i] == '"' {
		return i + 1, true
	}
	return i, false
}

// plainNumber returns the index after the unsigned integer that begins at start. If the value is anything else, it
// returns false and the index after its first byte and the digits that follow.
func plainNumber(text []byte, start int) (int, bool) {
	i := start + 1
	for i < len(text) && text[i]-'0' <= 9 {
		i++
	}
	return i, i < len(text) && isBehind(text[i]) && (text[start]-'1' < 9 || text[start] == '0' && i == start+1)
}

// skipBlanks is [skipAnyBlanks], optimized for places where white space is rare.
func skipBlanks(text []byte, i int) int {
	if i < len(text) && text[i] <= ' ' {
		return skipAnyBlanks(text, i)
	}
	return i
}

// skipAnyBlanks returns the index of the first byte from i on that is not JSON white space.
func skipAnyBlanks(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// isBehind reports whether c may follow a value.
func isBehind(c byte) bool {
	return c == ',' || c == ']' || c == ' ' || c == '\n' || c == '\t' || c == '\r'
}

// anyValue returns the index after the value that begins at text[start], of which everything before i is plain, and its
// mark. The index is 0 if the value is incomplete or invalid.
func (s *rowScan) anyValue(text []byte, start, i int) (end int, m mark) {
	switch c := text[start]; {
	case c == '"':
		return s.anyText(text, i)
	case c-'0' <= 9 || c == '-':
		end = anyNumber(text, start, i)
	default:
		end = word(text, start)
	}
	return end, mark(end) //nolint:gosec // the caller limits the text
}

// anyText is anyValue for a string.
func (s *rowScan) anyText(text []byte, i int) (end int, m mark) {
	for i = wire.PlainText(text, i); i < len(text) && text[i] != '"'; i = wire.PlainText(text, i) {
		_, size, broken := character(text[i:])
		if size == 0 {
			return 0, 0
		}
		if broken || text[i] == '\\' {
			m = differs
		}
		i += size
	}
	if i >= len(text) {
		return 0, 0
	}
	return i + 1, m | mark(i+1) //nolint:gosec // the caller limits the text
}

// anyNumber is anyValue for a number.
func anyNumber(text []byte, start, i int) (end int) {
	for i < len(text) && !isBehind(text[i]) {
		i++
	}
	if i == len(text) || !isNumber(text[start:i]) {
		return 0
	}
	return i
}

// word is anyValue for true, false and null.
func word(text []byte, start int) (end int) {
	for _, literal := range [...]string{"null", "true", "false"} {
		if end = start + len(literal); end <= len(text) && string(text[start:end]) == literal {
			return end
		}
	}
	return 0
}
