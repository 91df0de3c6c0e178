package transport_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// tlsConn is a connection that has agreed on a protocol, over one that counts how often it is closed.
func tlsConn(t testing.TB, protocol string) (*tls.Conn, *closingConn) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	certificate, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, key.Public(), key)
	require.NoError(t, err)
	near, far := net.Pipe()
	server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}, NextProtos: []string{"h2", "http/1.1"}})
	done := make(chan error)
	go func() { done <- server.Handshake() }()
	counted := &closingConn{Conn: near}
	client := tls.Client(counted, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}, SessionTicketsDisabled: true, MaxVersion: tls.VersionTLS12})
	require.NoError(t, client.Handshake())
	require.NoError(t, <-done)
	go func() { _, _ = io.Copy(io.Discard, far) }() // takes the word with which TLS ends
	t.Cleanup(func() {
		_ = far.Close()
		_ = near.Close()
	})
	return client, counted
}

type closingConn struct {
	net.Conn
	closed int
}

func (c *closingConn) Close() error {
	c.closed++
	return c.Conn.Close()
}

// net/http sends an HTTP/2 request again by itself after some resets, also one that may have been processed. The
// attempt ends there, and the retry policy decides. HTTP/1 repeats only what does no harm.
func TestARequestThatNetHTTPWouldSendAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		protocol string
		written  bool // the header, over the first connection
		request  transport.Request
		count    int // of attempts; 0: it succeeds
	}{
		{"a read over HTTP/2", "h2", true, aRead, 4},
		{"a write over HTTP/2", "h2", true, aWrite, 1},
		{"nothing was written over HTTP/2", "h2", false, aWrite, 0},
		{"HTTP/1.1", "http/1.1", true, aRead, 0},
		{"a connection of another kind", "", true, aRead, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				conn, plain := net.Pipe()
				defer func() { _, _ = conn.Close(), plain.Close() }()
				if tt.protocol != "" {
					secure, _ := tlsConn(f.T, tt.protocol)
					conn = secure
				}
				f.script = []exchange{func(r *http.Request) (*http.Response, error) {
					trace := httptrace.ContextClientTrace(r.Context())
					trace.GetConn("api.example.com:443")
					trace.GotConn(httptrace.GotConnInfo{Conn: conn})
					assert.NoError(f, r.Context().Err())
					if tt.written {
						trace.WroteHeaders()
					}
					trace.GotConn(httptrace.GotConnInfo{Conn: conn})
					if err := r.Context().Err(); err != nil {
						return nil, err
					}
					return answer(200, "")(r)
				}}
				if tt.count == 0 {
					f.succeeds(tt.request)
					return
				}
				failure := f.fails(tt.request)
				require.EqualError(f, failure.Cause, "the HTTP/2 stream or connection was reset before a response")
				assert.Equal(f, tt.count, failure.Attempts)
				assert.Equal(f, tt.count, f.count())
				if tt.request.Class == transport.Once {
					assert.Equal(f, transport.Unknown, failure.Outcome)
				}
			})
		})
	}
	inFakeTime(t, nil, func(f *fixture) { // the caller has left: this comes first
		conn, _ := tlsConn(f.T, "h2")
		ctx, cancel := context.WithCancel(f.Context())
		f.script = []exchange{func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GotConn(httptrace.GotConnInfo{Conn: conn})
			trace.WroteHeaders()
			trace.GotConn(httptrace.GotConnInfo{Conn: conn})
			cancel()
			return nil, r.Context().Err()
		}}
		assert.Equal(f, context.Canceled, f.failsWith(ctx, aRead).Cause)
	})
}

// A permit that has expired cancels a request over HTTP/2, whose connection others use, too.
func TestAnExpiredPermitKeepsAConnectionOfHTTP2(t *testing.T) {
	t.Parallel()
	for protocol, want := range map[string]int{"h2": 0, "http/1.1": 1} {
		inFakeTime(t, func(c *transport.Config) { c.Policy.MaxAttempts = 1 }, func(f *fixture) {
			conn, counted := tlsConn(f.T, protocol)
			f.script = []exchange{func(r *http.Request) (*http.Response, error) {
				time.Sleep(time.Second)
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GetConn("api.example.com:443")
				trace.GotConn(httptrace.GotConnInfo{Conn: conn})
				require.Error(f, r.Context().Err())
				return nil, r.Context().Err()
			}}
			l := &lender{expires: func(int) time.Duration { return 1 }}
			require.EqualError(f, f.fails(limited(l.gate())).Cause, "the purge permit expired before the connection was ready")
			assert.Equal(f, want, counted.closed)
			assert.Equal(f, []ending{{time.Second, unsent}}, l.endings())
		})
	}
}

// Through net/http's own transport: a proxy's password gets into no failure, and what cannot be connected was not sent.
func TestThroughNetHTTP(t *testing.T) {
	t.Parallel()
	proxy := &url.URL{Scheme: "http", Host: "proxy.example.com", User: url.UserPassword("bob", "hunter22")}
	inFakeTime(t, func(c *transport.Config) {
		c.Next = &http.Transport{Proxy: http.ProxyURL(proxy), DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("cannot dial for bob:hunter22")
		}}
	}, func(f *fixture) {
		failure := f.fails(aWrite)
		require.EqualError(f, failure.Cause, "proxyconnect tcp: cannot dial for [redacted]")
		assert.Equal(f, 3, failure.Attempts)
		assert.Equal(f, transport.NotApplied, failure.Outcome)
	})
	tr := transport.NewRoundTripper()
	assert.NotNil(t, tr.Proxy)
	assert.NotNil(t, tr.DialContext)
	assert.True(t, tr.ForceAttemptHTTP2)
	assert.Equal(t, 15*time.Second, tr.IdleConnTimeout)
	assert.Equal(t, int64(1<<20), tr.MaxResponseHeaderBytes)
	assert.Equal(t, 10*time.Second, tr.HTTP2.SendPingTimeout)
}
