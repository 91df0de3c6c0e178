package transport

import (
	"net/http"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Secrets removes the client's secrets from texts. If a service or proxy echoes a request, they would otherwise get
// into errors and logs.
type Secrets struct {
	base *address.Base
	auth *authenticator
}

// Text returns a text without secrets, truncated if it is long.
func (s *Secrets) Text(text string) string { return s.auth.finder().Text(text, redact.Most) }

// Excerpt returns at most the first most bytes of a text, without secrets.
func (s *Secrets) Excerpt(text []byte, most int) []byte {
	if len(text) == 0 {
		return nil
	}
	text = text[:min(len(text), most+redact.Margin)] // more is not searched, so it is not copied
	return []byte(s.auth.finder().Text(string(text), most))
}

// Learn adds the token of a session that the user has created.
func (s *Secrets) Learn(token redact.Secret) { s.auth.learnToken(&s.auth.created, token) }

// Error returns err, or an error with the same text without secrets if err contains any.
func (s *Secrets) Error(err error) error { return s.auth.finder().Error(err) }

// unsafeHeaders carry credentials or ask for them, so they are left out of errors.
var unsafeHeaders = []string{
	"Authentication-Info", "Authorization", "Cookie", "Location", "Proxy-Authenticate", "Proxy-Authentication-Info",
	"Proxy-Authorization", "Set-Cookie", "Set-Cookie2", "Www-Authenticate",
}

// Header returns a copy of a response's header without credentials. Of a Location it keeps only the origin.
func (s *Secrets) Header(h http.Header) http.Header {
	safe := make(http.Header, len(h))
	for name, values := range h {
		if slices.Contains(unsafeHeaders, http.CanonicalHeaderKey(name)) || s.Text(name) != name {
			continue
		}
		for _, v := range values {
			safe[name] = append(safe[name], s.Text(v))
		}
	}
	if location := h.Get("Location"); location != "" {
		safe.Set("Location", s.Text(s.base.OriginOf(location)))
	}
	return safe
}
