package redact

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLine is how many bytes of a foreign text one message shows.
const maxLine = 512

// Line returns a foreign text for one line of a log. It clips the text. It quotes a text with a character that does not
// print, such as a newline, an escape of a terminal or a broken rune. It removes no secrets: the text must hold none.
func Line(text string) string {
	if len(text) > maxLine {
		end := maxLine
		for end > maxLine-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "..." // keeps broken runes: without them, two pieces of a secret could join
	}
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) < 0 {
		return text
	}
	return strconv.Quote(text)
}
