package webdelivery

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

// The values of PurgeURI.MatchMode.
const (
	matchExact  = "EXACT_LITERAL"
	matchPrefix = "PREFIX_LITERAL"
)

// PurgeURI is one pattern of a purge, see [Exact] and [Prefix]. A purge refuses, with a [*ValidationError], what the
// service would refuse, and what it would accept without purging what was meant; [Client.Do] sends anything.
type PurgeURI struct {
	MatchMode  string `json:"match_mode"`  // required: EXACT_LITERAL or PREFIX_LITERAL
	URIPattern string `json:"uri_pattern"` // required; UTF-8 without a fragment, blanks or control characters
	// CacheKeyModifierRegex, only with PREFIX_LITERAL, matches objects with this modifier in their cache key: a plain string,
	// which may end in a single *, the wildcard. "" matches any.
	CacheKeyModifierRegex string `json:"cache_key_modifier_regex,omitempty"`
}

// Exact matches one object of one protocol: https://host/path and http://host/path are two objects. The pattern is
// sent unchanged. It needs a protocol, without which the service would take it as http alone, and a host, and may not
// end in *, which is not a wildcard. (Section 4.4.)
func Exact(uri string) PurgeURI { return PurgeURI{MatchMode: matchExact, URIPattern: uri} }

// Prefix matches everything under a directory, or every name that starts with the pattern, over http and https. The
// protocol is optional: host/path is enough. The pattern needs a host and is sent unchanged. A * after the domain is
// invalid, because it is not a wildcard there. (Section 4.4.)
func Prefix(uri string) PurgeURI { return PurgeURI{MatchMode: matchPrefix, URIPattern: uri} }

// The rules for the pattern and the modifier of a purge, from sections 2.2 and 4.4 of the service document and from
// open points 44 and 48.

func (u PurgeURI) patternProblem() string {
	at := strings.IndexFunc(u.URIPattern, func(r rune) bool { return r == ' ' || address.IsInvisible(r) })
	switch {
	case u.URIPattern == "":
		return "is empty"
	case !utf8.ValidString(u.URIPattern):
		return "is not UTF-8, so JSON cannot carry it"
	case at >= 0:
		r, _ := utf8.DecodeRuneInString(u.URIPattern[at:])
		what := "a blank"
		if r != ' ' {
			what = fmt.Sprintf("the invisible character %U", r)
		}
		return fmt.Sprintf("contains %s at byte %d; remove it, or write %s if it belongs to the URI", what, at, url.PathEscape(string(r)))
	case strings.Contains(u.URIPattern, "#"):
		return "contains a fragment (#), which never reaches a cache; remove it, or write %23"
	}
	return u.doubt()
}

// doubt returns why a pattern would purge what hardly anybody means, although the service would report COMPLETE. Rule 3 of
// section 4.4 allows a wildcard in the domain alone.
func (u PurgeURI) doubt() string {
	protocol, domain, after := split(u.URIPattern)
	switch {
	case protocol != "" && !strings.EqualFold(protocol, "https") && !strings.EqualFold(protocol, "http"):
		return "has a protocol other than https and http; write https:// or http://"
	case domain == "" && (after == "" || strings.ContainsRune("/?:", rune(after[0]))), strings.HasPrefix(after, ":/"):
		return "has no host; write one, as in https://www.example.com/"
	case lastLabelIsWild(domain):
		return "contains a * in the last label of its domain, where no property can have one; write the whole domain, as in " +
			"www.example.com/, or a wildcard before a domain, as in *.example.com/"
	case u.MatchMode == matchPrefix && strings.Contains(after, "*"):
		return "contains a * after the domain, where it is not a wildcard" + withoutStar(u.URIPattern, domain, after)
	case u.MatchMode == matchPrefix:
		return ""
	case protocol == "":
		return "has no protocol, so it would purge http alone; begin with https://, or use Prefix for everything that begins with it"
	case strings.HasSuffix(after, "*"):
		return "ends in *, which is not a wildcard; use Prefix without the * for everything that begins with it"
	default:
		return ""
	}
}

