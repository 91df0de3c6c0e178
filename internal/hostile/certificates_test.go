package hostile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// If one side does not trust the other, the call is not retried, because the next handshake would fail too. If the
// handshake fails, the request was not applied. In TLS 1.3 the service may reject the client after the request; then the
// outcome is unknown. No permit is lost: after the cause is fixed, purges continue.
func TestCertificates(t *testing.T) {
	t.Parallel()
	demanding := func(version uint16) func(*tls.Config, *tls.Config) {
		return func(server, _ *tls.Config) {
			server.ClientAuth, server.MinVersion, server.MaxVersion = tls.RequireAndVerifyClientCert, version, version
		}
	}
	isExpired := func(err error) bool {
		_, ok := errors.AsType[x509.CertificateInvalidError](err)
		return ok
	}
	isAlert := func(err error) bool {
		e, ok := errors.AsType[*net.OpError](err)
		return ok && e.Op == "remote error"
	}
	for _, s := range []struct {
		name   string
		change func(server, client *tls.Config)
		unsent bool // the handshake ends before the request
		is     func(error) bool
	}{
		{"expired", func(_, client *tls.Config) { client.Time = func() time.Time { return time.Now().AddDate(100, 0, 0) } }, true, isExpired},
		{"client certificate missing, TLS 1.2", demanding(tls.VersionTLS12), true, isAlert},
		{"client certificate missing, TLS 1.3", demanding(tls.VersionTLS13), false, isAlert},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			good, tr := secured(t)
			bad := good.Clone()
			s.change(bad, tr.TLSClientConfig)
			var mended atomic.Bool
			addr := startRaw(t, func(conn net.Conn, n int) {
				if mended.Load() {
					overTLS(good, respond)(conn, n)
				} else {
					overTLS(bad, respond)(conn, n)
				}
			}).addr
			c := limited(t, "https://"+addr, tr)
			for _, k := range []kind{read, purge, write} {
				err := k.call(t.Context(), c)
				require.Error(t, err, k.name)
				outcome := k.outcome
				if s.unsent { // otherwise net/http may lose the alert, and a read is retried
					outcome = webdelivery.OutcomeNotApplied
					assert.True(t, s.is(err), "%s: %v", k.name, err)
					assert.Equal(t, 1, attemptsOf(err), "%s: %v", k.name, err)
				}
				assert.Equal(t, outcome, webdelivery.OutcomeOf(err), "%s: %v", k.name, err)
			}
			mended.Store(true)
			_, again := secured(t)
			c = limited(t, "https://"+addr, again) // it shares the permits
			for range 3 {
				assert.NoError(t, purge.call(t.Context(), c))
			}
		})
	}
}

// A handshake that is cut, or that ends with an internal error (RFC 8446, section 6), may be a transient failure: even a
// write is retried, because nothing was sent.
func TestHandshakesThatFail(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"", "\x15\x03\x03\x00\x02\x02\x50"} {
		config, tr := secured(t)
		server := startRaw(t, func(conn net.Conn, n int) {
			if n > 0 {
				overTLS(config, respond)(conn, n)
				return
			}
			_, _ = conn.Read(make([]byte, 1<<12)) // all of the ClientHello
			_, _ = conn.Write([]byte(answer))
		})
		require.NoError(t, write.call(t.Context(), client(t, "https://"+server.addr, tr)))
		assert.Equal(t, int64(2), server.accepted.Load(), "connections")
	}
}
