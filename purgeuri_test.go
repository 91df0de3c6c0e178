package webdelivery_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
)

const matchExact, matchPrefix = "EXACT_LITERAL", "PREFIX_LITERAL"

// problemOf returns the member of a URI that Validate calls invalid, and why; both are "" if it is valid.
func problemOf(uri webdelivery.PurgeURI) (field, reason string) {
	err := webdelivery.PurgeRequest{URIs: []webdelivery.PurgeURI{uri}}.Validate()
	if wrong, ok := errors.AsType[*webdelivery.ValidationError](err); ok {
		return strings.TrimPrefix(wrong.Field, "uris[0]."), wrong.Reason
	}
	return "", ""
}

// What sections 2.2 and 4.4 of the service document call invalid, and open points 44 and 48.
func TestProblemsOfURIs(t *testing.T) {
	t.Parallel()
	const mode, pattern, modifier = "match_mode", "uri_pattern", "cache_key_modifier_regex"
	for _, tt := range []struct {
		mode, pattern, modifier, field, reason string
	}{
		{matchExact, "http://a", "", "", ""},
		{matchPrefix, "a", "", "", ""},
		{"", "a", "", mode, `"" is neither EXACT_LITERAL nor PREFIX_LITERAL`},
		{"exact_literal", "a", "", mode, `"exact_literal" is neither`},
		{matchExact, "", "", pattern, "is empty"},
		{matchPrefix, "", "v1", pattern, "is empty"},
		{matchExact, "a#b", "", pattern, "contains a fragment (#)"},
		{matchExact, "a\xff", "", pattern, "is not UTF-8"},
		{matchExact, "http://a", "v1", modifier, "is only valid with PREFIX_LITERAL"},
		{matchPrefix, "a", "*v1", modifier, "contains a * other than a single one at the end"},
		{matchPrefix, "a", "v1**", modifier, "contains a * other than a single one at the end"},
		{matchPrefix, "a", "\xff", modifier, "is not UTF-8"},

		// What cannot be seen is in no URI, whatever its mode.
		{matchExact, "www.example.com/a b", "", pattern, "contains a blank at byte 17; remove it, or write %20"},
		{matchPrefix, " www.example.com/", "", pattern, "contains a blank at byte 0"},
		{matchPrefix, "www.example.com/\n", "", pattern, "contains the invisible character U+000A at byte 16; remove it, or write %0A"},
		{matchExact, "a\u00a0b", "", pattern, "contains the invisible character U+00A0 at byte 1; remove it, or write %C2%A0"},
		{matchExact, "\ufeffa", "", pattern, "contains the invisible character U+FEFF at byte 0"},
		{matchExact, "a\u202eb", "", pattern, "contains the invisible character U+202E at byte 1; remove it, or write %E2%80%AE if it belongs to the URI"},
	} {
		uri := webdelivery.PurgeURI{MatchMode: tt.mode, URIPattern: tt.pattern, CacheKeyModifierRegex: tt.modifier}
		field, reason := problemOf(uri)
		assert.Equal(t, tt.field, field, "%q", uri)
		assert.True(t, strings.HasPrefix(reason, tt.reason) && (reason == "") == (tt.reason == ""), "%q: %s", uri, reason)
	}
	for _, invisible := range "\x00\x7f\u0085\u3000\u2028\u200b\u2060" {
		_, reason := problemOf(webdelivery.PurgeURI{MatchMode: matchExact, URIPattern: "a" + string(invisible)})
		assert.Contains(t, reason, fmt.Sprintf("contains the invisible character %U", invisible))
	}
	for _, visible := range []string{"a/می\u200cخواهم", "a/\U0001f468\u200d\U0001f469\ufe0f.png", "\u00fc/\u65e5\u200d\u0301"} {
		_, reason := problemOf(webdelivery.PurgeURI{MatchMode: matchExact, URIPattern: "http://" + visible})
		assert.Empty(t, reason, visible)
	}
	// A modifier is any plain string, with or without a * at its end.
	for _, plain := range []string{"v1", "v1*", "*", "?v=1", `^mobile|de[1-2]{2}\d+(x)$ "`, ".*", "a\tb\u200b*"} {
		_, reason := problemOf(webdelivery.PurgeURI{MatchMode: matchPrefix, URIPattern: "a", CacheKeyModifierRegex: plain})
		assert.Empty(t, reason, plain)
	}
}

