package testserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
				assert.Equal(t, fmt.Sprintf("%s: uri_pattern %q", want, pattern), r.object(t)["description"])
				assert.Empty(t, f.Purged())
			}
		}
	}
}

// Section 8: two purge requests per second and customer, whoever sends them. Open point 39: rejected ones may count
// too.
func TestSection8PurgeRate(t *testing.T) {
	t.Parallel()
	type step struct {
		at     time.Duration
		status int
		after  string
	}
	asks := testserver.Dialect{TooFast: "503-retry-after"}
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		cfg   testserver.Config
		steps []step
	}{
		"two a second": {testserver.Config{Dialect: asks}, []step{
			{0, 201, ""}, {0, 201, ""}, {0, 503, "1"}, {999 * ms, 503, "1"}, {1000 * ms, 201, ""}, {1000 * ms, 201, ""}, {1000 * ms, 503, "1"},
		}},
		"sliding": {testserver.Config{Dialect: asks}, []step{
			{0, 201, ""}, {900 * ms, 201, ""}, {1000 * ms, 201, ""}, {1899 * ms, 503, "1"}, {1900 * ms, 201, ""},
		}},
		"refused ones do not count": {testserver.Config{Dialect: asks}, []step{
			{0, 201, ""}, {0, 201, ""}, {500 * ms, 503, "1"}, {600 * ms, 503, "1"}, {1000 * ms, 201, ""}, {1500 * ms, 201, ""},
		}},
		"one in ten seconds": {testserver.Config{PurgeRate: 1, PurgeWindow: 10 * time.Second, Dialect: asks}, []step{
			{0, 201, ""}, {0, 503, "10"}, {5500 * ms, 503, "5"}, {6000 * ms, 503, "4"}, {9999 * ms, 503, "1"}, {10000 * ms, 201, ""},
		}},
		"refused ones count": {testserver.Config{CountRefused: true, Dialect: asks}, []step{
			{0, 201, ""},
			{0, 201, ""},
			{500 * ms, 503, "1"},
			{1000 * ms, 201, ""},
			{1400 * ms, 503, "1"},
			{1500 * ms, 503, "1"},
			{2399 * ms, 503, "1"},
			{2499 * ms, 503, "1"},
			{3400 * ms, 201, ""},
			{3500 * ms, 201, ""},
		}},
		"unlimited": {testserver.Config{PurgeRate: -1}, []step{{0, 201, ""}, {0, 201, ""}, {0, 201, ""}, {0, 201, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, tc.cfg)
			var now time.Duration
			for i, s := range tc.steps {
				f.Clock().Advance(s.at - now)
				now = s.at
				r := f.purge(onePurge)
				assert.Equal(t, s.status, r.status, "step %d at %s", i, s.at)
				assert.Equal(t, s.after, r.header.Get("Retry-After"), "step %d at %s", i, s.at)
			}
		})
	}
}
