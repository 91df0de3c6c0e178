package purgewire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/purgewire"
)

// What sections 2.2 and 4.4 of the service document call invalid, and open points 44 and 48.
func TestProblemsOfURIs(t *testing.T) {
	t.Parallel()
	const mode, pattern, modifier = "match_mode", "uri_pattern", "cache_key_modifier_regex"
	for _, tt := range []struct {
		uri           purgewire.URI
		field, reason string
	}{
		{purgewire.URI{purgewire.Exact, "a", ""}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", ""}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", "v1"}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", "v1*"}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", "*"}, "", ""},
		{purgewire.URI{"", "a", ""}, mode, `"" is neither EXACT_LITERAL nor PREFIX_LITERAL`},
		{purgewire.URI{"exact_literal", "a", ""}, mode, `"exact_literal" is neither`},
		{purgewire.URI{purgewire.Exact, "", ""}, pattern, "is empty"},
		{purgewire.URI{purgewire.Prefix, "", "v1"}, pattern, "is empty"},
		{purgewire.URI{purgewire.Exact, "a#b", ""}, pattern, "holds a fragment (#)"},
		{purgewire.URI{purgewire.Exact, "a\xff", ""}, pattern, "is not UTF-8"},
		{purgewire.URI{purgewire.Exact, "a", "v1"}, modifier, "is only valid with PREFIX_LITERAL"},
		{purgewire.URI{purgewire.Prefix, "a", "*v1"}, modifier, "holds a * that is not its only one at the end"},
		{purgewire.URI{purgewire.Prefix, "a", "v1**"}, modifier, "holds a * that is not its only one at the end"},
		{purgewire.URI{purgewire.Prefix, "a", "\xff"}, modifier, "is not UTF-8"},

		// What cannot be seen is in no URI, whatever its mode.
		{purgewire.URI{purgewire.Exact, "www.example.com/a b", ""}, pattern, "holds the blank U+0020 at byte 17; remove it, or write %20"},
		{purgewire.URI{purgewire.Prefix, " www.example.com/", ""}, pattern, "holds the blank U+0020 at byte 0"},
		{purgewire.URI{purgewire.Prefix, "www.example.com/\n", ""}, pattern, "holds the control character U+000A at byte 16; remove it, or write %0A"},
		{purgewire.URI{purgewire.Exact, "a\x00", ""}, pattern, "holds the control character U+0000"},
		{purgewire.URI{purgewire.Exact, "a\x7f", ""}, pattern, "holds the control character U+007F"},
		{purgewire.URI{purgewire.Exact, "a\u0085", ""}, pattern, "holds the control character U+0085"},
		{purgewire.URI{purgewire.Exact, "a\u00a0b", ""}, pattern, "holds the blank U+00A0 at byte 1; remove it, or write %C2%A0"},
		{purgewire.URI{purgewire.Exact, "a\u3000", ""}, pattern, "holds the blank U+3000"},
		{purgewire.URI{purgewire.Exact, "a\u2028", ""}, pattern, "holds the blank U+2028"},
		{purgewire.URI{purgewire.Exact, "a\u200b", ""}, pattern, "holds the invisible character U+200B"},
		{purgewire.URI{purgewire.Exact, "a\u2060", ""}, pattern, "holds the invisible character U+2060"},
		{purgewire.URI{purgewire.Exact, "\ufeffa", ""}, pattern, "holds the invisible character U+FEFF at byte 0"},
		{purgewire.URI{purgewire.Exact, "a\u202eb", ""}, pattern, "holds the invisible character U+202E at byte 1; remove it, or write %E2%80%AE if it belongs to the URI"},
		{purgewire.URI{purgewire.Prefix, "a\u200db/", ""}, pattern, "holds the invisible character U+200D at byte 1"},
		{purgewire.URI{purgewire.Exact, "a/\U0001f468\u200d\U0001f469\ufe0f.png", ""}, "", ""},
		{purgewire.URI{purgewire.Exact, "\u00fc/\u65e5\u200d\u0301", ""}, "", ""},

		// A modifier is a plain string, and no regular expression.
		{purgewire.URI{purgewire.Prefix, "a", `v1.2-b_c~/:=&,;%@"'!<> x`}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", "v1.*"}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", "."}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", ".."}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", "a.*"}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", "..a*"}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", "/a/"}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", "/a/*"}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", ".*"}, modifier, "is a regular expression; write a plain string, or one that ends in a single *"},
		{purgewire.URI{purgewire.Prefix, "a", "..*"}, modifier, "is a regular expression"},
		{purgewire.URI{purgewire.Prefix, "a", "...*"}, modifier, "is a regular expression"},
		{purgewire.URI{purgewire.Prefix, "a", "a\tb"}, modifier, "holds the control character U+0009 at byte 1; remove it"},
		{purgewire.URI{purgewire.Prefix, "a", "a\u00a0"}, modifier, "holds the blank U+00A0 at byte 1"},
		{purgewire.URI{purgewire.Prefix, "a", " a\u200b"}, modifier, "holds the invisible character U+200B at byte 2"},
		{purgewire.URI{purgewire.Prefix, "a", "\u202ea*"}, modifier, "holds the invisible character U+202E at byte 0"},
	} {
		field, reason := tt.uri.Problem()
		assert.Equal(t, tt.field, field, "%q", tt.uri)
		assert.True(t, strings.HasPrefix(reason, tt.reason) && (reason == "") == (tt.reason == ""), "%q: %s", tt.uri, reason)
	}
}

// Each character that only a regular expression has a use for is refused, wherever it stands.
func TestModifiersThatAreRegularExpressions(t *testing.T) {
	t.Parallel()
	for _, r := range `\^$+?()[]{}|` {
		for _, modifier := range []string{string(r), string(r) + "a", "a" + string(r), "a" + string(r) + "*"} {
			field, reason := purgewire.URI{purgewire.Prefix, "a", modifier}.Problem()
			assert.Equal(t, "cache_key_modifier_regex", field, "%q", modifier)
			assert.Contains(t, reason, "is a regular expression", "%q", modifier)
		}
	}
}

// Section 4.4 allows a wildcard in the domain alone, for example *.<domain>, if a property has it. The path of one object
// may have a star in it.
func TestWildcards(t *testing.T) {
	t.Parallel()
	const (
		lastLabel = "holds a * in the last label of its domain, where no property can have one; write the whole domain, as in " +
			"www.example.com/, or a wildcard before a domain, as in *.example.com/ (open point 48)"
		noDomain = "holds a * and no domain before it; begin with the domain, as in www.example.com/ or *.example.com/ (open point 48)"
		behind   = "holds a * behind its domain, where it is no wildcard (open point 48)"
		protocol = "holds a * in its protocol; leave the protocol out, as a prefix covers both"
	)
	write := func(prefix string) string {
		return `holds a * behind its domain, where it is no wildcard; write "` + prefix + `", which purges everything that begins with it (open point 48)`
	}
	for _, tt := range []struct{ pattern, prefix, exact string }{
		{"*.h.com", "", ""},
		{"https://*.h.com/a", "", ""},
		{"HTTP://*.h.com:8080/a", "", ""},
		{"img*.h.com/a", "", ""},
		{"*.h.com./a", "", ""},
		{"*.ü.com", "", ""},
		{"/a", "", ""},

		{"h.com*", lastLabel, lastLabel},
		{"http://h.com*", lastLabel, lastLabel},
		{"http://h.com*/", lastLabel, lastLabel},
		{"h.com*./", lastLabel, lastLabel},
		{"www.example.*", lastLabel, lastLabel},
		{"www.example.*/a", lastLabel, lastLabel},
		{"*.h.com*", lastLabel, lastLabel},
		{"h.com*:80", lastLabel, lastLabel},
		{"*", lastLabel, lastLabel},
		{"http://*", lastLabel, lastLabel},
		{"*/a", lastLabel, lastLabel},
		{"a*@h.com/", lastLabel, lastLabel},

		{"h.com:*", behind, ""},
		{"h.com:*/a", behind, ""},
		{"h.com;*", behind, ""},
		{"h.com%2f*", behind, ""},
		{"h.com%2F*/a", behind, ""},
		{"ftp.x://h*/", behind, ""},
		{"ftp.x://h/*", behind, ""},

		{"/*", noDomain, ""},
		{"/img/*", noDomain, ""},
		{"//*.h.com/a", noDomain, ""},
		{"http:///*", noDomain, ""},
		{"://*", lastLabel, lastLabel},
		{"?*", noDomain, ""},

		// The * at the end means everything that begins so, as a prefix does without it.
		{"https://h.com/img/*", write("https://h.com/img/"), ""},
		{"h.com/*", write("h.com/"), ""},
		{"h.com/img**", write("h.com/img"), ""},
		{"*.h.com/img/*", write("*.h.com/img/"), ""},
		{"h.com?q=*", write("h.com?q="), ""},
		{"h.com/http://*", write("h.com/http://"), ""},
		// A shorter prefix would purge more than these mean.
		{"*.h.com/img/*.png", behind, ""},
		{"h.com/*/a/*", behind, ""},
		{"h.com/a*?q=1", behind, ""},
		{"h.com/*/", behind, ""},

		{"http*://h.com/", protocol, ""},
	} {
		for mode, want := range map[string]string{purgewire.Prefix: tt.prefix, purgewire.Exact: tt.exact} {
			field, reason := purgewire.URI{mode, tt.pattern, ""}.Problem()
			assert.Equal(t, want, reason, "%s %q", mode, tt.pattern)
			assert.Equal(t, want != "", field == "uri_pattern", "%s %q", mode, tt.pattern)
		}
	}
}

// Of ASCII, no pattern has a control character, a blank or a #, wherever it stands. An Exact may have a * in its path, a
// Prefix may not. (Service document, section 4.4, and open points 44 and 48.)
func TestPatternsOfASCII(t *testing.T) {
	t.Parallel()
	for c := byte(0); c < 0x80; c++ {
		refused := c <= ' ' || c == 0x7f || c == '#'
		for _, pattern := range []string{"/a" + string(c), "/" + string(c) + "a", "/" + strings.Repeat("a", 20) + string(c) + "bc"} {
			for mode, want := range map[string]bool{purgewire.Exact: refused, purgewire.Prefix: refused || c == '*'} {
				field, reason := purgewire.URI{mode, pattern, ""}.Problem()
				assert.Equal(t, want, reason != "", "%s %q: %s", mode, pattern, reason)
				assert.Equal(t, want, field == "uri_pattern", "%s %q", mode, pattern)
			}
		}
	}
}
