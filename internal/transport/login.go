package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// login manages the session of a client. If there is no valid session, one login runs for all calls that need one, in
// its own goroutine. No caller's deadline ends it, so it can succeed even if it takes longer than any caller waits; it
// ends with the timeout of its attempts, or when the last waiting caller is canceled.
//
// The fields answer one question: does a refused call get another login? A refusal of an earlier generation says nothing
// of the present session, with which the call is sent again. A certain refusal (401) ends the session, and the next call
// logs in; if no call has worked with it, the account itself may be refused, and logins are put off for a while. A
// refusal that may have another cause (403) is worth one login. If the service refuses the new session in the same way,
// before a call of that kind has worked with it, the status is worth no login for half a minute.
type login struct {
	create LogIn
	learn  func(token redact.Secret) // called before a session is used

	mu      sync.Mutex
	session session       // from the last login; generation 0 before the first
	worked  bool          // the service has accepted the session
	pending *pendingLogin // the current login; nil if there is none

	refusals  int               // refused logins and refused new sessions since a session last worked
	notBefore time.Time         // no login before this time
	lastErr   error             // the error of the last refusal
	vain      map[int]time.Time // when a login for a status that may have another cause was last found to be in vain
}

// session is a token and its generation, from 1.
type session struct {
	token      redact.Secret
	generation uint64
	valid      bool // the service has not refused it
	doubted    int  // status that may have refused the one before; 0 if none, or if a call has shown whether it was so
}

// pendingLogin is a login in progress. session and err are set before done is closed.
type pendingLogin struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int
	doubted int // as in session
	session session
	err     error
}

// current returns a session of a later generation than newerThan. It waits for a login if there is none. doubted is the
// status that may have refused the last one, or 0.
func (l *login) current(ctx context.Context, newerThan uint64, doubted int) (session, error) {
	s, f, err := l.join(ctx, newerThan, doubted)
	if f == nil {
		return s, err
	}
	select {
	case <-f.done:
		return f.session, f.err
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		f.waiters--
		// When the last waiter was canceled, the login ends, so that no goroutine stays behind. When it leaves because of its
		// deadline, or of those for whom it works, the login goes on: the next call's deadline is probably as short.
		late := errors.Is(context.Cause(ctx), context.DeadlineExceeded)
		if f.waiters == 0 && l.pending == f && errors.Is(ctx.Err(), context.Canceled) && !late {
			l.pending = nil
			f.cancel()
		}
		return session{}, unsent("waiting for the login", ctx.Err())
	}
}

// join returns the session if it is newer than newerThan. Otherwise it returns the login to wait for, which it starts
// if none is running.
func (l *login) join(ctx context.Context, newerThan uint64, doubted int) (session, *pendingLogin, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session.valid && l.session.generation > newerThan {
		return l.session, nil, nil
	}
	if l.pending == nil {
		if wait := time.Until(l.notBefore); wait > 0 {
			what := fmt.Sprintf("login: not tried again for %v", wait.Round(time.Millisecond))
			return session{}, nil, loginFailed(what, l.lastErr)
		}
		l.pending = &pendingLogin{done: make(chan struct{}), doubted: doubted}
		ctx, l.pending.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go l.run(ctx, l.pending)
	}
	l.pending.waiters++
	return session{}, l.pending, nil
}

// run logs in and sets the result of f.
func (l *login) run(ctx context.Context, f *pendingLogin) {
	defer close(f.done)
	defer f.cancel()
	token, refused, err := l.create(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == f {
		l.pending = nil
	}
	if err != nil {
		f.err = loginFailed("login", err)
		if refused {
			l.countRefusal(true, err)
		}
		return
	}
	l.session, l.worked = session{token, l.session.generation + 1, true, f.doubted}, false
	l.learn(token)
	f.session = l.session
}

// maxCoolDown is the longest cool-down, so that a wrong password neither overloads the service nor locks the account.
const maxCoolDown = 30 * time.Second

// countRefusal counts a refusal and starts a cool-down of 1 s, which doubles with each further refusal up to
// maxCoolDown. If certain is false, there may be another cause, such as a session that ended early, and the first
// refusal starts no cool-down. The caller holds the lock.
func (l *login) countRefusal(certain bool, err error) {
	if certain {
		l.refusals = max(l.refusals, 1)
	}
	if l.refusals > 0 {
		l.notBefore = time.Now().Add(min(time.Second<<min(l.refusals-1, 5), maxCoolDown))
	}
	l.refusals++
	l.lastErr = err
}

// possible reports whether a login is running or may start now. The caller holds the lock.
func (l *login) possible() bool { return l.pending != nil || !time.Now().Before(l.notBefore) }

// renew invalidates a refused session. It reports whether a retry makes sense, which is not the case during a
// cool-down. again reports whether the call got this session after an earlier one was refused.
func (l *login) renew(generation uint64, again bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session.valid && generation == l.session.generation {
		l.session.valid = false
		if !l.worked {
			l.countRefusal(again, fmt.Errorf("the service refused the session that it had just created: %w", ErrUnauthorized))
		}
	}
	return l.session.valid || l.possible()
}

// doubt reports whether a call whose status may also have another cause, such as a missing permission or a wrong
// transaction ID, is worth a login. Other calls keep using the session until that succeeds.
func (l *login) doubt(generation uint64, status int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation == l.session.generation && status == l.session.doubted {
		l.vain[status], l.session.doubted = time.Now(), 0
	}
	return l.pending != nil || l.possible() && time.Since(l.vain[status]) >= maxCoolDown
}

// newest returns the newest session.
func (l *login) newest() session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// accepted records that the service accepted a session for a call. mayRefuse reports whether a status would have left in
// doubt why it is refused.
func (l *login) accepted(generation uint64, mayRefuse func(status int) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != l.session.generation {
		return
	}
	l.worked, l.refusals = true, 0
	if mayRefuse(l.session.doubted) {
		l.session.doubted = 0
	}
}
