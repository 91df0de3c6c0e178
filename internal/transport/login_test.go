package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/transport"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// Any number of calls wait for one login, and go on with its session.
func TestOneLoginForManyCalls(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		s.logIn = func(context.Context, int) (bool, error) {
			time.Sleep(3 * time.Second)
			return false, nil
		}
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				_, err := f.send(aRead)
				assert.NoError(f, err)
				assert.Equal(f, 3*time.Second, time.Since(f.began))
			})
		}
		wg.Wait()
		assert.Equal(f, 1, s.count())
		s.expire()
		f.script = []exchange{after(time.Second, s.answer)}
		for i := range 50 { // refused one after the other, also when the new session is in use already
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				_, err := f.send(aRead)
				assert.NoError(f, err)
			})
		}
		wg.Wait()
		assert.Equal(f, 2, s.count())
	})
}

// A refusal that comes when the next session is in use already ends nothing.
func TestALateRefusalOfAnOldSession(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		f.succeeds(aRead)
		s.expire()
		f.script = []exchange{s.answer, after(5*time.Second, answer(401, "")), s.answer}
		late := make(chan error)
		go func() {
			_, err := f.send(aRead)
			late <- err
		}()
		synctest.Wait()
		f.succeeds(aRead)
		require.NoError(f, <-late)
		assert.Equal(f, 2, s.count())
	})
}

// Several calls whose new session is refused are one refusal of it.
func TestARefusalThatSeveralCallsMeet(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		f.script = []exchange{func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			if r.Header.Get("Cookie") == "authtoken=session-1" {
				return respond(401, ""), nil
			}
			return respond(200, ""), nil
		}}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_, err := f.send(aRead)
				assert.NoError(f, err)
			})
		}
		wg.Wait()
		assert.Equal(f, 2, s.count())
		assert.Equal(f, 2*time.Second, time.Since(f.began))
	})
	withSessions(t, func(f *fixture, s *sessions) { // while the next login is under way, too
		s.logIn = func(context.Context, int) (bool, error) {
			time.Sleep(time.Second)
			return false, nil
		}
		f.script = []exchange{after(time.Second, answer(401, ""))}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { f.fails(aRead) })
		}
		wg.Wait()
		assert.Equal(f, 10, f.count())
		f.heldFor(f.fails(aRead), 401, "not tried again for 1s: GET /acme/v1/things got 401 Unauthorized")
		assert.Equal(f, 2, s.count())
	})
}

// A session that others renewed is used also while logins cool down.
func TestALateRefusalWhileLoginsCoolDown(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		f.succeeds(aRead)
		s.expire()
		f.script = []exchange{s.answer, after(5*time.Second, answer(401, "")), s.answer, s.answer, answer(400, ""), s.answer}
		late := make(chan error)
		go func() {
			_, err := f.send(aRead)
			late <- err
		}()
		time.Sleep(4500 * time.Millisecond)
		f.succeeds(aRead) // with session-2
		s.logIn = func(context.Context, int) (bool, error) { return true, errWrong }
		r := aRead
		r.Rules.MayRefuse = []int{400}
		require.ErrorIs(f, f.fails(r), errWrong)
		require.NoError(f, <-late)
		assert.Equal(f, 5*time.Second, time.Since(f.began))
		assert.Equal(f, 3, s.count())
	})
}

// That an old session worked proves nothing for the new one.
func TestALateSuccessOfAnOldSession(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		f.succeeds(aRead)
		refuses := answer(401, "")
		fails := answer(500, "")
		f.script = []exchange{s.answer, after(5*time.Second, answer(200, "")), refuses, fails, refuses, fails, refuses}
		late := make(chan error)
		go func() {
			_, err := f.send(aRead)
			late <- err
		}()
		synctest.Wait()
		f.fails(aWrite) // session-2 is new, and 500 proves nothing
		require.NoError(f, <-late)
		f.fails(aWrite) // session-2 and session-3 are refused, which are two strikes
		assert.Equal(f, 3, s.count())
		assert.Equal(f, 1, f.fails(aWrite).Attempts)
		assert.EqualError(f, f.fails(aWrite).Cause, "login: not tried again for 1s: the service refused the session it had just made: webdelivery: unauthorized")
	})
}

var errWrong = errors.New("wrong password")

