package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// sessions makes session-1, session-2 and so on, and answers 200 to a request with one that it accepts.
type sessions struct {
	logIn func(ctx context.Context, n int) (refused bool, err error) // what a login does first; nil: nothing

	mu      sync.Mutex
	logins  int
	accepts map[string]bool
}

func (s *sessions) create(ctx context.Context) (token redact.Secret, refused bool, err error) {
	s.mu.Lock()
	s.logins++
	n := s.logins
	s.mu.Unlock()
	if s.logIn != nil {
		if refused, err := s.logIn(ctx, n); err != nil {
			return token, refused, err
		}
	}
	name := fmt.Sprintf("session-%d", n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepts["authtoken="+name] = true
	return redact.New(name), false, nil
}

func (s *sessions) answer(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(r.Header["Cookie"]) == 1 && r.Header["Authorization"] == nil && s.accepts[r.Header["Cookie"][0]] {
		return respond(200, "{}"), nil
	}
	return respond(401, "{}"), nil
}

// expire ends all sessions.
func (s *sessions) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepts = map[string]bool{}
}

func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// withSessions runs a test of a transport that logs in by itself. The service is s unless there is a script.
func withSessions(t *testing.T, test func(f *fixture, s *sessions), script ...exchange) {
	t.Helper()
	s := &sessions{accepts: map[string]bool{}}
	if script == nil {
		script = []exchange{s.answer}
	}
	inFakeTime(t, func(c *transport.Config) { c.Credentials.Cookie, c.Credentials.LogIn = "authtoken", s.create }, func(f *fixture) { test(f, s) }, script...)
}

func (f *fixture) cookies() (cookies []string) {
	for _, r := range f.requests() {
		cookies = append(cookies, r.header.Get("Cookie"))
	}
	return cookies
}

// What each way to prove who one is puts on a request, and on a login.
func TestCredentials(t *testing.T) {
	t.Parallel()
	token := redact.New("0123456789")
	create := func(context.Context) (redact.Secret, bool, error) { return redact.New("session-1"), false, nil }
	basic := http.Header{"Authorization": {"Basic " + basicPair}}
	for _, tt := range []struct {
		name        string
		credentials transport.Credentials
		want, login http.Header // nil: none is sent
	}{
		{"user name and password", transport.Credentials{Username: username, Password: redact.New(password)}, basic, basic},
		{"a session", transport.Credentials{Username: username, Password: redact.New(password), Cookie: "authtoken", LogIn: create}, http.Header{"Cookie": {"authtoken=session-1"}}, basic},
		{"a fixed token", transport.Credentials{Token: token, Cookie: "c"}, http.Header{"Cookie": {"c=0123456789"}}, nil},
		{"a fixed token comes first", transport.Credentials{Username: username, Password: redact.New(password), Token: token, Cookie: "c", LogIn: create}, http.Header{"Cookie": {"c=0123456789"}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(c *transport.Config) { c.Credentials = tt.credentials }, func(f *fixture) {
				require.NoError(f, f.transport.LogIn(f.Context(), aWrite))
				for _, r := range allClasses {
					want := tt.want
					if r.Class == transport.Login {
						want = tt.login
					}
					before := f.count()
					if want == nil {
						failure := f.fails(r)
						require.EqualError(f, failure.Cause, "login: SessionToken gives no user name and password to log in with")
						assert.Equal(f, transport.NotApplied, failure.Outcome)
						assert.Equal(f, before, f.count())
						continue
					}
					f.succeeds(r)
					header := f.requests()[before].header
					for _, name := range []string{"Accept", "User-Agent", "Content-Type"} {
						header.Del(name)
					}
					assert.Equal(f, want, header)
				}
			}, answer(200, ""))
		})
	}
}

// LogIn makes a session only if there is none.
func TestLogIn(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		for range 3 {
			require.NoError(f, f.transport.LogIn(f.Context(), aWrite))
			assert.Equal(f, 1, s.count())
		}
		assert.Zero(f, f.count())
		s.logIn = func(context.Context, int) (bool, error) { return false, errLost }
		s.expire()
		require.ErrorIs(f, f.fails(aRead), errLost)
		require.ErrorIs(f, f.transport.LogIn(f.Context(), aWrite), errLost)
	})
}

