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

// A proxy and TLS stand between a client and the service, and their errors have the words of net/http. These say
// neither who refused nor what to do, and some of them contain a proxy's password.

// setupError is a permanent error in setting up a connection. It says what to do.
type setupError struct {
	err    error
	advice string
}

func (e *setupError) Error() string { return e.err.Error() + "; " + e.advice }
func (e *setupError) Unwrap() error { return e.err }

const tlsSettings = "in the TLSClientConfig of the transport given to WithHTTPClient"

// explain adds advice to the error of a connection, if there is any.
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

// Alerts with which a service ends a handshake, and would end the next one too (RFC 8446, section 6.2).
var (
	certificateAlerts = []tls.AlertError{41, 42, 43, 44, 45, 46, 48, 49, 116}
	settingsAlerts    = []tls.AlertError{40, 70, 71}
)

// adviceOnAlert recognizes an alert by its text: crypto/tls does not export the type that a connection over TCP
// returns.
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

// judgeProxy gets the response of a proxy to CONNECT before net/http judges it. It leaves out the text of the proxy,
// which may contain the credentials that the proxy was sent.
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

// withoutProxySecrets returns the error of an attempt that got no connection, without the credentials of its proxy.
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
