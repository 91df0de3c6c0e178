package transport_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/pace"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// lender is a limiter of the user's that records what becomes of its leases.
type lender struct {
	acquire func(ctx context.Context, n int) error // what Acquire does first; nil: nothing
	done    func()                                 // what Done does after it was recorded; nil: nothing
	expires func(n int) time.Duration              // of a lease from now on; nil, or 0: it does not
	failing error                                  // what Pause returns

	mu     sync.Mutex
	lent   []time.Time
	ends   []ending
	pauses []time.Duration
}

// ending is the end of a lease, both moments counted from its beginning.
type ending struct{ at, arrived time.Duration }

// unsent stands for the zero time.
const unsent = time.Duration(-1)

func (l *lender) limiter() *transport.Limiter {
	return &transport.Limiter{
		Acquire: func(ctx context.Context) (transport.Lease, error) {
			l.mu.Lock()
			l.lent = append(l.lent, time.Now())
			n := len(l.lent)
			l.mu.Unlock()
			if l.acquire != nil {
				if err := l.acquire(ctx, n); err != nil {
					return transport.Lease{}, err
				}
			}
			began := time.Now()
			lease := transport.Lease{Done: func(_ context.Context, arrived time.Time) {
				l.mu.Lock()
				end := ending{time.Since(began), unsent}
				if !arrived.IsZero() {
					end.arrived = arrived.Sub(began)
				}
				l.ends = append(l.ends, end)
				l.mu.Unlock()
				if l.done != nil {
					l.done()
				}
			}}
			if l.expires != nil && l.expires(n) != 0 {
				lease.Expires = began.Add(l.expires(n))
			}
			return lease, nil
		},
		Pause: func(_ context.Context, d time.Duration) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.pauses = append(l.pauses, d)
			return l.failing
		},
	}
}

func (l *lender) endings() []ending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]ending(nil), l.ends...)
}

func (l *lender) paused() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Duration(nil), l.pauses...)
}

func (l *lender) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lent)
}

// gate is one over a pace that waits for nothing until a request is refused.
func (l *lender) gate() *transport.Gate {
	return transport.NewGate(pace.NewPace(), l.limiter(), 5*time.Minute)
}

func limited(g *transport.Gate) transport.Request {
	r := aRepeated
	r.Gate = g
	return r
}

// Each attempt of a limited request has a permit of its own, and net/http cannot send it again by itself.
func TestEachAttemptNeedsAPermit(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		l := &lender{acquire: func(context.Context, int) error {
			time.Sleep(3 * time.Second)
			return nil
		}}
		f.succeeds(limited(l.gate()))
		assert.Equal(f, []ending{{0, 0}, {0, 0}, {0, 0}}, l.endings())
		for i, r := range f.requests() {
			assert.Equal(f, time.Duration(i+1)*3*time.Second, r.at.Truncate(time.Second))
			assert.False(f, r.hasGetBody)
		}
		assert.Contains(f, f.log.String(), "status=200 duration=0s attempt=3 wait=3s bytes=0", "the wait is no part of the duration")
	}, answer(500, ""), answer(408, ""), answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // without a limiter, too, and without a Done
		gate := transport.NewGate(pace.New(), nil, time.Minute)
		for range 3 {
			f.succeeds(limited(gate))
		}
		assert.Equal(f, 1050*time.Millisecond, time.Since(f.began), "two places, each free 1.05 s after an arrival")
		bare := transport.NewGate(pace.NewPace(), &transport.Limiter{Acquire: func(context.Context) (transport.Lease, error) { return transport.Lease{}, nil }}, time.Minute)
		f.succeeds(limited(bare))
	}, answer(200, ""))
}