// After a refused login the next one waits for 1, 2, 4 to 30 s. Calls in between fail at once, and say why.
func TestRefusedLoginsCoolDown(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		s.logIn = func(context.Context, int) (bool, error) { return true, errWrong }
		for i, wait := range []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second,
		} {
			failure := f.fails(aWrite)
			require.EqualError(f, failure.Cause, "login: wrong password")
			require.ErrorIs(f, failure, errWrong)
			assert.Equal(f, 1, failure.Attempts)
			assert.Equal(f, transport.NotApplied, failure.Outcome)
			require.Equal(f, i+1, s.count())
			failure = f.fails(aWrite)
			require.EqualError(f, failure.Cause, fmt.Sprintf("login: not tried again for %v: wrong password", wait))
			require.ErrorIs(f, failure, errWrong)
			time.Sleep(wait - 1)
			require.EqualError(f, f.fails(aWrite).Cause, "login: not tried again for 0s: wrong password")
			require.Equal(f, i+1, s.count())
			time.Sleep(time.Nanosecond)
		}
		assert.Zero(f, f.count())
		s.logIn = nil
		f.succeeds(aWrite) // a session that works starts anew
		s.expire()
		s.logIn = func(context.Context, int) (bool, error) { return true, errWrong }
		require.EqualError(f, f.fails(aWrite).Cause, "login: wrong password")
		require.EqualError(f, f.fails(aWrite).Cause, "login: not tried again for 1s: wrong password")
	})
	withSessions(t, func(f *fixture, s *sessions) { // one that was not refused may be tried at once
		s.logIn = func(context.Context, int) (bool, error) { return false, errLost }
		for i := range 5 {
			require.EqualError(f, f.fails(aWrite).Cause, "login: connection lost")
			assert.Equal(f, i+1, s.count())
		}
	})
}

// If a new session is refused, too, logging in does not help. Calls are held, and each probe after a cool-down tries one
// more login.
func TestNewSessionsThatAreRefusedCoolDown(t *testing.T) {
	t.Parallel()
	refuses := answer(401, "")
	withSessions(t, func(f *fixture, s *sessions) {
		for i, wait := range coolDowns {
			failure := f.fails(aRead) // with session-1 and session-2, session-2 and session-3 and so on
			require.NoError(f, failure.Cause)
			assert.Equal(f, 2, failure.Attempts)
			assert.Equal(f, i+2, s.count())
			f.heldFor(f.fails(aRead), 401, fmt.Sprintf("not tried again for %v: GET /acme/v1/things got 401 Unauthorized", wait))
			assert.Equal(f, 2*i+2, f.count())
			time.Sleep(wait)
		}
		f.fails(aRead)
		f.fails(getOf("/elsewhere"))
		f.heldFor(f.fails(getOf("/anywhere")), 401, "not tried again for 1s: GET /acme/v1/elsewhere got 401 Unauthorized")
		f.script = []exchange{s.answer}
		time.Sleep(time.Second)
		f.succeeds(getOf("/anywhere"))
		f.heldFor(f.fails(aRead), 401, "not tried again for 29s: GET /acme/v1/things got 401 Unauthorized")
	}, refuses)
	for status, proves := range map[int]bool{200: true, 404: true, 499: true, 500: false, 503: false} {
		withSessions(t, func(f *fixture, s *sessions) { // what proves that a session works
			r := aWrite
			for i := range 4 {
				f.script = []exchange{answer(status, "")}
				_, _ = f.send(r)
				f.script = []exchange{answer(401, ""), answer(status, "")}
				f.seen = nil
				_, _ = f.send(r)
				f.seen = nil
				if proves {
					require.Equal(f, i+2, s.count(), "%d", status)
				}
			}
			if !proves {
				assert.Less(f, s.count(), 4, "%d", status)
			}
		})
	}
	withSessions(t, func(f *fixture, s *sessions) { // one that worked proves nothing for the next
		f.succeeds(aRead)
		f.script = []exchange{refuses}
		f.fails(aRead) // session-2 is refused, and was new
		assert.Equal(f, 2, s.count())
		assert.Zero(f, f.fails(aRead).Attempts)
	})
	withSessions(t, func(f *fixture, s *sessions) { // an attempt without a whole response proves nothing
		_, _ = f.send(aWrite)
		f.script, f.seen = []exchange{refuses}, nil
		f.fails(aRead)
		f.fails(aRead)
		assert.Equal(f, 2, s.count())
	}, cutBody(200, ""))
}

