package testserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// uris returns a purge request with these uri objects.
func uris(objects ...string) string {
	return `{"purge_request":{"action":"PURGE","uris":[` + strings.Join(objects, ",") + `]}}`
}

func exact(pattern string) string {
	return `{"match_mode":"EXACT_LITERAL","uri_pattern":"` + pattern + `"}`
}

func prefix(pattern, modifier string) string {
	return `{"match_mode":"PREFIX_LITERAL","uri_pattern":"` + pattern + `","cache_key_modifier_regex":` + modifier + `}`
}

// Sections 4.4 and 7: the domain must be one of the customer's properties, and the user must be allowed to purge it. A
// wildcard must be that of a host pattern.
func TestSection44Domains(t *testing.T) {
	t.Parallel()
	for want, patterns := range map[string][]string{
		"": {
			"www.example.com/app.css", "http://www.example.com/app.css", "https://www.example.com/app.css",
			"HTTPS://WWW.Example.COM/app.css", "www.example.com", "www.example.com/", "www.example.com/a?to=http://x/",
			"www.example.com?to=ftp://x/", "www.example.com/*/literal/star",
			"*.img.example.com/", "http://*.img.example.com/", "a.img.example.com/", "a.b.img.example.com/",
		},
		"user is not allowed to purge the domain": {"other.example.com/"},
		"no configuration for a specified path": {
			"img.example.com/", "*.example.com/", "*.www.example.com/", "*/", "a.*.example.com/", "www.example.org/",
			"www.example.com.example.org/", "xwww.example.com/", "www.example.com@evil.example.net", "/app.css",
			"//www.example.com/app.css", "http:///app.css",
		},
		`protocol "ftp" is neither http nor https`: {"ftp://www.example.com/app.css"},
		`protocol "" is neither http nor https`:    {"://www.example.com/app.css"},
	} {
		f := start(t, testserver.Config{
			HostPatterns: []string{"www.example.com", "*.img.example.com", "other.example.com"}, PurgeRate: -1,
			Users: []testserver.User{{
				Name: "alice", Password: "correct-horse-battery", Domains: []string{"www.example.com", "*.img.example.com"},
			}},
		})
		for _, pattern := range patterns {
			for _, object := range []string{exact(pattern), prefix(pattern, `"v1*"`)} {
				r := f.purge(uris(exact("www.example.com/good"), object))
				if want == "" {
					assert.Equal(t, 201, r.status, "%s: %s", pattern, r.body)
					continue
				}
				assert.Equal(t, 400, r.status, pattern)
				var body struct {
					Description string `json:"description"`
				}
				require.NoError(t, json.Unmarshal([]byte(r.body), &body))
				assert.Equal(t, fmt.Sprintf("%s: uri_pattern %q", want, pattern), body.Description)
				assert.Empty(t, f.Purged())
			}
		}
	}
}
