package purgewire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/purgewire"
)

// How a purge looks in JSON, byte for byte, and that its size is known before.
func TestURIsInJSON(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `{"purge_request":{"action":"EXPIRE","uris":[]}}`, purgewire.Head("EXPIRE")+purgewire.Tail)
	for _, tt := range []struct {
		uri  purgewire.URI
		want string
	}{
		{
			purgewire.URI{MatchMode: purgewire.Exact, Pattern: "https://www.example.com/app.css"},
			`{"match_mode":"EXACT_LITERAL","uri_pattern":"https://www.example.com/app.css"}`,
		},
		{
			purgewire.URI{MatchMode: purgewire.Prefix, Pattern: "www.example.com/b", Modifier: "v1*"},
			`{"match_mode":"PREFIX_LITERAL","uri_pattern":"www.example.com/b","cache_key_modifier_regex":"v1*"}`,
		},
		{
			purgewire.URI{MatchMode: purgewire.Prefix, Pattern: `a?b=<c>&"d"'\`, Modifier: `a\d+`},
			`{"match_mode":"PREFIX_LITERAL","uri_pattern":"a?b=<c>&\"d\"'\\","cache_key_modifier_regex":"a\\d+"}`,
		},
		{
			purgewire.URI{MatchMode: purgewire.Exact, Pattern: "ü/日本/😀\u0001"},
			`{"match_mode":"EXACT_LITERAL","uri_pattern":"ü/日本/😀\u0001"}`,
		},
	} {
		assert.Equal(t, "["+tt.want, string(tt.uri.Append([]byte("["))))
		assert.Equal(t, len(tt.want), tt.uri.Size(), tt.want)
	}
}

// What sections 2.2 and 4.4 of the service document call invalid.
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
	} {
		field, reason := tt.uri.Problem()
		assert.Equal(t, tt.field, field, "%q", tt.uri)
		assert.True(t, strings.HasPrefix(reason, tt.reason) && (reason == "") == (tt.reason == ""), "%q: %s", tt.uri, reason)
	}
}
