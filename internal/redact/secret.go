package redact

// Mark stands where a secret was.
const Mark = "[redacted]"

// Least is the length in bytes from which on a secret is looked for; a shorter one stands in too many texts by chance.
const Least = 4

// Most is how much of a text is shown, in bytes. It bounds the work: whoever sends the text decides on its length.
const Most = 64 << 10

// Margin is how many bytes behind the end of what is shown [Finder.Beginning] looks at, so that a secret which crosses
// that end is found whole.
const Margin = 8 << 10

// Secret is a text that does not print. The zero value holds no text.
type Secret struct {
	text *string // fmt reaches into unexported fields, but not behind a pointer inside of them
}

// New makes a secret of a text.
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

// Hidden is a secret to look for. It holds no NUL byte.
type Hidden struct {
	Before string // what stands before it in a header; it is hidden together with the secret
	Secret Secret // looked for without Before, too, unless it is shorter than Least
}

// span is a part of a text.
type span struct{ from, to int }
