package feed

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, format, setting, text, want string }{
		{
			"plain", "plain", "",
			"\ufeff# comment\r\n192.0.2.1\r\n\n ; comment\n// comment\n\t192.0.2.2 # why\n192.0.2.3;why\n198.51.100.0/24 // why",
			"192.0.2.1 at f:2, 192.0.2.2 at f:6, 192.0.2.3 at f:7, 198.51.100.0/24 at f:8, ",
		},
		{"a double slash within a word is no comment", "plain", "", "192.0.2.0//24", "192.0.2.0//24 at f:1, "},
		{"column by number", "csv", "2", "# header\na,192.0.2.1\n\n\"b\nb\", 192.0.2.2 \n", "192.0.2.1 at f:2, 192.0.2.2 at f:4, "},
		{"column by name", "csv", "ip", "why, ip\n\"a, b\",192.0.2.1\nc,2001:db8::/32", "192.0.2.1 at f:2, 2001:db8::/32 at f:3, "},
		{"an empty cell is an entry, and a wrong one", "csv", "ip", "why,ip\na,\n", " at f:2, "},
		{"strings", "json", "", "[\"192.0.2.1\",\n\n\"198.51.100.0\\/24\"]\n", "192.0.2.1 at f:1, 198.51.100.0/24 at f:3, "},
		{"objects in an array", "json", "ip", "[{\"ip\": \"192.0.2.1\"},\n{\"of\": null, \"ip\": \"192.0.2.2\"}]", "192.0.2.1 at f:1, 192.0.2.2 at f:2, "},
		{"array in an object", "json", "ips", "{\"of\": [1,\n{\"ips\": 2}],\n\"ips\": [\"192.0.2.1\"], \"after\": 3}", "192.0.2.1 at f:3, "},
		{
			"objects in an array in an object", "json", "prefixes.ip",
			"{\"prefixes\": [\n{\"ip\": \"192.0.2.1\"},\n{\n\"ip\": \"192.0.2.2\"}]}",
			"192.0.2.1 at f:2, 192.0.2.2 at f:4, ",
		},
	} {
		r := Reader{Format: tt.format, Column: tt.setting, Field: tt.setting}
		require.NoError(t, r.Parse(t.Context(), "f", "", strings.NewReader(tt.text)), tt.name)
		got := ""
		for i, entry := range r.Entries {
			got += entry + " at " + r.Places[i] + ", "
		}
		assert.Equal(t, tt.want, got, tt.name)
	}
}

func TestBrokenFeeds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, format, setting, text, want string }{
		{"no text", "plain", "", "", "f:1: the feed ends without an entry"},
		{"web page", "plain", "", "\ufeff\n <!doctype html>\n", "f:1: is a web page; use the address"},
		{"too long", "plain", "", strings.Repeat("192.0.2.1\n", MaxSize/10+1), "f: is longer than 16777216 bytes; split it"},
		{"no column", "csv", "", ",ip\nb,192.0.2.1\n", "f:1: a table needs the name or"},
		{"only a header", "csv", "ip", "why,ip\n", "f:1: the feed ends without an entry"},
		{"columns begin with 1", "csv", "0", "a,b\n", "f:1: the table has no column 0"},
		{"rows of several lengths", "csv", "1", "192.0.2.1,b\n192.0.2.2\n", "f:2: wrong number of fields"},
		{"a quote that does not end", "csv", "1", "192.0.2.1\n\"192", "f:2: extraneous or missing \" in quoted-field"},
		{"a header that does not end", "csv", "ip", "\"ip\n192.0.2.1\n", "f:1: the feed ends without an entry"},
		{"no JSON", "json", "", "192.0.2.1\n", "f:1: invalid character"},
		{"cut JSON", "json", "", "[\"192.0.2.1\",\n\"192.0.2.2\"", "f:2: unexpected end of JSON input"},
		{"two values", "json", "", "[\"192.0.2.1\"]\n[]", "f:2: invalid character '[' after top-level value"},
		{"no entry", "json", "", "[]", "f:1: the feed ends without an entry"},
		{"member missing", "json", "ip", "[{\"ip\": \"192.0.2.1\"},\n{\"of\": 1}]", `f:2: the value that ends here is neither a string nor an object whose member "ip" is a string`},
		{"objects without a field", "json", "", "[\n{\"ip\": \"192.0.2.1\"}]", "f:2: the value that ends here is neither a string nor an object whose member"},
	} {
		r := Reader{Format: tt.format, Column: tt.setting, Field: tt.setting}
		require.ErrorContains(t, r.Parse(t.Context(), "f", "", strings.NewReader(tt.text)), tt.want, tt.name)
	}
	r := Reader{Entries: []string{"192.0.2.1"}} // of another feed
	require.EqualError(t, r.Parse(t.Context(), "g", "", strings.NewReader("")), "g:1: the feed ends without an entry")
	in := io.MultiReader(strings.NewReader("192.0.2.1\n"), iotest.ErrReader(errors.New("disk on fire")))
	require.EqualError(t, new(Reader).Parse(t.Context(), "f", "", in), "f: disk on fire")
}

