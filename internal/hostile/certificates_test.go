package hostile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
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

// wellBehaved responds to requests of the three kinds (service document, sections 2.1 and 2.3).
func wellBehaved() func(net.Conn, int) {
	return answers(func(req *http.Request, nth int) string {
		if strings.HasSuffix(req.URL.Path, "/cache/purge") {
			return receipt(nth + 1)
		}
		return task("t-1")
	})
}

// overTLS serves a connection over TLS. If the handshake fails, it reads until the client leaves, because closing
// earlier could overtake the alert.
func overTLS(config *tls.Config, serve func(net.Conn, int)) func(net.Conn, int) {
	return func(conn net.Conn, n int) {
		secure := tls.Server(conn, config)
		if secure.Handshake() == nil {
			serve(secure, n)
		}
		_, _ = io.Copy(io.Discard, conn)
	}
}

// alert ends a handshake with an alert in the format of RFC 8446, section 6.
func alert(code byte) func(net.Conn, int) {
	return func(conn net.Conn, _ int) {
		_, _ = conn.Read(make([]byte, 1<<10))
		_, _ = conn.Write([]byte{21, 3, 3, 0, 2, 2, code})
		_, _ = io.Copy(io.Discard, conn)
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isAlert(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "remote error"
}

// If one side does not trust the other, the call is not retried, because the next handshake would fail too. If the
// handshake fails, the request was not applied. In TLS 1.3 the service may reject the client after the request; then the
// outcome is unknown. No permit is lost: after the cause is fixed, purges continue.
func TestCertificates(t *testing.T) {
	t.Parallel()
	trusted, foreign := newAuthority(), newAuthority()
	good := trusted.issue(nil)
	server := func(change func(*x509.Certificate)) func(net.Conn, int) {
		return overTLS(&tls.Config{Certificates: []tls.Certificate{*trusted.issue(change)}, MinVersion: tls.VersionTLS12}, wellBehaved())
	}
	demanding := func(version uint16, protocols ...string) func(net.Conn, int) {
		return overTLS(&tls.Config{
			Certificates: []tls.Certificate{*good}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted.roots(),
			MinVersion: version, MaxVersion: version, NextProtos: protocols,
		}, wellBehaved())
	}
	trusting := &tls.Config{RootCAs: trusted.roots(), MinVersion: tls.VersionTLS12}
	strange := trusting.Clone()
	strange.Certificates = []tls.Certificate{*foreign.issue(nil)}
	strange.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &strange.Certificates[0], nil }
	const never = true // the handshake ends before the request
	for _, s := range []struct {
		name   string
		serve  func(net.Conn, int)
		client *tls.Config
		unsent bool
		is     func(error) bool
	}{
		{"expired", server(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }), trusting, never, is[x509.CertificateInvalidError]},
		{"another name", server(func(c *x509.Certificate) { c.IPAddresses = nil }), trusting, never, is[x509.HostnameError]},
		{"unknown authority", server(nil), &tls.Config{RootCAs: foreign.roots(), MinVersion: tls.VersionTLS12}, never, is[x509.UnknownAuthorityError]},
		{"client certificate missing, TLS 1.2", demanding(tls.VersionTLS12), trusting, never, isAlert},
		{"client certificate missing, TLS 1.3", demanding(tls.VersionTLS13), trusting, !never, isAlert},
		{"client certificate missing, HTTP/2", demanding(tls.VersionTLS13, "h2"), trusting, !never, isAlert},
		{"client certificate refused, TLS 1.2", demanding(tls.VersionTLS12), strange, never, isAlert},
		{"alert protocol_version", alert(70), trusting, never, isAlert},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var mended atomic.Bool
			service := startRaw(t, func(conn net.Conn, n int) {
				if mended.Load() {
					server(nil)(conn, n)
				} else {
					s.serve(conn, n)
				}
			})
			refused := &http.Transport{TLSClientConfig: s.client.Clone(), ForceAttemptHTTP2: true}
			defer refused.CloseIdleConnections()
			ctx := bounded(t)
			c := client(t, "https://"+service.addr, quick(refused)...)
			for _, k := range kinds {
				err := k.call(ctx, c)
				require.Error(t, err, k.name)
				// net/http may see the end of the connection before it sees an alert that follows the request. It loses the alert of
				// an attempt then, but not of all, and a write has only one.
				if s.unsent {
					assert.Equal(t, 1, attemptsOf(err), "%s: %v", k.name, err)
				} else {
					assert.Less(t, attemptsOf(err), 4, "%s: %v", k.name, err)
				}
				if s.unsent || k.name != "write" {
					assert.True(t, s.is(err), "%s: %v", k.name, err)
				}
				if s.unsent || k.name == "read" {
					assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err), "%s: %v", k.name, err)
				} else {
					assert.NotEqual(t, webdelivery.OutcomeApplied, webdelivery.OutcomeOf(err), "%s: %v", k.name, err)
				}
			}
			mended.Store(true)
			again := client(t, "https://"+service.addr, quick(trusted.transport(t))...) // it shares the permits
			for range 3 {
				assert.NoError(t, submit(ctx, again))
			}
		})
	}
}

// A handshake that is cut, stalls or is malformed may be a transient failure: every call is retried, also a write,
// because nothing was sent.
func TestHandshakesThatFail(t *testing.T) {
	t.Parallel()
	trusted := newAuthority()
	good := overTLS(&tls.Config{Certificates: []tls.Certificate{*trusted.issue(nil)}, MinVersion: tls.VersionTLS12}, wellBehaved())
	for name, serve := range map[string]func(net.Conn, int){
		"cut":                  func(conn net.Conn, _ int) { _, _ = conn.Read(make([]byte, 10)) },
		"silent":               func(conn net.Conn, _ int) { _, _ = io.Copy(io.Discard, conn) },
		"no TLS":               wellBehaved(),
		"alert internal_error": alert(80),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, k := range kinds {
				service := startRaw(t, func(conn net.Conn, n int) {
					if n == 0 {
						serve(conn, n)
					} else {
						good(conn, n)
					}
				})
				transport := &http.Transport{
					TLSClientConfig: &tls.Config{RootCAs: trusted.roots(), MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: 3 * time.Second,
				}
				defer transport.CloseIdleConnections()
				assert.NoError(t, k.call(bounded(t), client(t, "https://"+service.addr, quick(transport)...)), k.name)
				assert.GreaterOrEqual(t, service.accepted.Load(), int64(2), "connections of the %s", k.name)
			}
		})
	}
}
