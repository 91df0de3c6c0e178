package wire

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// RepairText returns a quoted JSON string in which U+FFFD replaces invalid characters, as encoding/json does. These are
// each byte that is not UTF-8, and each escape of half a surrogate pair. Everything else stays unchanged. If there is
// nothing to repair, RepairText returns quoted itself. In every other way the string must be valid JSON.
func RepairText(quoted []byte) []byte {
	var repaired []byte
	done := 0 // up to here the string is in repaired
	for i := PlainText(quoted, 1); i < len(quoted); i = PlainText(quoted, i) {
		size, broken := character(quoted[i:])
		if broken {
			repaired = utf8.AppendRune(append(repaired, quoted[done:i]...), utf8.RuneError)
			done = i + size
		}
		i += size
	}
	if repaired == nil {
		return quoted
	}
	return append(repaired, quoted[done:]...)
}

// character returns the size of the character or escape that a text begins with, and whether it has to be replaced.
func character(text []byte) (size int, broken bool) {
	if text[0] != '\\' {
		r, size := utf8.DecodeRune(text)
		return size, r == utf8.RuneError && size == 1
	}
	first := escapedUnit(text)
	switch {
	case first < 0:
		return 2, false
	case !utf16.IsSurrogate(first):
		return escapeSize, false
	case utf16.DecodeRune(first, escapedUnit(text[escapeSize:])) == utf8.RuneError:
		return escapeSize, true
	default:
		return 2 * escapeSize, false
	}
}

const escapeSize = len(`\uXXXX`)

// escapedUnit returns the code unit of the escape \uXXXX that a text begins with; -1 if it begins with something else.
func escapedUnit(text []byte) rune {
	if len(text) < escapeSize || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:escapeSize]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
