package redact

// Mark replaces a secret.
const Mark = "[redacted]"

// Least is the shortest length in bytes of a secret to find. Shorter ones occur in too many texts by chance.
const Least = 4

// Most is how many bytes of a text are shown. It bounds the work, because the sender decides on the length of the text.
const Most = 64 << 10

// Margin is how many bytes [Finder.Beginning] reads behind the shown ones, to find a secret that crosses their end.
const Margin = 8 << 10

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

// Hidden is a secret to find. It must not contain a NUL byte.
type Hidden struct {
	Before string // prefix of the secret in a header; it is redacted together with the secret
	Secret Secret // also found without Before, unless it is shorter than Least
}

// span is a part of a text.
type span struct{ from, to int }
