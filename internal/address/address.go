// Package address builds and checks the URLs of all requests.
//
// It enforces two rules. An ID is always one escaped path element, so it cannot change where a request goes. An address
// from the service never leads to another origin, because only the origin of the base URL may receive the credentials.
package address

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// Error describes an invalid address or ID. An Error about the base URL shows no part of it, because any part of a
// misspelled URL may be a password.
type Error struct {
	Field  string // the parameter, member or placeholder with the address or the ID
	Reason string // what is wrong with it; may quote an address from the service
}

// Error returns the field and the reason.
func (e *Error) Error() string { return "invalid " + e.Field + ": " + e.Reason }

func invalid(field, format string, args ...any) *Error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// Expand replaces the {placeholders} of a path with the IDs in order, each as one escaped element. If an ID is empty or
// would change the path, it returns an *Error whose Field is the name of the placeholder.
func Expand(template string, ids ...string) (string, error) {
	var b strings.Builder
	for _, id := range ids {
		before, rest, found := strings.Cut(template, "{")
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			return "", errors.New("webdelivery: more ids than placeholders in a path")
		}
		segment, err := escapeSegment(name, id)
		if err != nil {
			return "", err
		}
		b.WriteString(before + segment)
		template = after
	}
	b.WriteString(template)
	return b.String(), nil
}

// Fits reports whether Expand accepts an ID.
func Fits(id string) bool {
	_, err := escapeSegment("", id)
	return err == nil
}

// Clean checks an escaped absolute path and returns it in canonical form, so that two spellings of one path are equal.
// It returns an *Error if an escape is invalid, or if an element is empty, "." or "..", even if it is escaped.
func Clean(field, path string) (string, error) {
	if !strings.HasPrefix(path, "/") {
		return "", invalid(field, "path %q does not begin with a slash", path)
	}
	elements := strings.Split(path[1:], "/")
	for i, element := range elements {
		plain, err := url.PathUnescape(element)
		if err != nil {
			return "", invalid(field, "path %q has a bad escape", path)
		}
		if strings.Contains(plain, `\`) {
			return "", invalid(field, "path %q contains a backslash", path)
		}
		if elements[i], err = escapeSegment(field, plain); err != nil {
			return "", err
		}
	}
	return "/" + strings.Join(elements, "/"), nil
}

// escapeSegment escapes an ID as one path element. It refuses an ID that a server or proxy could read as more than one:
// url.PathEscape leaves "." and ".." unchanged, and a proxy may treat an escaped slash or a backslash as a slash.
func escapeSegment(field, id string) (string, error) {
	switch {
	case id == "":
		return "", invalid(field, "is empty")
	case hasDots(id):
		return "", invalid(field, "%q would change the path", id)
	case strings.IndexFunc(id, IsControl) >= 0:
		return "", invalid(field, "contains a control character")
	}
	return url.PathEscape(id), nil
}

func hasDots(id string) bool {
	if !strings.Contains(id, ".") {
		return false // the usual case, and much faster
	}
	elements := strings.FieldsFunc(id, func(r rune) bool { return r == '/' || r == '\\' })
	return slices.Contains(elements, ".") || slices.Contains(elements, "..")
}

// IsControl reports whether r is an ASCII control character, which neither a path nor a header may contain.
func IsControl(r rune) bool { return r < 0x20 || r == 0x7f }

// IsInvisible reports whether r is a control character, a format character, or white space other than the space, so
// that a text with r is not what it looks like. The joiners U+200C and U+200D are excluded, because some scripts need
// them.
func IsInvisible(r rune) bool { return !unicode.IsPrint(r) && r != '\u200c' && r != '\u200d' }
