package hostile

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// resetInClearText accepts HTTP/2 without TLS, as a sidecar speaks it, and resets each request with the code.
func resetInClearText(t *testing.T, code uint32) (base string, requests *atomic.Int64) {
	requests = new(atomic.Int64)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	serve := func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		_, _ = io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
		f := &frames{Conn: conn}
		f.send(frameSettings, 0, 0, nil)
		head := make([]byte, 9)
		for {
			if _, err := io.ReadFull(conn, head); err != nil {
				return
			}
			size, stream := int64(head[0])<<16|int64(head[1])<<8|int64(head[2]), uint32(head[5])<<24|uint32(head[6])<<16|uint32(head[7])<<8|uint32(head[8])
			_, _ = io.CopyN(io.Discard, conn, size)
			switch {
			case head[3] == frameSettings && head[4]&1 == 0:
				f.send(frameSettings, 1, 0, nil)
			case head[3] == frameHeaders:
				requests.Add(1)
				f.send(frameReset, 0, stream, numbers(code))
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return "http://" + listener.Addr().String(), requests
}

// After a reset of HTTP/2, net/http sends some requests again by itself, without end. The SDK never lets it, over clear
// text as over TLS: the service gets one request for each attempt. An addition that was sent is not retried, unless the
// service says that it did not process it.
func TestNothingIsSentAgainInClearText(t *testing.T) {
	t.Parallel()
	const internalError, refusedStream = 2, 7
	for _, code := range []uint32{internalError, refusedStream} {
		base, requests := resetInClearText(t, code)
		outcome, additions := webdelivery.OutcomeUnknown, 1
		if code == refusedStream { // the service did not process it, and says so
			outcome, additions = webdelivery.OutcomeNotApplied, 3
		}
		transport := &http.Transport{Protocols: new(http.Protocols)}
		transport.Protocols.SetUnencryptedHTTP2(true)
		t.Cleanup(transport.CloseIdleConnections)
		for name, client := range map[string]*http.Client{
			"transport": {Transport: transport}, "wrapped": {Transport: struct{ http.RoundTripper }{transport}},
		} {
			with := func(attempts int) *webdelivery.Client {
				c, err := webdelivery.NewClient(base, name, webdelivery.BasicAuth("alice", "correct-horse"), webdelivery.WithHTTPClient(client),
					webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: attempts, MinWait: time.Millisecond, MaxWait: time.Millisecond}))
				require.NoError(t, err)
				return c
			}
			c := with(4)
			for _, tt := range []struct {
				name     string
				attempts int
				outcome  webdelivery.Outcome
				call     func() error
			}{
				{"a read", 4, webdelivery.OutcomeNotApplied, func() error { _, err := c.Tasks.Get(t.Context(), "x"); return err }},
				{"an addition", additions, outcome, func() error { _, err := c.NetworkLists.AddEntries(t.Context(), "x", []string{"192.0.2.1"}); return err }},
				{"a deletion", 4, webdelivery.OutcomeUnknown, func() error { _, err := c.NetworkLists.Delete(t.Context(), "x"); return err }},
				{"a purge", 2, outcome, func() error { // a third permit would come after 5 s
					_, err := with(2).Purge.Submit(t.Context(), webdelivery.PurgeRequest{Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Prefix("www.example.com/")}})
					return err
				}},
			} {
				requests.Store(0)
				err := tt.call()
				var e *webdelivery.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, tt.attempts, e.Attempts, "%s, %s, code %d", tt.name, name, code)
				assert.Equal(t, int64(tt.attempts), requests.Load(), "%s, %s, code %d: requests", tt.name, name, code)
				assert.Equal(t, tt.outcome, webdelivery.OutcomeOf(err), "%s, %s, code %d", tt.name, name, code)
			}
		}
	}
}
