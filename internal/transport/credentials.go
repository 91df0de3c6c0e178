package transport

import (
	"context"
	"encoding/base64"

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
	fixed      *redact.Finder
}

func newAuthenticator(c Credentials) *authenticator {
	if !c.Token.IsZero() {
		return &authenticator{cookieName: c.Cookie, token: c.Token, fixed: redact.NewFinder(c.Token, redact.New(c.Cookie+"="+c.Token.Reveal()))}
	}
	encode := func(text string) string {
		return base64.StdEncoding.WithPadding(base64.NoPadding).EncodeToString([]byte(text))
	}
	pair := c.Username + ":" + c.Password.Reveal()
	var secrets []redact.Secret
	for _, text := range []string{c.Password.Reveal(), pair, encode(c.Password.Reveal()), encode(pair), "Basic " + encode(pair)} {
		secrets = append(secrets, redact.New(text))
	}
	a := &authenticator{
		cookieName: c.Cookie,
		basic:      redact.New("Basic " + base64.StdEncoding.EncodeToString([]byte(pair))),
		fixed:      redact.NewFinder(secrets...),
	}
	if c.LogIn != nil {
		a.login = &login{create: c.LogIn, cookie: c.Cookie + "=", secrets: secrets, finder: a.fixed}
	}
	return a
}

// credential is a header to set.
type credential struct {
	name, value string
	generation  uint64 // of the session, 0 without one
}

// credential returns the credential of an attempt. The generation of a session is greater than newerThan, so credential
// may wait for a login. The login itself carries the password, whatever the other requests carry.
func (c *call) credential() (credential, error) {
	a := c.t.auth
	switch {
	case c.login != nil:
		s, err := c.login.current(c.ctx, c.newerThan)
		return a.cookie(s), err
	case !a.basic.IsZero():
		return credential{name: "Authorization", value: a.basic.Reveal()}, nil
	case c.Class == Login:
		return credential{}, loginFailed(errNoPassword)
	default:
		return a.cookie(session{token: a.token}), nil
	}
}

// cookie builds the header itself: Request.AddCookie drops some bytes of a value, and a cookie jar would add a second
// cookie on a retry.
func (a *authenticator) cookie(s session) credential {
	return credential{name: "Cookie", value: a.cookieName + "=" + s.token.Reveal(), generation: s.generation}
}

// finder returns what finds the secrets of the client in texts.
func (a *authenticator) finder() *redact.Finder {
	if a.login == nil {
		return a.fixed
	}
	_, _, finder := a.login.newest()
	return finder
}
