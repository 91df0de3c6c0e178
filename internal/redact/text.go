package redact

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Secret is a text that fmt does not print. The zero value holds no text.
type Secret struct {
	text *string // a pointer, because fmt prints unexported fields but does not follow pointers in them
}

// New returns a Secret that holds text.
func New(text string) Secret { return Secret{&text} }

// Reveal returns the text, which is empty for the zero value.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether s is the zero value. A Secret with an empty text is not.
func (s Secret) IsZero() bool { return s.text == nil }

// maxLine is the maximum number of bytes of a text that Line returns, before quoting.
const maxLine = 512

// Line returns a text from elsewhere so that it fits on one line of a log. It truncates a long text, and quotes a text
// with unprintable characters, such as a newline, a terminal escape or invalid UTF-8. It does not remove secrets.
func Line(text string) string {
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "\uFFFD") + "..."
	}
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) < 0 {
		return text
	}
	return strconv.Quote(text)
}
