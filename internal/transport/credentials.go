package transport

import (
	"context"
	"errors"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Credentials say how requests authenticate: by user name and password, by a fixed token, or by the token of a login. A
// token is sent as the value of a cookie.
type Credentials struct {
	Username string
	Password redact.Secret
	Token    redact.Secret // if set, requests use it, and there is no login
	Cookie   string        // name of the cookie of a token

	// LogIn creates a session. If it is nil, each request carries user name and password.
	LogIn LogIn
}

// LogIn creates a session and returns its token. refused: the service refused the login, and a retry at once would not
// help.
type LogIn func(ctx context.Context) (token redact.Secret, refused bool, err error)

// authenticator puts credentials on requests.
type authenticator struct {
	cookieName string
	basic      redact.Secret // value of the Authorization header; zero with a fixed token
	token      redact.Secret // fixed token
	login      *login        // nil unless the client logs in by itself
	fixed      prober        // of basic or token; with a login, of basic alone
	sessions   prober        // of the sessions of login
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
		a.sessions.proven = true // the service has just made it
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

// renews: a login can renew the credential of requests of this class. The login itself carries the password, whatever
// the other requests carry.
func (a *authenticator) renews(c Class) bool { return a.login != nil && c != Login }

// prober returns the one that guards the credential of requests of this class.
func (a *authenticator) prober(c Class) *prober {
	if a.renews(c) {
		return &a.sessions
	}
	return &a.fixed
}

// credential returns the credential of a request. The generation of a session is greater than newerThan. credential
// waits for the login or for probes.
func (a *authenticator) credential(ctx context.Context, r *Request, newerThan uint64, still *patience) (credential, error) {
	if r.Class == Login && a.basic.IsZero() {
		return credential{}, &unsentError{"login", errNoPassword}
	}
	if err := a.prober(r.Class).wait(ctx, r, still); err != nil {
		return credential{}, err
	}
	if a.renews(r.Class) {
		s, err := a.login.current(ctx, newerThan)
		return a.cookie(s.token, s.generation), err
	}
	if a.basic.IsZero() {
		return a.cookie(a.token, 0), nil
	}
	return credential{name: "Authorization", value: a.basic.Reveal()}, nil
}

// cookie builds the header itself: Request.AddCookie drops some bytes of a value, and a cookie jar would add a second
// cookie on a retry.
func (a *authenticator) cookie(token redact.Secret, generation uint64) credential {
	return credential{name: "Cookie", value: a.cookieName + "=" + token.Reveal(), generation: generation}
}

// enter tells whether a credential can still be shown, and lets the attempt do it.
func (a *authenticator) enter(r *Request, generation uint64, still *patience) (pass, bool) {
	if a.renews(r.Class) && r.Gate != nil && !a.login.holds(generation) {
		return pass{}, false
	}
	free, busy, err := a.prober(r.Class).enter(r, still, true)
	return free, busy.changed == nil && err == nil
}

// ready: a request can get a credential without waiting for a login or for probes, and is not held.
func (a *authenticator) ready(r *Request) bool {
	if a.renews(r.Class) && !a.login.loggedIn() {
		return false
	}
	_, busy, err := a.prober(r.Class).enter(r, &patience{}, false)
	return busy.changed == nil && err == nil
}

// accepted notes that the service accepted the credential of an attempt.
func (a *authenticator) accepted(r *Request, last *attempt) {
	if a.renews(r.Class) {
		a.login.accepted(last.generation)
	}
	a.prober(r.Class).accepted(r, last.pass)
}

// refused notes that the service refused the credential of an attempt. It returns whether that is final. Otherwise a
// login may help. renewed: the call has got a new session before.
func (a *authenticator) refused(r *Request, last *attempt, renewed bool, refusal func() *refusalError) bool {
	p := a.prober(r.Class)
	if a.renews(r.Class) && !a.login.final(last.generation, renewed, p.suspects(r)) {
		return false
	}
	p.refused(r, last.pass, refusal())
	return true
}
