package rowjson

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// character returns the character or escape at the beginning of a text, which is a part of a JSON string, and its size. It
// also returns whether the character is broken: a byte that is not UTF-8, or an escape of half a surrogate pair. The size
// is 0 if the text ends within an escape, or is no JSON. The text must not be empty.
func character(text []byte) (r rune, size int, broken bool) {
	switch c := text[0]; {
	case c == '\\' && len(text) > 1 && shortEscapes[text[1]] != 0:
		return rune(shortEscapes[text[1]]), 2, false
	case c == '\\':
		return longEscape(text)
	case c < ' ':
		return 0, 0, false
	}
	r, size = utf8.DecodeRune(text)
	return r, size, r == utf8.RuneError && size == 1
}

const escapeSize = len(`\uXXXX`)

// shortEscapes has the characters of the escapes of two bytes, by their second byte.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// longEscape is character for an escape of a code unit.
func longEscape(text []byte) (r rune, size int, broken bool) {
	r, size = codeUnit(text)
	if size == 0 || !utf16.IsSurrogate(r) {
		return r, size, false
	}
	second, _ := codeUnit(text[escapeSize:])
	if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
		return r, escapeSize, true
	}
	return r, 2 * escapeSize, false
}

// codeUnit returns the code unit of the escape \uXXXX that a text begins with. The size is 0 if it begins with something
// else.
func codeUnit(text []byte) (unit rune, size int) {
	if len(text) < escapeSize || text[0] != '\\' || text[1] != 'u' {
		return 0, 0
	}
	for _, c := range text[2:escapeSize] {
		if hexDigits[c] == 0 {
			return 0, 0
		}
		unit = unit<<4 | rune(hexDigits[c]-1)
	}
	return unit, escapeSize
}

// hexDigits has for each hexadecimal digit one more than its value, and 0 for every other byte.
var hexDigits = [256]byte{
	'0': 1, '1': 2, '2': 3, '3': 4, '4': 5, '5': 6, '6': 7, '7': 8, '8': 9, '9': 10,
	'a': 11, 'b': 12, 'c': 13, 'd': 14, 'e': 15, 'f': 16, 'A': 11, 'B': 12, 'C': 13, 'D': 14, 'E': 15, 'F': 16,
}

// appendText appends the text of a quoted JSON string, without quotes and escapes. U+FFFD replaces invalid characters, as
// in encoding/json. In every other way the string must be valid JSON.
func appendText(b, quoted []byte) []byte {
	end := len(quoted) - 1
	done := 1 // up to here the text is in b
	for i := wire.PlainText(quoted, 1); i < end; i = wire.PlainText(quoted, i) {
		r, size, broken := character(quoted[i:])
		if broken || quoted[i] == '\\' {
			b = utf8.AppendRune(append(b, quoted[done:i]...), r)
			done = i + size
		}
		i += size
	}
	return append(b, quoted[done:end]...)
}
