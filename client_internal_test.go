package webdelivery

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// The default transport of a client, in fake time, with the fake service in memory.

// withDefaultTransport gives the test a client that sends through transport.NewRoundTripper, and this transport, so
// that the test can change it.
func withDefaultTransport(t *testing.T, cfg testserver.Config, test func(t *testing.T, srv *testserver.Server, c *Client, tr *http.Transport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.New(cfg)
		url := srv.ListenMemory()
		tr := transport.NewRoundTripper()
		tr.DialContext = srv.DialContext
		c, err := NewClient(url, "acme", BasicAuth("alice", "correct-horse-battery"), WithHTTPClient(&http.Client{Transport: tr}))
		require.NoError(t, err)
		defer func() {
			tr.CloseIdleConnections()
			require.NoError(t, srv.Close())
		}()
		test(t, srv, c, tr)
	})
}

// Middleware hides a transport from the question whether it uses HTTP/2 without TLS, on which retries depend.
func TestMiddlewareOverPlainHTTP(t *testing.T) {
	t.Parallel()
	pass := WithMiddleware(func(next http.RoundTripper) http.RoundTripper { return struct{ http.RoundTripper }{next} })
	http2 := transport.NewRoundTripper()
	overHTTP2(http2)
	var s settings
	require.NoError(t, configure(&s, []Option{WithHTTPClient(&http.Client{Transport: http2}), WithHTTPClient(&http.Client{})}))
	assert.Same(t, http.DefaultTransport, s.next, "of a client without one")
	for plain, options := range map[bool][]Option{false: {pass}, true: {pass, WithHTTPClient(&http.Client{Transport: http2})}} {
		c, err := NewClient("http://localhost", "acme", BasicAuth("alice", "correct-horse-battery"), options...)
		require.NoError(t, err)
		assert.Equal(t, plain, c.conn.transport.PlainHTTP2)
	}
}

func overHTTP2(tr *http.Transport) {
	tr.Protocols = new(http.Protocols)
	tr.Protocols.SetUnencryptedHTTP2(true)
}

// post is a write that the client retries only if the service certainly did not process it.
func post(ctx context.Context, c *Client) error {
	return c.Do(ctx, http.MethodPost, "/config/things", map[string]int{"n": 1}, nil)
}

// blackHole is a connection that discards what is written after it was closed off: no response comes any more.
type blackHole struct {
	net.Conn
	off *atomic.Bool
}

func (c blackHole) Write(p []byte) (int, error) {
	if c.off.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// A ping detects within the attempt that a connection of HTTP/2 is dead. The client does not use that connection
// again.
func TestHTTP2BlackHole(t *testing.T) {
	t.Parallel()
	withDefaultTransport(t, testserver.Config{}, func(t *testing.T, srv *testserver.Server, c *Client, tr *http.Transport) {
		srv.AddTask(testserver.TaskSpec{ID: "7"})
		overHTTP2(tr)
		var off atomic.Bool
		var dials atomic.Int32
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := srv.DialContext(ctx, network, addr)
			if dials.Add(1) == 1 {
				conn = blackHole{conn, &off}
			}
			return conn, err
		}
		_, err := c.Tasks.Get(t.Context(), "7")
		require.NoError(t, err)
		off.Store(true)
		began := time.Now()
		_, err = c.Tasks.Get(t.Context(), "7")
		require.NoError(t, err)
		assert.Less(t, time.Since(began), 30*time.Second)
		assert.Equal(t, int32(2), dials.Load())
	})
}

// A server that closes idle connections after 20 s never closes one during a request: the client closes it earlier.
func TestServerClosesIdleConnectionAsPOSTIsSent(t *testing.T) {
	t.Parallel()
	cfg := testserver.Config{IdleTimeout: 20 * time.Second}
	withDefaultTransport(t, cfg, func(t *testing.T, srv *testserver.Server, c *Client, _ *http.Transport) {
		for range 20 {
			_ = post(t.Context(), c)
			time.Sleep(20 * time.Second)
		}
		for _, r := range srv.Requests() {
			assert.Equal(t, http.StatusNotFound, r.Status)
		}
		assert.Equal(t, 20, srv.Connections())
	})
}

// 64 goroutines keep their connections: the second round dials none.
func TestIdleConnectionsForManyGoroutines(t *testing.T) {
	t.Parallel()
	withDefaultTransport(t, testserver.Config{}, func(t *testing.T, srv *testserver.Server, c *Client, _ *http.Transport) {
		_, _ = c.Tasks.Get(t.Context(), "7")           // otherwise all calls would wait for the first response
		srv.Fail(testserver.Fault{Delay: time.Second}) // so that all are under way at once
		for range 2 {
			for range 64 {
				go func() { _, _ = c.Tasks.Get(t.Context(), "7") }()
			}
			time.Sleep(2 * time.Second)
		}
		assert.Equal(t, 64, srv.Connections())
	})
}
