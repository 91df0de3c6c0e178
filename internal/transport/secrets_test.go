package transport_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// withSecrets gives the secrets of a client with user name and password, and of one with a fixed token that is the
// same.
func withSecrets(t *testing.T, test func(t *testing.T, s *transport.Secrets)) {
	t.Helper()
	inFakeTime(t, nil, func(f *fixture) { test(f.T, f.transport.Secrets()) })
	inFakeTime(t, func(c *transport.Config) {
		c.Credentials = transport.Credentials{Token: redact.New(password), Cookie: "authtoken"}
	}, func(f *fixture) { test(f.T, f.transport.Secrets()) })
}

// Texts of every kind are shown without the secrets.
func TestTextsWithoutSecrets(t *testing.T) {
	t.Parallel()
	withSecrets(t, func(t *testing.T, s *transport.Secrets) {
		assert.Equal(t, "a [redacted] b", s.Text("a "+password+" b"))
		assert.Equal(t, "no secret", s.Text("no secret"))
		assert.Equal(t, strings.Repeat("x", 64<<10), s.Text(strings.Repeat("x", 70<<10)))
		assert.Equal(t, `"a [redacted]\nb"`, s.Line("a "+password+"\nb"))
		assert.Equal(t, "a [redacted]", string(s.Excerpt([]byte("a "+password+" b"), 12, false)))
		assert.Equal(t, "a correct-hor", string(s.Excerpt([]byte("a correct-hor"), 100, false)))
		assert.Equal(t, "a [redacted]", string(s.Excerpt([]byte("a correct-hor"), 100, true)))

		require.ErrorIs(t, s.Error(errLost), errLost)
		assert.Equal(t, errLost, s.Error(errLost), "it is the same")
		hidden := s.Error(fmt.Errorf("%w: %s", errLost, password))
		require.EqualError(t, hidden, "connection lost: [redacted]")
		assert.ErrorIs(t, hidden, errLost)
	})
	inFakeTime(t, nil, func(f *fixture) {
		assert.Equal(f, "[redacted] [redacted]", f.transport.Secrets().Text("alice:"+password+" Basic "+basicPair))
	})
	var none *transport.Secrets
	assert.Equal(t, password, none.Text(password), "nobody's secret")
}

// Several texts together are no longer than one that is shown.
func TestSeveralTexts(t *testing.T) {
	t.Parallel()
	withSecrets(t, func(t *testing.T, s *transport.Secrets) {
		a, b, c, d := "say "+password, strings.Repeat("b", 60<<10), strings.Repeat("c", 60<<10), "d"
		first := len(a)
		s.Texts(&a, &b, &c, &d)
		assert.Equal(t, "say [redacted]", a)
		assert.Len(t, b, 60<<10)
		assert.Equal(t, strings.Repeat("c", 4<<10-first), c)
		assert.Empty(t, d)
		whole := "ends in correct-hor"
		s.Texts(&whole)
		assert.Equal(t, "ends in correct-hor", whole, "it does not go on")
	})
}

// A panic keeps what it matches; its text is clipped and has no secret. Any other error is shown as an error.
func TestCaught(t *testing.T) {
	t.Parallel()
	panicked := func(v any) (err error) {
		usercode.Run(func() error { panic(v) }, func(e error) { err = e })
		return err
	}
	withSecrets(t, func(t *testing.T, s *transport.Secrets) {
		err := s.Caught(panicked(fmt.Errorf("%w: %s %s", errLost, password, strings.Repeat("x", 1000))))
		require.ErrorIs(t, err, errLost)
		assert.Contains(t, err.Error(), "connection lost: [redacted] x")
		assert.Less(t, len(err.Error()), 600)
		var caught *usercode.Panic
		require.ErrorAs(t, err, &caught)

		err = s.Caught(fmt.Errorf("%w: %s", errLost, password))
		require.EqualError(t, err, "connection lost: [redacted]")
		assert.Equal(t, errLost, s.Caught(errLost))
	})
}

