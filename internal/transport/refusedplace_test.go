package transport_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// getOf reads one path.
func getOf(path string) transport.Request {
	return transport.Request{Class: transport.Read, Method: http.MethodGet, Path: path}
}

// refusing answers 401 at some paths below the customer, and 200 elsewhere.
func refusing(paths ...string) exchange {
	return func(r *http.Request) (*http.Response, error) {
		for _, path := range paths {
			if r.URL.Path == "/acme/v1"+path {
				return respond(401, ""), nil
			}
		}
		return respond(200, "{}"), nil
	}
}

// If the service has accepted the credentials, a path that alone gets 401 is held by itself, and nothing else is.
func TestOnePathThatIsRefused(t *testing.T) {
	t.Parallel()
	bad := getOf("/bad")
	const text = "GET /acme/v1/bad got 401 Unauthorized"
	inFakeTime(t, nil, func(f *fixture) {
		f.succeeds(aRead)
		for _, wait := range coolDowns {
			failure := f.fails(bad)
			require.NoError(f, failure.Cause)
			assert.Equal(f, 1, failure.Attempts)
			f.heldFor(f.fails(bad), 401, fmt.Sprintf("not tried again for %v: %s", wait, text))
			for range 3 {
				f.succeeds(aRead)
			}
			queried, posted := bad, aWrite
			queried.Query, posted.Path = "page=2", bad.Path
			f.heldFor(f.fails(queried), 401, fmt.Sprintf("not tried again for %v: %s", wait, text))
			time.Sleep(wait - 1)
			f.heldFor(f.fails(bad), 401, "not tried again for 0s: "+text)
			f.succeeds(aRead)
			time.Sleep(time.Nanosecond)
		}
		f.script = []exchange{after(time.Second, refusing(bad.Path))}
		f.fails(bad)
		began := time.Now()
		f.together(18, aRead)
		assert.Equal(f, time.Second, time.Since(began), "a path that alone is refused puts the credentials in no doubt")
		time.Sleep(30 * time.Second)
		before := f.count()
		for _, failure := range f.together(18, bad) {
			assert.True(f, failure.Unauthorized)
		}
		assert.Equal(f, before+1, f.count(), "one at a time shows the credentials there")
		f.script = []exchange{refusing()}
		time.Sleep(30 * time.Second)
		f.succeeds(bad)
		f.script = []exchange{refusing(bad.Path)}
		f.fails(bad)
		f.heldFor(f.fails(bad), 401, "not tried again for 1s: "+text) // a success starts anew
		posted := aWrite
		posted.Path = bad.Path
		assert.Equal(f, 1, f.fails(posted).Attempts, "another method is another path")
	}, refusing(bad.Path))
}

// After a 401 at one path, one call to another path shows whether the credentials are still good. The others wait.
func TestACallElsewhereIsTheProbe(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		f.succeeds(aRead)
		f.fails(getOf("/bad"))
		f.script = []exchange{after(3*time.Second, refusing("/bad"))}
		began := time.Now()
		for _, failure := range f.together(18, aRead) {
			assert.Nil(f, failure)
		}
		assert.Equal(f, 5*time.Second, time.Since(began), "one, and all the others 2 s later")
	}, refusing("/bad"))
	inFakeTime(t, nil, func(f *fixture) { // a password that changes on a running client costs two requests
		f.succeeds(aRead)
		f.script = []exchange{answer(401, "")}
		f.seen = nil
		f.fails(getOf("/1"))
		f.script = []exchange{after(time.Second, answer(401, ""))}
		var wg sync.WaitGroup
		for i := range 18 {
			wg.Go(func() {
				assert.True(f, f.fails(getOf(fmt.Sprint("/", i+1))).Unauthorized)
			})
		}
		wg.Wait()
		require.Equal(f, 2, f.count())
		probe := f.requests()[1].url[len("https://api.example.com"):]
		for _, r := range append(allClasses, getOf("/1"), aPurge()) {
			f.heldFor(f.fails(r), 401, "not tried again for 1s: GET "+probe+" got 401 Unauthorized")
		}
		time.Sleep(time.Second)
		f.fails(aRead)
		f.heldFor(f.fails(aWrite), 401, "not tried again for 2s: GET /acme/v1/things got 401 Unauthorized")
		assert.Equal(f, 3, f.count())
		time.Sleep(2 * time.Second)
		f.script = []exchange{answer(200, "")}
		for _, r := range append(allClasses, getOf("/1"), aPurge()) {
			f.succeeds(r)
		}
	}, answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // only one path is called
		f.succeeds(aRead)
		f.script, f.seen = []exchange{answer(401, "")}, nil
		for time.Since(f.began) < 62*time.Second {
			f.fails(aRead)
			time.Sleep(100 * time.Millisecond)
		}
		assert.Len(f, f.times(), 7, "after 0, 1, 3, 7, 15, 31 and 61 s")
	}, answer(200, ""))
}

