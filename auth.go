package webdelivery

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Auth says how a client proves who it is (service-interface section 5). Make one with [BasicAuth], [SessionAuth] or
// [SessionToken]; the zero value is refused. However an Auth is printed, it shows no secret.
type Auth struct {
	mode     authMode
	username string
	password redact.Secret
	token    redact.Secret
}

type authMode string

const (
	modeBasic   authMode = "basic"
	modeSession authMode = "session"
	modeToken   authMode = "token"
)

// BasicAuth sends user name and password with every request (service-interface section 5). Neither may be empty or hold
// a control character, nor the user name a colon; [NewClient] refuses what is wrong.
func BasicAuth(username, password string) Auth {
	return Auth{mode: modeBasic, username: username, password: redact.New(password)}
}

// SessionAuth logs in with user name and password when the first request needs it, and sends the session's id as the
// cookie authtoken (service-interface section 5). When the service refuses the session, one new login is made for all
// calls under way, and each of them is sent again once. What [BasicAuth] says of name and password holds here too.
func SessionAuth(username, password string) Auth {
	return Auth{mode: modeSession, username: username, password: redact.New(password)}
}

// SessionToken uses a session that was made elsewhere, by its id (service-interface section 5). When it is refused,
// calls fail with [ErrUnauthorized]. One that is empty, or that no cookie can carry, is refused by [NewClient].
func SessionToken(token string) Auth {
	return Auth{mode: modeToken, token: redact.New(token)}
}

// String names the way of authentication and the user.
func (a Auth) String() string { return strings.TrimSpace(string(a.mode) + " " + a.username) }

// GoString is String.
func (a Auth) GoString() string { return a.String() }

// LogValue is String.
func (a Auth) LogValue() slog.Value { return slog.StringValue(a.String()) }

func (a Auth) validate() error {
	switch {
	case a.mode == "":
		return invalid("auth", "use BasicAuth, SessionAuth or SessionToken")
	case a.mode == modeToken:
		if !validToken(a.token.Reveal()) {
			return invalid("SessionToken", "is empty, or holds what no cookie can carry")
		}
	case a.username == "":
		return invalid("user name", "is empty")
	case strings.Contains(a.username, ":"):
		return invalid("user name", "holds a colon, which Basic authentication cannot carry")
	case a.password.Reveal() == "":
		return invalid("password", "is empty")
	case strings.IndexFunc(a.username+a.password.Reveal(), address.IsControl) >= 0:
		return invalid("user name and password", "hold a control character")
	}
	return nil
}

// authenticator puts credentials on requests.
type authenticator struct {
	basic   redact.Secret  // value of the Authorization header, empty with a fixed token
	token   redact.Secret  // fixed token
	session *session       // nil unless the client logs in by itself
	secrets *redact.Finder // what must not stand in an error: header values, password, token
}

func newAuthenticator(a Auth, create func(context.Context) (*Session, error)) *authenticator {
	if a.mode == modeToken {
		return &authenticator{token: a.token, secrets: redact.NewFinder(shownToken(a.token))}
	}
	value, hidden := basicAuth(a.username, a.password)
	n := &authenticator{basic: value, secrets: redact.NewFinder(hidden...)}
	if a.mode == modeSession {
		n.session = &session{create: create, secrets: n.secrets}
	}
	return n
}

// basicAuth gives the value of an Authorization header, and how texts repeat it and the password.
func basicAuth(username string, password redact.Secret) (value redact.Secret, shown []redact.Hidden) {
	encoded := base64.StdEncoding.EncodeToString([]byte(username + ":" + password.Reveal()))
	return redact.New("Basic " + encoded), []redact.Hidden{
		{Before: username + ":", Secret: password},
		{Before: "Basic ", Secret: redact.New(encoded)},
	}
}

// shownToken is a session's token as texts repeat it.
func shownToken(token redact.Secret) redact.Hidden {
	return redact.Hidden{Before: authCookieName + "=", Secret: token}
}

// errNoCredentials: a login needs a user name and a password.
var errNoCredentials = errors.New("SessionToken gives no user name and password to log in with")

// holds tells whether a credential is still good, without waiting for anything.
func (n *authenticator) holds(generation uint64) bool {
	return n.session == nil || n.session.holds(generation)
}

// loggedIn tells whether a credential can be had without a login.
func (n *authenticator) loggedIn() bool {
	return n.session == nil || n.session.loggedIn()
}

