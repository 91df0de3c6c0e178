package webdelivery

import (
	"context"
	"errors"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Auth holds the credentials of a client. Create it with [BasicAuth], [SessionAuth], their Func variants, or
// [SessionToken]; the zero value is invalid. Printing, logging or encoding an Auth never shows a secret. (Section 5.)
type Auth struct {
	mode     authMode
	username string // set by always
	wrong    error  // what is wrong with a pair that never changes
	pair     func(context.Context) (username, password string, err error)
	asks     bool // pair may hang
	token    redact.Secret
}

type authMode string

const (
	modeBasic   authMode = "basic"
	modeSession authMode = "session"
	modeToken   authMode = "token"
)

// BasicAuth sends a user name and password with every request. If either is empty or contains a control character, or
// the user name contains a colon, [NewClient] returns a [*ValidationError].
//
// A 401 is returned as [ErrUnauthorized] and not retried. The client does not remember it, so a wrong password is sent
// with every call: stop at ErrUnauthorized if the service locks accounts.
func BasicAuth(username, password string) Auth { return always(modeBasic, username, password) }

// BasicAuthFunc is BasicAuth with the user name and password that a function returns, for a password that is rotated
// while the client is in use. The client calls it before every attempt, from several goroutines, so it should cache.
// It has the time of an attempt ([WithAttemptTimeout]). If it fails, the call sends nothing more and returns its
// error.
//
// If the service refuses a request with 401, or a purge with 403, and the function now returns a different pair, the
// call is sent once more.
func BasicAuthFunc(pair func(ctx context.Context) (username, password string, err error)) Auth {
	return Auth{mode: modeBasic, pair: pair, asks: true}
}

// SessionAuth logs in with a user name and password before the first request that needs a session, and sends the id of
// the session as the cookie authtoken. If the service refuses the session, the client logs in once for all calls in
// progress, and sends each of them once more.
//
// If the service refuses a login or a new session, the next login waits for 1 s, and after further refusals for up to
// 30 s. Until then, calls return the error of the refused login at once, usually [ErrUnauthorized].
func SessionAuth(username, password string) Auth { return always(modeSession, username, password) }

// SessionAuthFunc is SessionAuth with the user name and password that a function returns, as in [BasicAuthFunc]. The
// client calls it before every attempt to log in.
func SessionAuthFunc(pair func(ctx context.Context) (username, password string, err error)) Auth {
	return Auth{mode: modeSession, pair: pair, asks: true}
}

func always(mode authMode, username, password string) Auth {
	a := Auth{mode: mode, username: username, pair: func(context.Context) (string, string, error) {
		return username, password, nil
	}}
	if what, problem := checkPair(username, password); problem != "" {
		a.wrong = invalid(what, "%s", problem)
	}
	return a
}

// SessionToken uses an existing session, given its id. If the id is empty or cannot be the value of a cookie,
// [NewClient] returns a [*ValidationError]. If the service refuses the id, calls return [ErrUnauthorized]. When the
// session has expired, create a new client with a new id.
func SessionToken(token string) Auth {
	return Auth{mode: modeToken, token: redact.New(token)}
}

// String returns the method of authentication and the user name.
func (a Auth) String() string { return strings.TrimSpace(string(a.mode) + " " + a.username) }

// validate checks what can be known without calling the user's function.
func (a Auth) validate() error {
	switch {
	case a.mode == "":
		return invalid("auth", "use BasicAuth, SessionAuth or SessionToken")
	case a.mode == modeToken && !validToken(a.token.Reveal()):
		return invalid("SessionToken", "is empty, or contains a character that no cookie can carry")
	case a.mode == modeToken:
		return nil
	case a.pair == nil:
		return invalid("auth", "its function is nil")
	}
	return a.wrong
}

// ask returns the pair for one attempt. An earlier attempt of the call may have been sent, so a bad pair is not a
// ValidationError.
func (a Auth) ask(ctx context.Context) (username string, secret redact.Secret, err error) {
	username, password, err := a.pair(ctx)
	if err == nil {
		if what, problem := checkPair(username, password); problem != "" {
			err = errors.New("the " + what + " " + problem)
		}
	}
	return username, redact.New(password), err
}

func checkPair(username, password string) (what, problem string) {
	switch {
	case username == "":
		return "user name", "is empty"
	case strings.Contains(username, ":"):
		return "user name", "contains a colon, which Basic authentication cannot carry"
	case password == "":
		return "password", "is empty"
	case strings.IndexFunc(username+password, address.IsControl) >= 0:
		return "user name and password", "contain a control character; remove it"
	}
	return "", ""
}

// credentials converts a for transport, which calls logIn to create a session.
func (a Auth) credentials(logIn transport.LogIn) transport.Credentials {
	c := transport.Credentials{Token: a.token, Cookie: authCookieName, Asks: a.asks}
	if a.mode != modeToken {
		c.Pair = a.ask
	}
	if a.mode == modeSession {
		c.LogIn = logIn
	}
	return c
}

// validToken reports whether a cookie can have this value (RFC 6265, section 4.1.1).
func validToken(token string) bool {
	return token != "" && strings.IndexFunc(token, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || r == '"' || r == ',' || r == ';' || r == '\\'
	}) < 0
}
