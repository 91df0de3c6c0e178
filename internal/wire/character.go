package wire

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Character returns the size of the character or escape at the beginning of a text, which is a part of a JSON string. It
// also returns whether the character is broken: a byte that is not UTF-8, or an escape of half a surrogate pair. The size
// is 0 if the text ends too early to tell, and -1 if the text is no JSON. The text must not be empty.
func Character(text []byte) (size int, broken bool) {
	switch c := text[0]; {
	case c == '\\':
		return escape(text)
	case c < ' ':
		return -1, false
	case c < utf8.RuneSelf:
		return 1, false
	case !utf8.FullRune(text):
		return 0, false
	default:
		r, size := utf8.DecodeRune(text)
		return size, r == utf8.RuneError && size == 1
	}
}

const escapeSize = len(`\uXXXX`)

// escape is Character for escapes.
func escape(text []byte) (size int, broken bool) {
	if len(text) < 2 {
		return 0, false
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, false
	case 'u':
	default:
		return -1, false
	}
	first, size := codeUnit(text)
	if size <= 0 || !utf16.IsSurrogate(first) {
		return size, false
	}
	second, size := codeUnit(text[escapeSize:])
	switch {
	case size == 0:
		return 0, false
	case size < 0 || utf16.DecodeRune(first, second) == utf8.RuneError:
		return escapeSize, true
	default:
		return 2 * escapeSize, false
	}
}

// codeUnit returns the code unit of the escape \uXXXX that a text begins with. The size is 0 if the text ends within the
// escape, and -1 if the text begins with something else.
func codeUnit(text []byte) (unit rune, size int) {
	for i := range escapeSize {
		if i == len(text) {
			return 0, 0
		}
		c := text[i]
		switch lower := c | 0x20; {
		case i == 0 && c == '\\', i == 1 && c == 'u':
		case i > 1 && c-'0' <= 9:
			unit = unit<<4 | rune(c-'0')
		case i > 1 && lower-'a' < 6:
			unit = unit<<4 | rune(lower-'a'+10)
		default:
			return 0, -1
		}
	}
	return unit, escapeSize
}

// AppendText appends the text of a quoted JSON string, without quotes and escapes. U+FFFD replaces invalid characters, as
// in [RepairText]. In every other way the string must be valid JSON.
func AppendText(b, quoted []byte) []byte {
	end := len(quoted) - 1
	done := 1 // up to here the text is in b
	for i := PlainText(quoted, 1); i < end; i = PlainText(quoted, i) {
		size, broken := Character(quoted[i:])
		if broken || quoted[i] == '\\' {
			b = append(b, quoted[done:i]...)
			if broken {
				b = utf8.AppendRune(b, utf8.RuneError)
			} else {
				b = appendEscaped(b, quoted[i:])
			}
			done = i + size
		}
		i += size
	}
	return append(b, quoted[done:end]...)
}

// appendEscaped appends the character of the valid escape that a text begins with.
func appendEscaped(b, text []byte) []byte {
	switch c := text[1]; c {
	case 'b':
		return append(b, '\b')
	case 'f':
		return append(b, '\f')
	case 'n':
		return append(b, '\n')
	case 'r':
		return append(b, '\r')
	case 't':
		return append(b, '\t')
	case 'u':
		r, _ := codeUnit(text)
		if utf16.IsSurrogate(r) {
			second, _ := codeUnit(text[escapeSize:])
			r = utf16.DecodeRune(r, second)
		}
		return utf8.AppendRune(b, r)
	default:
		return append(b, c)
	}
}