// A 403 that the rules take for a refusal may also be a missing permission. It causes one login and one more attempt, and
// then no login for 30 s. The session stays in use, and no login cools down.
func TestAMissingPermissionWithSessions(t *testing.T) {
	t.Parallel()
	forbidden := func(path string) transport.Request {
		r := aPurge()
		r.Path = path
		return r
	}
	withSessions(t, func(f *fixture, s *sessions) {
		f.script = []exchange{func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				return after(time.Second, answer(403, ""))(r)
			}
			return s.answer(r)
		}}
		f.succeeds(aRead)
		for range 3 {
			for _, failure := range f.together(50, forbidden("/purge")) {
				assert.True(f, failure.Unauthorized)
				assert.Equal(f, 403, failure.Status)
				assert.NoError(f, failure.Cause)
			}
			f.succeeds(aRead)
			assert.Equal(f, 2, s.count())
		}
		for i := range 10 {
			f.fails(forbidden(fmt.Sprint("/", i)))
			f.succeeds(aRead)
		}
		assert.Equal(f, 6, s.count(), "5 within 30 s")
		time.Sleep(30 * time.Second)
		assert.Equal(f, 2, f.fails(forbidden("/purge")).Attempts)
		f.succeeds(aRead)
		assert.Equal(f, 7, s.count())
	})
	withSessions(t, func(f *fixture, s *sessions) { // a session that has ended, and 50 purges
		f.script = []exchange{func(r *http.Request) (*http.Response, error) {
			resp, err := s.answer(r)
			if resp.StatusCode == 401 {
				resp = respond(403, "")
			}
			return resp, err
		}}
		f.succeeds(aRead)
		s.expire()
		assert.Equal(f, make([]*transport.Failure, 50), f.together(50, forbidden("/purge")))
		assert.Equal(f, 2, s.count())
	})
}

// Who waits for a login does not end it for the others by leaving. The last one does, and sees it out.
func TestLeavingALogin(t *testing.T) {
	t.Parallel()
	// obedient ends with its context.
	obedient := func(ctx context.Context, _ int) (bool, error) {
		select {
		case <-time.After(10 * time.Second):
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	withSessions(t, func(f *fixture, s *sessions) {
		s.logIn = obedient
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(f.Context(), time.Duration(i+1)*5*time.Second)
				defer cancel()
				_, err := f.transport.Send(ctx, aRead)
				if i == 0 {
					assert.ErrorIs(f, err, context.DeadlineExceeded)
					assert.Equal(f, 5*time.Second, time.Since(f.began))
					assert.EqualError(f, errors.Unwrap(err), "waiting for the login: context deadline exceeded")
				}
				if i == 2 {
					assert.NoError(f, err)
					assert.Equal(f, 10*time.Second, time.Since(f.began))
				}
			})
		}
		wg.Wait()
		assert.Equal(f, 1, s.count())
	})
	withSessions(t, func(f *fixture, s *sessions) { // the last one
		s.logIn = obedient
		for range 2 {
			began := time.Now()
			ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
			failure := f.failsWith(ctx, aRead)
			require.ErrorIs(f, failure, context.DeadlineExceeded)
			assert.Equal(f, transport.NotApplied, failure.Outcome)
			assert.Equal(f, 5*time.Second, time.Since(began))
			cancel()
		}
		assert.Equal(f, 2, s.count(), "each of them began one")
		s.logIn = nil
		f.succeeds(aRead)
	})
	withSessions(t, func(f *fixture, s *sessions) { // a login that ends soon after is seen out
		ended := false
		s.logIn = func(ctx context.Context, n int) (bool, error) {
			if n == 1 {
				<-ctx.Done()
				time.Sleep(99 * time.Millisecond)
				ended = true
			}
			return false, nil
		}
		ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
		defer cancel()
		f.failsWith(ctx, aRead)
		assert.True(f, ended)
		assert.Equal(f, 5*time.Second+99*time.Millisecond, time.Since(f.began))
		f.succeeds(aRead)
		assert.Equal(f, []string{"authtoken=session-1"}, f.cookies(), "it brought a session all the same")
	})
}

