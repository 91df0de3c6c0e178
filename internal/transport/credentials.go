package transport

import (
	"context"
	"errors"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Credentials say how requests prove who sends them: by user name and password, by a fixed token, or by the token of a
// login. A token is sent as the value of a cookie.
type Credentials struct {
	Username string
	Password redact.Secret
	Token    redact.Secret // if set, it is used, and there is no login
	Cookie   string        // name of the cookie of a token

	// LogIn creates a session. If it is nil, each request shows user name and password.
	LogIn LogIn
}

// LogIn creates a session and returns its token. refused: the service answered, and another try at once would not help.
type LogIn func(ctx context.Context) (token redact.Secret, refused bool, err error)

// authenticator puts credentials on requests.
type authenticator struct {
	cookieName string
	basic      redact.Secret // value of the Authorization header; zero with a fixed token
	token      redact.Secret // fixed token
	login      *login        // nil unless the client logs in by itself
	secrets    *Secrets
}

func newAuthenticator(c Credentials, base *address.Base) *authenticator {
	shown := func(token redact.Secret) redact.Hidden { return redact.Hidden{Before: c.Cookie + "=", Secret: token} }
	if !c.Token.IsZero() {
		return &authenticator{cookieName: c.Cookie, token: c.Token, secrets: &Secrets{base: base, fixed: redact.NewFinder(shown(c.Token))}}
	}
	value, hidden := basicAuth(c.Username, c.Password)
	a := &authenticator{cookieName: c.Cookie, basic: value, secrets: &Secrets{base: base, fixed: redact.NewFinder(hidden...)}}
	if c.LogIn != nil {
		a.login = &login{create: c.LogIn, shownAs: shown, password: a.secrets.fixed}
		a.secrets.tokens = a.login
	}
	return a
}

// errNoPassword: a login needs a user name and a password.
var errNoPassword = errors.New("SessionToken gives no user name and password to log in with")

// credential is a header to set.
type credential struct {
	name, value string
	generation  uint64 // of the session, 0 without one
}

// credential returns what a request of this class shows, and of a session one that is newer than a generation. A login
// shows the password, whatever the other requests show.
func (a *authenticator) credential(ctx context.Context, c Class, newerThan uint64) (credential, error) {
	switch {
	case c == Login && a.basic.IsZero():
		return credential{}, &unsentError{"login", errNoPassword}
	case c == Login || a.login == nil && a.token.IsZero():
		return credential{name: "Authorization", value: a.basic.Reveal()}, nil
	case a.login == nil:
		return a.cookie(a.token, 0), nil
	}
	s, err := a.login.current(ctx, newerThan)
	return a.cookie(s.token, s.generation), err
}

// cookie writes the header by hand: Request.AddCookie drops bytes it does not like, and a jar would add a second cookie
// on a retry.
func (a *authenticator) cookie(token redact.Secret, generation uint64) credential {
	return credential{name: "Cookie", value: a.cookieName + "=" + token.Reveal(), generation: generation}
}

// holds: a credential is still good, as far as is known without waiting for anything.
func (a *authenticator) holds(generation uint64) bool {
	return a.login == nil || a.login.holds(generation)
}

// loggedIn: a credential can be had without a login.
func (a *authenticator) loggedIn() bool { return a.login == nil || a.login.loggedIn() }

// accepted notes that the service took a request of the session.
func (a *authenticator) accepted(generation uint64) {
	if a.login != nil && generation != 0 {
		a.login.accepted(generation)
	}
}
