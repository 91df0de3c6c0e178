package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// session is the one login of a client (service-interface section 5). Any number of calls ask it for the token; when
// there is none, one login runs for all of them. Each token has a generation, so that a call whose token was refused
// long after somebody else renewed it does not cause another login. The login has a context of its own: a caller who
// gives up does not cancel it for the others, but the last one who gives up does.
type session struct {
	create func(context.Context) (*Session, error)

	mu         sync.Mutex
	token      redact.Secret  // of the newest login
	secrets    *redact.Finder // finds the password
	shown      *redact.Finder // finds the token and the one before, too, as late replies may speak of it; nil before the first
	generation uint64         // of token, from 1
	valid      bool           // token was not refused yet
	proven     bool           // token was accepted at least once
	flight     *flight

	refuted   []refutation
	strikes   int       // refused logins and refused new sessions since a session last worked
	notBefore time.Time // no login before this
	lastErr   error     // why the last login was refused
}

// flight is a login under way. Its result is written before done is closed.
type flight struct {
	done      chan struct{}
	lost      chan struct{} // closed when nobody waits for its end any more, although it has not ended
	cancel    context.CancelFunc
	waiters   int
	abandoned bool // the last waiter has left
	sessionToken
	err error
}

// flightKey marks the context of a login with its flight. A log Handler or a transport that calls the client with it would
// wait for the very login that waits for them.
type flightKey struct{}

var errWithinLogin = errors.New("called from within the login that the call would wait for")

// sessionToken is a token with its generation, from 1.
type sessionToken struct {
	token      redact.Secret
	generation uint64
}

// maxCoolDown bounds the time between two logins that are refused, so that a wrong password neither hammers the
// service nor locks the account.
const maxCoolDown = 30 * time.Second

// errSessionRefused: the login worked, the session does not.
var errSessionRefused = fmt.Errorf("the service refused the session it had just made: %w", ErrUnauthorized)

// current gives the token, after a login when there is none that is newer than a generation (0: any).
func (s *session) current(ctx context.Context, newerThan uint64) (sessionToken, error) {
	// The context may be the user's, and its methods may panic or block: under no lock, and before this call counts as one
	// that waits.
	within, _ := ctx.Value(flightKey{}).(*flight)
	left := ctx.Done()
	for {
		s.mu.Lock()
		if s.valid && s.generation > newerThan {
			defer s.mu.Unlock()
			return sessionToken{s.token, s.generation}, nil
		}
		if s.flight == nil {
			if err := s.coolingDown(); err != nil {
				defer s.mu.Unlock()
				return sessionToken{}, err
			}
			s.begin(ctx)
		}
		f := s.flight
		if within == f {
			s.mu.Unlock()
			return sessionToken{}, &unsentError{"login", errWithinLogin}
		}
		joined := !f.abandoned // an abandoned one only has to end before the next begins
		if joined {
			f.waiters++
		}
		s.mu.Unlock()

		select {
		case <-f.done:
			if joined {
				return f.sessionToken, f.err
			}
		case <-f.lost: // only after the last of those who joined it has left
		case <-left:
			if joined {
				s.leave(f)
			}
			return sessionToken{}, &unsentError{"waiting for the login", pace.Ended(ctx)}
		}
	}
}

// begin starts a login. The lock is held.
func (s *session) begin(ctx context.Context) {
	f := &flight{done: make(chan struct{}), lost: make(chan struct{})}
	ctx, f.cancel = context.WithCancel(context.WithValue(context.WithoutCancel(ctx), flightKey{}, f))
	cancel := f.cancel
	s.flight = f
	go func() {
		defer close(f.done)
		defer cancel()
		var made *Session
		refused := false
		usercode.Run(func() (err error) {
			made, err = s.create(ctx)
			refused = refusedLogin(err)
			return err
		}, func(err error) { s.end(f, made, err, refused) })
	}()
}

