package redact

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLine bounds how much of a foreign text one message repeats, in bytes.
const maxLine = 512

// Line returns a foreign text as it fits on one line of a log: clipped, and quoted if it has anything that is not plain to
// see (a newline, a terminal's escape, a broken rune). It takes no secret out: use it on a text that holds none.
func Line(text string) string {
	if len(text) > maxLine {
		end := maxLine
		for end > maxLine-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "..." // what is broken stays: without it, two pieces of a secret may become one
	}
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) < 0 {
		return text
	}
	return strconv.Quote(text)
}
