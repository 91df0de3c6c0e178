package rowjson

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// character decodes the character or escape at the beginning of a text within a JSON string, and returns its size.
// broken reports whether it is invalid UTF-8 or an escape of half a surrogate pair. The size is 0 if the text ends
// within an escape or is not valid JSON. The text must not be empty.
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

// shortEscapes maps the second byte of two-byte escapes to their characters.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// longEscape is character for \uXXXX escapes.
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

// codeUnit returns the code unit of the escape \uXXXX at the beginning of a text. The size is 0 if there is none.
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

// hexDigits maps hexadecimal digits to their value plus one, and other bytes to 0.
var hexDigits = [256]byte{
	'0': 1, '1': 2, '2': 3, '3': 4, '4': 5, '5': 6, '6': 7, '7': 8, '8': 9, '9': 10,
	'a': 11, 'b': 12, 'c': 13, 'd': 14, 'e': 15, 'f': 16, 'A': 11, 'B': 12, 'C': 13, 'D': 14, 'E': 15, 'F': 16,
}

// appendText appends the unquoted text of a JSON string. As in encoding/json, invalid characters become U+FFFD.
// Otherwise the string must be valid JSON.
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
