package testserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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

// Section 2.2: Purged returns accepted purges as they were sent.
func TestSection22AcceptedPurges(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	require.Equal(t, 201, f.purge(`{"purge_request":{"action":"EXPIRE","uris":[
		`+exact(`https://www.example.com/a%20b?x=1&y=\u00fc`)+`,`+prefix("www.example.com/img/", `"v1*"`)+`]}}`).status)
	f.Clock().Advance(time.Second)
	require.Equal(t, 400, f.purge(uris()).status)
	require.Equal(t, 201, f.purge(onePurge).status)
	assert.Equal(t, []testserver.Purge{
		{Time: noon, User: "alice", Action: "EXPIRE", TransactionID: 9007199254740993, URIs: []testserver.PurgeURI{
			{MatchMode: "EXACT_LITERAL", URIPattern: "https://www.example.com/a%20b?x=1&y=ü"},
			{MatchMode: "PREFIX_LITERAL", URIPattern: "www.example.com/img/", CacheKeyModifierRegex: "v1*"},
		}},
		{Time: noon.Add(time.Second), User: "alice", Action: "PURGE", TransactionID: 9007199254740995, URIs: []testserver.PurgeURI{
			{MatchMode: "EXACT_LITERAL", URIPattern: "www.example.com/app.css"},
		}},
	}, f.Purged())
}

