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
// If the service returns 401, the client holds its calls for 1 s, and after further refusals for 2, 4, 8, 16 and 30 s.
// So a wrong password does not lock the account. A held call sends nothing and returns [ErrUnauthorized] at once. After
// that time, one request tries the password again, and other calls wait for its response. The first request of a client
// is such a try too, but other calls wait at most 2 s for it. If the context of a try ends before its response, the
// client holds no calls. If the service has accepted the password before, a 401 first holds only its method and path.
// Further ones hold its area, such as /config, or all calls if the areas differ. A 403 of a purge or a transaction may
// also be a missing permission, so it holds only these calls and logins. See docs/reliability.md, "Refused credentials".
func BasicAuth(username, password string) Auth {
	return Auth{mode: modeBasic, username: username, password: redact.New(password)}
}

// SessionAuth logs in with user name and password before the first request that needs a session. It sends the id of
// the session as the cookie authtoken. If the service refuses the session, the client logs in once for all calls
// under way, and sends each of them once more. User name and password have the same rules as in [BasicAuth].
//
// If the service refuses a login, the next one follows after the same times as a try of BasicAuth. Until then, calls
// that need a session send nothing and return the error of the refused login at once, mostly [ErrUnauthorized]. If the
// service refuses a new session too, the client holds the path, its area or all calls, as described at BasicAuth.
func SessionAuth(username, password string) Auth {
	return Auth{mode: modeSession, username: username, password: redact.New(password)}
}

// SessionToken uses an existing session by its id. If the id is empty or no cookie can carry it, [NewClient] returns
// a [*ValidationError]. If the service refuses the id, calls return [ErrUnauthorized], and the client holds them as
// described at [BasicAuth]. An expired id stays refused: create a client with a new one.
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
