package transport

import (
	"context"
	"encoding/base64"
	"slices"
	"sync"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Credentials say how requests authenticate: by user name and password, by a fixed token, or by the token of a login. A
// token is sent as the value of a cookie.
type Credentials struct {
	Pair   Pair          // nil with a fixed token
	Token  redact.Secret // if set, requests use it, and there is no login
	Cookie string        // name of the cookie of a token

	// LogIn creates a session. If it is nil, each request carries user name and password.
	LogIn LogIn
}

// Pair returns the user name and password for one attempt.
type Pair func(ctx context.Context) (username string, password redact.Secret, err error)

// LogIn creates a session and returns its token. refused: the service refused the login, and a retry at once would not
// help.
type LogIn func(ctx context.Context) (token redact.Secret, refused bool, err error)

// authenticator puts credentials on requests, and knows the secrets that no text may show: those in use, and the ones
// before, which a late response may contain.
type authenticator struct {
	Credentials

	login *login // nil unless the client logs in by itself

	mu           sync.Mutex
	username     string
	password     redact.Secret
	basic        redact.Secret // header of this pair
	generation   uint64        // of the pair, from 1; 0 before the first
	pair, tokens [2][]redact.Secret
	found        *redact.Finder
}

func newAuthenticator(c Credentials) *authenticator {
	a := &authenticator{Credentials: c, found: redact.NewFinder()}
	if !c.Token.IsZero() {
		a.learnToken(c.Token)
	}
	if c.LogIn != nil {
		a.login = &login{create: c.LogIn, learn: a.learnToken}
	}
	return a
}

// credential is a header to set.
type credential struct {
	name, value string
	generation  uint64 // of the session or the pair, 0 of a fixed token
}

// credential returns the credential of an attempt. The generation of a session is greater than newerThan, so credential
// may wait for a login. The login itself carries the password, whatever the other requests carry.
func (c *call) credential() (credential, error) {
	a := c.t.auth
	switch {
	case c.login != nil:
		s, err := c.login.current(c.ctx, c.newerThan)
		return a.cookie(s), err
	case a.Pair != nil:
		return a.authorization(c.ctx)
	case c.Class == Login:
		return credential{}, loginFailed(errNoPassword)
	default:
		return a.cookie(session{token: a.Token}), nil
	}
}

// cookie builds the header itself: Request.AddCookie drops some bytes of a value, and a cookie jar would add a second
// cookie on a retry.
func (a *authenticator) cookie(s session) credential {
	return credential{name: "Cookie", value: a.Cookie + "=" + s.token.Reveal(), generation: s.generation}
}

// authorization returns the header with the pair that is valid now.
func (a *authenticator) authorization(ctx context.Context) (credential, error) {
	username, password, err := a.Pair(ctx)
	if err != nil {
		return credential{}, &unsentError{what: "user name and password", err: err}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.generation == 0 || username != a.username || password.Reveal() != a.password.Reveal() {
		pair := username + ":" + password.Reveal()
		a.username, a.password, a.generation = username, password, a.generation+1
		a.basic = redact.New("Basic " + base64.StdEncoding.EncodeToString([]byte(pair)))
		encode := func(text string) string {
			return base64.StdEncoding.WithPadding(base64.NoPadding).EncodeToString([]byte(text))
		}
		a.learn(&a.pair, password.Reveal(), pair, encode(password.Reveal()), encode(pair), "Basic "+encode(pair))
	}
	return credential{name: "Authorization", value: a.basic.Reveal(), generation: a.generation}, nil
}

// rotated reports whether there is another pair now than that of a generation.
func (a *authenticator) rotated(ctx context.Context, since uint64) bool {
	now, err := a.authorization(ctx)
	return err == nil && now.generation != since
}

func (a *authenticator) learnToken(token redact.Secret) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.learn(&a.tokens, token.Reveal(), a.Cookie+"="+token.Reveal())
}

// learn adds secrets to those that texts do not show. The lock is held.
func (a *authenticator) learn(recent *[2][]redact.Secret, texts ...string) {
	secrets := make([]redact.Secret, len(texts))
	for i, text := range texts {
		secrets[i] = redact.New(text)
	}
	recent[0], recent[1] = secrets, recent[0]
	a.found = redact.NewFinder(slices.Concat(a.pair[0], a.pair[1], a.tokens[0], a.tokens[1])...)
}

// finder returns what finds the secrets of the client in texts.
func (a *authenticator) finder() *redact.Finder {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.found
}