// credential is a header to set.
type credential struct {
	name, value string
	generation  uint64 // of the session, 0 without one
}

// credential gives what a request of this kind shows, and of a session one that is newer than a generation. A login
// shows the password, whatever the rest of the calls show.
func (n *authenticator) credential(ctx context.Context, k kind, newerThan uint64) (credential, error) {
	switch {
	case k == login && n.basic.IsZero():
		return credential{}, &unsentError{"login", errNoCredentials}
	case k == login || n.session == nil && n.token.IsZero():
		return credential{name: "Authorization", value: n.basic.Reveal()}, nil
	case n.session == nil:
		return cookie(n.token, 0), nil
	}
	t, err := n.session.current(ctx, newerThan)
	return cookie(t.token, t.generation), err
}

// cookie makes the header by hand: Request.AddCookie drops bytes it does not like, and a jar would add a second cookie
// on a retry.
func cookie(token redact.Secret, generation uint64) credential {
	return credential{name: "Cookie", value: authCookieName + "=" + token.Reveal(), generation: generation}
}

// accepted is told when the service took a request of the session.
func (n *authenticator) accepted(generation uint64) {
	if n.session != nil && generation != 0 {
		n.session.accepted(generation)
	}
}

// finder finds the client's own secrets in what the service or a transport said: a service that echoes a request would
// otherwise bring them into errors and logs.
func (n *authenticator) finder() *redact.Finder {
	switch {
	case n == nil:
		return nil
	case n.session != nil:
		return n.session.finder()
	default:
		return n.secrets
	}
}

// text is one without secrets, of a long one the beginning.
func (n *authenticator) text(s string) string { return n.finder().Text(s) }

// redactIn takes the secrets out of texts. Together they are no longer than one that is shown, so the last may be cut.
func (n *authenticator) redactIn(texts ...*string) {
	left := redact.Most
	for _, s := range texts {
		long := len(*s)
		*s = string(n.excerpt([]byte(*s), left, false))
		left = max(0, left-long)
	}
}

// resolveSent resolves an address that the service sent. The refusal of one with a secret in it does not repeat it, as
// what it repeats of it may be a piece of the secret.
func (c *Client) resolveSent(field, address string) (path, query string, err error) {
	path, query, err = c.resolve(field, address)
	switch {
	case err == nil:
	case len(address) > redact.Most:
		err = invalid(field, "leads astray, and is longer than an address can be")
	case c.auth.text(address) != address:
		err = invalid(field, "leads astray, with a credential in it")
	}
	return path, query, err
}

// excerpt is the beginning of a text, without secrets. One that is cut off has no piece of a secret at its end either.
func (n *authenticator) excerpt(b []byte, most int, cut bool) []byte {
	return n.finder().Beginning(b, most, cut)
}

// redactError gives err itself, or when it holds a secret one that says the same without.
func (n *authenticator) redactError(err error) error { return n.finder().Error(err, fieldsOf) }

// unsafeHeaders are those that errors do without: what carries credentials, and what asks for them.
var unsafeHeaders = []string{
	"Authentication-Info", "Authorization", "Cookie", "Location", "Proxy-Authenticate", "Proxy-Authentication-Info",
	"Proxy-Authorization", "Set-Cookie", "Set-Cookie2", "Www-Authenticate",
}

// safeHeader copies a reply's header for an error, up to the size of a text that is shown; the longest go first. Of a
// Location it keeps the origin alone.
func (c *Client) safeHeader(h http.Header) http.Header {
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
		// HTTP does not keep the letter case of a name, and a transport of the user's may spell it in its own way.
		if slices.Contains(unsafeHeaders, http.CanonicalHeaderKey(name)) || c.auth.finder().Holds(name) {
			continue
		}
		for _, v := range values {
			safe[name] = append(safe[name], c.auth.text(v))
		}
	}
	if location := h.Get("Location"); location != "" {
		origin := redact.Mark
		if c.auth.text(location) == location {
			origin = c.base.OriginOf(location)
		}
		if c.auth.finder().Holds(origin) { // in lower case
			origin = redact.Mark
		}
		safe.Set("Location", origin)
	}
	return safe
}

// validToken: what RFC 6265 section 4.1.1 lets a cookie's value hold.
func validToken(token string) bool {
	return token != "" && strings.IndexFunc(token, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || r == '"' || r == ',' || r == ';' || r == '\\'
	}) < 0
}
