package testserver

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"time"
)

// sessionCookie is the cookie that carries a session id (service document, section 5).
const sessionCookie = "authtoken"

type session struct {
	user    *User
	created time.Time
}

// identify returns the user whose credentials a request carries: those of the Authorization header if there is one,
// otherwise the session cookie. If credentials are ambiguous, identify returns no user.
func (s *Server) identify(r *http.Request) (user *User, basic bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch len(r.Header.Values("Authorization")) {
	case 0:
		return s.bySession(r), false
	case 1:
		return s.byPassword(r), true
	default:
		return nil, false
	}
}

func (s *Server) byPassword(r *http.Request) *User {
	name, password, ok := r.BasicAuth()
	i := slices.IndexFunc(s.cfg.Users, func(u User) bool { return u.Name == name && u.Password == password })
	if !ok || i < 0 {
		return nil
	}
	return &s.cfg.Users[i]
}

func (s *Server) bySession(r *http.Request) *User {
	cookies := r.CookiesNamed(sessionCookie)
	if len(cookies) != 1 {
		return nil
	}
	found, ok := s.sessions[cookies[0].Value]
	lifetime := s.cfg.SessionLifetime
	if !ok || lifetime > 0 && !s.cfg.Clock.Now().Before(found.created.Add(lifetime)) {
		return nil
	}
	return found.user
}

// authenticate rejects a request without valid credentials, with 401 in general and with 403 in the purge area (service
// document, sections 5 and 7).
func (c *call) authenticate(rt route) error {
	if c.user != nil && (c.basic || !rt.basic) {
		return nil
	}
	if rt.denied != 0 {
		return refuse(rt.denied, "invalid authtoken or bad username/password combination")
	}
	return refuse(http.StatusUnauthorized, "authentication failed").
		with("WWW-Authenticate", `Basic realm="`+strings.ReplaceAll(c.s.cfg.Customer, `"`, "")+`"`)
}

func (s *Server) sessionRoutes() []route {
	return []route{{method: http.MethodPost, path: "/sessions", basic: true, handle: createSession}}
}

// createSession is POST /sessions (service document, section 4.5). The document leaves the shape of the response open.
func createSession(c *call) (response, error) {
	id := rand.Text()
	c.s.sessions[id] = session{user: c.user, created: c.now}
	c.s.logins++
	switch spelling := c.s.dialect.SessionReply; spelling {
	case "string":
		return jsonResponse(http.StatusCreated, id), nil
	case "text":
		return textResponse(http.StatusCreated, "text/plain", id), nil
	case "cookie":
		cookie := http.Cookie{Name: sessionCookie, Value: id, Path: "/", HttpOnly: true}
		return response{status: http.StatusCreated, header: http.Header{"Set-Cookie": {cookie.String()}}}, nil
	default:
		return jsonResponse(http.StatusCreated, map[string]string{spelling: id}), nil
	}
}

// ExpireSessions ends all current sessions.
func (s *Server) ExpireSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

// Logins returns the number of sessions created so far.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}
