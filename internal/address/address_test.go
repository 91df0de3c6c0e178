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
	for _, tt := range []struct {
		address, path, query string
	}{
		{"/config/networklists?page=2", "/config/networklists", "page=2"},
		{"/root/acme/v1/config/networklists?page=2", "/config/networklists", "page=2"},
		{"https://api.example.com:8443/root/acme/v1/tasks?since=a%20b", "/tasks", "since=a%20b"},
		{"HTTPS://API.EXAMPLE.COM:8443/root/acme/v1/tasks", "/tasks", ""},
		{"/tasks/a%2fb", "/tasks/a%2Fb", ""},
		{"/tasks/%61", "/tasks/a", ""},
		{"/tasks?", "/tasks", ""},
		{"/root/acme/v1", "/root/acme/v1", ""},
	} {
		path, query, err := testBase(t).Resolve("next_uri", tt.address)
		require.NoError(t, err, tt.address)
		assert.Equal(t, tt.path, path)
		assert.Equal(t, tt.query, query)
	}
	for _, refused := range []string{
		"", "tasks", "?page=2", "/", "/tasks/", "//evil.example.com/tasks", "https:/tasks", "mailto:root@example.com",
		"//api.example.com:8443/root/acme/v1/tasks",
		"https://evil.example.com/root/acme/v1/tasks",
		"https://api.example.com/root/acme/v1/tasks",
		"https://api.example.com:8443.evil.example.com/root/acme/v1/tasks",
		"http://api.example.com:8443/root/acme/v1/tasks",
		"https://api.example.com:8443@evil.example.com/root/acme/v1/tasks",
		"https://user:pw@api.example.com:8443/root/acme/v1/tasks",
		"https://api.example.com:8443/root/other/v1/tasks",
		"https://api.example.com:8443/root/acme/v1",
		"/tasks/../../other/v1/tasks", "/tasks/%2e%2e/x", "/tasks/./x", "/tasks/..%2f..%2fx", "/tasks/a%2F.",
		`/tasks\..\x`, "/tasks/%5c..", "/tasks/%00", "/tasks\r\nX: y", "/tasks#x", "/tasks/%",
	} {
		_, _, err := testBase(t).Resolve("next_uri", refused)
		var invalid *address.Error
		require.ErrorAs(t, err, &invalid, refused)
		assert.Equal(t, "next_uri", invalid.Field)
	}
}

// An ID is one element of a path. It cannot lead elsewhere, also where a proxy takes an escaped slash or a backslash for a
// slash.
func TestExpand(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"7": "7", "a b": "a%20b", "a/b": "a%2Fb", `a\b`: "a%5Cb", "a.b": "a.b", "...": "...", "%2e": "%252e", "ü?#": "%C3%BC%3F%23",
		"": "", ".": "", "..": "", "a/..": "", "a/./b": "", `..\a`: "", `a\..`: "", "a\x00": "", "a\x7f": "", // refused
	} {
		path, err := address.Expand("/lists/{list}/entries", id)
		if want != "" {
			require.NoError(t, err, id)
			assert.Equal(t, "/lists/"+want+"/entries", path)
			continue
		}
		var invalid *address.Error
		require.ErrorAs(t, err, &invalid, id)
		assert.Equal(t, "list", invalid.Field)
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