// A header is shown without what carries credentials, and without the secrets that the service repeats elsewhere.
func TestHeadersWithoutSecrets(t *testing.T) {
	t.Parallel()
	withSecrets(t, func(t *testing.T, s *transport.Secrets) {
		for _, tt := range []struct {
			name         string
			header, want http.Header
		}{
			{"none", nil, http.Header{}},
			{"harmless", http.Header{"Etag": {"x"}, "Vary": {"a", "b"}}, http.Header{"Etag": {"x"}, "Vary": {"a", "b"}}},
			{"a secret in a value", http.Header{"Link": {"a", "b " + password}}, http.Header{"Link": {"a", "b [redacted]"}}},
			{"a secret in a name", http.Header{"X-" + password: {"a"}}, http.Header{}},
			{"a secret in a name that is spelled in its own way", http.Header{"X-Correct-Horse-Battery": {"a"}}, http.Header{}},
			{"credentials", http.Header{
				"Authentication-Info": {"a"}, "Authorization": {"a"}, "Cookie": {"a"}, "Proxy-Authenticate": {"a"}, "Proxy-Authentication-Info": {"a"},
				"Proxy-Authorization": {"a"}, "Set-Cookie": {"a"}, "Set-Cookie2": {"a"}, "Www-Authenticate": {"a"},
				"set-cookie": {"a"}, "WWW-Authenticate": {"a"}, "location": {"/a"},
			}, http.Header{}},
			{"an address here", http.Header{"Location": {"/a?b=c"}}, http.Header{"Location": {"https://api.example.com"}}},
			{"an address elsewhere", http.Header{"Location": {"http://evil.example.com:81/a?b=c"}}, http.Header{"Location": {"http://evil.example.com:81"}}},
			{"an address with somebody's password", http.Header{"Location": {"http://bob:hunter22@evil.example.com/a"}}, http.Header{"Location": {"[redacted]"}}},
			{"an address with a secret", http.Header{"Location": {"https://evil.example.com/" + password}}, http.Header{"Location": {"[redacted]"}}},
			{"a host in upper case", http.Header{"Location": {"https://" + strings.ToUpper(password)}}, http.Header{"Location": {"[redacted]"}}},
			{"an empty address", http.Header{"Location": {""}}, http.Header{}},
			{"many values are one size", http.Header{"A": {strings.Repeat("x", 30<<10), strings.Repeat("x", 40<<10)}, "B": {"b"}}, http.Header{"B": {"b"}}},
			{"the longest go first", http.Header{"A": {strings.Repeat("x", 60<<10)}, "B": {strings.Repeat("y", 50<<10)}, "C": {"c"}}, http.Header{"B": {strings.Repeat("y", 50<<10)}, "C": {"c"}}},
			{"of equal ones the later", http.Header{"A": {strings.Repeat("x", 40<<10)}, "B": {strings.Repeat("x", 40<<10)}}, http.Header{"A": {strings.Repeat("x", 40<<10)}}},
			{"the size of a text", http.Header{"A": {strings.Repeat("x", 64<<10-6-5)}, "B": {"b"}}, http.Header{"A": {strings.Repeat("x", 64<<10-6-5)}, "B": {"b"}}},
			{"a byte more", http.Header{"A": {strings.Repeat("x", 64<<10-6-4)}, "B": {"b"}}, http.Header{"B": {"b"}}},
		} {
			before := tt.header.Clone()
			got := s.Header(tt.header)
			assert.Equal(t, tt.want, got, tt.name)
			got.Set("Etag", "changed")
			assert.Equal(t, before, tt.header, "%s: it is a copy", tt.name)
		}
	})
}

// An error of a connection also holds certificates, whose names a printer would show.
func TestCertificatesWithoutSecrets(t *testing.T) {
	t.Parallel()
	name := pkix.Name{CommonName: password}
	for _, c := range []*x509.Certificate{{Subject: name}, {Issuer: name}, {Raw: []byte("DER of " + password)}} {
		for _, err := range []error{
			x509.UnknownAuthorityError{Cert: c},
			x509.HostnameError{Certificate: c, Host: "api.example.com"},
			x509.CertificateInvalidError{Cert: c, Reason: x509.Expired},
			&tls.CertificateVerificationError{UnverifiedCertificates: []*x509.Certificate{{}, nil, c}, Err: io.EOF},
			fmt.Errorf("wrapped: %w", x509.UnknownAuthorityError{Cert: c}),
		} {
			withSecrets(t, func(t *testing.T, s *transport.Secrets) {
				shown := s.Error(err)
				assert.NotContains(t, fmt.Sprintf("%+v %#v", shown, shown), password)
				assert.False(t, errors.As(shown, new(x509.UnknownAuthorityError)) || errors.As(shown, new(x509.HostnameError)) ||
					errors.As(shown, new(x509.CertificateInvalidError)) || errors.As(shown, new(*tls.CertificateVerificationError)))
			})
		}
	}
	withSecrets(t, func(t *testing.T, s *transport.Secrets) {
		for _, err := range []error{
			x509.UnknownAuthorityError{},
			x509.HostnameError{Certificate: &x509.Certificate{Subject: pkix.Name{CommonName: "other"}}},
			&tls.CertificateVerificationError{Err: io.EOF}, io.EOF,
		} {
			assert.Equal(t, err, s.Error(err), "without a secret it is the same")
		}
	})
}

// A body that repeats the request does not bring the password into a failure, whole or in pieces at its end.
func TestAServiceThatRepeatsTheRequest(t *testing.T) {
	t.Parallel()
	for padding := 0; padding < 60; padding += 9 {
		inFakeTime(t, nil, func(f *fixture) {
			said := append(bytes.Repeat([]byte("x"), 64<<10-padding), password+" alice:"+password...)
			f.script = []exchange{answer(404, string(said), "X-Said", password)}
			failure := f.fails(aRead)
			require.NotContains(f, string(failure.Body), "corr")
			assert.LessOrEqual(f, len(failure.Body), 64<<10)
			assert.Equal(f, "[redacted]", failure.Header.Get("X-Said"))
		})
	}
}