// Several paths that are always refused hold all calls once, and from then on only themselves.
func TestSeveralPathsThatAreRefused(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		f.succeeds(aRead)
		f.fails(getOf("/a"))
		f.fails(getOf("/b"))
		f.heldFor(f.fails(aRead), 401, "not tried again for 1s: GET /acme/v1/b got 401 Unauthorized")
		time.Sleep(time.Second)
		f.succeeds(aRead)
		for range 5 {
			f.seen = nil
			for _, path := range []string{"/a", "/b"} {
				assert.Equal(f, 1, f.fails(getOf(path)).Attempts)
			}
			f.succeeds(aRead)
			assert.Equal(f, 3, f.count())
			time.Sleep(30 * time.Second)
		}
		f.script = []exchange{answer(401, "")} // a password that changes
		f.seen = nil
		f.fails(getOf("/c"))
		f.fails(getOf("/d"))
		f.heldFor(f.fails(getOf("/a")), 401, "not tried again for 1s: GET /acme/v1/d got 401 Unauthorized")
		time.Sleep(time.Second)
		f.fails(getOf("/a"))
		f.heldFor(f.fails(aRead), 401, "not tried again for 2s: GET /acme/v1/a got 401 Unauthorized")
		assert.Equal(f, 3, f.count())
	}, refusing("/a", "/b"))
	inFakeTime(t, nil, func(f *fixture) { // of many, the table keeps the newest 32
		var paths []string
		for i := range 33 {
			paths = append(paths, fmt.Sprint("/", i))
		}
		f.script = []exchange{refusing(paths...)}
		f.succeeds(aRead)
		for _, path := range paths {
			f.fails(getOf(path))
			f.succeeds(aRead)
		}
		assert.Zero(f, f.fails(getOf("/1")).Attempts)
		assert.Equal(f, 1, f.fails(getOf("/0")).Attempts)
	}, nil)
}

// The status is the verdict, and a body that stalls holds up neither the verdict nor the others.
func TestTheVerdictComesBeforeTheBody(t *testing.T) {
	t.Parallel()
	stalls := func(ctx context.Context) io.Reader { return standing{ctx} }
	inFakeTime(t, nil, func(f *fixture) {
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { f.fails(aRead) })
		synctest.Wait()
		for range 200 {
			wg.Go(func() {
				f.heldFor(f.fails(aRead), 401, "not tried again for 1s: GET /acme/v1/things got 401 Unauthorized")
				assert.Equal(f, time.Second, time.Since(began), "none waits for the body")
			})
		}
		wg.Wait()
		assert.Equal(f, 1, f.count())
	}, after(time.Second, withBody(401, stalls)))
	inFakeTime(t, nil, func(f *fixture) { // a success proves nothing before its body has come, but others go 2 s after its header
		f.fails(aRead)
		time.Sleep(time.Second)
		f.script = []exchange{nil, after(3*time.Second, withBody(200, stalls)), answer(200, "")}
		f.together(4, aRead)
		assert.Equal(f, []time.Duration{0, time.Second, 6 * time.Second, 6 * time.Second, 6 * time.Second}, f.times()[:5])
	}, answer(401, ""))
	inFakeTime(t, nil, func(f *fixture) { // a code in the body still counts
		code := withBody(200, func(context.Context) io.Reader {
			return io.MultiReader(pausing{time.Second}, strings.NewReader(`{"code":401}`))
		})
		f.script = []exchange{code}
		f.together(18, aRead)
		assert.Equal(f, 1, f.count())
	}, nil)
}

