package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFormats(t *testing.T) {
	t.Parallel()
	type e = entry
	for _, tt := range []struct {
		name, format, column, field, text string
		want                              []entry
	}{
		{
			name: "plain", format: "plain",
			text: "\ufeff# comment\r\n192.0.2.1\r\n\n ; comment\n// comment\n\t192.0.2.2 # why\n192.0.2.3;why\n198.51.100.0/24 // why",
			want: []e{{"192.0.2.1", "-", 2}, {"192.0.2.2", "-", 6}, {"192.0.2.3", "-", 7}, {"198.51.100.0/24", "-", 8}},
		},
		{
			name: "a double slash within a word is no comment", format: "plain",
			text: "192.0.2.0//24", want: []e{{"192.0.2.0//24", "-", 1}},
		},
		{
			name: "column by number", format: "csv", column: "2",
			text: "# header\na,192.0.2.1\n\n\"b\nb\", 192.0.2.2 \n", want: []e{{"192.0.2.1", "-", 2}, {"192.0.2.2", "-", 4}},
		},
		{
			name: "column by name", format: "csv", column: "ip",
			text: "why,ip\n\"a, b\",192.0.2.1\nc,2001:db8::/32", want: []e{{"192.0.2.1", "-", 2}, {"2001:db8::/32", "-", 3}},
		},
		{
			name: "an empty cell is an entry, and a wrong one", format: "csv", column: "ip",
			text: "why,ip\na,\n", want: []e{{"", "-", 2}},
		},
		{
			name: "strings", format: "json",
			text: "[\"192.0.2.1\",\n\n\"192.0.2.2\"]", want: []e{{"192.0.2.1", "-", 1}, {"192.0.2.2", "-", 3}},
		},
		{
			name: "array in an object", format: "json", field: "ips",
			text: "{\"of\": [1,\n2],\n\"ips\": [\"192.0.2.1\"]}", want: []e{{"192.0.2.1", "-", 3}},
		},
		{
			name: "objects in an array", format: "json", field: "ip",
			text: "[{\"ip\": \"192.0.2.1\"},\n{\"of\": null, \"ip\": \"192.0.2.2\"}]", want: []e{{"192.0.2.1", "-", 1}, {"192.0.2.2", "-", 2}},
		},
		{
			name: "objects in an array in an object", format: "json", field: "prefixes.ip",
			text: "{\"prefixes\": [\n{\"ip\": \"192.0.2.1\"}]}", want: []e{{"192.0.2.1", "-", 2}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := reader{in: strings.NewReader(tt.text), format: tt.format, column: tt.column, field: tt.field}
			got, err := r.read(t.Context(), "-")
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestBrokenFeeds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, format, column, field, text, want string }{
		{"no text", "plain", "", "", "", "-:1: has no entries"},
		{"comments", "plain", "", "", "# a\n; b\n", "-:1: has no entries"},
		{"web page", "plain", "", "", "\n <!doctype html>\n", "-:1: is a web page and no feed"},
		{"every address", "plain", "", "", "192.0.2.1\n0.0.0.0/0\n", `-:2: "0.0.0.0/0" is every address there is`},
		{"every address of IPv6", "json", "", "", `["::/0"]`, `-:1: "::/0" is every address there is`},
		{"too long", "plain", "", "", strings.Repeat("192.0.2.1\n", maxFeed/10+1), "-: is longer than 33554432 bytes"},
		{"no such column name", "csv", "ip", "", "# a\nwhy,what\n", `-:2: no column is called "ip"`},
		{"only a header", "csv", "ip", "", "why,ip\n", "-:1: has no entries"},
		{"no such column", "csv", "3", "", "a,b\n", "-:1: there is no column 3"},
		{"rows of several lengths", "csv", "1", "", "192.0.2.1,b\n192.0.2.2\n", "-:2: wrong number of fields"},
		{"a quote that does not end", "csv", "1", "", "192.0.2.1\n\"192", "-:2: "},
		{"no JSON", "json", "", "", "192.0.2.1\n", "-:1: "},
		{"cut JSON", "json", "", "", "[\"192.0.2.1\",\n\"192.0.2.2\"", "-:2: "},
		{"cut where nothing is read", "json", "", "ip", "[\n{\"of\": [1,\n2", "-:3: "},
		{"two values", "json", "", "", "[\"192.0.2.1\"]\n[]", "-:2: something follows"},
		{"no strings", "json", "", "", "[\"192.0.2.1\",\nnull]", `-:2: "/1" is null, and entries are strings`},
		{"objects without -field", "json", "", "", "[\n{\"ip\": \"192.0.2.1\"}]", "-:2: an object has members, and -field does not say which"},
		{"-field without objects", "json", "", "ip", "[\n\"192.0.2.1\"]", "-:2: /0 is a string, and -field leads to a member"},
		{"member missing", "json", "", "ip", "[{\"ip\": \"192.0.2.1\"},\n{\"of\":\n1}]", `-:2: an object has no member "ip"`},
		{"member twice", "json", "", "ip", "[\n{\"ip\": \"192.0.2.1\", \"ip\": \"192.0.2.2\"}]", "-:2: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := reader{in: strings.NewReader(tt.text), format: tt.format, column: tt.column, field: tt.field}
			entries, err := r.read(t.Context(), "-")
			require.ErrorContains(t, err, tt.want)
			assert.Empty(t, entries)
		})
	}
	r := reader{in: io.MultiReader(strings.NewReader("192.0.2.1\n"), iotest.ErrReader(errors.New("disk on fire")))}
	_, err := r.read(t.Context(), "-")
	require.EqualError(t, err, "-: disk on fire")
}

// The name of a feed says what it is, before its Content-Type does, and -format before both.
func TestFormatOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ format, name, contentType, want string }{
		{"", "feed", "", "plain"},
		{"", "-", "", "plain"},
		{"", "feed.CSV", "", "csv"},
		{"", "feed.json", "", "json"},
		{"", "https://example.com/feed.json", "text/plain", "json"},
		{"", "https://example.com/feed.txt", "application/json", "plain"},
		{"", "https://example.com/feed", "application/json", "json"},
		{"", "https://example.com/feed", "text/csv", "csv"},
		{"", "https://example.com/feed", "application/octet-stream", "plain"},
		{"csv", "feed.json", "application/json", "csv"},
	} {
		assert.Equal(t, tt.want, (&reader{format: tt.format}).formatOf(tt.name, tt.contentType), tt)
	}
}

