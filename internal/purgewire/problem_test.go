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

		// The document has the wildcard in the domain alone. The path of one object may have a star in it.
		{purgewire.URI{purgewire.Prefix, "*.example.com", ""}, "", ""},
		{purgewire.URI{purgewire.Prefix, "https://*.example.com/a", ""}, "", ""},
		{purgewire.URI{purgewire.Exact, "https://www.example.com/a*?b=*", ""}, "", ""},
		{purgewire.URI{purgewire.Prefix, "https://www.example.com/img/*", ""}, pattern, `holds a * behind its domain, where it is no wildcard; a prefix matches all that begins with it, so write "https://www.example.com/img/"`},
		{purgewire.URI{purgewire.Prefix, "*.example.com/img/*.png", ""}, pattern, `holds a * behind its domain, where it is no wildcard; a prefix matches all that begins with it, so write "*.example.com/img/"`},
		{purgewire.URI{purgewire.Prefix, "www.example.com?q=*", ""}, pattern, "holds a * behind its domain"},
		{purgewire.URI{purgewire.Prefix, "/img/*", ""}, pattern, "holds a * behind its domain"},
		{purgewire.URI{purgewire.Prefix, "www.example.com/http://*", ""}, pattern, "holds a * behind its domain"},
		{purgewire.URI{purgewire.Prefix, "http*://www.example.com/", ""}, pattern, "holds a * in its protocol"},

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
		{purgewire.URI{purgewire.Exact, "a\u200b", ""}, pattern, "holds the blank U+200B"},
		{purgewire.URI{purgewire.Exact, "a\u2060", ""}, pattern, "holds the blank U+2060"},
		{purgewire.URI{purgewire.Exact, "\ufeffa", ""}, pattern, "holds the blank U+FEFF at byte 0"},
		{purgewire.URI{purgewire.Exact, "\u00fc/\u65e5\u200d\u0301", ""}, "", ""},

		// A modifier is a plain string, and no regular expression.
		{purgewire.URI{purgewire.Prefix, "a", `v1.2-b_c~/:=&,;%@"'!<> x`}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", "v1.*"}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", "."}, "", ""},
		{purgewire.URI{purgewire.Prefix, "a", ".*"}, modifier, "is a regular expression; write a plain string, or one that ends in a single *"},
		{purgewire.URI{purgewire.Prefix, "a", "a\tb"}, modifier, "holds the control character U+0009 at byte 1; remove it"},
		{purgewire.URI{purgewire.Prefix, "a", "a\u00a0"}, modifier, "holds the blank U+00A0 at byte 1"},
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
