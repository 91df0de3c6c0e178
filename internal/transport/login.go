package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/pace"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// login manages the session of a client. Any number of calls ask it for the token. If there is none, one login runs for
// all of them. Each token has a generation. So a call that learns late that its token was refused causes no login if
// another call has renewed the token meanwhile. The login has a context of its own: a caller whose context ends does
// not cancel it for the others, but the last one does.
type login struct {
	create   LogIn
	shownAs  func(token redact.Secret) redact.Hidden // how texts contain a token
	password *redact.Finder                          // finds the password

	mu         sync.Mutex
	token      redact.Secret  // of the newest login
	shown      *redact.Finder // also finds the token and the one before, which late responses may contain; nil before the first
	generation uint64         // of token, from 1
	valid      bool           // token was not refused yet
	acceptedAt time.Time      // when the service last accepted token; zero before
	refused    uint64         // newest generation that a final refusal was about; 0 without one
	flight     *flight

	coolDown // refused logins and refused new sessions since a session last worked
	refuted  []refutation
}

// flight is a login under way. Its result is written before done is closed.
type flight struct {
	done      chan struct{}
	lost      chan struct{} // closed when no call waits for its end any more, although it has not ended
	cancel    context.CancelFunc
	waiters   int
	abandoned bool // the last waiter has left
	token     sessionToken
	err       error
}

// flightKey is the key of the flight in the context of a login. A log Handler or a transport that calls the client with
// this context would wait for the login that waits for them.
type flightKey struct{}

var errWithinLogin = errors.New("called from within the login that the call would wait for")

// sessionToken is a token with its generation, from 1.
type sessionToken struct {
	token      redact.Secret
	generation uint64
}

// errSessionRefused: the login worked, the session does not.
var errSessionRefused = fmt.Errorf("the service refused the session it had just made: %w", ErrUnauthorized)

// current returns the token, after a login if there is none that is newer than a generation (0: any).
func (l *login) current(ctx context.Context, newerThan uint64) (sessionToken, error) {
	// The context may be the user's, and its methods may panic or block. So they are called without a lock, and before
	// this call counts as a waiter.
	within, _ := ctx.Value(flightKey{}).(*flight)
	left := ctx.Done()
	for {
		token, f, joined, err := l.board(ctx, newerThan, within)
		if f == nil {
			return token, err
		}
		select {
		case <-f.done:
			if joined {
				return f.token, f.err
			}
		case <-f.lost: // only after the last of those who joined it has left
		case <-left:
			if joined {
				l.leave(f)
			}
			return sessionToken{}, &unsentError{"waiting for the login", pace.Ended(ctx)}
		}
	}
}

// board returns the token if there is one. Otherwise it returns the login to wait for, and begins one if none is under
// way. joined: the caller gets the result of that login. Otherwise that login only has to end before the next one
// begins.
func (l *login) board(ctx context.Context, newerThan uint64, within *flight) (token sessionToken, f *flight, joined bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.valid && l.generation > newerThan {
		return sessionToken{l.token, l.generation}, nil, false, nil
	}
	if l.flight == nil {
		if err := l.coolingDown(); err != nil {
			return token, nil, false, err
		}
		l.begin(ctx)
	}
	f = l.flight
	if within == f {
		return token, nil, false, &unsentError{"login", errWithinLogin}
	}
	if !f.abandoned {
		f.waiters++
	}
	return token, f, !f.abandoned, nil
}

// begin starts a login. The lock is held.
func (l *login) begin(ctx context.Context) {
	f := &flight{done: make(chan struct{}), lost: make(chan struct{})}
	ctx, f.cancel = context.WithCancel(context.WithValue(context.WithoutCancel(ctx), flightKey{}, f))
	cancel := f.cancel
	l.flight = f
	go func() {
		defer close(f.done)
		defer cancel()
		var token redact.Secret
		refused := false
		usercode.Run(func() (err error) {
			token, refused, err = l.create(ctx)
			return err
		}, func(err error) { l.end(f, token, err, refused) })
	}()
}

