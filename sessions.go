package webdelivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/webdelivery/webdelivery-go/internal/objects"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// SessionsService makes sessions (service-interface section 4.5). It is [Client.Sessions], and safe for concurrent use.
type SessionsService struct{ funnel *funnel }

// Session is a session of the service (service-interface section 5). Its ID is a credential: whoever has it can act as
// the user. A Session that is printed, logged or encoded does not show it; only the field itself does. (No type can hide
// a value from fmt inside an unexported field of another struct, nor from the verbs %p and %w, nor from a verb that is
// not for structs, as %s, when it is behind a pointer in one.)
type Session struct {
	ID string // not empty; sent as the value of the cookie authtoken
}

// Create makes a new session with the client's user name and password (service-interface section 4.5). Its ID can be
// given to [SessionToken]. The client itself goes on as it is; with [SessionAuth] it makes its own sessions.
//
// A wrong user name or password is [ErrUnauthorized]; it is never tried twice. A reply in which no session id can be
// found is [ErrBadReply] (open point 5). A client of [SessionToken] has nothing to log in with: that is an [*Error], and
// nothing is sent.
func (s *SessionsService) Create(ctx context.Context) (*Session, error) {
	r, err := s.via().send(ctx, describe(http.MethodPost, sessionsPath, ""))
	if err != nil {
		return nil, err
	}
	id := objects.SessionID(r.Body, r.Header, authCookieName)
	if !validToken(id) {
		// The reply may hold the session in a shape that is not known, so nothing of it is repeated.
		r.Forget()
		return nil, r.bad("no session id that a cookie can carry", nil)
	}
	return &Session{ID: id}, nil
}

// logIn is Create for transport.
func (s *SessionsService) logIn(ctx context.Context) (token redact.Secret, refused bool, err error) {
	session, err := s.Create(ctx)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			refused = e.markLogin() && e.Attempts > 0 || errors.Is(err, ErrBadReply)
		}
		return token, refused, err
	}
	return redact.New(session.ID), false, nil
}

// String hides the ID.
func (s Session) String() string { return "session " + redact.Mark }

// Format hides the ID from every verb.
func (s Session) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue hides the ID.
func (s Session) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the ID from JSON, XML and other encodings.
func (s Session) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalBinary hides the ID from encoding/gob.
func (s Session) MarshalBinary() ([]byte, error) { return s.MarshalText() }