// Calls count their wait from the beginning of the probe, and all go at the same moment.
func TestWaitsCountFromTheProbesBeginning(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		var wg sync.WaitGroup
		for i, start := range []time.Duration{0, 50 * time.Millisecond, time.Second, 1900 * time.Millisecond, 2100 * time.Millisecond} {
			wg.Go(func() {
				time.Sleep(start)
				began := time.Now()
				f.succeeds(aRead)
				if i > 0 {
					assert.Equal(f, max(0, maxProbeWait-start), time.Since(began))
				}
			})
		}
		wg.Wait()
	}, after(8*time.Second, answer(200, "")), answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // with several probes in a row, all go when the present one has taken 2 s
		ctx, cancel := context.WithTimeout(f.Context(), 1900*time.Millisecond)
		defer cancel()
		go f.failsWith(ctx, aRead)
		synctest.Wait()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i/19) * 3800 * time.Millisecond)
				f.succeeds(aRead)
			})
		}
		wg.Wait()
		times := f.times()
		assert.Len(f, times, 21)
		assert.Equal(f, 1900*time.Millisecond, times[1])
		for _, at := range times[2:] {
			assert.Equal(f, 3900*time.Millisecond, at)
		}
	}, silent, after(8*time.Second, answer(200, "")), after(time.Second, answer(200, "")))
	inFakeTime(t, nil, func(f *fixture) { // a purge that waits for a slow read goes when another read is accepted
		f.fails(aPurge())
		time.Sleep(time.Second)
		go func() { _, _ = f.send(aRead) }()
		synctest.Wait()
		go func() { _, _ = f.send(aRead) }()
		f.succeeds(aPurge())
		assert.Equal(f, 3*time.Second, time.Since(f.began))
		time.Sleep(time.Minute)
	}, answer(403, ""), after(20*time.Second, answer(200, "")), answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // and is held when another read is refused
		f.fails(aPurge())
		time.Sleep(time.Second)
		for range 2 {
			go func() { _, _ = f.send(aRead) }()
			synctest.Wait()
		}
		f.heldFor(f.fails(aPurge()), 401, "not tried again for 2s: GET /acme/v1/things got 401 Unauthorized")
		assert.Equal(f, []time.Duration{0, time.Second, 3 * time.Second}, f.times())
		assert.Equal(f, 4*time.Second, time.Since(f.began))
		time.Sleep(time.Minute)
	}, answer(403, ""), after(20*time.Second, answer(200, "")), after(time.Second, answer(401, "")))
	inFakeTime(t, nil, func(f *fixture) { // calls with short contexts one after the other get through
		go func() { _, _ = f.send(aRead) }()
		failed := 0
		for time.Since(f.began) < 7*time.Second {
			time.Sleep(200 * time.Millisecond)
			ctx, cancel := context.WithTimeout(f.Context(), 1500*time.Millisecond)
			if _, err := f.transport.Send(ctx, aRead); err != nil {
				failed++
			}
			cancel()
		}
		assert.Equal(f, 1, failed)
		time.Sleep(time.Minute)
	}, after(8*time.Second, answer(200, "")), answer(200, ""))
}

// After a cool-down, the response of the probe may take longer than 2 s. The others wait for it.
func TestASlowProbeAfterACoolDown(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		f.fails(aRead)
		time.Sleep(time.Second)
		assert.Equal(f, make([]*transport.Failure, 20), f.together(20, aRead))
		assert.Equal(f, 7*time.Second, time.Since(f.began))
	}, answer(401, ""), after(3*time.Second, answer(200, "")))
	once := func(c *transport.Config) { c.Policy.MaxAttempts = 1 }
	inFakeTime(t, once, func(f *fixture) { // while no probe gets a verdict, a call waits for 30 s
		f.fails(aRead)
		time.Sleep(time.Second)
		held := 0
		for _, failure := range f.together(20, aRead) {
			if failure.Attempts == 0 {
				held++
				require.EqualError(f, failure.Cause, "not sent: credentials: not tried again while another call tries: GET /acme/v1/things got 401 Unauthorized")
			}
		}
		assert.Equal(f, 17, held)
		assert.Equal(f, []time.Duration{0, time.Second, 15 * time.Second, 29 * time.Second}, f.times())
	}, answer(401, ""), after(14*time.Second, answer(500, "")))
}
