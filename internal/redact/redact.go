// Package redact removes secrets from texts that people see: errors, log records, output of programs.
//
// A service or a proxy may echo a request as JSON, as a query, in Base64, as HTML, or in one form inside another. There
// are too many forms to list, so a [Finder] reads the text in all these ways at once. Each character of a secret may
// appear as itself or as any escape of it, and escapes may be nested. The Finder replaces exactly the bytes that it
// read as the secret, with [Mark].
//
// The package knows bytes. It must not know HTTP, the service or the SDK. Its entry points are [New], [NewFinder],
// [Finder.Text], [Finder.First] and [Finder.Beginning].
package redact

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
)

// Finder removes secrets from texts. It is immutable and safe for concurrent use. A nil Finder finds nothing.
//
// A Finder also removes user information from URLs, because it may be the password of another system, such as a proxy.
type Finder struct {
	hidden []Hidden
	built  func() *automaton // lazy, because most clients never show a text
	lower  func() *Finder    // a Finder for the secrets in lower case
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

// With returns a Finder that also finds more secrets.
func (f *Finder) With(more ...Hidden) *Finder { return NewFinder(slices.Concat(f.hidden, more)...) }

// Bytes returns a text without secrets. If there are none, it returns the text itself.
func (f *Finder) Bytes(text []byte) []byte { return f.replace(text, false) }

// Text returns the first [Most] bytes of a text without secrets.
func (f *Finder) Text(text string) string { return f.First(text, Most) }

// First returns the first most bytes of a text without secrets. It returns a usual text without a copy.
func (f *Finder) First(text string, most int) string {
	text = text[:min(len(text), most+Margin)]
	if f == nil || len(text) < most+Margin && f.built().filter.clean(text) {
		return text[:min(len(text), most)]
	}
	return string(f.Beginning([]byte(text), most, false))
}

// Holds reports whether a text is longer than [Most] or holds a secret, in any letter case.
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

// Beginning returns up to most bytes from the beginning of a text, without secrets. It also reads the next [Margin]
// bytes. If the text is longer, or if cut is true, the end may split a secret. Then it also removes the beginning of
// that secret.
func (f *Finder) Beginning(text []byte, most int, cut bool) []byte {
	if all := most + Margin; len(text) >= all {
		text, cut = text[:all], true
	}
	text = f.replace(text, cut)
	return text[:min(len(text), most)]
}

// Error returns err itself if it holds no secret. Otherwise it returns an error with the redacted text, which matches
// whatever err matches but wraps nothing. Error checks the texts of err and of the errors that it wraps. It also checks
// the texts that fields returns for each of them; fields may be nil.
func (f *Finder) Error(err error, fields func(error) []string) error {
	text := err.Error()
	safe := f.Text(text)
	if left := Most - len(text); safe == text && f.errorsSafe(err, text, fields, &left) {
		return err
	}
	return &redactedError{safe, func(target error) bool { return errors.Is(err, target) }}
}

// errorsSafe reports whether the tree of an error holds no secret. shown is a text that was checked before. It returns
// false if the texts are longer than left.
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
	switch err := err.(type) { //nolint:errorlint // visits each error of the tree separately
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

// redactedError matches whatever the original error matches. It must not hold the original error, not even in a field,
// because some printers follow pointers.
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
	s.scan(&layer{text: text, source: len(text), cut: cut}, 0)
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