// A login whose function ignores its context is lost after 100 ms. The next call begins another one, and the result of
// the lost login is not used.
func TestALostLogin(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		s.logIn = func(_ context.Context, n int) (bool, error) {
			if n == 1 {
				time.Sleep(time.Minute)
			}
			return false, nil
		}
		ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
		defer cancel()
		next := make(chan error)
		go func() { // comes while the last one leaves: it may not join, and does not wait for the minute
			time.Sleep(5*time.Second + 50*time.Millisecond)
			_, err := f.send(aRead)
			assert.Equal(f, 5*time.Second+100*time.Millisecond, time.Since(f.began))
			next <- err
		}()
		go func() { // the same, and leaves before
			time.Sleep(5*time.Second + 50*time.Millisecond)
			ctx, cancel := context.WithTimeout(f.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := f.transport.Send(ctx, aRead)
			assert.ErrorIs(f, err, context.DeadlineExceeded)
			assert.Equal(f, 5*time.Second+70*time.Millisecond, time.Since(f.began))
			next <- nil
		}()
		f.failsWith(ctx, aRead)
		assert.Equal(f, 5*time.Second+100*time.Millisecond, time.Since(f.began))
		require.NoError(f, <-next)
		require.NoError(f, <-next)
		assert.Equal(f, 2, s.count())
		time.Sleep(2 * time.Minute)
		f.succeeds(aRead)
		assert.Equal(f, []string{"authtoken=session-2", "authtoken=session-2"}, f.cookies())
	})
	withSessions(t, func(f *fixture, s *sessions) { // it brings an error: the one under way is not disturbed
		s.logIn = func(_ context.Context, n int) (bool, error) {
			time.Sleep(time.Duration(n) * time.Minute)
			if n == 1 {
				return true, errWrong
			}
			return false, nil
		}
		ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
		defer cancel()
		f.failsWith(ctx, aRead)
		f.succeeds(aRead)
		assert.Equal(f, 2, s.count())
		assert.Equal(f, 2*time.Minute+5*time.Second+100*time.Millisecond, time.Since(f.began))
		s.expire()
		s.logIn = nil
		f.succeeds(aRead)
		assert.Equal(f, 3, s.count())
	})
	withSessions(t, func(f *fixture, s *sessions) { // an abandoned login that ends in time makes way for another
		s.logIn = func(ctx context.Context, n int) (bool, error) {
			if n == 1 {
				<-ctx.Done()
				time.Sleep(90 * time.Millisecond)
				return false, errLost
			}
			return false, nil
		}
		next := make(chan error)
		go func() {
			time.Sleep(5*time.Second + 50*time.Millisecond)
			_, err := f.send(aRead)
			assert.Equal(f, 5*time.Second+90*time.Millisecond, time.Since(f.began))
			next <- err
		}()
		ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
		defer cancel()
		f.failsWith(ctx, aRead)
		require.NoError(f, <-next)
		assert.Equal(f, 2, s.count())
	})
}

type contextKey struct{}

// A login has the values of the caller's context and not its end, and its own context ends with it.
func TestTheContextOfALogin(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		var ctx context.Context
		s.logIn = func(c context.Context, _ int) (bool, error) {
			ctx = c
			_, ends := c.Deadline()
			assert.False(f, ends)
			assert.Equal(f, "value", c.Value(contextKey{}))
			return false, c.Err()
		}
		caller, cancel := context.WithTimeout(context.WithValue(f.Context(), contextKey{}, "value"), time.Hour)
		defer cancel()
		require.NoError(f, f.transport.LogIn(caller, aWrite))
		synctest.Wait()
		require.ErrorIs(f, ctx.Err(), context.Canceled)
	})
}

// A login that panics or ends its goroutine fails the calls that wait for it, and no others.
func TestALoginThatPanics(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		does  func()
		cause string
		is    error
	}{
		{"panics", func() { panic(errLost) }, "connection lost", errLost},
		{"ends its goroutine", runtime.Goexit, "runtime.Goexit", usercode.ErrGoexit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			withSessions(t, func(f *fixture, s *sessions) {
				s.logIn = func(_ context.Context, n int) (bool, error) {
					if n == 1 {
						tt.does()
					}
					return false, nil
				}
				failure := f.fails(aRead)
				assert.True(f, strings.HasPrefix(failure.Cause.Error(), "login: "))
				assert.Contains(f, failure.Cause.Error(), tt.cause)
				require.ErrorIs(f, failure, tt.is)
				f.succeeds(aRead)
				assert.Equal(f, 2, s.count())
			})
		})
	}
}

// A call from within a login would wait for itself: it fails. With another context it may wait, and one that needs no
// session goes on.
func TestALoginWithinALogin(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		s.logIn = func(ctx context.Context, _ int) (bool, error) {
			failure := f.failsWith(ctx, aRead)
			assert.EqualError(f, failure.Cause, "login: called from within the login that the call would wait for")
			assert.Equal(f, 1, failure.Attempts)
			assert.Equal(f, transport.NotApplied, failure.Outcome)
			_, err := f.transport.Send(ctx, aLogin)
			return false, err
		}
		f.script = []exchange{answer(200, "")}
		f.succeeds(aRead)
		assert.Equal(f, 2, f.count())
		assert.Equal(f, 1, s.count())
	})
	withSessions(t, func(f *fixture, s *sessions) { // the context of an earlier login is no reason
		var kept context.Context
		s.logIn = func(ctx context.Context, _ int) (bool, error) {
			kept = context.WithoutCancel(ctx)
			return false, nil
		}
		f.succeeds(aRead)
		s.expire()
		_, err := f.transport.Send(kept, aRead)
		require.NoError(f, err)
		assert.Equal(f, 2, s.count())
	})
}
