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
	"strings"
	"sync"
)

// Finder takes secrets out of texts. It is immutable and safe for concurrent use. A nil Finder finds nothing.
//
// A Finder also takes user information out of URLs: it may be the password of somebody else, for example of a proxy.
type Finder struct {
	hidden []Hidden
	built  func() *automaton // when the first text is shown: most clients never need it
	lower  func() *Finder    // of the secrets in lower case
}

// NewFinder returns a Finder for these secrets.
func NewFinder(hidden ...Hidden) *Finder {
	return &Finder{
		hidden: hidden,
		built:  sync.OnceValue(func() *automaton { return newAutomaton(hidden) }),
		lower: sync.OnceValue(func() *Finder {
			lower := make([]Hidden, 0, len(hidden))
			for _, h := range hidden {
				lower = append(lower, Hidden{strings.ToLower(h.Before), New(strings.ToLower(h.Secret.Reveal()))})
			}
			return NewFinder(lower...)
		}),
	}
}

// With returns a Finder that looks for more secrets.
func (f *Finder) With(more ...Hidden) *Finder { return NewFinder(slices.Concat(f.hidden, more)...) }

// Bytes returns a text without secrets: the text itself if there are none in it.
func (f *Finder) Bytes(text []byte) []byte { return f.replace(text, false) }

// Text returns a text without secrets, of a longer one the first [Most] bytes.
func (f *Finder) Text(text string) string {
	return string(f.Beginning([]byte(text[:min(len(text), Most+Margin)]), Most, false))
}

// Holds reports whether a text is longer than [Most] or holds a secret, in whatever letter case.
func (f *Finder) Holds(text string) bool {
	if f.Text(text) != text {
		return true
	}
	if f == nil {
		return false
	}
	text = strings.ToLower(text)
	return f.lower().Text(text) != text
}

// Beginning returns the first bytes of a text without secrets, at most so many. It looks at [Margin] bytes more. If the
// text goes on behind them, or is cut off by itself, the beginning of a secret at its end is taken out, too.
func (f *Finder) Beginning(text []byte, most int, cut bool) []byte {
	if all := most + Margin; len(text) >= all {
		text, cut = text[:all], true
	}
	text = f.replace(text, cut)
	return text[:min(len(text), most)]
}

// Error returns err itself, or if it holds a secret, an error that says the same without it. That one matches what err
// matches and unwraps to nothing. A secret may stand in the text of err or of an error that it wraps, or in what fields
// returns of one of them: what it holds beside its text. A nil fields returns nothing.
func (f *Finder) Error(err error, fields func(error) []string) error {
	text := err.Error()
	safe := f.Text(text)
	if left := Most - len(text); safe == text && f.errorsSafe(err, text, fields, &left) {
		return err
	}
	return &redactedError{safe, func(target error) bool { return errors.Is(err, target) }}
}

// errorsSafe goes through the tree of an error whose text is shown already. It reads no more than is left.
func (f *Finder) errorsSafe(err error, shown string, fields func(error) []string, left *int) bool {
	var texts []string
	if text := err.Error(); !strings.Contains(shown, text) {
		texts = append(texts, text)
	}
	if fields != nil {
		texts = append(texts, fields(err)...)
	}
	for _, text := range texts {
		if *left -= len(text); *left < 0 || f.Text(text) != text {
			return false
		}
	}
	var inner []error
	switch err := err.(type) { //nolint:errorlint // each error of the tree is looked at by itself
	case interface{ Unwrap() error }:
		inner = []error{err.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = err.Unwrap()
	}
	for _, err := range inner {
		if err != nil && !f.errorsSafe(err, shown, fields, left) {
			return false
		}
	}
	return true
}

// redactedError keeps errors.Is of the error it stands for, and neither its text nor itself: not in a field either, as
// there are printers that follow pointers.
type redactedError struct {
	text string
	is   func(error) bool
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return e.is(target) }

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
