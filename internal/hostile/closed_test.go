package hostile

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// A service closes its connections at each stage of the second request: before it, within its head or body, after it,
// and within the response. net/http sends no write again, and no write is applied twice. A purge that fails is sent
// again by the SDK.
func TestConnectionsClosedAtEachMoment(t *testing.T) {
	t.Parallel()
	answer := response("200 OK", good)
	for name, second := range map[string]func(net.Conn, *bufio.Reader){
		"before the request": func(net.Conn, *bufio.Reader) {},
		"at its first byte":  func(_ net.Conn, r *bufio.Reader) { _, _ = r.ReadByte() },
		"after its head":     func(_ net.Conn, r *bufio.Reader) { _, _ = http.ReadRequest(r) },
		"after it":           func(_ net.Conn, r *bufio.Reader) { _ = request(r) },
		"within the head":    func(c net.Conn, r *bufio.Reader) { _ = request(r); _, _ = io.WriteString(c, answer[:40]) },
		"within the body":    func(c net.Conn, r *bufio.Reader) { _ = request(r); _, _ = io.WriteString(c, answer[:len(answer)-1]) },
	} {
		for _, k := range []kind{write, purge} {
			t.Run(name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				var again atomic.Int64 // requests on connections of their own
				service := startRaw(t, func(conn net.Conn, n int) {
					r := bufio.NewReader(conn)
					if !request(r) {
						return
					}
					if n > 0 {
						again.Add(1)
					}
					_, _ = io.WriteString(conn, answer)
					second(conn, r)
				})
				c := client(t, "http://"+service.addr, transport(t))
				require.NoError(t, read.call(t.Context(), c), "the first request")
				err := k.call(t.Context(), c)
				if err == nil {
					assert.Equal(t, int64(1), again.Load())
					return
				}
				assert.Equal(t, write.name, k.name, "%v", err)
				assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err), "%v", err)
				assert.Equal(t, 1, attemptsOf(err), "%v", err)
				assert.Zero(t, again.Load(), "it was not sent again")
			})
		}
	}
}

// If a response is incomplete or malformed, wherever it breaks, a read and a purge are retried, a write is not, and its
// outcome is unknown. The SDK's transport limits what comes before and behind a body.
func TestResponsesThatAreNone(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 1000)
	for name, serve := range map[string]serving{
		"100 and the end":      once("HTTP/1.1 100 Continue\r\n\r\n"),
		"103 without end":      once("", "HTTP/1.1 103 Early Hints\r\nLink: </"+long+">\r\n\r\n"),
		"headers without end":  once("HTTP/1.1 200 OK\r\n", "X-A: "+long+"\r\n"),
		"a header without end": once("HTTP/1.1 200 OK\r\nX-A: ", long),
		"a status without end": once("HTTP/1.1 200 ", long),
		"a chunk's extension":  once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", long),
		"trailers without end": once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", "X-A: "+long+"\r\n"),
		"an unknown coding":    once("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n" + good),
		"a cut trailer":        once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-A: b"),
		"gzip that is none":    once("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + good),
		"gzip that is cut":     once("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 40\r\n\r\n\x1f\x8b\x08\x00\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failsEach(t, serve, nil)
		})
	}
}

// The same of HTTP/2.
func TestFramesThatAreNoResponse(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(f *frames, stream uint32){
		"a header without end": func(f *frames, stream uint32) {
			f.send(frameHeaders, 0, stream, block("200"))
			for f.send(frameContinuation, 0, stream, []byte(strings.Repeat("\x00\x01a\x7e"+strings.Repeat("b", 126), 100))) {
			}
		},
		"RST_STREAM after the header": func(f *frames, stream uint32) {
			f.send(frameHeaders, flagEndHeaders, stream, block("200"))
			f.reset(stream, codeNoError)
		},
		"RST_STREAM in the middle of the body": func(f *frames, stream uint32) {
			f.send(frameHeaders, flagEndHeaders, stream, block("200"))
			f.send(frameData, 0, stream, []byte(good[:10]))
			f.reset(stream, codeCancel)
		},
		"GOAWAY in the middle of the body, and the end": func(f *frames, stream uint32) {
			f.send(frameHeaders, flagEndHeaders, stream, block("200"))
			f.send(frameData, 0, stream, []byte(good[:10]))
			f.goAway(stream)
			_ = f.Close()
		},
		"less than content-length": func(f *frames, stream uint32) {
			f.send(frameHeaders, flagEndHeaders, stream, block("200", "content-length", "999"))
			f.send(frameData, flagEndStream, stream, []byte(good))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := clearHTTP2(t)
			tr.MaxResponseHeaderBytes = 1 << 20
			failsEach(t, overFrames(answer), tr)
		})
	}
}

// failsEach makes calls of which every attempt fails after its request was sent.
func failsEach(t *testing.T, serve serving, tr http.RoundTripper) {
	t.Helper()
	c := client(t, "http://"+startRaw(t, serve).addr, tr)
	for _, k := range []kind{read, purge, write} {
		err := k.call(t.Context(), c)
		require.Error(t, err, k.name)
		assert.Equal(t, k.attempts, attemptsOf(err), "%s: %v", k.name, err)
		assert.Equal(t, k.outcome, webdelivery.OutcomeOf(err), "%s: %v", k.name, err)
	}
}

// A gateway refuses a request that is too large as soon as it has read its header. The refusal counts, although the
// request was never sent as a whole.
func TestTooLargeByItsHeader(t *testing.T) {
	t.Parallel()
	service := startRaw(t, func(conn net.Conn, _ int) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		_ = conn.(*net.TCPConn).CloseWrite() // to close it at once could reset it, and the refusal would be lost
		_, _ = io.Copy(io.Discard, conn)
	})
	uri := webdelivery.Exact("https://www.example.com/" + strings.Repeat("a", 16<<20))
	_, err := client(t, "http://"+service.addr, transport(t)).Purge.Submit(t.Context(), webdelivery.PurgeRequest{URIs: []webdelivery.PurgeURI{uri}})
	refusal, ok := errors.AsType[*webdelivery.Error](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, http.StatusRequestEntityTooLarge, refusal.StatusCode)
	assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	assert.Equal(t, int64(1), service.accepted.Load())
}