// The number of entries is limited. Reading ends with the context, because millions of entries take seconds.
func TestLongFeeds(t *testing.T) {
	t.Parallel()
	json := func(n int) string { return "[" + strings.Repeat(`"x",`, n-1) + `"x"]` }
	csv := func(n int) string { return strings.Repeat("x\n", n) }
	ended, stop := context.WithCancel(t.Context())
	stop()
	for format, write := range map[string]func(n int) string{"plain": csv, "csv": csv, "json": json} {
		r := Reader{Format: format, Column: "1", limit: 5}
		require.NoError(t, r.Parse(t.Context(), "f", "", strings.NewReader(write(5))))
		err := r.Parse(t.Context(), "f", "", strings.NewReader(write(6)))
		require.ErrorContains(t, err, ": the feed has more than 5 entries", format)
		assert.Len(t, r.Entries, 10)

		r = Reader{Format: format, Column: "1"}
		require.ErrorIs(t, r.parse(ended, "f", "", strings.NewReader(write(10_000)), true), context.Canceled, format)
		assert.Less(t, len(r.Entries), 2_000)
	}
	comments := strings.NewReader(strings.Repeat("#\n", 10_000) + "192.0.2.1\n")
	require.ErrorIs(t, new(Reader).parse(ended, "f", "", comments, true), context.Canceled)
}

// Format decides the format of a feed. Without it, the name and the Content-Type do.
func TestFormatIsFound(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"plain": "192.0.2.1", "csv": "192.0.2.1,why", "json": `["192.0.2.1"]`}
	for _, tt := range []struct{ format, name, contentType, want string }{
		{"", "feed", "", "plain"},
		{"", "feed.CSV", "", "csv"},
		{"", "feed.csv", "text/plain", "csv"},
		{"", "feed", "text/csv; charset=utf-8", "csv"},
		{"", "feed.json", "text/plain", "json"},
		{"", "feed", "application/json", "json"},
		{"csv", "feed.json", "application/json", "csv"},
		{"plain", "feed.json", "application/json", "plain"},
	} {
		r := Reader{Format: tt.format, Column: "1"}
		require.NoError(t, r.Parse(t.Context(), tt.name, tt.contentType, strings.NewReader(texts[tt.want])), tt)
		assert.Equal(t, []string{"192.0.2.1"}, r.Entries, tt)
	}
}

// Entries and errors show only scheme, host and path of an address, for any spelling and any fault.
func TestDownload(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	for path, reply := range map[string][2]string{
		"/json": {"application/json; charset=utf-8", `["192.0.2.1"]`}, "/feed.csv": {"text/plain", "192.0.2.2,why\n"}, "/page": {"text/html", "192.0.2.1\n"},
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", reply[0])
			_, _ = io.WriteString(w, reply[1])
		})
	}
	mux.Handle("/moved", http.RedirectHandler("/json", http.StatusFound))
	mux.Handle("/astray", http.RedirectHandler("http://user:secret@127.0.0.1/%zz?key=secret", http.StatusFound))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	url := server.URL
	withKeys := strings.Replace(url, "http://", "HTTP://user:secret@", 1)
	r := Reader{Column: "1"}
	require.NoError(t, r.Read(t.Context(), withKeys+"/json?key=secret", url+"/feed.csv?key=secret", url+"/moved"))
	assert.Equal(t, []string{"192.0.2.1", "192.0.2.2", "192.0.2.1"}, r.Entries)
	assert.Equal(t, []string{url + "/json:1", url + "/feed.csv:1", url + "/moved:1"}, r.Places)
	const unclear = "feed 2: its address cannot be parsed; check it"
	for address, want := range map[string]string{
		withKeys + "/page?key=secret":                 url + "/page:1: is a web page; use the address of the feed itself",
		withKeys + "/absent?key=secret#secret":        url + "/absent: the response is 404 Not Found",
		withKeys + "/%1b[2J?key=secret":               url + "/%1b[2J: the response is 404 Not Found",
		withKeys + "/astray?key=secret":               url + "/astray: it redirects to an address that cannot be parsed",
		"http://user:secret@127.0.0.1/%zz?key=secret": unclear,
		"http://127.0.0.1:abc/list?key=secret":        unclear,
		"http://user:sec/ret@127.0.0.1/":              unclear,
		"\nhttps://user:secret@127.0.0.1/":            unclear,
		"ftp://user:secret@127.0.0.1/list?key=secret": `ftp://127.0.0.1/list: unsupported protocol scheme "ftp"`,
		"HTTPS://user:secret@/list?key=secret#secret": "https:///list: http: no Host in request URL",
	} {
		require.EqualError(t, new(Reader).Read(t.Context(), url+"/json", address), want)
	}
}

// A download of a silent server ends with its timeout or its context.
func TestSilentFeeds(t *testing.T) { //nolint:paralleltest // it replaces http.DefaultTransport
	defer func(before http.RoundTripper) { http.DefaultTransport = before }(http.DefaultTransport)
	http.DefaultTransport = fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	synctest.Test(t, func(t *testing.T) {
		for timeout, ends := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Minute: time.Minute, 2 * time.Hour: time.Hour} {
			interrupted, stop := context.WithTimeout(t.Context(), time.Hour)
			began := time.Now()
			r := Reader{Timeout: timeout}
			err := r.Read(interrupted, "http://192.0.2.1/silent?key=secret")
			stop()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.NotContains(t, err.Error(), "secret")
			assert.Equal(t, ends, time.Since(began))
		}
	})
}

func TestFiles(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "feed.txt")
	require.ErrorIs(t, new(Reader).Read(t.Context(), name), os.ErrNotExist)
	require.NoError(t, os.WriteFile(name, []byte("192.0.2.1\n"), 0o600))
	var r Reader
	require.NoError(t, r.Read(t.Context(), name))
	assert.Equal(t, []string{name + ":1"}, r.Places)
}
