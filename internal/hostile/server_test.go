package hostile

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// raw is a server that serves the connections by hand.
type raw struct {
	addr     string
	accepted atomic.Int64 // connections
}

// serving serves a connection, whose number counts from 0.
type serving func(conn net.Conn, n int)

// startRaw serves each connection, and closes it afterwards.
func startRaw(t *testing.T, serve serving) *raw {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &raw{addr: listener.Addr().String()}
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			n := int(s.accepted.Add(1)) - 1
			all.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				serve(conn, n)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		end()
		all.Wait()
	})
	return s
}

// request reads a complete request. It returns false if there is none.
func request(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return err == nil
}

// respond reads one request after the other, and responds to each.
func respond(conn net.Conn, _ int) {
	r := bufio.NewReader(conn)
	for request(r) {
		_, _ = io.WriteString(conn, response("200 OK", good))
	}
}

// once returns a server that writes a text after the first request of a connection, then another one over and over as long as
// the client reads, and closes the connection. A client without a limit gets a good response after 64 MB.
func once(text string, forever ...string) serving {
	return func(conn net.Conn, _ int) {
		if !request(bufio.NewReader(conn)) {
			return
		}
		_, err := io.WriteString(conn, text)
		for n := 0; err == nil && len(forever) > 0 && n < 64<<10; n++ {
			_, err = io.WriteString(conn, forever[0])
		}
		if len(forever) > 0 {
			_, _ = io.WriteString(conn, "\r\n\r\n"+good)
		}
	}
}

// overFrames returns a server of HTTP/2 that answers each complete request.
func overFrames(answer func(f *frames, stream uint32)) serving {
	return func(conn net.Conn, _ int) { serveFrames(conn, func(*frames, uint32) {}, answer) }
}

// overTLS serves a connection over TLS. If the handshake fails, it reads until the client leaves, because closing
// earlier could overtake the alert.
func overTLS(config *tls.Config, serve serving) serving {
	return func(conn net.Conn, n int) {
		secure := tls.Server(conn, config)
		if secure.Handshake() == nil {
			serve(secure, n)
		}
		_, _ = io.Copy(io.Discard, conn)
	}
}

// good is a body for each kind of call: a task and the receipt of a purge (service document, sections 2.1 and 2.3).
const good = `{"id":"t-1","complete":true,"code":201,"transaction_id":7,"purge_response":{"transaction_status_uri":"/transactions/7"}}`

func response(status, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// limited returns a client of the service at a URL. It retries at once, and no attempt of it ends because the machine is
// busy.
func limited(t *testing.T, base string, transport http.RoundTripper, more ...webdelivery.Option) *webdelivery.Client {
	t.Helper()
	options := []webdelivery.Option{
		webdelivery.WithRetry(webdelivery.RetryPolicy{MinWait: time.Millisecond, MaxWait: time.Minute}), webdelivery.WithAttemptTimeout(time.Hour),
	}
	if transport != nil {
		options = append(options, webdelivery.WithHTTPClient(&http.Client{Transport: transport}))
	}
	c, err := webdelivery.NewClient(base, "customer", webdelivery.BasicAuth("alice", "correct-horse-battery"), append(options, more...)...)
	require.NoError(t, err)
	return c
}

// client is limited without the limit of purges.
func client(t *testing.T, base string, transport http.RoundTripper, more ...webdelivery.Option) *webdelivery.Client {
	t.Helper()
	return limited(t, base, transport, append(more, webdelivery.WithPurgeLimiter(fixture.Unlimited{}))...)
}

// transport returns a transport of HTTP/1.1 that keeps no connection beyond the test.
func transport(t *testing.T) *http.Transport {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// clearHTTP2 returns a transport that speaks HTTP/2 without TLS.
func clearHTTP2(t *testing.T) *http.Transport {
	t.Helper()
	tr := transport(t)
	tr.Protocols = new(http.Protocols)
	tr.Protocols.SetUnencryptedHTTP2(true)
	return tr
}

// secured returns the settings of a server of TLS with a certificate for loopback, and a transport that trusts it.
func secured(t *testing.T, protocols ...string) (*tls.Config, *http.Transport) {
	t.Helper()
	issuer := httptest.NewTLSServer(nil)
	defer issuer.Close()
	roots, tr := x509.NewCertPool(), transport(t)
	roots.AddCert(issuer.Certificate())
	tr.TLSClientConfig, tr.ForceAttemptHTTP2 = &tls.Config{RootCAs: roots}, true
	return &tls.Config{Certificates: issuer.TLS.Certificates, NextProtos: protocols, ClientCAs: roots}, tr
}

// kind is a call of a kind for which a fault has different consequences.
type kind struct {
	name     string
	attempts int // if each one fails and the outcome is unknown
	outcome  webdelivery.Outcome
	call     func(context.Context, *webdelivery.Client) error
}

var (
	read = kind{"read", 4, webdelivery.OutcomeNotApplied, func(ctx context.Context, c *webdelivery.Client) error {
		_, err := c.Tasks.Get(ctx, "t-1")
		return err
	}}
	purge = kind{"purge", 4, webdelivery.OutcomeUnknown, func(ctx context.Context, c *webdelivery.Client) error {
		_, err := c.Purge.Submit(ctx, webdelivery.PurgeRequest{URIs: []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/a")}})
		return err
	}}
	write = kind{"write", 1, webdelivery.OutcomeUnknown, func(ctx context.Context, c *webdelivery.Client) error {
		return c.Do(ctx, http.MethodPost, "/config/networklists/l/entries", []map[string]string{{"entry": "192.0.2.1"}}, nil)
	}}
	bodiless = kind{"write without a body", 1, webdelivery.OutcomeUnknown, func(ctx context.Context, c *webdelivery.Client) error {
		return c.Do(ctx, http.MethodPost, "/config/networklists/l/entries/deletions", nil, nil)
	}}
	deletion = kind{"deletion", 4, webdelivery.OutcomeUnknown, func(ctx context.Context, c *webdelivery.Client) error {
		return c.Do(ctx, http.MethodDelete, "/config/networklists/l", nil, nil)
	}}
	login = kind{"login", 4, webdelivery.OutcomeUnknown, func(ctx context.Context, c *webdelivery.Client) error {
		_, err := c.Sessions.Create(ctx)
		return err
	}}
)

func attemptsOf(err error) int {
	if e, ok := errors.AsType[*webdelivery.Error](err); ok {
		return e.Attempts
	}
	return 0
}
