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

// The server may have processed a stream that it resets: the client retries a GET, but not a POST.
func TestHTTP2StreamReset(t *testing.T) {
	t.Parallel()
	withDefaultTransport(t, testserver.Config{}, func(t *testing.T, srv *testserver.Server, c *Client, tr *http.Transport) {
		srv.AddTask(testserver.TaskSpec{ID: "7"})
		overHTTP2(tr)
		srv.Fail(testserver.Fault{Method: http.MethodGet, Count: 1, Cut: testserver.CutAfterRead})
		_, err := c.Tasks.Get(t.Context(), "7")
		require.NoError(t, err)
		assert.Equal(t, 2, srv.Count(http.MethodGet, ""))

		srv.Fail(testserver.Fault{Method: http.MethodPost, Count: 1, Cut: testserver.CutAfterRead})
		err = post(t.Context(), c)
		require.Error(t, err)
		assert.Equal(t, OutcomeUnknown, OutcomeOf(err))
		assert.Equal(t, 1, srv.Count(http.MethodPost, ""))
	})
}

// If a server sends GOAWAY after a response, no request is lost: the next one uses a new connection, also a POST.
func TestHTTP2GOAWAY(t *testing.T) {
	t.Parallel()
	withDefaultTransport(t, testserver.Config{}, func(t *testing.T, srv *testserver.Server, c *Client, tr *http.Transport) {
		overHTTP2(tr)
		srv.Fail(testserver.Fault{Header: http.Header{"Connection": {"close"}}, Status: http.StatusOK, Body: `{"id":"7"}`})
		for i := range 5 {
			require.NoError(t, post(t.Context(), c))
			_, err := c.Tasks.Get(t.Context(), "7")
			require.NoError(t, err)
			assert.Equal(t, 2*(i+1), srv.Connections())
		}
		assert.Len(t, srv.Requests(), 10)
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

// If a TLS handshake never ends, no request was sent: the client retries even a POST.
func TestTLSHandshakeTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := transport.NewRoundTripper()
		var silent []net.Conn
		tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			silent = append(silent, far)
			return near, nil
		}
		c, err := NewClient("https://192.0.2.1", "acme", BasicAuth("alice", "correct-horse-battery"),
			WithHTTPClient(&http.Client{Transport: tr}))
		require.NoError(t, err)
		err = post(t.Context(), c)
		var e *Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, 3, e.Attempts)
		assert.Equal(t, OutcomeNotApplied, OutcomeOf(err))
		for _, conn := range silent {
			require.NoError(t, conn.Close())
		}
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