// An Exact needs a protocol and a host, and no * at its end. (Service document, section 4.4, rules 1 and 3.)
func TestWhatExactRefuses(t *testing.T) {
	t.Parallel()
	for want, patterns := range map[string]string{
		"": "https://www.example.com http://www.example.com/a*b HTTPS://[2001:db8::1]:8443/?a=*&b https://*.example.com/",
		"has no protocol, so it would purge http alone; begin with https://, or use Prefix": "www.example.com/app.css www.example.com/?to=https://h/",
		"has no host; write one":                                       "//www.example.com/ /app.css https://:443/a https:/www.example.com/a https:// https:///app.css",
		"has a protocol other than https and http":                     "ftp://www.example.com/a",
		"contains a * in the last label of its domain":                 "https://www.example.*/",
		"ends in *, which is not a wildcard; use Prefix without the *": "https://www.example.com/img/* http://www.example.com/?q=*",
	} {
		for _, pattern := range strings.Fields(patterns) {
			_, reason := problemOf(webdelivery.Exact(pattern))
			assert.True(t, strings.HasPrefix(reason, want) && (reason == "") == (want == ""), "%q: %s", pattern, reason)
		}
	}
	for _, uri := range []string{"https://", "/a", "https:/h/", "https://:80/"} {
		_, reason := problemOf(webdelivery.Prefix(uri))
		assert.NotEmpty(t, reason, uri)
	}
}

// Section 4.4 allows a wildcard in the domain alone, for example *.<domain>, if a property has it.
func TestWildcards(t *testing.T) {
	t.Parallel()
	const behind = "contains a * after the domain, where it is not a wildcard"
	write := func(prefix string) string {
		return behind + `; write "` + prefix + `", which purges everything that begins with it`
	}
	for want, patterns := range map[string]string{
		"": "*.h.com https://*.h.com/a HTTP://*.h.com:8080/a img*.h.com/a *.h.com./a *.ü.com",
		"contains a * in the last label of its domain, where no property can have one; write the whole domain, as in " +
			"www.example.com/, or a wildcard before a domain, as in *.example.com/": "h.com* http://h.com* http://h.com*/ h.com*./ " +
			"www.example.* www.example.*/a *.h.com* h.com*:80 * http://* */a a*@h.com/",
		"has no host; write one, as in https://www.example.com/": "/a ftp.x://h*/ ftp.x://h/* /* /img/* //*.h.com/a http:///* ?* ://* ://h.com/",
		// The * at the end means everything that begins so, as a prefix does without it.
		write("https://h.com/img/"): "https://h.com/img/*",
		write("h.com/"):             "h.com/*",
		write("h.com/img"):          "h.com/img**",
		write("*.h.com/img/"):       "*.h.com/img/*",
		write("h.com?q="):           "h.com?q=*",
		write("h.com/http://"):      "h.com/http://*",
		// A shorter prefix would purge more than these mean.
		behind: "h.com:* h.com:*/a h.com;* h.com%2f* h.com%2F*/a *.h.com/img/*.png h.com/*/a/* h.com/a*?q=1 h.com/*/",
	} {
		for _, pattern := range strings.Fields(patterns) {
			field, reason := problemOf(webdelivery.Prefix(pattern))
			assert.Equal(t, want, reason, "%q", pattern)
			assert.Equal(t, want != "", field == "uri_pattern", "%q", pattern)
		}
	}
}
