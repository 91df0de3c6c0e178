// Package redact keeps secrets out of texts that people see: errors, log records, what a program prints.
//
// A service or a proxy that repeats a request writes it in its own way: as JSON, as a query, in Base64, as HTML, or one
// inside another. There are too many forms to list, so a [Finder] reads the text in all these ways at once. Each
// character of a secret may stand as itself or as any escape of it, and each escape may be written with escapes. What is
// replaced by [Mark] are the bytes of the text that were read as the secret, and no others.
//
// The package knows bytes. It may know nothing of HTTP, of the service and of the SDK. Its entry points are [New],
// [NewFinder], [Finder.Text] and [Finder.Beginning].
package redact

import (
	"cmp"
	"errors"
	"slices"
	"sync"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

// Least is the length in bytes from which on a secret is looked for; a shorter one stands in too many texts by chance.
const Least = 4

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

// Finder takes secrets out of texts. It is immutable and safe for concurrent use. A nil Finder finds nothing.
//
// A Finder also takes user information out of URLs: it may be the password of somebody else, for example of a proxy.
type Finder struct {
	hidden []Hidden
	built  func() *automaton // when the first text is shown: most clients never need it
}

// NewFinder returns a Finder for these secrets.
func NewFinder(hidden ...Hidden) *Finder {
	return &Finder{hidden, sync.OnceValue(func() *automaton { return newAutomaton(hidden) })}
}

// With returns a Finder that looks for more secrets.
func (f *Finder) With(more ...Hidden) *Finder { return NewFinder(slices.Concat(f.hidden, more)...) }

// Bytes returns a text without secrets: the text itself if there are none in it.
func (f *Finder) Bytes(text []byte) []byte { return f.replace(text, false) }

// Text returns a text without secrets.
func (f *Finder) Text(text string) string { return string(f.replace([]byte(text), false)) }

// Beginning returns the first bytes of a text without secrets, at most so many. It looks at [Margin] bytes more. If the
// text goes on behind them, or is cut off by itself, the beginning of a secret at its end is taken out, too.
func (f *Finder) Beginning(text []byte, most int, cut bool) []byte {
	if all := most + Margin; len(text) >= all {
		text, cut = text[:all], true
	}
	text = f.replace(text, cut)
	return text[:min(len(text), most)]
}

// Error returns err itself, or if its text holds a secret, an error that says the same without it. That one matches what
// err matches and unwraps to nothing.
func (f *Finder) Error(err error) error {
	text := err.Error()
	if safe := f.Text(text); safe != text {
		return &redactedError{safe, func(target error) bool { return errors.Is(err, target) }}
	}
	return err
}

// redactedError keeps errors.Is of the error it stands for, and neither its text nor itself: not in a field either, as
// there are printers that follow pointers.
type redactedError struct {
	text string
	is   func(error) bool
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return e.is(target) }

// span is a part of a text.
type span struct{ from, to int }

func (f *Finder) replace(text []byte, cut bool) []byte {
	if f == nil || len(text) == 0 {
		return text
	}
	s := search{automaton: f.built()}
	s.look(&layer{text: text, source: len(text), cut: cut}, 0)
	if len(s.found) == 0 {
		return text
	}
	slices.SortFunc(s.found, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	safe := make([]byte, 0, len(text))
	end := 0
	for i := 0; i < len(s.found); {
		one := s.found[i]
		for i++; i < len(s.found) && s.found[i].from <= one.to; i++ {
			one.to = max(one.to, s.found[i].to)
		}
		safe = append(append(safe, text[end:one.from]...), Mark...)
		end = one.to
	}
	return append(safe, text[end:]...)
}
