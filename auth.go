package webdelivery

import (
	"log/slog"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Auth holds the credentials of a client. Create it with [BasicAuth], [SessionAuth] or [SessionToken]; the zero value
// is invalid. No format verb, log or encoding of an Auth shows a secret. (Service document, [section 5].)
//
// [section 5]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#5-authentication
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

// BasicAuth sends user name and password with every request. They must not be empty or contain a control character,
// and the user name must not contain a colon. Otherwise [NewClient] returns a [*ValidationError].
//
// A 401 is returned as [ErrUnauthorized] and not retried, and the client remembers nothing of it: a wrong password is
// sent with every call. Stop at ErrUnauthorized if the service locks accounts.
func BasicAuth(username, password string) Auth {
	return Auth{mode: modeBasic, username: username, password: redact.New(password)}
}

// SessionAuth logs in with user name and password before the first request that needs a session. It sends the id of
// the session as the cookie authtoken. If the service refuses the session, the client logs in once for all calls
// under way, and sends each of them once more. User name and password have the same rules as in [BasicAuth].
//
// If the service refuses a login or a new session, the next login follows after 1 s, and after further refusals 2, 4, 8,
// 16 and 30 s. Until then, calls that need a session send nothing and return the error of the refused login at once,
// mostly [ErrUnauthorized].
func SessionAuth(username, password string) Auth {
	return Auth{mode: modeSession, username: username, password: redact.New(password)}
}

// SessionToken uses an existing session by its id. If the id is empty or no cookie can carry it, [NewClient] returns
// a [*ValidationError]. If the service refuses the id, calls return [ErrUnauthorized]. An expired id stays refused:
// create a client with a new one.
func SessionToken(token string) Auth {
	return Auth{mode: modeToken, token: redact.New(token)}
}

// String returns the method of authentication and the user name.
func (a Auth) String() string { return strings.TrimSpace(string(a.mode) + " " + a.username) }

// GoString returns the same as String.
func (a Auth) GoString() string { return a.String() }

// LogValue returns the same as String.
func (a Auth) LogValue() slog.Value { return slog.StringValue(a.String()) }

func (a Auth) validate() error {
	switch {
	case a.mode == "":
		return invalid("auth", "use BasicAuth, SessionAuth or SessionToken")
	case a.mode == modeToken:
		if !validToken(a.token.Reveal()) {
			return invalid("SessionToken", "is empty, or contains a character that no cookie can carry")
		}
	case a.username == "":
		return invalid("user name", "is empty")
	case strings.Contains(a.username, ":"):
		return invalid("user name", "contains a colon, which Basic authentication cannot carry")
	case a.password.Reveal() == "":
		return invalid("password", "is empty")
	case strings.IndexFunc(a.username+a.password.Reveal(), address.IsControl) >= 0:
		return invalid("user name and password", "contain a control character; remove it")
	}
	return nil
}

// credentials converts a for transport, which calls logIn to create a session.
func (a Auth) credentials(logIn transport.LogIn) transport.Credentials {
	if a.mode != modeSession {
		logIn = nil
	}
	return transport.Credentials{Username: a.username, Password: a.password, Token: a.token, Cookie: authCookieName, LogIn: logIn}
}

// validToken reports whether a cookie can have this value (RFC 6265, section 4.1.1).
func validToken(token string) bool {
	return token != "" && strings.IndexFunc(token, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || r == '"' || r == ',' || r == ';' || r == '\\'
	}) < 0
}
