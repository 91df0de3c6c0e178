package webdelivery

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What sections 2.2 and 4.4 of the service document call invalid, and open points 44 and 48.
func TestProblemsOfURIs(t *testing.T) {
	t.Parallel()
	const mode, pattern, modifier = "match_mode", "uri_pattern", "cache_key_modifier_regex"
	for _, tt := range []struct {
		mode                             MatchMode
		pattern, modifier, field, reason string
	}{
		{MatchExact, "a", "", "", ""},
		{MatchPrefix, "a", "", "", ""},
		{MatchPrefix, "a", "v1", "", ""},
		{MatchPrefix, "a", "v1*", "", ""},
		{MatchPrefix, "a", "*", "", ""},
		{"", "a", "", mode, `"" is neither EXACT_LITERAL nor PREFIX_LITERAL`},
		{"exact_literal", "a", "", mode, `"exact_literal" is neither`},
		{MatchExact, "", "", pattern, "is empty"},
		{MatchPrefix, "", "v1", pattern, "is empty"},
		{MatchExact, "a#b", "", pattern, "contains a fragment (#)"},
		{MatchExact, "a\xff", "", pattern, "is not UTF-8"},
		{MatchExact, "a", "v1", modifier, "is only valid with PREFIX_LITERAL"},
		{MatchPrefix, "a", "*v1", modifier, "contains a * other than a single one at the end"},
		{MatchPrefix, "a", "v1**", modifier, "contains a * other than a single one at the end"},
		{MatchPrefix, "a", "\xff", modifier, "is not UTF-8"},

		// What cannot be seen is in no URI, whatever its mode.
		{MatchExact, "www.example.com/a b", "", pattern, "contains a blank at byte 17; remove it, or write %20"},
		{MatchPrefix, " www.example.com/", "", pattern, "contains a blank at byte 0"},
		{MatchPrefix, "www.example.com/\n", "", pattern, "contains the invisible character U+000A at byte 16; remove it, or write %0A"},
		{MatchExact, "a\x00", "", pattern, "contains the invisible character U+0000"},
		{MatchExact, "a\x7f", "", pattern, "contains the invisible character U+007F"},
		{MatchExact, "a\u0085", "", pattern, "contains the invisible character U+0085"},
		{MatchExact, "a\u00a0b", "", pattern, "contains the invisible character U+00A0 at byte 1; remove it, or write %C2%A0"},
		{MatchExact, "a\u3000", "", pattern, "contains the invisible character U+3000"},
		{MatchExact, "a\u2028", "", pattern, "contains the invisible character U+2028"},
		{MatchExact, "a\u200b", "", pattern, "contains the invisible character U+200B"},
		{MatchExact, "a\u2060", "", pattern, "contains the invisible character U+2060"},
		{MatchExact, "\ufeffa", "", pattern, "contains the invisible character U+FEFF at byte 0"},
		{MatchExact, "a\u202eb", "", pattern, "contains the invisible character U+202E at byte 1; remove it, or write %E2%80%AE if it belongs to the URI"},
		{MatchExact, "a/می\u200cخواهم", "", "", ""},
		{MatchExact, "a/\U0001f468\u200d\U0001f469\ufe0f.png", "", "", ""},
		{MatchExact, "\u00fc/\u65e5\u200d\u0301", "", "", ""},

		// A modifier is any plain string, with or without a * at its end.
		{MatchPrefix, "a", "?v=1", "", ""},
		{MatchPrefix, "a", `^mobile|de[1-2]{2}\d+(x)$ "`, "", ""},
		{MatchPrefix, "a", ".*", "", ""},
		{MatchPrefix, "a", "a\tb\u200b*", "", ""},
	} {
		uri := PurgeURI{MatchMode: tt.mode, URIPattern: tt.pattern, CacheKeyModifierRegex: tt.modifier}
		field, reason := uri.problem()
		assert.Equal(t, tt.field, field, "%q", uri)
		assert.True(t, strings.HasPrefix(reason, tt.reason) && (reason == "") == (tt.reason == ""), "%q: %s", uri, reason)
	}
}

