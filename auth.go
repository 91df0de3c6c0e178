package webdelivery

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Auth says how a client proves who it is (service-interface section 5). Make one with [BasicAuth], [SessionAuth] or
// [SessionToken]; the zero value is refused. However an Auth is printed, it shows no secret.
type Auth struct {
	mode     authMode
	username string
	password secret
	token    secret
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
	return Auth{mode: modeBasic, username: username, password: newSecret(password)}
}

// SessionAuth logs in with user name and password when the first request needs it, and sends the session's id as the
// cookie authtoken (service-interface section 5). When the service refuses the session, one new login is made for all
// calls under way, and each of them is sent again once. What [BasicAuth] says of name and password holds here too.
func SessionAuth(username, password string) Auth {
	return Auth{mode: modeSession, username: username, password: newSecret(password)}
}

// SessionToken uses a session that was made elsewhere, by its id (service-interface section 5). When it is refused,
// calls fail with [ErrUnauthorized]. One that is empty, or that no cookie can carry, is refused by [NewClient].
func SessionToken(token string) Auth {
	return Auth{mode: modeToken, token: newSecret(token)}
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
		if !validToken(a.token.reveal()) {
			return invalid("SessionToken", "is empty, or holds what no cookie can carry")
		}
	case a.username == "":
		return invalid("user name", "is empty")
	case strings.Contains(a.username, ":"):
		return invalid("user name", "holds a colon, which Basic authentication cannot carry")
	case a.password.reveal() == "":
		return invalid("password", "is empty")
	case strings.IndexFunc(a.username+a.password.reveal(), isControl) >= 0:
		return invalid("user name and password", "hold a control character")
	}
	return nil
}

// secret keeps a text out of everything that prints: fmt reaches into unexported fields, but not behind a pointer
// inside of them.
type secret struct{ text *string }

func newSecret(s string) secret { return secret{&s} }

func (s secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

const redacted = "[redacted]"

// authenticator puts credentials on requests.
type authenticator struct {
	basic   secret   // value of the Authorization header, empty with a fixed token
	token   secret   // fixed token
	session *session // nil unless the client logs in by itself
	hidden  []secret // what must not stand in an error: header values, password, token
}

func newAuthenticator(a Auth, create func(context.Context) (*Session, error)) *authenticator {
	if a.mode == modeToken {
		return &authenticator{token: a.token, hidden: hiddenForms(authCookieName+"=", a.token.reveal())}
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(a.username + ":" + a.password.reveal()))
	n := &authenticator{
		basic:  newSecret("Basic " + encoded),
		hidden: append(hiddenForms("Basic ", encoded), hiddenForms("", a.password.reveal())...),
	}
	if a.mode == modeSession {
		n.session = &session{create: create}
	}
	return n
}

// hiddenForms lists the forms in which a secret can come back in a text: with what stands before it in a header, alone,
// as JSON writers write it (with or without escapes for HTML, for slashes, and for what is not ASCII), and as a query
// does.
func hiddenForms(before, text string) []secret {
	if len(text) < minHidden {
		return nil
	}
	written := []string{text, url.QueryEscape(text), url.PathEscape(text)}
	if plain, err := marshalJSON(text); err == nil {
		var escaped bytes.Buffer
		json.HTMLEscape(&escaped, plain)
		inJSON := strings.Trim(string(plain), `"`)
		written = append(written, inJSON, strings.Trim(escaped.String(), `"`), unicodeEscapes(inJSON, `\u%04x`, ""),
			unicodeEscapes(inJSON, `\u%04X`, ""), unicodeEscapes(inJSON, `\u%04X`, "+<>&'`"))
	}
	var forms []secret
	seen := map[string]bool{}
	for _, form := range written {
		for _, form := range []string{before + form, form, strings.ReplaceAll(form, "/", `\/`)} {
			if !seen[form] {
				seen[form] = true
				forms = append(forms, newSecret(form))
			}
		}
	}
	return forms
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
	case k == login && n.basic.text == nil:
		return credential{}, &unsentError{"login", errNoCredentials}
	case k == login || n.session == nil && n.token.text == nil:
		return credential{name: "Authorization", value: n.basic.reveal()}, nil
	case n.session == nil:
		return cookie(n.token, 0), nil
	}
	t, err := n.session.current(ctx, newerThan)
	return cookie(t.token, t.generation), err
}

