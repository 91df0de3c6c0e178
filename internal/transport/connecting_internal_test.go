package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errRefused = errors.New("refused")

// What ends every connection before its first byte is final, and says what to do; all else stays as it is.
func TestExplain(t *testing.T) {
	t.Parallel()
	const (
		roots  = "; if the authority can be trusted, add it to the RootCAs in the TLSClientConfig of the transport given to WithHTTPClient"
		name   = "; use a base URL with a name that the certificate has"
		renew  = "; renew the certificate, or correct the clock of this machine"
		client = "; the service wants a client certificate that it trusts: set Certificates in the TLSClientConfig of the transport given to WithHTTPClient"
		other  = "; the service wants other TLS settings or a client certificate: set them in the TLSClientConfig of the transport given to WithHTTPClient"
	)
	alert := func(number tls.AlertError) error { return &net.OpError{Op: "remote error", Err: number} }
	for _, tt := range []struct {
		name   string
		err    error
		advice string // "": none
	}{
		{"unknown authority", x509.UnknownAuthorityError{}, roots},
		{"unknown authority, verified", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, roots},
		{"another host", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}, name},
		{"expired", x509.CertificateInvalidError{Reason: x509.Expired}, renew},
		{"invalid otherwise", x509.CertificateInvalidError{Reason: x509.TooManyIntermediates}, ""},
		{"no certificate (41)", alert(41), client},
		{"bad certificate (42)", alert(42), client},
		{"unsupported certificate (43)", alert(43), client},
		{"certificate revoked (44)", alert(44), client},
		{"certificate expired (45)", alert(45), client},
		{"certificate unknown (46)", alert(46), client},
		{"unknown authority (48)", alert(48), client},
		{"access denied (49)", alert(49), client},
		{"certificate required (116)", alert(116), client},
		{"handshake failure (40)", alert(40), other},
		{"protocol version (70)", alert(70), other},
		{"insufficient security (71)", alert(71), other},
		{"internal error (80)", alert(80), ""},
		{"an alert of one's own", &net.OpError{Op: "local error", Err: tls.AlertError(42)}, ""},
		{"an alert without a text", &net.OpError{Op: "remote error"}, ""},
		{"a refused connection", &net.OpError{Op: "dial", Err: errRefused}, ""},
		{"anything else", errRefused, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{tt.err, fmt.Errorf("wrapped: %w", tt.err)} {
				explained := explain(err)
				if tt.advice == "" {
					assert.Equal(t, err, explained)
					continue
				}
				require.EqualError(t, explained, err.Error()+tt.advice)
				assert.Equal(t, err, errors.Unwrap(explained))
				assert.False(t, (&attempt{err: explained}).transient())
			}
		})
	}
}

// A proxy that refuses to connect is named without its own words. Whether a second attempt may help depends on the
// status.
func TestAProxyThatRefusesToConnect(t *testing.T) {
	t.Parallel()
	const (
		whom     = "; ask who runs it, or name another one in HTTPS_PROXY"
		password = "; put its user name and password before the host in HTTPS_PROXY, as user:password@host:port"
	)
	for status, want := range map[int]struct {
		text  string
		final bool
	}{
		302: {"302 Found", false},
		399: {"399 ", false},
		400: {"400 Bad Request" + whom, true},
		403: {"403 Forbidden" + whom, true},
		407: {"407 Proxy Authentication Required" + password, true},
		408: {"408 Request Timeout", false},
		429: {"429 Too Many Requests", false},
		451: {"451 Unavailable For Legal Reasons" + whom, true},
		499: {"499 " + whom, true},
		500: {"500 Internal Server Error", false},
		503: {"503 Service Unavailable", false},
	} {
		err := NewRoundTripper().OnProxyConnectResponse(t.Context(), nil, nil, &http.Response{StatusCode: status, Status: "own words"})
		require.EqualError(t, err, "the proxy refused to connect: "+want.text)
		assert.Equal(t, want.final, permanent(err), "%d", status)
	}
	require.NoError(t, NewRoundTripper().OnProxyConnectResponse(t.Context(), nil, nil, &http.Response{StatusCode: 200}))
}

// A connection that fails says nothing of the credentials of its proxy.
func TestTheSecretsOfAProxy(t *testing.T) {
	t.Parallel()
	said := errors.New("dial bob:hunter22 as Basic Ym9iOmh1bnRlcjIy for hunter22")
	through := func(address string) func(*http.Request) (*url.URL, error) {
		u, err := url.Parse(address)
		require.NoError(t, err)
		return http.ProxyURL(u)
	}
	for _, tt := range []struct {
		name string
		next http.RoundTripper
		want string
	}{
		{"a password", &http.Transport{Proxy: through("http://bob:hunter22@proxy.example.com")}, "dial [redacted] as [redacted] for [redacted]"},
		{"no password", &http.Transport{Proxy: through("http://proxy.example.com")}, said.Error()},
		{"no proxy", &http.Transport{}, said.Error()},
		{"no proxy for this request", &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}, said.Error()}, //nolint:nilnil // as net/http has it
		{"a proxy that cannot be found", &http.Transport{Proxy: func(r *http.Request) (*url.URL, error) {
			u, _ := through("http://bob:hunter22@proxy.example.com")(r)
			return u, errRefused
		}}, said.Error()},
		{"a transport of another kind", struct{ http.RoundTripper }{}, said.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://api.example.com", nil)
			require.NoError(t, err)
			require.EqualError(t, withoutProxySecrets(tt.next, req, said), tt.want)
		})
	}
}
