package address_test

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/address"
)

func testBase(t testing.TB) *address.Base {
	t.Helper()
	b, err := address.Parse("https://api.example.com:8443/root", "acme", false)
	require.NoError(t, err)
	return b
}

// Addresses in responses are relative to {base_url}/<customer>/v1. Resolve also accepts addresses that begin with that
// prefix, and absolute ones of the same origin (open point 29). It refuses all others.
func TestResolve(t *testing.T) {
	t.Parallel()
	tests := []struct {
		address, path, query string // empty path: refused
	}{
		{"/config/networklists?page=2", "/config/networklists", "page=2"},
		{"/root/acme/v1/config/networklists?page=2", "/config/networklists", "page=2"},
		{"https://api.example.com:8443/root/acme/v1/tasks?since=a%20b", "/tasks", "since=a%20b"},
		{"HTTPS://API.EXAMPLE.COM:8443/root/acme/v1/tasks", "/tasks", ""},
		{"/tasks/a%2fb", "/tasks/a%2Fb", ""},
		{"/tasks/%61", "/tasks/a", ""},
		{"/tasks?", "/tasks", ""},
		{"/root/acme/v1", "/root/acme/v1", ""},

		{"", "", ""},
		{"tasks", "", ""},
		{"?page=2", "", ""},
		{"/", "", ""},
		{"/tasks/", "", ""},
		{"//api.example.com:8443/root/acme/v1/tasks", "", ""},
		{"//evil.example.com/tasks", "", ""},
		{"https://evil.example.com/root/acme/v1/tasks", "", ""},
		{"https://api.example.com/root/acme/v1/tasks", "", ""},
		{"https://api.example.com:8443.evil.example.com/root/acme/v1/tasks", "", ""},
		{"http://api.example.com:8443/root/acme/v1/tasks", "", ""},
		{"https://api.example.com:8443@evil.example.com/root/acme/v1/tasks", "", ""},
		{"https://user:pw@api.example.com:8443/root/acme/v1/tasks", "", ""},
		{"https://api.example.com:8443/root/other/v1/tasks", "", ""},
		{"https://api.example.com:8443/root/acme/v1", "", ""},
		{"https:/tasks", "", ""},
		{"mailto:root@example.com", "", ""},
		{"/tasks/../../other/v1/tasks", "", ""},
		{"/tasks/%2e%2e/x", "", ""},
		{"/tasks/./x", "", ""},
		{"/tasks/..%2f..%2fx", "", ""},
		{"/tasks/a%2F.", "", ""},
		{`/tasks\..\x`, "", ""},
		{"/tasks/%5c..", "", ""},
		{"/tasks/%00", "", ""},
		{"/tasks\r\nX: y", "", ""},
		{"/tasks#x", "", ""},
		{"/tasks/%", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.address, func(t *testing.T) {
			t.Parallel()
			path, query, err := testBase(t).Resolve("next_uri", tt.address)
			if tt.path == "" {
				var invalid *address.Error
				require.ErrorAs(t, err, &invalid)
				assert.Equal(t, "next_uri", invalid.Field)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.path, path)
			assert.Equal(t, tt.query, query)
		})
	}
}

// Whatever address the service sends, the request stays on the origin and below the base.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{
		"/tasks?page=2", "//evil.example.com", "https://api.example.com:8443/root/acme/v1/tasks", "/%2e%2e/x", "/a%2fb", "https:/x", "/@evil", "/a;b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		b := testBase(t)
		below, query, err := b.Resolve("next_uri", sent)
		if err != nil {
			return
		}
		request, err := b.URL(below, query)
		require.NoError(t, err)
		u, err := url.Parse(request.String())
		require.NoError(t, err)
		assert.Equal(t, "https", u.Scheme)
		assert.Equal(t, "api.example.com:8443", u.Host)
		assert.Nil(t, u.User)
		assert.True(t, strings.HasPrefix(u.EscapedPath(), "/root/acme/v1/"), u.EscapedPath())
		assert.Equal(t, b.Path(below), u.EscapedPath(), "what is sent is what errors show")
		assert.Equal(t, query, u.RawQuery)
		decoded, err := url.PathUnescape(u.EscapedPath())
		require.NoError(t, err)
		for _, element := range strings.Split(u.EscapedPath(), "/")[1:] {
			plain, err := url.PathUnescape(element)
			require.NoError(t, err)
			assert.NotContains(t, []string{"", ".", ".."}, plain)
		}
		if !strings.Contains(u.EscapedPath(), "%2F") {
			assert.Equal(t, decoded, path.Clean(decoded))
		}
		again, _, err := b.Resolve("next_uri", below)
		require.NoError(t, err)
		if !strings.HasPrefix(below, b.Path("/")) {
			assert.Equal(t, below, again, "one spelling for one path")
		}
	})
}