// end notes the result of a login. refused: the service refused it, and a retry at once would not help.
func (l *login) end(f *flight, token redact.Secret, err error, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.flight != f
	if !lost {
		l.flight = nil
	}
	if err != nil {
		f.err = loginFailed(err)
		if refused {
			l.strike(1, err)
		}
		return
	}
	if lost {
		return // another login took its place
	}
	before := l.token
	l.token = token
	l.shown = l.password.With(l.shownAs(l.token), l.shownAs(before))
	l.generation++
	l.valid, l.acceptedAt = true, time.Time{}
	f.token = sessionToken{l.token, l.generation}
}

// loginGrace is how long the last waiter waits for the end of a login that it has canceled. The login ends at once,
// unless a function of the user's ignores its context.
const loginGrace = 100 * time.Millisecond

// leave removes one waiter from a login. The last one cancels it and waits for its end, so that no goroutine stays
// behind. If a function of the user's ignores its context, the login is lost, and the next call begins another one.
func (l *login) leave(f *flight) {
	l.mu.Lock()
	f.waiters--
	f.abandoned = f.waiters == 0
	last := f.abandoned
	l.mu.Unlock()
	if !last {
		return
	}
	f.cancel()
	grace := time.NewTimer(loginGrace)
	defer grace.Stop()
	select {
	case <-f.done:
	case <-grace.C:
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.flight == f {
			l.flight = nil
		}
		close(f.lost)
	}
}

// renew takes a refused token out of use. It returns whether a retry makes sense, which is not so while logins cool
// down. suspect: as for final; the place or the credential cools down already.
func (l *login) renew(generation uint64, suspect bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.valid && generation == l.generation {
		l.valid = false
		if l.acceptedAt.IsZero() && !suspect {
			// The first time, the session may have ended early. From the second time on, a login does not help.
			l.strike(0, errSessionRefused)
		}
	}
	return l.valid || l.flight != nil || l.coolingDown() == nil
}

// final reports whether a 401 with a token is a verdict, because another login would not help. renewed: the call got the
// token after another one was refused. suspect: an earlier verdict speaks against sessions where the call goes. Then the
// 401 is a verdict if the token was not used before, or if the service has accepted it elsewhere within maxCoolDown.
func (l *login) final(generation uint64, renewed, suspect bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation != l.generation {
		return false // another call has renewed the token already
	}
	unused := l.acceptedAt.IsZero() && generation > l.refused
	alive := time.Since(l.acceptedAt) < maxCoolDown
	verdict := renewed || suspect && (unused || alive)
	if verdict {
		l.refused = generation
	}
	return verdict
}

// doubt returns whether a newer token may help a call whose refusal may have another cause. Other calls go on using the
// token until the new login has succeeded.
func (l *login) doubt(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuted = slices.DeleteFunc(l.refuted, func(r refutation) bool { return time.Since(r.at) >= maxCoolDown })
	return len(l.refuted) < maxRefuted && !slices.ContainsFunc(l.refuted, func(r refutation) bool { return r.path == path }) &&
		(l.flight != nil || l.coolingDown() == nil)
}

// refutation is a doubtful refusal that came again with a new token, so it was not about the token.
type refutation struct {
	path string
	at   time.Time
}

// maxRefuted bounds the logins that wrong transaction ids and missing permissions cause within maxCoolDown.
const maxRefuted = 5

// refute notes one. Several calls of one path that meet it together count once.
func (l *login) refute(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !slices.ContainsFunc(l.refuted, func(r refutation) bool { return r.path == path && now.Sub(r.at) < maxCoolDown }) {
		l.refuted = append(l.refuted, refutation{path, now})
	}
}

// holds reports whether a token is the newest, and was not refused.
func (l *login) holds(generation uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.valid && generation == l.generation
}

// loggedIn reports whether there is a token that was not refused.
func (l *login) loggedIn() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.valid
}

// accepted notes that a session works.
func (l *login) accepted(generation uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if generation == l.generation {
		l.acceptedAt, l.strikes = time.Now(), 0
	}
}

// coolingDown is the error for a login that would come too early. The lock is held.
func (l *login) coolingDown() error {
	if early := l.cooling(); early != nil {
		return loginFailed(early)
	}
	return nil
}

// finder returns what finds the secrets in texts.
func (l *login) finder() *redact.Finder {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.shown, l.password)
}
