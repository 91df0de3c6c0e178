package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// login manages the session of a client. Any number of calls ask it for the token. If there is none, one login runs for
// all of them, in a goroutine of its own: no deadline of a caller ends it, so it succeeds even if it takes longer than
// every caller waits. The time limit of its attempts bounds it, and it ends when the last caller is canceled. Each
// session has a generation: a call that learns late that its session was refused causes no login if another call has
// renewed the session meanwhile.
type login struct {
	create LogIn
	learn  func(token redact.Secret) // before a session is used

	mu      sync.Mutex
	session session // of the newest login; generation 0 before the first
	valid   bool    // it was not refused yet
	worked  bool    // the service has accepted it
	flight  *flight // the login under way; nil without one

	strikes   int       // refused logins and refused new sessions since a session last worked
	notBefore time.Time // no login before this
	lastErr   error     // the last refusal
	undoubted time.Time // no login because of a doubtful refusal before this
}

// session is a token with its generation, from 1.
type session struct {
	token      redact.Secret
	generation uint64
}

// flight is a login under way. Its result is written before done is closed.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int
	session session
	err     error
}

// current returns the session, after a login if there is none that is newer than a generation (0: any).
func (l *login) current(ctx context.Context, newerThan uint64) (session, error) {
	s, f, err := l.board(ctx, newerThan)
	if f == nil {
		return s, err
	}
	select {
	case <-f.done:
		return f.session, f.err
	case <-ctx.Done():
		l.leave(f, ctx.Err())
		return session{}, &unsentError{what: "waiting for the login", err: ctx.Err()}
	}
}

// board returns the session if there is one. Otherwise it returns the login to wait for, and begins one if none is under
// way.
func (l *login) board(ctx context.Context, newerThan uint64) (session, *flight, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.valid && l.session.generation > newerThan {
		return l.session, nil, nil
	}
	if l.flight == nil {
		if wait := time.Until(l.notBefore); wait > 0 {
			what := fmt.Sprintf("login: not tried again for %v", wait.Round(time.Millisecond))
			return session{}, nil, &unsentError{what: what, err: l.lastErr, login: true}
		}
		l.flight = &flight{done: make(chan struct{})}
		ctx, l.flight.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go l.run(ctx, l.flight)
	}
	l.flight.waiters++
	return session{}, l.flight, nil
}

// leave removes a waiter from a login. If nobody waits any more, a deadline lets the login go on, because the next call
// probably has as short a one. After a cancellation it ends, so that no goroutine stays behind.
func (l *login) leave(f *flight, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.waiters--
	if f.waiters == 0 && l.flight == f && errors.Is(why, context.Canceled) {
		l.flight = nil
		f.cancel()
	}
}

// run logs in.
func (l *login) run(ctx context.Context, f *flight) {
	defer close(f.done)
	defer f.cancel()
	token, refused, err := l.create(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flight == f {
		l.flight = nil
	}
	if err != nil {
		f.err = loginFailed(err)
		if refused {
			l.strike(true, err)
		}
		return
	}
	l.session = session{token, l.session.generation + 1}
	l.valid, l.worked = true, false
	l.learn(token)
	f.session = l.session
}

// maxCoolDown is the longest cool-down, so that a wrong password neither overloads the service nor locks the account.
const maxCoolDown = 30 * time.Second

// strike counts a refusal and starts a cool-down: 1 s, then twice as long for each further refusal, up to maxCoolDown. If
// the refusal may have another cause, as when a session has ended early, the first one starts none. The lock is held.
func (l *login) strike(certain bool, err error) {
	if certain {
		l.strikes = max(l.strikes, 1)
	}
	if l.strikes > 0 {
		l.notBefore = time.Now().Add(min(time.Second<<min(l.strikes-1, 5), maxCoolDown))
	}
	l.strikes++
	l.lastErr = err
}

// possible reports whether another session can be had now. The lock is held.
func (l *login) possible() bool { return l.flight != nil || !time.Now().Before(l.notBefore) }

// renew takes a refused session out of use. It returns whether a retry makes sense, which is not so while logins cool
// down. again: the call has just got this session, after another one was refused.
func (l *login) renew(generation uint64, again bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.valid && generation == l.session.generation {
		l.valid = false
		if !l.worked {
			l.strike(again, errSessionRefused)
		}
	}
	return l.valid || l.possible()
}

// doubt returns whether a newer session may help a call whose refusal may have another cause. Other calls go on using
// the session until the new login has succeeded.
func (l *login) doubt() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !time.Now().Before(l.undoubted) && l.possible()
}

// refute notes that a doubtful refusal came again with a new session, so it was not about the session. A missing
// permission or a wrong transaction id then causes no login for a while.
func (l *login) refute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.undoubted = time.Now().Add(maxCoolDown)
}

// newest returns the newest session, and whether it was not refused.
func (l *login) newest() (s session, valid bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.valid
}

// accepted notes that a session works.
func (l *login) accepted(generation uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation == l.session.generation {
		l.worked, l.strikes = true, 0
	}
}
