package transport

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// Secrets removes the client's own secrets from texts of the service or a transport. If a service echoes a request,
// they would otherwise get into errors and logs.
type Secrets struct {
	base   *address.Base
	fixed  *redact.Finder // of the password, or of a fixed token
	tokens *login         // has the finder of the sessions' tokens; nil without sessions
}

func (s *Secrets) finder() *redact.Finder {
	switch {
	case s == nil:
		return nil
	case s.tokens != nil:
		return s.tokens.finder()
	default:
		return s.fixed
	}
}

// Text returns a text without secrets, and only the beginning of a long text.
func (s *Secrets) Text(text string) string { return s.finder().Text(text) }

// Line is Text for one line of a log or of an error.
func (s *Secrets) Line(text string) string { return redact.Line(s.Text(text)) }

// Texts removes the secrets from texts. Together they are no longer than one text may be, so the last may be cut.
func (s *Secrets) Texts(texts ...*string) {
	left := redact.Most
	for _, text := range texts {
		long := len(*text)
		*text = s.finder().First(*text, left)
		left = max(0, left-long)
	}
}

// Excerpt returns the beginning of a text without secrets. cut says that the text itself is incomplete. Then Excerpt
// also removes a piece of a secret at its end.
func (s *Secrets) Excerpt(text []byte, most int, cut bool) []byte {
	return s.finder().Beginning(text, most, cut)
}

// Error returns err itself. If err contains a secret, Error returns an error with the same text without it.
func (s *Secrets) Error(err error) error { return s.finder().Error(err, fieldsOf) }

// Caught is Error for errors of user code. It also clips the text of a panic.
func (s *Secrets) Caught(err error) error {
	if panicked, ok := err.(*usercode.Panic); ok { //nolint:errorlint // one that is wrapped is shown by what wraps it
		return panicked.WithText(s.Line(panicked.Error()))
	}
	return s.Error(err)
}

// unsafeHeaders are left out of errors: they carry credentials or ask for them.
var unsafeHeaders = []string{
	"Authentication-Info", "Authorization", "Cookie", "Location", "Proxy-Authenticate", "Proxy-Authentication-Info",
	"Proxy-Authorization", "Set-Cookie", "Set-Cookie2", "Www-Authenticate",
}

// Header copies a response's header without what may contain a credential. If the header is longer than a text may be,
// it leaves out the longest values. It keeps only the origin of a Location.
func (s *Secrets) Header(h http.Header) http.Header {
	size := func(name string) (n int) {
		for _, v := range h[name] {
			n += len(name) + len(": \r\n") + len(v)
		}
		return n
	}
	safe, left := make(http.Header, len(h)), redact.Most
	for _, name := range slices.SortedFunc(maps.Keys(h), func(a, b string) int {
		return cmp.Or(cmp.Compare(size(a), size(b)), cmp.Compare(a, b))
	}) {
		values := h[name]
		if left -= size(name); left < 0 {
			break
		}
		// HTTP ignores the letter case of a name, and a transport of the user's may use any.
		if slices.Contains(unsafeHeaders, http.CanonicalHeaderKey(name)) || s.finder().Holds(name) {
			continue
		}
		for _, v := range values {
			safe[name] = append(safe[name], s.Text(v))
		}
	}
	if location := h.Get("Location"); location != "" {
		origin := redact.Mark
		if s.Text(location) == location {
			origin = s.base.OriginOf(location)
		}
		if s.finder().Holds(origin) { // in lower case
			origin = redact.Mark
		}
		safe.Set("Location", origin)
	}
	return safe
}

// basicAuth returns the value of an Authorization header, and the forms in which texts contain it and the password.
func basicAuth(username string, password redact.Secret) (value redact.Secret, shown []redact.Hidden) {
	encoded := base64.StdEncoding.EncodeToString([]byte(username + ":" + password.Reveal()))
	return redact.New("Basic " + encoded), []redact.Hidden{
		{Before: username + ":", Secret: password},
		{Before: "Basic ", Secret: redact.New(encoded)},
	}
}

// fieldsOf returns what an error of a connection contains besides its text: the names in certificates.
func fieldsOf(err error) []string {
	var certificates []*x509.Certificate
	switch e := err.(type) { //nolint:errorlint // each error of a tree is looked at by itself
	case x509.UnknownAuthorityError:
		certificates = []*x509.Certificate{e.Cert}
	case x509.HostnameError:
		certificates = []*x509.Certificate{e.Certificate}
	case x509.CertificateInvalidError:
		certificates = []*x509.Certificate{e.Cert}
	case *tls.CertificateVerificationError:
		certificates = e.UnverifiedCertificates
	}
	var fields []string
	for _, c := range certificates {
		if c != nil {
			fields = append(fields, string(c.Raw), c.Subject.String(), c.Issuer.String()) // names in Raw may be in UTF-16
		}
	}
	return fields
}