// web serves feeds, good ones and others.
func web(t *testing.T) *httptest.Server {
	t.Helper()
	reply := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, body)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/json", reply("application/json; charset=utf-8", `["192.0.2.1"]`))
	mux.HandleFunc("/feed.csv", reply("text/plain", "192.0.2.2,why\n"))
	mux.HandleFunc("/page", reply("text/html; charset=utf-8", "192.0.2.1\n"))
	mux.HandleFunc("/disguised", reply("text/plain", "<html><body>Log in</body></html>"))
	mux.HandleFunc("/empty", reply("text/plain", ""))
	mux.HandleFunc("/long", reply("text/plain", strings.Repeat("192.0.2.1\n", maxFeed/10+1)))
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/json", http.StatusFound) })
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/part", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(w, "192.0.2.1\n")
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "192.0.2.1\n")
	})
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestDownload(t *testing.T) {
	t.Parallel()
	server := web(t)
	r := reader{column: "1", timeout: time.Minute}
	for path, want := range map[string]entry{
		"/json": {"192.0.2.1", "/json", 1}, "/feed.csv": {"192.0.2.2", "/feed.csv", 1}, "/moved": {"192.0.2.1", "/moved", 1},
	} {
		want.feed = server.URL + want.feed
		entries, err := r.read(t.Context(), server.URL+path+"?key=secret")
		require.NoError(t, err)
		assert.Equal(t, []entry{want}, entries)
	}
	for path, want := range map[string]string{
		"/page":      ":1: is a web page and no feed",
		"/disguised": ":1: is a web page and no feed",
		"/empty":     ":1: has no entries",
		"/long":      ": is longer than 33554432 bytes",
		"/absent":    ": the reply is 404 Not Found",
		"/part":      ": the reply is 206 Partial Content",
		"/cut":       ": unexpected EOF",
		"/round":     ": more than 10 redirects",
	} {
		_, err := r.read(t.Context(), strings.Replace(server.URL, "://", "://user:secret@", 1)+path+"?key=secret")
		require.ErrorContains(t, err, server.URL+path+want)
		assert.NotContains(t, err.Error(), "secret")
	}
}

