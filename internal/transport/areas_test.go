package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// refusingBelow answers 401 to a method below a path of the customer, and 200 to all else. Each answer takes 30 ms.
func refusingBelow(method, path string) exchange {
	return after(30*time.Millisecond, func(r *http.Request) (*http.Response, error) {
		if r.Method == method && strings.HasPrefix(r.URL.Path, "/acme/v1"+path) {
			return respond(401, ""), nil
		}
		return respond(200, "{}"), nil
	})
}

// long is how long the tests of this file call.
const long = 5 * time.Minute

// every sends requests for a long time, with a pause after each, and counts the failures.
func (f *fixture) every(pause time.Duration, r func(i int) transport.Request) (failed int) {
	for i := 0; time.Since(f.began) < long; i++ {
		if _, err := f.send(r(i)); err != nil {
			failed++
		}
		time.Sleep(pause)
	}
	return failed
}

// However many paths of one area get 401, calls of other areas are not held. The area sends 14 requests in 5 minutes:
// two at once, then after 2, 4, 8, 16, 30 s and so on.
func TestAnAreaThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, ids := range []int{2, 1000} {
		inFakeTime(t, nil, func(f *fixture) {
			f.succeeds(aRead)
			go f.every(200*time.Millisecond, func(i int) transport.Request { return getOf(fmt.Sprint("/config/lists/", i%ids)) })
			assert.Zero(f, f.every(220*time.Millisecond, func(int) transport.Request { return aRead }))
			time.Sleep(time.Second)
			refused := 0
			for _, r := range f.requests() {
				if strings.Contains(r.url, "/config/") {
					refused++
				}
			}
			assert.Equal(f, 14, refused)
		}, refusingBelow(http.MethodGet, "/config/"))
	}
	inFakeTime(t, nil, func(f *fixture) { // the first path, and then the area
		f.succeeds(aRead)
		f.fails(getOf("/config/lists/a"))
		f.heldFor(f.fails(getOf("/config/lists/a")), 401, "not tried again for 1s: GET /acme/v1/config/lists/a got 401 Unauthorized")
		assert.Equal(f, 1, f.fails(getOf("/config/lists/b")).Attempts)
		for _, path := range []string{"/config/lists/a", "/config/c", "/config"} {
			f.heldFor(f.fails(getOf(path)), 401, "not tried again for 2s: GET /acme/v1/config/lists/b got 401 Unauthorized")
		}
		f.succeeds(aRead)
		f.succeeds(getOf("/configurations"))
		time.Sleep(2 * time.Second)
		before := f.count()
		f.together(18, getOf("/config/c"))
		assert.Equal(f, before+1, f.count())
		f.script = []exchange{refusing("/config/c")}
		time.Sleep(4 * time.Second)
		f.succeeds(getOf("/config/d"))
		f.fails(getOf("/config/c"))
		f.heldFor(f.fails(getOf("/config/c")), 401, "not tried again for 8s: GET /acme/v1/config/c got 401 Unauthorized")
		f.succeeds(getOf("/config/a"))
	}, refusingBelow(http.MethodGet, "/config/"))
	inFakeTime(t, nil, func(f *fixture) { // the service accepts the credentials elsewhere between
		f.succeeds(aRead)
		f.fails(getOf("/config/lists/a"))
		f.succeeds(aRead)
		assert.Equal(f, 1, f.fails(getOf("/config/lists/b")).Attempts)
		f.heldFor(f.fails(getOf("/config/lists/c")), 401, "not tried again for 2s: GET /acme/v1/config/lists/b got 401 Unauthorized")
	}, refusingBelow(http.MethodGet, "/config/"))
	inFakeTime(t, nil, func(f *fixture) { // a password that changes costs one request more if the first two have one area
		f.succeeds(aRead)
		f.script, f.seen = []exchange{answer(401, "")}, nil
		for range 3 {
			for _, path := range []string{"/tasks/1", "/tasks/2", "/tasks/3", "/config/1", "/stats/1"} {
				f.fails(getOf(path))
			}
		}
		assert.Equal(f, 3, f.count())
	}, answer(200, "{}"))
}

