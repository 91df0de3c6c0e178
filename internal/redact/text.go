package redact

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Secret is a text that does not print. The zero value holds no text.
type Secret struct {
	text *string // a pointer, because fmt prints unexported fields but does not follow pointers in them
}

// New returns a Secret with a text.
func New(text string) Secret { return Secret{&text} }

// Reveal returns the text, which is empty for the zero value.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether the secret is the zero value. One with an empty text is not.
func (s Secret) IsZero() bool { return s.text == nil }

// maxLine is how many bytes of a foreign text one message shows.
const maxLine = 512

// Line returns a foreign text for one line of a log. It clips the text. It quotes a text with a character that does not
// print, such as a newline, an escape of a terminal or a broken rune. It removes no secrets: the text must hold none.
func Line(text string) string {
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "\uFFFD") + "..."
	}
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) < 0 {
		return text
	}
	return strconv.Quote(text)
}
