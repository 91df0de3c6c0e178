package webdelivery

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// SessionsService creates sessions. (Section 4.5.)
type SessionsService struct{ conn *conn }

// Session is a session of the service. Its ID is a credential: whoever has it can act as the user. A Session that is
// printed, logged or encoded as JSON or XML does not show its ID. (Section 5.)
type Session struct {
	ID string `json:"-" xml:"-"` // not empty; sent as the value of the cookie authtoken
}

// Create creates a session with the user name and password of the client. Pass its ID to [SessionToken]. The client
// itself does not use the session: with [SessionAuth], it creates its own.
//
// If user name or password are wrong, Create returns [ErrUnauthorized] and does not retry. If the response has no
// session id, it returns [ErrBadResponse]. With [SessionToken], the client cannot log in: Create returns an [*Error]
// and sends nothing.
func (s *SessionsService) Create(ctx context.Context) (*Session, error) {
	r, err := s.conn.send(ctx, describe("Sessions.Create", http.MethodPost, sessionsPath, ""))
	if err != nil {
		return nil, err
	}
	id := sessionID(r.Body, r.Header)
	if !validToken(id) {
		return nil, r.bad("no session id that a cookie can carry", nil)
	}
	s.conn.secrets.Learn(redact.New(id))
	return &Session{ID: id}, nil
}

// logIn is Create for transport.
func (s *SessionsService) logIn(ctx context.Context) (token redact.Secret, refused bool, err error) {
	session, err := s.Create(withoutCaller(ctx))
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			refused = e.markLogin() && e.Attempts > 0 || errors.Is(err, ErrBadResponse)
		}
		return token, refused, err
	}
	return redact.New(session.ID), false, nil
}

// sessionIDNames are the members in which an id is looked for, in this order (open point 5).
var sessionIDNames = []string{"id", "session_id", "sessionid", "authtoken", "token"}

// sessionID finds the id of a session, or returns "" (open point 5). It reads a JSON object, a JSON string, a cookie
// named authtoken, or a bare token as text.
func sessionID(body []byte, header http.Header) string {
	var object map[string]json.RawMessage
	err := wire.Decode(body, &object)
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return ""
	}
	for _, name := range sessionIDNames {
		if id := textOf(object[name]); id != "" && err == nil {
			return id
		}
	}
	body = bytes.TrimSpace(body)
	if id := cmp.Or(textOf(body), sessionCookie(header)); id != "" {
		return id
	}
	if json.Valid(body) || bytes.ContainsAny(body, "{}[]<>") {
		return ""
	}
	return string(body)
}

// sessionCookie returns the value of the cookie authtoken, or "". Of several it takes the last one that has not
// expired, as a browser does: services remove an old cookie before they set the new one.
func sessionCookie(header http.Header) (value string) {
	for _, c := range (&http.Response{Header: header}).Cookies() {
		expired := c.MaxAge < 0 || c.MaxAge == 0 && !c.Expires.IsZero() && c.Expires.Before(time.Now())
		if c.Name == authCookieName && c.Value != "" && !expired {
			value = c.Value
		}
	}
	return value
}

// Format hides the ID from every verb.
func (s Session) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "session "+redact.Mark) }
