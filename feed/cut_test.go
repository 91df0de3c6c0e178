package feed

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A feed of two entries, complete and cut. Cut inside its last line, the second entry is a quarter of all IPv4
// addresses.
const (
	whole      = "192.0.2.1\n198.51.100.0/24"
	cut        = "192.0.2.1\n198.51.100.0/2"
	cutBetween = "192.0.2.1\n"
)

// raw serves one response with these bytes, and closes the connection.
func raw(t *testing.T, reply string) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) {
			_, _ = io.WriteString(connection, reply)
			_ = connection.Close()
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/feed"
}

func withLength(body string, length int) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", length, body)
}

func chunked(end string, chunks ...string) string {
	text := "Transfer-Encoding: chunked\r\n\r\n"
	for _, chunk := range chunks {
		text += fmt.Sprintf("%x\r\n%s\r\n", len(chunk), chunk)
	}
	return text + end
}

const lastChunk = "0\r\n\r\n"

// zipped compresses each text as a gzip member of its own.
func zipped(t *testing.T, texts ...string) string {
	t.Helper()
	var b bytes.Buffer
	for _, text := range texts {
		w := gzip.NewWriter(&b)
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return b.String()
}

// A feed that ends before its announced end is an error. If only the connection ends it, its last line must be
// complete.
func TestCutReplies(t *testing.T) {
	t.Parallel()
	const ok, json, csv = "HTTP/1.1 200 OK\r\n", "Content-Type: application/json\r\n", "Content-Type: text/csv\r\n"
	gzipped := ok + "Content-Encoding: gzip\r\n"
	small, two := zipped(t, whole), zipped(t, "192.0.2.1\n198.51.100.0/2", "4")
	firstOfTwo := two[:len(zipped(t, cut))]
	array := `["192.0.2.1","198.51.100.0/24"]`
	const openEnd = ":2: the response ends with its connection, in the middle of a line"
	for name, tt := range map[string]struct {
		reply string
		want  string // of the error, or "" for all entries
	}{
		"with its length":                     {ok + withLength(whole, len(whole)), ""},
		"shorter than its length":             {ok + withLength(cut, len(whole)), ": unexpected EOF"},
		"with its last chunk":                 {ok + chunked(lastChunk, whole[:12], whole[12:]), ""},
		"without its last chunk":              {ok + chunked("", whole[:12], cut[12:]), ": unexpected EOF"},
		"whole lines, without a last chunk":   {ok + chunked("", cutBetween), ": unexpected EOF"},
		"no length":                           {ok + "\r\n" + cut, openEnd},
		"no length, one line":                 {ok + "\r\n198.51.100.0/2", ":1: the response ends with its connection"},
		"no length, whole lines":              {ok + "\r\n" + whole + "\n", ""},
		"no length, nothing":                  {ok + "\r\n", ":1: the feed ends without an entry"},
		"no length, CSV":                      {ok + csv + "\r\n192.0.2.1,a\n198.51.100.0/2,b", openEnd},
		"no length, JSON knows better":        {ok + json + "\r\n" + array, ""},
		"no length, JSON cut":                 {ok + json + "\r\n" + array[:len(array)-4], ":1: unexpected end of JSON input"},
		"gzip with its length":                {gzipped + withLength(small, len(small)), ""},
		"gzip cut":                            {gzipped + "\r\n" + small[:len(small)-9], ": unexpected EOF"},
		"gzip shorter than its length":        {gzipped + withLength(firstOfTwo, len(two)), ": unexpected EOF"},
		"gzip cut between members":            {gzipped + "\r\n" + firstOfTwo, openEnd},
		"gzip without a length, whole lines":  {gzipped + "\r\n" + zipped(t, whole+"\n"), ""},
		"x-gzip":                              {ok + "Content-Encoding: x-gzip\r\n" + withLength(small, len(small)), ""},
		"gzip that is none":                   {gzipped + withLength(whole, len(whole)), ": gzip: invalid header"},
		"another encoding":                    {ok + "Content-Encoding: br\r\n" + withLength("x", 1), `: its Content-Encoding "br" is unknown`},
		"not found, with a reason of its own": {"HTTP/1.1 404 \x1b[2Jsecret\r\nContent-Length: 0\r\n\r\n", ": the response is 404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := raw(t, tt.reply)
			r := Reader{Column: "1"}
			err := r.Read(t.Context(), address)
			if tt.want != "" {
				require.ErrorContains(t, err, address+tt.want)
				assert.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, []string{"192.0.2.1", "198.51.100.0/24"}, r.Entries)
		})
	}
}