// A feed that does not come ends with the time it has, or with the caller's patience.
func TestSilentFeeds(t *testing.T) {
	t.Parallel()
	server := web(t)
	_, err := (&reader{timeout: time.Millisecond}).read(t.Context(), server.URL+"/silent")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	interrupted, stop := context.WithCancel(t.Context())
	stop()
	_, err = (&reader{timeout: time.Hour}).read(interrupted, server.URL+"/silent")
	require.ErrorIs(t, err, context.Canceled)

	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer out.Close()
	_, err = (&reader{in: in}).read(interrupted, "-")
	require.ErrorIs(t, err, context.Canceled)
}

// The credentials of the service are for the service alone.
func TestFeedsGetNoCredentials(t *testing.T) {
	srv, _ := service(t)
	t.Setenv("WEBDELIVERY_BASE_URL", srv.URL)
	var seen []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header)
		_, _ = io.WriteString(w, wanted)
	}))
	defer server.Close()
	code, _, stderr := blocklist(t, "blocklist", server.URL)
	require.Equal(t, pending, code, stderr)
	require.Len(t, seen, 1)
	assert.Empty(t, seen[0].Get("Authorization")+seen[0].Get("Cookie"))
	assert.NotEmpty(t, srv.Requests())
}

func TestRedirectsStaySafe(t *testing.T) {
	t.Parallel()
	plain := httptest.NewRequest(http.MethodGet, "http://example.com/feed", nil)
	safe := httptest.NewRequest(http.MethodGet, "https://example.com/feed", nil)
	require.NoError(t, checkRedirect(safe, []*http.Request{plain}))
	require.NoError(t, checkRedirect(safe, []*http.Request{safe}))
	require.NoError(t, checkRedirect(plain, []*http.Request{plain}))
	require.ErrorContains(t, checkRedirect(plain, []*http.Request{plain, safe}), "from https to http")
}

// Whatever comes, it is entries of lines that there are, or an error that names the feed.
func FuzzFeeds(f *testing.F) {
	for _, text := range []string{"192.0.2.1\n", "ip,b\n\"192.0.2.1\",\"\n\"", "[{\"a\": [\"192.0.2.1\",\n{}]}]", "<", "\ufeff::/0", "[\"\\ud800\"\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range []reader{
			{format: "plain"},
			{format: "csv", column: "2"},
			{format: "csv", column: "ip"},
			{format: "json"},
			{format: "json", field: "a"},
			{format: "json", field: "a.b"},
		} {
			r.in = strings.NewReader(text)
			entries, err := r.read(t.Context(), "-")
			if err != nil {
				require.Empty(t, entries)
				require.True(t, strings.HasPrefix(err.Error(), "-:"), err)
				continue
			}
			require.NotEmpty(t, entries)
			last := 1
			for _, e := range entries {
				require.GreaterOrEqual(t, e.line, last)
				last = e.line
			}
			require.LessOrEqual(t, last, 1+strings.Count(text, "\n"))
		}
	})
}