// cookie makes the header by hand: Request.AddCookie drops bytes it does not like, and a jar would add a second cookie
// on a retry.
func cookie(token secret, generation uint64) credential {
	return credential{name: "Cookie", value: authCookieName + "=" + token.reveal(), generation: generation}
}

// accepted is told when the service took a request of the session.
func (n *authenticator) accepted(generation uint64) {
	if n.session != nil && generation != 0 {
		n.session.accepted(generation)
	}
}

// minHidden is the length from which on a secret is looked for in foreign texts; a shorter one stands in too many.
const minHidden = 4

// redactBytes takes the client's own secrets out of what the service or a transport said: a service that echoes a
// request would otherwise bring them into errors and logs.
func (n *authenticator) redactBytes(b []byte) []byte {
	if n == nil {
		return b
	}
	b = withoutForms(b, n.hidden)
	if n.session != nil {
		b = withoutForms(b, n.session.forms())
	}
	return b
}

func withoutForms(b []byte, forms []secret) []byte {
	for _, form := range forms {
		if text := form.reveal(); bytes.Contains(b, []byte(text)) {
			b = bytes.ReplaceAll(b, []byte(text), []byte(redacted))
		}
	}
	return b
}

// unicodeEscapes writes what is not ASCII, and these characters, as escapes of JSON.
func unicodeEscapes(text, escape, also string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf && !strings.ContainsRune(also, r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, escape, unit)
		}
	}
	return b.String()
}

// text is one without secrets.
func (n *authenticator) text(s string) string { return string(n.redactBytes([]byte(s))) }

// redactIn takes the secrets out of texts.
func (n *authenticator) redactIn(texts ...*string) {
	for _, s := range texts {
		*s = n.text(*s)
	}
}

// redactNames takes the secrets out of names, by which something may be looked up: only what is too long to be a part
// of one by chance.
func (n *authenticator) redactNames(names ...*string) {
	const least = 16
	for _, s := range names {
		if safe := n.text(*s); safe != *s && len(*s) >= least {
			*s = safe
		}
	}
}

// resolveSent resolves an address that the service sent. The refusal of one with a secret in it does not repeat it, as
// what it repeats of it may be a piece of the secret.
func (c *Client) resolveSent(field, address string) (path, query string, err error) {
	path, query, err = c.base.resolve(field, address)
	if err != nil && c.auth.text(address) != address {
		err = invalid(field, "leads astray, with a credential in it")
	}
	return path, query, err
}

// redactMargin is how much of a text past its end is looked at before it is clipped, so that no piece of a secret is
// left at the end.
const redactMargin = 8 << 10

// excerpt is the beginning of a text, without secrets.
func (n *authenticator) excerpt(b []byte, most int) []byte {
	b = n.redactBytes(b[:min(len(b), most+redactMargin)])
	return b[:min(len(b), most)]
}

// redactError gives err itself, or when its text holds a secret one that says the same without.
func (n *authenticator) redactError(err error) error {
	text := err.Error()
	if safe := string(n.redactBytes([]byte(text))); safe != text {
		return &redactedError{safe, func(target error) bool { return errors.Is(err, target) }}
	}
	return err
}

// redactedError keeps errors.Is of the error it stands for, and neither its text nor itself: not in a field either, as
// there are printers that follow pointers.
type redactedError struct {
	text string
	is   func(error) bool
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return e.is(target) }

// unsafeHeaders are those that errors do without: what carries credentials, and what asks for them.
var unsafeHeaders = []string{"Authorization", "Cookie", "Location", "Proxy-Authenticate", "Set-Cookie", "Www-Authenticate"}

// safeHeader copies a reply's header for an error; of a Location its origin alone.
func (c *Client) safeHeader(h http.Header) http.Header {
	safe := make(http.Header, len(h))
	for name, values := range h {
		if slices.Contains(unsafeHeaders, name) || c.auth.text(name) != name {
			continue
		}
		for _, v := range values {
			safe[name] = append(safe[name], c.auth.text(v))
		}
	}
	if location := h.Get("Location"); location != "" {
		origin := redacted // a secret in the name of a host is in lower case afterwards
		if c.auth.text(location) == location {
			origin = c.base.originOfLocation(location)
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