// An id is one escaped path element, whatever it contains.
func TestExpand(t *testing.T) {
	t.Parallel()
	got, err := address.Expand("/config/networklists/{list}/entries/{entry}", "a/b", "ü ?#%2e")
	require.NoError(t, err)
	assert.Equal(t, "/config/networklists/a%2Fb/entries/%C3%BC%20%3F%23%252e", got)
	got, err = address.Expand("/config/networklists/{list}/entries", "office")
	require.NoError(t, err)
	assert.Equal(t, "/config/networklists/office/entries", got)

	for _, id := range []string{"", ".", "..", "a\x00", "a\n", "\x7f"} {
		_, err := address.Expand("/tasks/{task_id}", id)
		var invalid *address.Error
		require.ErrorAs(t, err, &invalid, "%q", id)
		assert.Equal(t, "task_id", invalid.Field)
	}
}

// More ids than placeholders are a bug of the SDK, so the error is not an *Error.
func TestMoreIDsThanPlaceholders(t *testing.T) {
	t.Parallel()
	for _, template := range []string{"/tasks", "/tasks/{task_id}", "/tasks/{task_id}/{step"} {
		_, err := address.Expand(template, "t1", "t2")
		require.Error(t, err, template)
		var invalid *address.Error
		require.NotErrorAs(t, err, &invalid, template)
	}
}

// Two spellings of one path become equal, and an ambiguous path is refused.
func TestClean(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/tasks": "/tasks", "/%74asks/a%2fb": "/tasks/a%2Fb", "/a b": "/a%20b", "/%c3%bc": "/%C3%BC", "/...": "/...", "/a.": "/a.", "/a~": "/a~",
	} {
		got, err := address.Clean("path", path)
		require.NoError(t, err, path)
		assert.Equal(t, want, got, path)
		again, err := address.Clean("path", got)
		require.NoError(t, err, path)
		assert.Equal(t, got, again, path)
	}
	for path, reason := range map[string]string{
		"":          `path "" does not begin with a slash`,
		"tasks":     `path "tasks" does not begin with a slash`,
		"/%zz":      `path "/%zz" has a bad escape`,
		`/a%5Cb`:    `path "/a%5Cb" contains a backslash`,
		"/a//b":     "is empty",
		"/":         "is empty",
		"/a/..":     `".." would change the path`,
		"/a/b%2F..": `"b/.." would change the path`,
		"/%1f":      "contains a control character",
		"/%7F":      "contains a control character",
	} {
		_, err := address.Clean("path", path)
		var invalid *address.Error
		require.ErrorAs(t, err, &invalid, path)
		assert.Equal(t, address.Error{Field: "path", Reason: reason}, *invalid)
		require.EqualError(t, err, "invalid path: "+reason)
	}
}

// An error shows only the origin of a Location.
func TestOriginOf(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"/tasks?token=hunter22":                "https://api.example.com:8443",
		"":                                     "https://api.example.com:8443",
		"//Other.example.com/x":                "https://other.example.com",
		"http://other.example.com:80/hunter22": "http://other.example.com",
		"https://alice:hunter22@other.example.com/": "https://other.example.com",
		"https://other.example.com:8443/#hunter22":  "https://other.example.com:8443",
		"https://other.example.com:hunter22/":       "an unreadable address",
	} {
		assert.Equal(t, want, testBase(t).OriginOf(location), location)
	}
}
