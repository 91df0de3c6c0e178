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
			purgewire.URI{MatchMode: purgewire.Prefix, Pattern: "a?b=<c>&'d'", Modifier: "<e> &"},
			`{"match_mode":"PREFIX_LITERAL","uri_pattern":"a?b=<c>&'d'","cache_key_modifier_regex":"<e> &"}`,
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

// A character that needs an escape gets it, wherever it stands.
func TestEscapesInJSON(t *testing.T) {
	t.Parallel()
	for size := range 20 {
		for at := range size {
			before, after := strings.Repeat("a", at), strings.Repeat("b", size-at-1)
			want := `{"match_mode":"EXACT_LITERAL","uri_pattern":"` + before + `\"` + after + `"}`
			uri := purgewire.URI{MatchMode: purgewire.Exact, Pattern: before + `"` + after}
			assert.Equal(t, want, string(uri.Append(nil)))
			assert.Equal(t, len(want), uri.Size(), want)
		}
	}
}