// withoutStar suggests ending a prefix before its * if that purges what the author meant, which it does if the * is the
// last character of the path or the query. A shorter prefix of any other pattern would purge more than the author
// meant.
func withoutStar(pattern, domain, after string) string {
	_, rest, _ := strings.Cut(after, "*")
	if inPath := after[0] == '/' || after[0] == '?'; domain == "" || !inPath || strings.Trim(rest, "*") != "" {
		return ""
	}
	return fmt.Sprintf("; write %q, which purges everything that begins with it", strings.TrimRight(pattern, "*"))
}

// split returns the three parts of a pattern: the protocol, the domain, and what is after the domain. A character that
// no domain has ends the domain.
func split(pattern string) (protocol, domain, after string) {
	protocol, rest, found := strings.Cut(pattern, "://")
	if !found || protocol == "" || strings.ContainsAny(protocol, "/?#.") { // the "://" is a part of a path or query
		protocol, rest = "", pattern
	}
	if end := strings.IndexFunc(rest, endsDomain); end >= 0 {
		return protocol, rest[:end], rest[end:]
	}
	return protocol, rest, ""
}

// host returns the domain of the pattern, or "" if it has none.
func (u PurgeURI) host() string {
	_, domain, _ := split(u.URIPattern)
	return strings.TrimRight(strings.ToLower(domain), ".")
}

func endsDomain(r rune) bool {
	return r <= unicode.MaxASCII && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".-_*", r)
}

// lastLabelIsWild reports whether the last label of a domain has a *. A top-level domain has no wildcard, so this is a
// path wildcard in the wrong place, such as www.example.com*.
func lastLabelIsWild(domain string) bool {
	domain = strings.TrimRight(domain, ".")
	return strings.Contains(domain[strings.LastIndex(domain, ".")+1:], "*")
}

func (u PurgeURI) modifierProblem() string {
	switch {
	case u.MatchMode == matchExact:
		return "is only valid with PREFIX_LITERAL; use Prefix, or remove the modifier"
	case !utf8.ValidString(u.CacheKeyModifierRegex):
		return "is not UTF-8, so JSON cannot carry it"
	case strings.Contains(strings.TrimSuffix(u.CacheKeyModifierRegex, "*"), "*"):
		return "contains a * other than a single one at the end; write a plain string, or one that ends in *"
	default:
		return ""
	}
}

// problem returns the member of the URI that is wrong, and why; both are "" if none is.
func (u PurgeURI) problem() (field, reason string) {
	if u.MatchMode != matchExact && u.MatchMode != matchPrefix {
		return "match_mode", fmt.Sprintf("%q is neither EXACT_LITERAL nor PREFIX_LITERAL", u.MatchMode)
	}
	if reason := u.patternProblem(); reason != "" {
		return "uri_pattern", reason
	}
	if u.CacheKeyModifierRegex != "" {
		if reason := u.modifierProblem(); reason != "" {
			return "cache_key_modifier_regex", reason
		}
	}
	return "", ""
}

// appendJSON appends a valid URI.
func (u PurgeURI) appendJSON(to []byte) []byte {
	to = append(append(to, `{"match_mode":"`...), u.MatchMode...)
	if to = append(to, `","uri_pattern":`...); strings.ContainsAny(u.URIPattern, `"\`) {
		to, _ = jsontext.AppendQuote(to, u.URIPattern) // its only error is broken UTF-8
	} else { // a valid pattern has no control characters
		to = append(append(append(to, '"'), u.URIPattern...), '"')
	}
	if u.CacheKeyModifierRegex != "" {
		to, _ = jsontext.AppendQuote(append(to, `,"cache_key_modifier_regex":`...), u.CacheKeyModifierRegex) // it is UTF-8
	}
	return append(to, '}')
}
