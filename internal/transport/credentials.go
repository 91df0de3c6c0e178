package transport

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Credentials says how requests authenticate: with a user name and password, a fixed token, or the token of a login. A
// token is sent as the value of a cookie.
type Credentials struct {
	Pair   Pair          // nil if Token is set
	Asks   bool          // Pair may hang, as a function of the user's may
	Token  redact.Secret // fixed token, used without a login
	Cookie string        // name of the cookie that carries a token

	// LogIn creates a session. If it is nil and Token is not set, each request carries the user name and password.
	LogIn LogIn
}

// Pair returns the user name and password for one attempt.
type Pair func(ctx context.Context) (username string, password redact.Secret, err error)

// LogIn creates a session and returns its token. refused reports whether the service refused the login, so that an
// immediate retry would not help.
type LogIn func(ctx context.Context) (token redact.Secret, refused bool, err error)

// Secrets removes the client's secrets from texts. If a service or proxy echoes a request, they would otherwise get
// into errors and logs. It knows those in use, and earlier ones, which a late response may contain.
type Secrets struct {
	cookie string // name of the cookie that carries a token

	mu            sync.Mutex
	pairs, tokens []known        // the newest last
	created       []known        // tokens that the user has created; apart, so that those in use are not forgotten for them
	generation    uint64         // of the newest pair, from 1
	found         *redact.Finder // nil if it is not made yet
}

// known is a pair or token that was used, with all texts that would reveal it.
type known struct {
	username   string // this and the next three are those of a pair
	password   redact.Secret
	header     redact.Secret
	generation uint64
	secrets    []redact.Secret
}

// remembered is how many pairs and how many tokens are kept. A slow call may use one that was rotated long ago, and the
// function passed to BasicAuthFunc may return a different pair for each caller.
const remembered = 16

// credential is a request header.
type credential struct {
	name, value string
	generation  uint64 // of the session or the pair; 0 for a fixed token
}

// credential returns the credential for an attempt. It may wait for a login, because it returns only a session of a
// later generation than newerThan. The login request itself always carries the password.
func (c *call) credential() (credential, error) {
	switch t := c.t; {
	case c.login != nil:
		s, err := c.login.current(c.ctx, c.newerThan, c.doubted)
		return t.cookie(s), err
	case t.Credentials.Pair != nil:
		return t.authorization(c.ctx)
	case c.Class == Login:
		return credential{}, loginFailed("login", errors.New("SessionToken gives no user name and password to log in with"))
	default:
		return t.cookie(session{token: t.Credentials.Token}), nil
	}
}

// cookie returns the header for a session. It does not use Request.AddCookie, which drops some bytes of a value, or a
// cookie jar, which would add a second cookie on a retry.
func (t *Transport) cookie(s session) credential {
	return credential{name: "Cookie", value: t.Credentials.Cookie + "=" + s.token.Reveal(), generation: s.generation}
}

// authorization returns the header for the current pair.
func (t *Transport) authorization(ctx context.Context) (credential, error) {
	username, password, err := t.Ask(ctx)
	if err != nil {
		return credential{}, unsent("user name and password", err)
	}
	s := &t.secrets
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.pairs {
		if k.username == username && k.password.Reveal() == password.Reveal() {
			return credential{name: "Authorization", value: k.header.Reveal(), generation: k.generation}, nil
		}
	}
	text := username + ":" + password.Reveal()
	header := "Basic " + base64.StdEncoding.EncodeToString([]byte(text))
	secrets := inBase64(password.Reveal(), text)
	for _, secret := range inBase64(text) {
		secrets = append(secrets, "Basic "+secret)
	}
	s.generation++
	s.learn(&s.pairs, known{username: username, password: password, header: redact.New(header), generation: s.generation}, secrets...)
	return credential{name: "Authorization", value: header, generation: s.generation}, nil
}

// Ask calls Pair, within the timeout of an attempt. If a function of the user's ignores its context, its goroutine stays
// until it returns, and the call goes on.
func (t *Transport) Ask(ctx context.Context) (username string, password redact.Secret, err error) {
	if !t.Credentials.Asks {
		return t.Credentials.Pair(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, t.AttemptTimeout)
	defer cancel()
	done := make(chan func(), 1)
	go func() {
		u, p, e := t.Credentials.Pair(bounded)
		done <- func() { username, password, err = u, p, e }
	}()
	select {
	case set := <-done:
		set()
	case <-bounded.Done():
		err = bounded.Err()
	}
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		err = timeout("not read within %v", t.AttemptTimeout)
	}
	return username, password, err
}

// Text returns a text without secrets, truncated if it is long.
func (s *Secrets) Text(text string) string { return s.finder().Text(text, redact.Most) }

// Excerpt returns at most the first most bytes of a text, without secrets.
func (s *Secrets) Excerpt(text []byte, limit int) []byte {
	if len(text) == 0 {
		return nil
	}
	text = text[:min(len(text), limit+redact.Margin)] // more is not searched, so it is not copied
	return []byte(s.finder().Text(string(text), limit))
}

// RequestID returns the id that a service or gateway gave to a request, on one line, cut at 128 bytes, without secrets;
// "" if the response has none.
func (s *Secrets) RequestID(h http.Header) string {
	const limit = 128
	id := cmp.Or(h.Get("X-Request-Id"), h.Get("X-Correlation-Id"))
	if id == "" {
		return ""
	}
	return redact.Line(s.finder().Text(id, limit))
}

// Learn adds the token of a session that the user has created.
func (s *Secrets) Learn(token redact.Secret) { s.learnToken(&s.created, token) }

// Error returns err, or an error with the same text without secrets if err contains any.
func (s *Secrets) Error(err error) error { return s.finder().Error(err) }

// learnToken adds a token to all, which is tokens or created.
func (s *Secrets) learnToken(all *[]known, token redact.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learn(all, known{}, append(inBase64(token.Reveal()), s.cookie+"="+token.Reveal())...)
}

// inBase64 returns texts and their Base64 in either alphabet.
func inBase64(texts ...string) (all []string) {
	for _, text := range texts {
		all = append(all, text, base64.RawStdEncoding.EncodeToString([]byte(text)), base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	return all
}

// learn adds a pair or a token to all, and its texts to the secrets. The caller holds the lock.
func (s *Secrets) learn(all *[]known, k known, secrets ...string) {
	slices.Sort(secrets)
	for _, secret := range slices.Compact(secrets) { // most have the same form in either alphabet of Base64
		k.secrets = append(k.secrets, redact.New(secret))
	}
	*all = append(*all, k)
	*all = (*all)[max(0, len(*all)-remembered):]
	s.found = nil
}

// finder returns the finder of the client's secrets. It is made when a text needs it, because that takes longer than a
// call whose password is always another one.
func (s *Secrets) finder() *redact.Finder {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil {
		var hidden []redact.Secret
		for _, k := range slices.Concat(s.pairs, s.tokens, s.created) {
			hidden = append(hidden, k.secrets...)
		}
		s.found = redact.NewFinder(hidden...)
	}
	return s.found
}
