package hostile

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// once returns a server that writes one text per connection, after the request, and closes the connection. In the text,
// %OK% stands for the right response. Its clients keep no connections, because the text does not announce the close.
func once(text string) func(net.Conn, int) {
	return func(conn net.Conn, n int) {
		req, ok := request(bufio.NewReader(conn))
		if !ok {
			return
		}
		right := task("t-1")
		if strings.HasSuffix(req.URL.Path, "/cache/purge") {
			right = receipt(n + 1)
		}
		_, _ = io.WriteString(conn, strings.ReplaceAll(text, "%OK%", right))
	}
}

// endless returns a server that writes a beginning and then repeats a text, as fast as the client reads.
func endless(beginning, text string) func(net.Conn, int) {
	return func(conn net.Conn, _ int) {
		if _, ok := request(bufio.NewReader(conn)); !ok {
			return
		}
		_, err := io.WriteString(conn, beginning)
		for err == nil {
			_, err = io.WriteString(conn, text)
		}
	}
}

// few are settings for a call that fails in each attempt. In a case without end, marked in its name, the timeout of the
// attempts ends the call.
func few(name string, transport http.RoundTripper) []webdelivery.Option {
	limit := 20 * time.Second
	if withoutEnd(name) {
		limit = 2 * time.Second
	}
	return quick(transport, webdelivery.WithAttemptTimeout(limit), webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 2, MinWait: time.Millisecond}))
}

func withoutEnd(name string) bool { return strings.HasSuffix(name, "without end") }

// checkFailed checks the error of a call of which every attempt failed after its request was sent. On a busy machine,
// the timeout of an attempt may end earlier.
func checkFailed(t *testing.T, name, kind string, err error) {
	t.Helper()
	if !assert.Error(t, err, kind) {
		return
	}
	outcome := webdelivery.OutcomeOf(err)
	switch {
	case kind == "read":
		assert.Equal(t, webdelivery.OutcomeNotApplied, outcome, "%s: %v", kind, err)
	case withoutEnd(name):
		assert.NotEqual(t, webdelivery.OutcomeApplied, outcome, "%s: %v", kind, err)
		return
	default:
		assert.Equal(t, webdelivery.OutcomeUnknown, outcome, "%s: %v", kind, err)
	}
	attempts := 2
	if kind == "write" {
		attempts = 1
	}
	assert.Equal(t, attempts, attemptsOf(err), "%s: %v", kind, err)
}

// If a response is incomplete or malformed, wherever it breaks, a read is retried, a write is not, and its outcome is
// unknown. A response without end fails at the latest with the timeout of the attempt.
func TestResponsesThatAreNone(t *testing.T) {
	t.Parallel()
	body := taskBody("t-1")
	chunk := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }
	const chunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, serve := range map[string]func(net.Conn, int){
		"100 and the end":          once("HTTP/1.1 100 Continue\r\n\r\n"),
		"103 without end":          endless("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
		"two lengths":              once("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 75\r\n\r\n" + body),
		"the greatest length":      once("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n" + body),
		"an unknown coding":        once("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n" + body),
		"no last chunk":            once(chunked + chunk(body)),
		"a chunk without its size": once(chunked + "zz\r\n" + body),
		"a cut trailer":            once(chunked + chunk(body) + "0\r\nX-A: b"),
		"gzip that is none":        once("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + body),
		"a header without end":     endless("HTTP/1.1 200 OK\r\n", "X-A: "+strings.Repeat("b", 1000)+"\r\n"),
		"no status line":           once(body),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := startRaw(t, serve)
			transport := &http.Transport{MaxResponseHeaderBytes: 1 << 20, DisableKeepAlives: true}
			defer transport.CloseIdleConnections()
			c := client(t, "http://"+service.addr, few(name, transport)...)
			for _, k := range kinds {
				checkFailed(t, name, k.name, k.call(bounded(t), c))
			}
		})
	}
}

// A service closes its connections at each stage of the second request: before it, within its head or body, after it,
// and within the response. Each request arrives as often as the SDK has sent it. net/http sends no write again, and no
// write is applied twice.
func TestConnectionsClosedAtEachMoment(t *testing.T) {
	t.Parallel()
	answered := task("t-1")
	for name, second := range map[string]func(net.Conn, *bufio.Reader){
		"before the request":  func(net.Conn, *bufio.Reader) {},
		"at its first byte":   func(_ net.Conn, r *bufio.Reader) { _, _ = r.ReadByte() },
		"after its head":      func(_ net.Conn, r *bufio.Reader) { _, _ = http.ReadRequest(r) },
		"after it":            func(_ net.Conn, r *bufio.Reader) { _, _ = request(r) },
		"after a status line": func(c net.Conn, r *bufio.Reader) { _, _ = request(r); _, _ = io.WriteString(c, answered[:17]) },
		"within the head":     func(c net.Conn, r *bufio.Reader) { _, _ = request(r); _, _ = io.WriteString(c, answered[:40]) },
		"within the body": func(c net.Conn, r *bufio.Reader) {
			_, _ = request(r)
			_, _ = io.WriteString(c, answered[:len(answered)-1])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var writes atomic.Int64
			service := startRaw(t, func(conn net.Conn, n int) {
				r := bufio.NewReader(conn)
				if _, ok := request(r); !ok {
					return
				}
				if n > 0 {
					writes.Add(1)
				}
				_, _ = io.WriteString(conn, answered)
				second(conn, r)
			})
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			c := client(t, "http://"+service.addr, quick(transport)...)
			require.NoError(t, getTask(bounded(t), c), "the first request")
			err := addEntries(bounded(t), c)
			if err == nil {
				assert.Equal(t, int64(1), writes.Load(), "on a connection of its own")
				return
			}
			assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err), "%v", err)
			assert.Equal(t, 1, attemptsOf(err), "%v", err)
			assert.Zero(t, writes.Load(), "it was not sent again")
		})
	}
}