// A refused session is renewed and the request sent again, whole, once, and whatever its class. It is no retry.
func TestARefusedSessionIsRenewed(t *testing.T) {
	t.Parallel()
	for _, r := range []transport.Request{aRead, aDelete, aRepeated, aWrite} {
		withSessions(t, func(f *fixture, s *sessions) {
			f.succeeds(r)
			s.expire()
			f.succeeds(r)
			assert.Equal(f, []string{"authtoken=session-1", "authtoken=session-1", "authtoken=session-2"}, f.cookies())
			assert.Equal(f, 2, s.count())
			for _, sent := range f.requests() {
				assert.Equal(f, string(r.Body), sent.body)
			}
			assert.NotContains(f, f.log.String(), "session-")
		})
		withSessions(t, func(f *fixture, s *sessions) { // and without it
			f.succeeds(r)
			s.expire()
			kept := r
			kept.KeepSession = true
			assert.True(f, f.fails(kept).Unauthorized)
			assert.Equal(f, 2, f.count())
			assert.Equal(f, 1, s.count())
		})
		withSessions(t, func(f *fixture, s *sessions) { // refused again
			failure := f.fails(r)
			assert.True(f, failure.Unauthorized)
			assert.Equal(f, 401, failure.Status)
			assert.Equal(f, transport.NotApplied, failure.Outcome)
			assert.Equal(f, 2, f.count())
			assert.Equal(f, 2, failure.Attempts)
			assert.Equal(f, 2, s.count())
		}, answer(401, ""))
		withSessions(t, func(f *fixture, _ *sessions) { // the attempts of the policy come on top
			assert.Equal(f, 429, f.fails(r).Status)
			attempts := 4
			if r.Class == transport.Once {
				attempts = 3
			}
			assert.Equal(f, attempts+1, f.count())
		}, answer(429, ""), answer(401, ""), answer(429, ""))
		withSessions(t, func(f *fixture, _ *sessions) { // nothing is left of the refusal
			failure := f.fails(r)
			assert.Zero(f, failure.Status)
			require.ErrorIs(f, failure, errLost)
			assert.False(f, failure.Unauthorized)
		}, answer(401, `{"description":"words"}`), unconnected(errLost))
	}
	withSessions(t, func(f *fixture, s *sessions) { // a login is no call of the session
		assert.True(f, f.fails(aLogin).Unauthorized)
		assert.Equal(f, 1, f.count())
		assert.Zero(f, s.count())
	})
}

// A refusal by its rules, by a code, and in a stream.
func TestWhatRefusesASession(t *testing.T) {
	t.Parallel()
	denied := aRead
	denied.Rules.Refuse = []int{403}
	stream := aRead
	stream.Begin = begins(401, nil)
	for _, tt := range []struct {
		name   string
		r      transport.Request
		answer exchange
		logins int
	}{
		{"401", aRead, answer(401, ""), 2},
		{"403", aRead, answer(403, ""), 1},
		{"403 by its rules", denied, answer(403, ""), 2},
		{"a code of 401", aRead, answer(200, `{"code":401}`), 2},
		{"a stream", stream, answer(200, `{"code":401}`), 2},
		{"a status whose body breaks", aRead, cutBody(401, ``), 2},
		{"500", aRead, answer(500, ""), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			withSessions(t, func(f *fixture, s *sessions) {
				f.fails(tt.r)
				assert.Equal(f, tt.logins, s.count())
			}, tt.answer)
		})
	}
}

