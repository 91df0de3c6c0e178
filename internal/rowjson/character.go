package rowjson

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// character returns the size of the character or escape at the beginning of a text, which is a part of a JSON string. It
// also returns whether the character is broken: a byte that is not UTF-8, or an escape of half a surrogate pair. The size
// is 0 if the text ends within an escape, or is no JSON. The text must not be empty.
func character(text []byte) (size int, broken bool) {
	switch c := text[0]; {
	case c == '\\' && len(text) > 1 && shortEscapes[text[1]] != 0:
		return 2, false
	case c == '\\':
		return longEscape(text)
	case c < ' ':
		return 0, false
	case c < utf8.RuneSelf:
		return 1, false
	}
	r, size := utf8.DecodeRune(text)
	return size, r == utf8.RuneError && size == 1
}

const escapeSize = len(`\uXXXX`)

// shortEscapes has the characters of the escapes of two bytes, by their second byte.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// longEscape is character for an escape of a code unit.
func longEscape(text []byte) (size int, broken bool) {
	first, size := codeUnit(text)
	if size == 0 || !utf16.IsSurrogate(first) {
		return size, false
	}
	if second, _ := codeUnit(text[escapeSize:]); utf16.DecodeRune(first, second) == utf8.RuneError {
		return escapeSize, true
	}
	return 2 * escapeSize, false
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
var hexDigits = func() (all [256]byte) {
	for i, c := range []byte("0123456789abcdef") {
		all[c] = byte(i + 1)
	}
	for i, c := range []byte("ABCDEF") {
		all[c] = byte(10 + i + 1)
	}
	return all
}()

// appendText appends the text of a quoted JSON string, without quotes and escapes. U+FFFD replaces invalid characters, as
// in [repairText]. In every other way the string must be valid JSON.
func appendText(b, quoted []byte) []byte {
	end := len(quoted) - 1
	done := 1 // up to here the text is in b
	for i := wire.PlainText(quoted, 1); i < end; i = wire.PlainText(quoted, i) {
		size, broken := character(quoted[i:])
		if broken || quoted[i] == '\\' {
			b = append(b, quoted[done:i]...)
			switch {
			case broken:
				b = utf8.AppendRune(b, utf8.RuneError)
			case size == 2:
				b = append(b, shortEscapes[quoted[i+1]])
			default:
				b = appendCodeUnits(b, quoted[i:])
			}
			done = i + size
		}
		i += size
	}
	return append(b, quoted[done:end]...)
}

// appendCodeUnits appends the character of one or two code units.
func appendCodeUnits(b, text []byte) []byte {
	r, _ := codeUnit(text)
	if utf16.IsSurrogate(r) {
		second, _ := codeUnit(text[escapeSize:])
		r = utf16.DecodeRune(r, second)
	}
	return utf8.AppendRune(b, r)
}