// An Exact needs a protocol and a host, and no * at its end. Its struct literal needs none of these. (Service document,
// section 4.4, rules 1 and 3.)
func TestWhatExactRefuses(t *testing.T) {
	t.Parallel()
	const (
		noProtocol = "has no protocol, so it would purge http alone; begin with https://, or use ExactBoth"
		noHost     = "has no host; write one"
		star       = "ends in *, which is not a wildcard; use Prefix without the *"
	)
	for pattern, want := range map[string]string{
		"https://www.example.com":           "",
		"http://www.example.com/a*b":        "",
		"HTTPS://[2001:db8::1]:8443/?a=*&b": "",
		"https://*.example.com/":            "",
		"www.example.com/app.css":           noProtocol,
		"www.example.com/?to=https://h/":    noProtocol,
		"//www.example.com/":                noHost,
		"/app.css":                          noHost,
		"https://:443/a":                    noHost,
		"https:/www.example.com/a":          noHost,
		"ftp://www.example.com/a":           "has a protocol other than https and http",
		"https://":                          noHost,
		"https:///app.css":                  noHost,
		"https://www.example.com/img/*":     star,
		"https://www.example.*/":            "contains a * in the last label of its domain",
		"http://www.example.com/?q=*":       star,
	} {
		uri := Exact(pattern)
		literal := PurgeURI{MatchMode: MatchExact, URIPattern: pattern}
		_, reason := uri.problem()
		assert.True(t, strings.HasPrefix(reason, want) && (reason == "") == (want == ""), "%q: %s", pattern, reason)
		assert.Equal(t, want == "", uri == literal, pattern)
		_, reason = literal.problem()
		assert.Empty(t, reason, pattern)
	}
	both := []PurgeURI{Exact("https://h/a?b=c://d"), Exact("http://h/a?b=c://d")}
	for _, uri := range []string{"h/a?b=c://d", "http://h/a?b=c://d", "https://h/a?b=c://d"} {
		assert.Equal(t, both, ExactBoth(uri))
	}
	for _, uri := range []string{"", "/a", "h/*", "ftp://h/a", "https:/h/a", "https://"} {
		assert.ErrorContains(t, PurgeRequest{ActionPurge, ExactBoth(uri)}.Validate(), "uris[0].uri_pattern", uri)
	}
	for _, uri := range []string{"https://", "/a", "https:/h/", "https://:80/"} {
		assert.Error(t, PurgeRequest{ActionPurge, []PurgeURI{Prefix(uri)}}.Validate(), uri)
	}
}

// Section 4.4 allows a wildcard in the domain alone, for example *.<domain>, if a property has it. A struct literal is sent
// as it is: the document does not call it invalid.
func TestWildcards(t *testing.T) {
	t.Parallel()
	const (
		lastLabel = "contains a * in the last label of its domain, where no property can have one; write the whole domain, as in " +
			"www.example.com/, or a wildcard before a domain, as in *.example.com/"
		behind = "contains a * after the domain, where it is not a wildcard"
		noHost = "has no host; write one, as in https://www.example.com/"
	)
	write := func(prefix string) string {
		return `contains a * after the domain, where it is not a wildcard; write "` + prefix + `", which purges everything that begins with it`
	}
	for _, tt := range []struct{ pattern, prefix string }{
		{"*.h.com", ""},
		{"https://*.h.com/a", ""},
		{"HTTP://*.h.com:8080/a", ""},
		{"img*.h.com/a", ""},
		{"*.h.com./a", ""},
		{"*.ü.com", ""},
		{"/a", noHost},

		{"h.com*", lastLabel},
		{"http://h.com*", lastLabel},
		{"http://h.com*/", lastLabel},
		{"h.com*./", lastLabel},
		{"www.example.*", lastLabel},
		{"www.example.*/a", lastLabel},
		{"*.h.com*", lastLabel},
		{"h.com*:80", lastLabel},
		{"*", lastLabel},
		{"http://*", lastLabel},
		{"*/a", lastLabel},
		{"a*@h.com/", lastLabel},

		{"h.com:*", behind},
		{"h.com:*/a", behind},
		{"h.com;*", behind},
		{"h.com%2f*", behind},
		{"h.com%2F*/a", behind},
		{"ftp.x://h*/", noHost},
		{"ftp.x://h/*", noHost},

		{"/*", noHost},
		{"/img/*", noHost},
		{"//*.h.com/a", noHost},
		{"http:///*", noHost},
		{"://*", lastLabel},
		{"?*", noHost},

		// The * at the end means everything that begins so, as a prefix does without it.
		{"https://h.com/img/*", write("https://h.com/img/")},
		{"h.com/*", write("h.com/")},
		{"h.com/img**", write("h.com/img")},
		{"*.h.com/img/*", write("*.h.com/img/")},
		{"h.com?q=*", write("h.com?q=")},
		{"h.com/http://*", write("h.com/http://")},
		// A shorter prefix would purge more than these mean.
		{"*.h.com/img/*.png", behind},
		{"h.com/*/a/*", behind},
		{"h.com/a*?q=1", behind},
		{"h.com/*/", behind},
	} {
		field, reason := Prefix(tt.pattern).problem()
		assert.Equal(t, tt.prefix, reason, "%q", tt.pattern)
		assert.Equal(t, tt.prefix != "", field == "uri_pattern", "%q", tt.pattern)
		for _, mode := range []MatchMode{MatchPrefix, MatchExact} {
			_, reason := PurgeURI{MatchMode: mode, URIPattern: tt.pattern}.problem()
			assert.Empty(t, reason, "%s %q", mode, tt.pattern)
		}
	}
}