// Section 2.2: the shape of the body.
func TestSection22PurgeBody(t *testing.T) {
	t.Parallel()
	good := exact("www.example.com/app.css")
	for name, body := range map[string]string{
		"no body":                  "",
		"not JSON":                 `purge`,
		"cut short":                onePurge[:len(onePurge)-1],
		"data behind":              onePurge + `{}`,
		"comma behind a member":    strings.Replace(onePurge, `]}}`, `],}}`, 1),
		"not UTF-8":                strings.Replace(onePurge, "app", "a\xffp", 1),
		"array":                    `[` + onePurge + `]`,
		"null":                     `null`,
		"empty object":             `{}`,
		"without envelope":         `{"action":"PURGE","uris":[` + good + `]}`,
		"envelope null":            `{"purge_request":null}`,
		"member beside envelope":   strings.Replace(onePurge, `{"purge_request"`, `{"x":1,"purge_request"`, 1),
		"unknown member":           strings.Replace(onePurge, `"action"`, `"x":1,"action"`, 1),
		"unknown member of a uri":  strings.Replace(onePurge, `"match_mode"`, `"x":1,"match_mode"`, 1),
		"member in capitals":       strings.Replace(onePurge, `"action"`, `"Action"`, 1),
		"member twice":             strings.Replace(onePurge, `"action"`, `"action":"PURGE","action"`, 1),
		"no action":                strings.Replace(onePurge, `"action":"PURGE",`, ``, 1),
		"empty action":             strings.Replace(onePurge, `"PURGE"`, `""`, 1),
		"action in small letters":  strings.Replace(onePurge, `"PURGE"`, `"purge"`, 1),
		"unknown action":           strings.Replace(onePurge, `"PURGE"`, `"REMOVE"`, 1),
		"action null":              strings.Replace(onePurge, `"PURGE"`, `null`, 1),
		"action a number":          strings.Replace(onePurge, `"PURGE"`, `1`, 1),
		"no uris":                  `{"purge_request":{"action":"PURGE"}}`,
		"empty uris":               uris(),
		"uris null":                `{"purge_request":{"action":"PURGE","uris":null}}`,
		"uris an object":           `{"purge_request":{"action":"PURGE","uris":` + good + `}}`,
		"uri a string":             uris(`"www.example.com/app.css"`),
		"uri null":                 uris(`null`),
		"second uri empty":         uris(good, `{}`),
		"no match_mode":            uris(`{"uri_pattern":"www.example.com/"}`),
		"unknown match_mode":       uris(`{"match_mode":"REGEX","uri_pattern":"www.example.com/"}`),
		"match_mode in other case": uris(`{"match_mode":"exact_literal","uri_pattern":"www.example.com/"}`),
		"no uri_pattern":           uris(`{"match_mode":"EXACT_LITERAL"}`),
		"empty uri_pattern":        uris(exact("")),
		"uri_pattern a number":     uris(`{"match_mode":"EXACT_LITERAL","uri_pattern":1}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{})
			r := f.purge(body)
			assert.Equal(t, http.StatusBadRequest, r.status, r.body)
			assert.Empty(t, f.Purged())
		})
	}
}

// Sections 2.2 and 4.4 rule 4: cache_key_modifier_regex.
func TestSection44CacheKeyModifier(t *testing.T) {
	t.Parallel()
	for modifier, status := range map[string]int{
		`"plain"`: 201, `"v1*"`: 201, `"*"`: 201, `""`: 201, `"a.b?c"`: 201,
		`"*v1"`: 400, `"v*1"`: 400, `"v1**"`: 400, `"v*1*"`: 400, `null`: 400, `1`: 400,
	} {
		f := start(t, testserver.Config{})
		assert.Equal(t, status, f.purge(uris(prefix("www.example.com/", modifier))).status, modifier)
		withExact := strings.Replace(prefix("www.example.com/", modifier), "PREFIX", "EXACT", 1)
		assert.Equal(t, 400, f.purge(uris(withExact)).status, "EXACT_LITERAL with %s", modifier)
	}
}

// Sections 4.4 and 7: the domain must be one of the customer's properties, and the user must be allowed to purge it. A
// wildcard must be that of a host pattern.
func TestSection44Domains(t *testing.T) {
	t.Parallel()
	const unknown, forbidden = "no configuration for a specified path", "user is not allowed to purge the domain"
	for pattern, want := range map[string]string{
		"www.example.com/app.css":          "",
		"http://www.example.com/app.css":   "",
		"https://www.example.com/app.css":  "",
		"HTTPS://WWW.Example.COM/app.css":  "",
		"www.example.com":                  "",
		"www.example.com/":                 "",
		"www.example.com/a?to=http://x/":   "",
		"www.example.com?to=ftp://x/":      "",
		"www.example.com/*/literal/star":   "",
		"*.img.example.com/":               "",
		"http://*.img.example.com/":        "",
		"a.img.example.com/":               "",
		"a.b.img.example.com/":             "",
		"other.example.com/":               forbidden,
		"img.example.com/":                 unknown,
		"*.example.com/":                   unknown,
		"*.www.example.com/":               unknown,
		"*/":                               unknown,
		"a.*.example.com/":                 unknown,
		"www.example.org/":                 unknown,
		"www.example.com.example.org/":     unknown,
		"xwww.example.com/":                unknown,
		"www.example.com@evil.example.net": unknown,
		"/app.css":                         unknown,
		"//www.example.com/app.css":        unknown,
		"http:///app.css":                  unknown,
		"ftp://www.example.com/app.css":    `protocol "ftp" is neither http nor https`,
		"://www.example.com/app.css":       `protocol "" is neither http nor https`,
	} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{
				HostPatterns: []string{"www.example.com", "*.img.example.com", "other.example.com"},
				Users: []testserver.User{{
					Name: "alice", Password: "correct-horse-battery", Domains: []string{"www.example.com", "*.img.example.com"},
				}},
			})
			for _, object := range []string{exact(pattern), prefix(pattern, `"v1*"`)} {
				r := f.purge(uris(exact("www.example.com/good"), object))
				if want == "" {
					assert.Equal(t, 201, r.status, r.body)
					continue
				}
				assert.Equal(t, 400, r.status)
				assert.Equal(t, fmt.Sprintf("%s: uri_pattern %q", want, pattern), r.object(t)["description"])
				assert.Empty(t, f.Purged())
			}
		})
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

// Section 8: the rate is per customer. A request that is rejected for another reason counts too.
func TestSection8PurgeRateIsTheCustomers(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{Users: []testserver.User{
		{Name: "alice", Password: "correct-horse-battery"}, {Name: "bob", Password: "other"},
	}})
	assert.Equal(t, 403, f.purge(onePurge, anonymous).status)
	assert.Equal(t, 400, f.purge(`{}`).status)
	assert.Equal(t, 201, f.purge(onePurge, basic("bob", "other")).status)
	assert.Equal(t, 503, f.purge(onePurge).status)
	assert.Equal(t, 404, f.get("/transactions/1").status, "polls are not limited")
	assert.Equal(t, 200, f.get("/tasks").status)
}
