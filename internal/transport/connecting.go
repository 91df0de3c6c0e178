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
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// What stands between a client and its first byte at the service, a proxy and TLS, refuses in net/http's words. They
// name neither who refused nor what to do, and some of them repeat a proxy's password.

// setupError is a fault in setting up a connection that a second attempt would meet again. It says what to do.
type setupError struct {
	err    error
	advice string
}

func (e *setupError) Error() string { return e.err.Error() + "; " + e.advice }
func (e *setupError) Unwrap() error { return e.err }

const tlsSettings = "in the TLSClientConfig of the transport given to WithHTTPClient"

// explain adds to the error of a connection what to do, when that is known.
func explain(err error) error {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		expired x509.CertificateInvalidError
		remote  *net.OpError
	)
	switch {
	case errors.As(err, &unknown):
		return &setupError{err, "if the authority can be trusted, add it to the RootCAs " + tlsSettings}
	case errors.As(err, &name):
		return &setupError{err, "use a base URL with a name that the certificate has"}
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		return &setupError{err, "renew the certificate, or correct the clock of this machine"}
	case errors.As(err, &remote) && remote.Op == "remote error" && remote.Err != nil:
		if advice := adviceOnAlert(remote.Err.Error()); advice != "" {
			return &setupError{err, advice}
		}
	}
	return err
}

// Alerts with which a service ends a handshake that a second one would end in the same way (RFC 8446, section 6.2).
var (
	certificateAlerts = []tls.AlertError{41, 42, 43, 44, 45, 46, 48, 49, 116}
	settingsAlerts    = []tls.AlertError{40, 70, 71}
)

// adviceOnAlert reads the text of an alert: crypto/tls does not export the type that a connection over TCP returns.
func adviceOnAlert(text string) string {
	is := func(a tls.AlertError) bool { return a.Error() == text }
	switch {
	case slices.ContainsFunc(certificateAlerts, is):
		return "the service wants a client certificate that it trusts: set Certificates " + tlsSettings
	case slices.ContainsFunc(settingsAlerts, is):
		return "the service wants other TLS settings or a client certificate: set them " + tlsSettings
	default:
		return ""
	}
}

// judgeProxy is told what a proxy answers to CONNECT, before net/http judges it. The proxy's own words are not repeated:
// they may repeat the credentials that the proxy was sent.
func judgeProxy(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	status := resp.StatusCode
	refused := fmt.Errorf("the proxy refused to connect: %d %s", status, http.StatusText(status))
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusProxyAuthRequired:
		return &setupError{refused, "put its user name and password before the host in HTTPS_PROXY, as user:password@host:port"}
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError &&
		status != http.StatusRequestTimeout && status != http.StatusTooManyRequests:
		return &setupError{refused, "ask who runs it, or name another one in HTTPS_PROXY"}
	default:
		return refused
	}
}

// withoutProxySecrets is the error of an attempt that got no connection, without the credentials of its proxy.
func withoutProxySecrets(next http.RoundTripper, req *http.Request, err error) error {
	via, ok := next.(*http.Transport)
	if !ok || via.Proxy == nil {
		return err
	}
	proxy, failed := via.Proxy(req)
	if failed != nil || proxy == nil || proxy.User == nil {
		return err
	}
	password, _ := proxy.User.Password()
	_, hidden := basicAuth(proxy.User.Username(), redact.New(password))
	return redact.NewFinder(hidden...).Error(err, fieldsOf)
}