// A permit that is not to be had fails the call, and nothing is sent.
func TestNoPermit(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		l := &lender{acquire: func(_ context.Context, n int) error {
			if n <= 3 {
				return errLost
			}
			return nil
		}}
		gate := transport.NewGate(pace.New(), l.limiter(), time.Minute)
		for range 3 {
			failure := f.fails(limited(gate))
			require.EqualError(f, failure.Cause, "waiting for a purge permit: connection lost")
			require.ErrorIs(f, failure, errLost)
			assert.Equal(f, transport.NotApplied, failure.Outcome)
			assert.Equal(f, 1, failure.Attempts)
			assert.False(f, failure.TooFast)
		}
		assert.Zero(f, f.count())
		assert.Empty(f, l.endings())
		f.succeeds(limited(gate))
		assert.Zero(f, time.Since(f.began), "the places were given back")
	}, answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // a limiter that panics gives its place back, too
		l := &lender{acquire: func(_ context.Context, n int) error {
			if n <= 3 {
				panic("limiter")
			}
			return nil
		}}
		gate := transport.NewGate(pace.New(), l.limiter(), time.Minute)
		for range 3 {
			assert.PanicsWithValue(f, "limiter", func() { _, _ = f.send(limited(gate)) })
		}
		f.succeeds(limited(gate))
		assert.Zero(f, time.Since(f.began))
	}, answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // the caller leaves while a pace has no place
		gate := transport.NewGate(pace.New(), nil, time.Minute)
		for range 2 {
			f.succeeds(limited(gate))
		}
		ctx, cancel := context.WithCancel(f.Context())
		time.AfterFunc(time.Second, cancel)
		failure := f.failsWith(ctx, limited(gate))
		require.EqualError(f, failure.Cause, "waiting for a purge permit: context canceled")
		assert.Equal(f, time.Second, time.Since(f.began))
		short, cancel := context.WithTimeout(f.Context(), 10*time.Millisecond)
		defer cancel()
		failure = f.failsWith(short, limited(gate))
		require.ErrorIs(f, failure, context.DeadlineExceeded)
		assert.Equal(f, time.Second, time.Since(f.began), "known at once")
		assert.Equal(f, 2, f.count())
	}, answer(200, ""))
}

// A session comes before a permit, so that no login takes the permit's time.
func TestTheSessionComesBeforeThePermit(t *testing.T) {
	t.Parallel()
	withSessions(t, func(f *fixture, s *sessions) {
		s.logIn = func(context.Context, int) (bool, error) {
			time.Sleep(3 * time.Second)
			return false, nil
		}
		l := &lender{}
		f.succeeds(limited(l.gate()))
		assert.Equal(f, 3*time.Second, l.lent[0].Sub(f.began))
		assert.Equal(f, []ending{{0, 0}}, l.endings())
	})
	withSessions(t, func(f *fixture, s *sessions) { // no login, no permit
		s.logIn = func(context.Context, int) (bool, error) { return false, errLost }
		l := &lender{}
		require.ErrorIs(f, f.fails(limited(l.gate())), errLost)
		assert.Zero(f, l.count())
	})
	withSessions(t, func(f *fixture, s *sessions) { // the session ends during the wait for the permit
		f.succeeds(aRead)
		l := &lender{acquire: func(_ context.Context, n int) error {
			if n == 1 {
				s.expire()
				f.succeeds(aRead)
			}
			return nil
		}}
		f.succeeds(limited(l.gate()))
		assert.Equal(f, []ending{{0, unsent}, {0, 0}}, l.endings())
		assert.Equal(f, []string{"authtoken=session-1", "authtoken=session-1", "authtoken=session-2", "authtoken=session-2"}, f.cookies())
	})
	withSessions(t, func(f *fixture, s *sessions) { // no login after the wait, and no permit after the session has ended
		for _, first := range []error{nil, errBroken} {
			s.logIn = nil
			f.succeeds(aRead)
			f.log.Reset()
			l := &lender{acquire: func(context.Context, int) error {
				time.Sleep(3 * time.Second)
				s.expire()
				s.logIn = func(context.Context, int) (bool, error) { return false, errLost }
				f.fails(aRead)
				return first
			}}
			failure := f.fails(limited(l.gate()))
			if first == nil {
				require.EqualError(f, failure.Cause, "login: connection lost")
			} else {
				require.EqualError(f, failure.Cause, "waiting for a purge permit: broken")
			}
			assert.Equal(f, 1, l.count())
			assert.Contains(f, f.log.String(), "method=POST path=/acme/v1/things status=0 duration=0s attempt=1 wait=3s")
		}
	})
	withSessions(t, func(f *fixture, s *sessions) { // a session refused in between is as bad as none
		f.succeeds(aRead)
		l := &lender{acquire: func(_ context.Context, n int) error {
			if n == 1 {
				s.expire()
				s.logIn = func(context.Context, int) (bool, error) { return false, errLost }
				f.fails(aRead)
				s.logIn = nil
			}
			return nil
		}}
		f.succeeds(limited(l.gate()))
		assert.Equal(f, []ending{{0, unsent}, {0, 0}}, l.endings())
	})
}

