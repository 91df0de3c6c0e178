// Package redact removes secrets from texts that people see, such as errors, log records and program output.
//
// A service may echo a request verbatim, in JSON, in a URL or in HTML. A [Finder] therefore has a regular expression
// for each secret, in which every character other than a letter or digit matches itself or one of its escapes. Nested
// escapes are not found. The package must not depend on HTTP or the service.
package redact

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
)

// The replacement of a secret, and how much of a text is shown and searched.
const (
	Mark   = "[redacted]"
	Most   = 64 << 10 // maximum bytes of a text that are shown
	Margin = 8 << 10  // further bytes to search for a secret that extends beyond the shown ones
)

// userinfo matches a user name and password in a URL, for example of a proxy. JSON may escape a slash.
var userinfo = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`((?:\\?/){2})[^/\\?#@\s"]+@`) })

// Finder removes secrets from texts. It is immutable and safe for concurrent use.
type Finder struct {
	compiled func() []*regexp.Regexp // lazy, because most clients never show a text
}

// NewFinder returns a Finder for the given secrets. It ignores those of less than four bytes, which occur in too many
// texts by chance.
func NewFinder(secrets ...Secret) *Finder {
	return &Finder{sync.OnceValue(func() (all []*regexp.Regexp) {
		longest := slices.SortedFunc(slices.Values(secrets), func(a, b Secret) int { return cmp.Compare(len(b.Reveal()), len(a.Reveal())) })
		for _, s := range longest { // longest first, because one may be part of another
			if len(s.Reveal()) >= 4 {
				all = append(all, regexp.MustCompile(expression(s.Reveal())))
			}
		}
		return all
	})}
}

// Text returns at most the first most bytes of a text, without secrets. It searches Margin bytes more. If the text is
// longer, a secret may be cut at the end of these, so Text drops the last Margin bytes of what it has searched.
func (f *Finder) Text(text string, limit int) string {
	cut := len(text) >= limit+Margin
	text = text[:min(len(text), limit+Margin)]
	for _, secret := range f.compiled() {
		text = secret.ReplaceAllLiteralString(text, Mark)
	}
	if strings.Contains(text, "@") { // the expression is slow, and most texts have no @
		text = userinfo().ReplaceAllString(text, "${1}"+Mark+"@")
	}
	if cut {
		text = text[:max(0, len(text)-Margin)]
	}
	return text[:min(len(text), limit)]
}

// Error returns err if its text contains no secret. Otherwise it returns an error with the redacted text, which matches
// whatever err matches but wraps nothing.
func (f *Finder) Error(err error) error {
	text := err.Error()
	safe := f.Text(text, Most)
	if safe == text {
		return err
	}
	return &redactedError{safe, func(target error) bool { return errors.Is(err, target) }}
}

// redactedError must not hold the original error in a field, because some printers follow pointers.
type redactedError struct {
	text string
	is   func(error) bool
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return e.is(target) }

// expression returns the regular expression for a secret.
func expression(secret string) string {
	var b strings.Builder
	for _, r := range secret {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			b.WriteRune(r)
			continue
		}
		itself := regexp.QuoteMeta(string(r))
		b.WriteString(`(?:` + itself + `|(?i:` + strings.Join(escapes(r), "|") + `))`)
	}
	return b.String()
}

// short maps characters to their short escapes in JSON, queries and HTML, as expressions.
var short = map[rune]string{
	'"': `\\"|&quot;`, '\\': `\\\\`, '/': `\\/`, '\b': `\\b`, '\f': `\\f`, '\n': `\\n`, '\r': `\\r`, '\t': `\\t`,
	' ': `\+`, '&': "&amp;", '<': "&lt;", '>': "&gt;", '\'': "&apos;",
}

// escapes returns expressions for the escapes of a character in JSON, URLs and HTML.
func escapes(r rune) []string {
	json, percent := "", ""
	for _, unit := range utf16.Encode([]rune{r}) {
		json += fmt.Sprintf(`\\u%04x`, unit)
	}
	for _, b := range []byte(string(r)) {
		percent += fmt.Sprintf("%%%02x", b)
	}
	all := []string{json, percent, fmt.Sprintf("&#0*%d;", r), fmt.Sprintf("&#x0*%x;", r)}
	if s, ok := short[r]; ok {
		all = append(all, s)
	}
	return all
}