// end notes the result of a login. refused: the service answered it, and trying again at once would not help.
func (s *session) end(f *flight, made *Session, err error, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.flight != f
	if !lost {
		s.flight = nil
	}
	if err != nil {
		f.err = &unsentError{"login", err}
		if refused {
			s.lastErr = err
			s.strike(1)
		}
		return
	}
	if lost {
		return // another login took its place
	}
	before := s.token
	s.token = redact.New(made.ID)
	s.shown = s.secrets.With(shownToken(s.token), shownToken(before))
	s.generation++
	s.valid, s.proven = true, false
	f.sessionToken = sessionToken{s.token, s.generation}
}

// loginGrace is how long the last waiter sees out a login that it has ended. It ends at once, unless a function of the
// user's ignores its context.
const loginGrace = 100 * time.Millisecond

// leave takes one waiter off a login; the last one ends it and sees it out, so that no goroutine stays behind. If a
// function of the user's ignores its context, the login is lost, and the next call begins another one.
func (s *session) leave(f *flight) {
	s.mu.Lock()
	f.waiters--
	f.abandoned = f.waiters == 0
	last := f.abandoned
	s.mu.Unlock()
	if !last {
		return
	}
	f.cancel()
	grace := time.NewTimer(loginGrace)
	defer grace.Stop()
	select {
	case <-f.done:
	case <-grace.C:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.flight == f {
			s.flight = nil
		}
		close(f.lost)
	}
}

// renew takes a refused token out of use, and says whether another try makes sense: not while logins cool down.
func (s *session) renew(generation uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.valid && generation == s.generation {
		s.valid = false
		if !s.proven {
			// The first time may be a session that ended early; from the second on, logging in does not help.
			s.lastErr = errSessionRefused
			s.strike(0)
		}
	}
	return s.valid || s.flight != nil || s.coolingDown() == nil
}

// doubt says whether a newer token may help a call whose refusal may have another cause. The token stays in use for
// others until the new login has worked.
func (s *session) doubt(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuted = slices.DeleteFunc(s.refuted, func(r refutation) bool { return time.Since(r.at) >= maxCoolDown })
	return len(s.refuted) < maxRefuted && !slices.ContainsFunc(s.refuted, func(r refutation) bool { return r.path == path }) &&
		(s.flight != nil || s.coolingDown() == nil)
}

// refutation is a doubtful refusal that met a new token, too, and so was not about the token.
type refutation struct {
	path string
	at   time.Time
}

// maxRefuted bounds the logins that wrong transaction ids cause within maxCoolDown.
const maxRefuted = 5

// refute notes one.
func (s *session) refute(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuted = append(s.refuted, refutation{path, time.Now()})
}

// holds tells whether a token is the newest, and not refused.
func (s *session) holds(generation uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.valid && generation == s.generation
}

// loggedIn tells whether there is a token that was not refused.
func (s *session) loggedIn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.valid
}

// accepted notes that a session works.
func (s *session) accepted(generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if generation == s.generation && !s.proven {
		s.proven, s.strikes = true, 0
	}
}

// strike counts a refusal and sets when the next login may be: 1, 2, 4 to 30 s after it. The lock is held.
func (s *session) strike(atOnce int) {
	s.strikes++
	if n := s.strikes + atOnce - 2; n >= 0 {
		s.notBefore = time.Now().Add(min(time.Second<<min(n, 5), maxCoolDown))
	}
}

// coolingDown is the error for a login that would come too early. The lock is held.
func (s *session) coolingDown() error {
	wait := time.Until(s.notBefore)
	if wait <= 0 {
		return nil
	}
	return &unsentError{"login", &coolingDownError{wait, s.lastErr}}
}

// coolingDownError is printed when somebody asks, so that no code of the user's runs under the lock.
type coolingDownError struct {
	wait time.Duration
	err  error // why the last login was refused
}

func (e *coolingDownError) Error() string {
	return fmt.Sprintf("not tried again for %v: %v", e.wait.Round(time.Millisecond), e.err)
}
func (e *coolingDownError) Unwrap() error { return e.err }

// finder finds what must not be printed.
func (s *session) finder() *redact.Finder {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.shown, s.secrets)
}

// refusedLogin: the service answered the login, and trying it again at once would not help.
func refusedLogin(err error) bool {
	var e *Error
	return errors.As(err, &e) && (errors.Is(err, ErrBadReply) ||
		e.StatusCode >= http.StatusBadRequest && e.StatusCode < http.StatusInternalServerError)
}