// What a caller acquired before there was a request is the permit of the first attempt; of a later one it is not.
func TestAPermitOfTheCaller(t *testing.T) {
	t.Parallel()
	acquired := func(f *fixture, g *transport.Gate) transport.Request {
		r := limited(g)
		var err error
		r.Permit, err = g.Acquire(f.Context())
		require.NoError(f, err)
		return r
	}
	inFakeTime(t, nil, func(f *fixture) {
		l := &lender{}
		r := acquired(f, l.gate())
		time.Sleep(3 * time.Second)
		f.succeeds(r)
		assert.Equal(f, []ending{{3 * time.Second, 3 * time.Second}}, l.endings())
		r.Permit.End(f.Context(), time.Time{})
		assert.Len(f, l.endings(), 1, "it has ended")
	}, answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // a second attempt has another one
		l := &lender{}
		f.succeeds(acquired(f, l.gate()))
		assert.Equal(f, []ending{{0, 0}, {0, 0}}, l.endings())
	}, answer(500, ""), answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // there is no attempt
		l := &lender{}
		r := acquired(f, l.gate())
		r.Path = "/%zz"
		_, err := f.send(r)
		require.Error(f, err)
		assert.Equal(f, []ending{{0, unsent}}, l.endings())
	}, answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // the attempt does not get so far
		l := &lender{}
		r := acquired(f, l.gate())
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		require.ErrorIs(f, f.failsWith(ctx, r), context.Canceled)
		assert.Equal(f, []ending{{0, unsent}}, l.endings())
		assert.Zero(f, f.count())
	}, answer(200, ""))
	withSessions(t, func(f *fixture, s *sessions) { // with a session it is used, and without one given back
		for _, want := range [][]ending{{{0, unsent}, {0, 0}}, {{0, 0}}} {
			l := &lender{}
			f.succeeds(acquired(f, l.gate()))
			assert.Equal(f, want, l.endings())
		}
		assert.Equal(f, 1, s.count())
	})
}

// A permit that has expired sends nothing; the next attempt gets another one.
func TestAnExpiredPermit(t *testing.T) {
	t.Parallel()
	const expired = "the purge permit expired before the connection was ready"
	slow := func(d time.Duration, reached *bool) exchange { // to connect
		return func(r *http.Request) (*http.Response, error) {
			time.Sleep(d)
			return connected(func(r *http.Request) (*http.Response, error) {
				*reached = true
				return answer(200, "")(r)
			})(r)
		}
	}
	for _, tt := range []struct {
		name    string
		expires time.Duration // after the permit, of the first one
		connect time.Duration
		sent    int
		ends    []ending
	}{
		{"it does not expire", 0, time.Second, 1, []ending{{time.Second, time.Second}}},
		{"it has expired", -1, 0, 1, []ending{{0, unsent}, {0, 0}}},
		{"it expires after the connection", time.Second + 1, time.Second, 1, []ending{{time.Second, time.Second}}},
		{"it expires with the connection", time.Second, time.Second, 2, []ending{{time.Second, unsent}, {time.Second, time.Second}}},
		{"it expires before the connection", 1, time.Second, 2, []ending{{time.Second, unsent}, {time.Second, time.Second}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				l := &lender{expires: func(n int) time.Duration {
					if n > 1 {
						return 0
					}
					return tt.expires
				}}
				var reached bool
				f.script = []exchange{slow(tt.connect, &reached)}
				f.succeeds(limited(l.gate()))
				assert.True(f, reached)
				assert.Equal(f, tt.sent, f.count())
				assert.Equal(f, tt.ends, l.endings())
			})
			if tt.expires == 0 || tt.sent+len(tt.ends) == 2 {
				return
			}
			inFakeTime(t, nil, func(f *fixture) { // it always does
				l := &lender{expires: func(int) time.Duration { return tt.expires }}
				var reached bool
				f.script = []exchange{slow(tt.connect, &reached)}
				failure := f.fails(limited(l.gate()))
				require.EqualError(f, failure.Cause, expired)
				assert.Equal(f, transport.NotApplied, failure.Outcome)
				assert.Equal(f, 4, failure.Attempts)
				assert.False(f, reached, "nothing was sent")
				assert.Len(f, l.endings(), 4)
			})
		})
	}
}

var errBroken = errors.New("broken")

// A method of the caller's context that panics before the attempt leaves no permit behind.
func TestAPanicBeforeTheAttempt(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		l := &lender{}
		gate := l.gate()
		armed := &armedContext{Context: f.Context()}
		l.acquire = func(context.Context, int) error {
			armed.panics = true
			return nil
		}
		assert.PanicsWithValue(f, errBroken, func() { _, _ = f.transport.Send(armed, limited(gate)) })
		assert.Equal(f, []ending{{0, unsent}}, l.endings())
	}, answer(200, ""))
}

// armedContext panics when it is asked for its error, once it is armed.
type armedContext struct {
	context.Context
	panics bool
}

func (c *armedContext) Err() error {
	if c.panics {
		panic(errBroken)
	}
	return c.Context.Err()
}