// A status that may refuse the session causes a new login, while the old session stays in use. If the new session gets
// the same status, the session was not the reason. Then the path causes no login for 30 s, and many such paths cause 5.
func TestADoubtfulRefusal(t *testing.T) {
	t.Parallel()
	doubt := func(path string) transport.Request {
		return transport.Request{Class: transport.Read, Method: "GET", Path: path, Rules: transport.Rules{MayRefuse: []int{400}}}
	}
	withSessions(t, func(f *fixture, s *sessions) {
		f.script = []exchange{answer(400, ""), answer(200, "")}
		f.succeeds(doubt("/a")) // it was about the session
		assert.Equal(f, 2, s.count())

		f.script = []exchange{answer(400, "")}
		for _, tt := range []struct {
			path   string
			logins int
		}{{"/a", 3}, {"/a", 3}, {"/b", 4}, {"/b", 4}, {"/a", 4}, {"/c", 5}, {"/d", 6}, {"/e", 7}, {"/f", 7}, {"/a", 7}} {
			before, logins := f.count(), s.count()
			failure := f.fails(doubt(tt.path))
			assert.Equal(f, 400, failure.Status)
			assert.False(f, failure.Unauthorized)
			assert.Equal(f, tt.logins, s.count(), tt.path)
			assert.Equal(f, before+1+s.count()-logins, f.count())
		}
		f.script = []exchange{answer(200, "")}
		f.succeeds(aRead) // no login cools down
		f.script = []exchange{answer(400, "")}
		time.Sleep(30*time.Second - 1)
		f.fails(doubt("/f"))
		assert.Equal(f, 7, s.count())
		time.Sleep(time.Nanosecond)
		f.fails(doubt("/f"))
		assert.Equal(f, 8, s.count())
		f.fails(doubt("/a"))
		assert.Equal(f, 9, s.count())
	})
	withSessions(t, func(f *fixture, s *sessions) { // a new login that fails does not end the session
		f.succeeds(aRead)
		for _, refused := range []bool{false, true} {
			s.logIn = func(context.Context, int) (bool, error) { return refused, errWrong }
			f.script = []exchange{answer(400, "")}
			failure := f.fails(doubt("/a"))
			require.ErrorIs(f, failure, errWrong)
			f.script = []exchange{s.answer}
			f.succeeds(aRead)
		}
		assert.Equal(f, 3, s.count())
		f.script = []exchange{answer(400, "")}
		failure := f.fails(doubt("/a")) // while logins cool down there is none
		require.NoError(f, failure.Cause)
		assert.Equal(f, 400, failure.Status)
		assert.Equal(f, 3, s.count())
	})
	withSessions(t, func(f *fixture, s *sessions) { // nothing else is in doubt
		for _, r := range []transport.Request{aRead, {Method: "GET", KeepSession: true, Rules: transport.Rules{MayRefuse: []int{400}}}} {
			f.fails(r)
			assert.Equal(f, 1, s.count())
		}
	}, answer(400, ""))
}

// The newest token, the one before it and the password do not get into texts.
func TestTokensAreSecrets(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		const text = "session-1 session-2 session-3 " + password
		assert.Equal(f, "session-1 session-2 session-3 [redacted]", f.transport.Secrets().Text(text))
		f.succeeds(aRead)
		assert.Equal(f, "[redacted] session-2 session-3 [redacted]", f.transport.Secrets().Text(text))
		s.expire()
		f.succeeds(aRead)
		assert.Equal(f, "[redacted] [redacted] session-3 [redacted]", f.transport.Secrets().Text(text))
		s.expire()
		f.succeeds(aRead)
		assert.Equal(f, "session-1 [redacted] [redacted] [redacted]", f.transport.Secrets().Text(text))
		assert.Equal(f, "see [redacted]", f.transport.Secrets().Text("see authtoken=session-3"))
	})
}

// A refused call waits for the login under way, also if another login, which was lost, is refused meanwhile.
func TestALoginUnderWayHelpsWhileLoginsCoolDown(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401} {
		withSessions(t, func(f *fixture, s *sessions) {
			f.succeeds(aRead)
			s.expire()
			s.logIn = func(_ context.Context, n int) (bool, error) {
				if n == 2 { // it ignores its context, and is refused after 7.5 s
					time.Sleep(7500 * time.Millisecond)
					return true, errWrong
				}
				time.Sleep(10 * time.Second)
				return false, nil
			}
			f.script = []exchange{s.answer, after(8*time.Second, answer(status, "")), s.answer}
			r := aRead
			r.Rules.MayRefuse = []int{400}
			done := make(chan error)
			send := func(ctx context.Context, r transport.Request) {
				_, err := f.transport.Send(ctx, r)
				done <- err
			}
			go send(f.Context(), r)
			synctest.Wait()
			short, cancel := context.WithTimeout(f.Context(), 5*time.Second)
			defer cancel()
			f.failsWith(short, aRead)
			go send(f.Context(), aRead)
			require.NoError(f, <-done)
			require.NoError(f, <-done)
			assert.Equal(f, 15100*time.Millisecond, time.Since(f.began))
			assert.Equal(f, 3, s.count())
		})
	}
}
