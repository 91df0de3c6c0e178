package address

import (
	"errors"
	"net/url"
	"strings"
)

// Expand replaces the {placeholders} of a path with the ids in order, each as one escaped element. If an id is empty or
// would change the path, it returns *Error, whose Field is the name of the placeholder.
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

// Fits reports whether Expand accepts an id.
func Fits(id string) bool {
	_, err := escapeSegment("", id)
	return err == nil
}

// Clean checks an escaped absolute path and returns it in canonical form, so that two spellings of one path are equal.
// Returns *Error if an element is empty, "." or "..", even when it is escaped, or if an escape is bad.
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

// escapeSegment escapes an id as one element of a path. It refuses an id that a server or proxy could read as more than
// that: url.PathEscape leaves "." and ".." unchanged, and a proxy may take an escaped slash or a backslash for a slash.
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
	for part := range strings.FieldsFuncSeq(id, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// IsControl reports whether r is an ASCII control character, which neither a path nor a header may contain.
func IsControl(r rune) bool { return r < 0x20 || r == 0x7f }