// If the service accepts the credentials in an area, a path of it that gets 401 is held alone.
func TestOnePathOfAnAreaThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, renewed := range map[string]bool{"password": false, "sessions": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test := func(f *fixture) {
				go f.every(200*time.Millisecond, func(int) transport.Request { return aWrite })
				assert.LessOrEqual(f, f.every(220*time.Millisecond, func(int) transport.Request { return aRead }), 10)
				time.Sleep(time.Second)
				for i := range 40 { // more paths than the client remembers
					other := aWrite
					other.Path = fmt.Sprint("/things/", i)
					assert.NotZero(f, f.fails(other).Attempts)
					f.succeeds(aRead)
				}
			}
			if renewed {
				withSessions(t, func(f *fixture, s *sessions) {
					test(f)
					assert.LessOrEqual(f, s.count(), 3)
				}, refusingBelow(http.MethodPost, "/things"))
				return
			}
			inFakeTime(t, nil, test, refusingBelow(http.MethodPost, "/things"))
		})
	}
}

// If an endpoint always gets 401, also with a new session, it causes no further login while the service accepts the
// session elsewhere. All other calls succeed, with one more round trip at most.
func TestAnEndpointThatRefusesEachSession(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		bad, good   time.Duration
		first       transport.Request
		most, waits int // logins, and round trips of a good call
	}{
		{time.Second, 100 * time.Millisecond, aRead, 2, 2},
		{100 * time.Millisecond, time.Second, aRead, 2, 2},
		{50 * time.Millisecond, 2 * time.Second, aRead, 3, 2},
		{50 * time.Millisecond, 2 * time.Second, getOf("/bad"), 4, 2},
	} {
		withSessions(t, func(f *fixture, s *sessions) {
			_, _ = f.send(tt.first)
			go f.every(tt.bad, func(int) transport.Request { return getOf("/bad") })
			for time.Since(f.began) < long {
				began := time.Now()
				f.succeeds(aRead)
				assert.LessOrEqual(f, time.Since(began), time.Duration(tt.waits)*30*time.Millisecond)
				time.Sleep(tt.good)
			}
			assert.LessOrEqual(f, s.count(), tt.most)
			time.Sleep(time.Second)
		}, refusingBelow(http.MethodGet, "/bad"))
	}
	withSessions(t, func(f *fixture, s *sessions) { // a session that ends is renewed all the same
		f.script = []exchange{func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/bad") {
				return respond(401, ""), nil
			}
			return s.answer(r)
		}}
		f.succeeds(aRead)
		f.fails(getOf("/bad"))
		f.succeeds(aRead)
		s.expire()
		f.succeeds(aRead)
		assert.Equal(f, 3, s.count())
		s.expire()
		time.Sleep(30 * time.Second)
		f.script = []exchange{s.answer}
		f.succeeds(getOf("/bad")) // also by the endpoint itself, if nothing else has used the session for 30 s
		assert.Equal(f, 4, s.count())
	})
	withSessions(t, func(f *fixture, s *sessions) { // nor does it while a new session is not accepted yet
		f.script = []exchange{func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/bad") {
				return respond(401, ""), nil
			}
			time.Sleep(time.Second)
			return s.answer(r)
		}}
		f.succeeds(aRead)
		f.fails(getOf("/bad"))
		f.succeeds(aRead)
		s.expire()
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.succeeds(aRead)
		}()
		time.Sleep(1500 * time.Millisecond)
		assert.Equal(f, 1, f.fails(getOf("/bad")).Attempts)
		<-done
		f.succeeds(aRead)
		assert.Equal(f, 3, s.count())
	})
	withSessions(t, func(f *fixture, s *sessions) { // of many waiting calls, one tries a login
		f.script = []exchange{after(time.Second, answer(401, ""))}
		for i := range 4 {
			f.together(100, aRead)
			assert.Equal(f, i+2, s.count())
			time.Sleep(30 * time.Second)
		}
	})
}

