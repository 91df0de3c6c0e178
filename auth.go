package webdelivery

import (
	"log/slog"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
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
//
// If the service returns 401, the client holds its calls for 1 s, and after each further refusal for 2, 4, 8, 16 and 30
// s. So a wrong password does not lock the account. A held call sends nothing and returns [ErrUnauthorized] at once.
// After that time one request tries the password again. Other calls wait for its response, but at most 2 s. The first
// request of a client is such a try too. A 403 of a purge or a transaction may also be a missing permission, so it
// holds only purges, transactions and logins. See docs/reliability.md, "Refused credentials".
func BasicAuth(username, password string) Auth {
	return Auth{mode: modeBasic, username: username, password: redact.New(password)}
}

// SessionAuth logs in with user name and password when the first request needs it, and sends the session's id as the
// cookie authtoken (service-interface section 5). When the service refuses the session, one new login is made for all
// calls under way, and each of them is sent again once. What [BasicAuth] says of name and password holds here too.
//
// If the service refuses a login, the next one follows after the same times as a try of BasicAuth. Until then, calls
// that need a session send nothing and return the error of the refused login at once, mostly [ErrUnauthorized].
func SessionAuth(username, password string) Auth {
	return Auth{mode: modeSession, username: username, password: redact.New(password)}
}

// SessionToken uses a session that was made elsewhere, by its id (service-interface section 5). When it is refused,
// calls fail with [ErrUnauthorized]. One that is empty, or that no cookie can carry, is refused by [NewClient].
//
// Refused tokens hold calls as [BasicAuth] says. A token that has expired stays refused: create a client with a new
// one.
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

// credentials says how transport uses them. logIn is called for a session.
func (a Auth) credentials(logIn transport.LogIn) transport.Credentials {
	if a.mode != modeSession {
		logIn = nil
	}
	return transport.Credentials{Username: a.username, Password: a.password, Token: a.token, Cookie: authCookieName, LogIn: logIn}
}

// validToken: what RFC 6265 section 4.1.1 lets a cookie's value hold.
func validToken(token string) bool {
	return token != "" && strings.IndexFunc(token, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || r == '"' || r == ',' || r == ';' || r == '\\'
	}) < 0
}
