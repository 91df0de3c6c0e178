package suite_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// A pattern that is sent reaches the service byte for byte, in valid JSON with the members of section 2.2. If the
// client refuses a pattern, a rule of section 4.4 is the reason, the error names the field, and nothing is sent.
func FuzzPurge(f *testing.F) {
	for _, pattern := range []string{
		"https://www.example.com/app.css", "*.example.com/a<b>&c", "http://www.example.com/\u2028\\\"", "a#b", "", "\xff", "www.example.com/%zz?q=*\x00",
	} {
		f.Add(pattern, "", false)
		f.Add(pattern, "v1*", true)
	}
	f.Add("www.example.com/", "v*1", true)
	f.Add("www.example.com/", "v1", false)
	f.Add("www.example.com/a b", "v 1", true)
	f.Add("*://www.example.com", "v1.*", true)
	f.Add("www.example.com/*", ".*", true)
	f.Add("\xe0", "\xa0\xa0", true)
	f.Add("www.example.com/", "\xff*", true)
	f.Fuzz(func(t *testing.T, pattern, modifier string, prefix bool) {
		var sent []byte
		client := fixture.Answered(t, func(r *http.Request) *http.Response {
			var err error
			sent, err = io.ReadAll(r.Body)
			require.NoError(t, err)
			return fixture.Response(http.StatusCreated, []byte(`{"code":201,"transaction_id":7}`))
		})
		uri, mode := fixture.PurgeOf(pattern).URIs[0], "EXACT_LITERAL"
		if prefix {
			uri, mode = webdelivery.Prefix(pattern), "PREFIX_LITERAL"
		}
		if modifier != "" {
			uri = uri.WithCacheKeyModifier(modifier)
		}
		// Between what is wrong and what is plain, purgeuri.go decides; purge_internal_test.go has its rules.
		hidden := regexp.MustCompile(`[\x00-\x1f\x7f\x{80}-\x{9f}\p{Z}\x{200b}\x{2060}\x{feff}]`)
		star := regexp.MustCompile(`^(https?://)?[a-z.]+/.*\*`)
		wrong := pattern == "" || !utf8.ValidString(pattern) || !utf8.ValidString(modifier) || strings.Contains(pattern, "#") ||
			hidden.MatchString(pattern) || prefix && star.MatchString(pattern) ||
			modifier != "" && (!prefix || strings.Contains(strings.TrimSuffix(modifier, "*"), "*"))
		plain := regexp.MustCompile(`^(https?://)?[a-z.]+(/[!-"$-)+-~]*)?$`).MatchString(pattern) &&
			(modifier == "" || prefix && regexp.MustCompile(`^[0-9A-Za-z_-]+\*?$`).MatchString(modifier))
		_, err := client.Purge.Submit(t.Context(), webdelivery.PurgeRequest{Action: webdelivery.ActionExpire, URIs: []webdelivery.PurgeURI{uri}})
		require.False(t, wrong && plain)
		if wrong || err != nil {
			var refused *webdelivery.ValidationError
			require.ErrorAs(t, err, &refused)
			require.False(t, plain)
			assert.Contains(t, []string{"uris[0].uri_pattern", "uris[0].cache_key_modifier_regex"}, refused.Field)
			assert.Nil(t, sent)
			return
		}
		want := map[string]any{"match_mode": mode, "uri_pattern": pattern}
		if modifier != "" {
			want["cache_key_modifier_regex"] = modifier
		}
		var got any
		require.NoError(t, json.Unmarshal(sent, &got))
		assert.Equal(t, map[string]any{"purge_request": map[string]any{"action": "EXPIRE", "uris": []any{want}}}, got)
	})
}
