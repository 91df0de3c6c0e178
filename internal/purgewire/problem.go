package purgewire

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The members of a URI, as its problems name them.
const (
	fieldMode     = "match_mode"
	fieldPattern  = "uri_pattern"
	fieldModifier = "cache_key_modifier_regex"
)

// Problem returns the member of a URI that is wrong, and why. Both are "" if none is. The rules are those of sections 2.2
// and 4.4 of the service document, and those of open points 44 and 48.
func (u URI) Problem() (field, reason string) {
	if u.MatchMode != Exact && u.MatchMode != Prefix {
		return fieldMode, fmt.Sprintf("%q is neither EXACT_LITERAL nor PREFIX_LITERAL", u.MatchMode)
	}
	if reason := u.patternProblem(); reason != "" {
		return fieldPattern, reason
	}
	if reason := u.modifierProblem(); reason != "" {
		return fieldModifier, reason
	}
	return "", ""
}

func (u URI) patternProblem() string {
	protocol, after := aroundDomain(u.Pattern)
	switch at := strings.IndexFunc(u.Pattern, unseen); {
	case u.Pattern == "":
		return "is empty"
	case !utf8.ValidString(u.Pattern):
		return "is not UTF-8, so JSON cannot carry it"
	case at >= 0:
		r, _ := utf8.DecodeRuneInString(u.Pattern[at:])
		return fmt.Sprintf("holds %s at byte %d; remove it, or write %s if it belongs to the URI", nameOf(r), at, url.PathEscape(string(r)))
	case strings.Contains(u.Pattern, "#"):
		return "holds a fragment (#), which no cache ever sees; remove it, or write %23 (open point 44)"
	case u.MatchMode == Exact:
		return ""
	case strings.Contains(protocol, "*"):
		return "holds a * in its protocol; leave the protocol out, as a prefix covers both"
	case strings.Contains(after, "*"):
		begin, _, _ := strings.Cut(after, "*")
		begin = strings.TrimSuffix(u.Pattern, after) + begin
		return fmt.Sprintf("holds a * behind its domain, where it is no wildcard; a prefix matches all that begins with it, so write %q "+
			"(open point 48)", begin)
	default:
		return ""
	}
}

// aroundDomain returns what is before the domain of a pattern, which is its protocol, and what is after the domain.
func aroundDomain(pattern string) (protocol, after string) {
	protocol, rest, found := strings.Cut(pattern, "://")
	if !found || strings.ContainsAny(protocol, "/?#.") { // the "://" is a part of a path or query
		protocol, rest = "", pattern
	}
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		after = rest[at:]
	}
	return protocol, after
}

// unseen reports whether r is a control character or a blank, of ASCII or of Unicode, also one without a width. A URI
// cannot hold them: whoever asks for the object sends them escaped, so such a pattern matches nothing.
func unseen(r rune) bool {
	const wordJoiner, zeroWidthSpace, byteOrderMark = '\u2060', '\u200b', '\ufeff'
	return unicode.IsControl(r) || unicode.In(r, unicode.Z) || r == wordJoiner || r == zeroWidthSpace || r == byteOrderMark
}

func nameOf(r rune) string {
	if unicode.IsControl(r) {
		return fmt.Sprintf("the control character %U", r)
	}
	return fmt.Sprintf("the blank %U", r)
}

// regexOnly are the characters that only a regular expression has a use for. A dot is none of them: file names and
// versions have dots, and as a regular expression it matches a dot, too.
const regexOnly = `\^$+?()[]{}|`

func (u URI) modifierProblem() string {
	plain := strings.TrimSuffix(u.Modifier, "*")
	switch at := strings.IndexFunc(u.Modifier, func(r rune) bool { return r != ' ' && unseen(r) }); {
	case u.Modifier == "":
		return ""
	case u.MatchMode == Exact:
		return "is only valid with PREFIX_LITERAL; use Prefix, or remove the modifier"
	case !utf8.ValidString(u.Modifier):
		return "is not UTF-8, so JSON cannot carry it"
	case at >= 0:
		r, _ := utf8.DecodeRuneInString(u.Modifier[at:])
		return fmt.Sprintf("holds %s at byte %d; remove it", nameOf(r), at)
	case strings.Contains(plain, "*"):
		return "holds a * that is not its only one at the end; write a plain string, or one that ends in a single *"
	case strings.ContainsAny(plain, regexOnly), plain == "." && plain != u.Modifier:
		return "is a regular expression; write a plain string, or one that ends in a single * (open point 48)"
	default:
		return ""
	}
}