// After a 401 at one path of accepted credentials, a slow call to another path delays the others for 2 s, once.
func TestADoubtDelaysNobodyLong(t *testing.T) {
	t.Parallel()
	slow := func(f *fixture, next exchange) {
		f.succeeds(aRead)
		f.fails(getOf("/bad"))
		f.seen, f.script = nil, []exchange{after(25*time.Second, next), answer(200, "{}")}
		go func() { _, _ = f.send(getOf("/slow")) }()
		synctest.Wait()
	}
	inFakeTime(t, nil, func(f *fixture) {
		slow(f, answer(200, "{}"))
		for _, wait := range []time.Duration{maxProbeWait, 0, 0} {
			began := time.Now()
			assert.Equal(f, make([]*transport.Failure, 18), f.together(18, aRead))
			assert.Equal(f, wait, time.Since(began))
		}
		time.Sleep(time.Minute)
		f.seen, f.script = nil, []exchange{answer(401, ""), after(25*time.Second, answer(200, "{}")), answer(200, "{}")}
		f.fails(getOf("/worse")) // another doubt
		go func() { _, _ = f.send(getOf("/slow")) }()
		synctest.Wait()
		began := time.Now()
		f.succeeds(aRead)
		assert.Equal(f, maxProbeWait, time.Since(began))
		time.Sleep(time.Minute)
	}, refusing("/bad"))
	once := func(c *transport.Config) { c.Policy.MaxAttempts = 1 }
	inFakeTime(t, once, func(f *fixture) { // also if probes fail one after the other
		f.succeeds(aRead)
		f.fails(getOf("/bad"))
		f.script = []exchange{after(300*time.Millisecond, answer(503, ""))}
		began := time.Now()
		f.together(200, aRead)
		assert.Equal(f, maxProbeWait+300*time.Millisecond, time.Since(began))
	}, refusing("/bad"))
	inFakeTime(t, once, func(f *fixture) { // the refused path itself waits for its own probe only
		slow(f, answer(200, "{}"))
		time.Sleep(3 * time.Second)
		f.script = []exchange{nil, after(time.Second, answer(401, ""))}
		f.together(18, getOf("/bad"))
		assert.Equal(f, 2, f.count())
		time.Sleep(time.Minute)
	}, refusing("/bad"))
}

// Before the first success, one request at a time is sent while each is answered within 2 s, whatever failed before.
func TestProbesThatFailBeforeTheVerdict(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]exchange{"503": answer(503, ""), "a lost connection": cut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				for range 12 {
					f.script = append(f.script, after(1900*time.Millisecond, fails))
				}
				f.script = append(f.script, after(1900*time.Millisecond, answer(401, "")))
				f.together(300, aRead)
				assert.Equal(f, 13, f.count())
			})
		})
	}
	inFakeTime(t, nil, func(f *fixture) { // also if a call waits for its permit for a long time
		slowGate := &lender{acquire: func(context.Context, int) error {
			time.Sleep(5 * time.Second)
			return nil
		}}
		go func() {
			ctx, cancel := context.WithTimeout(f.Context(), time.Second)
			defer cancel()
			f.failsWith(ctx, aRead)
		}()
		synctest.Wait()
		r := limited(slowGate.gate())
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.fails(r)
		}()
		time.Sleep(5 * time.Second)
		for _, failure := range f.together(100, aRead) {
			assert.True(f, failure.Unauthorized)
		}
		<-done
		assert.Equal(f, 2, f.count())
	}, silent, after(500*time.Millisecond, answer(401, "")))
	once := func(c *transport.Config) { c.Policy.MaxAttempts = 1 }
	inFakeTime(t, once, func(f *fixture) { // a call waits 30 s for a verdict
		waited := 0
		for _, failure := range f.together(50, aRead) {
			if failure.Attempts == 1 && failure.Status == 0 {
				waited++
				require.EqualError(f, failure.Cause, "waiting for the first response to the credentials: other calls got none within 30s")
				assert.Equal(f, transport.NotApplied, failure.Outcome)
			}
		}
		assert.Equal(f, 34, waited)
		assert.Equal(f, 16, f.count())
	}, after(1900*time.Millisecond, answer(500, "")))
}
