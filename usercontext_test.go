package webdelivery_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// This file tests what a context of the user's can do to a client.

// userContext is a context of which one method misbehaves, at its n-th call.
type userContext struct {
	context.Context

	method  string
	conduct conduct
	nth     int32
	calls   atomic.Int32
}

func (c *userContext) in(method string) {
	if method != c.method || c.calls.Add(1) != c.nth {
		return
	}
	if c.conduct == panics {
		panic(errBoom)
	}
	runtime.Goexit()
}

func (c *userContext) Value(key any) any {
	c.in("Value")
	return c.Context.Value(key)
}

func (c *userContext) Done() <-chan struct{} {
	c.in("Done")
	return c.Context.Done()
}

func (c *userContext) Err() error {
	c.in("Err")
	return c.Context.Err()
}

func (c *userContext) Deadline() (time.Time, bool) {
	c.in("Deadline")
	return c.Context.Deadline()
}

// withoutContexts hides the caller's context from net/http, which calls it in goroutines of its own, where a panic
// ends the process.
func withoutContexts(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		return next.RoundTrip(r.WithContext(context.Background()))
	})
}

// Wherever the SDK calls a method of a context, a panic or Goexit in it reaches the user. No lock stays locked, and
// each permit ends once. So 3 more purges work, of which the service accepts 2 per second.
func TestContextsOfUsers(t *testing.T) {
	t.Parallel()
	calls := map[string]func(ctx context.Context, c *webdelivery.Client) error{
		"Submit": func(ctx context.Context, c *webdelivery.Client) error {
			_, err := c.Purge.Submit(ctx, purgeOf(anObject))
			return err
		},
		"a queue": func(ctx context.Context, c *webdelivery.Client) error {
			q := c.Purge.NewQueue(webdelivery.QueueOptions{})
			defer func() { _ = q.Close(context.Background()) }()
			_, err := q.Purge(ctx, webdelivery.Exact(anObject))
			return err
		},
		"Get": getTaskOf,
	}
	for name, call := range calls {
		for _, limited := range []bool{false, true} {
			for _, method := range []string{"Value", "Done", "Err", "Deadline"} {
				t.Run(fmt.Sprintf("%s, %s, limited %t", name, method, limited), func(t *testing.T) {
					t.Parallel()
					for _, how := range []conduct{panics, exits} {
						for nth := int32(1); nth < 200; nth++ {
							ctx := &userContext{method: method, conduct: how, nth: nth}
							inReliableService(t, bySession, func(f *fixture) { ctx.misbehave(f, call, limited) })
							if ctx.calls.Load() < nth || t.Failed() {
								break
							}
						}
					}
				})
			}
		}
	}
}

func (c *userContext) misbehave(f *fixture, call func(context.Context, *webdelivery.Client) error, limited bool) {
	u := &culprit{}
	s := bySession
	f.http.Transport = withoutContexts(f.http.Transport)
	if limited {
		s.options = []webdelivery.Option{webdelivery.WithPurgeLimiter(userPermits{userLimiter{u}})}
	}
	f.client = f.newClient(f.srv.URL(), s)
	f.fail(testserver.Fault{Path: "/cache/purge", Status: 503, Count: 1})
	var cancel context.CancelFunc
	c.Context, cancel = context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	end := endOf(func() error { return call(c, f.client) })
	if c.calls.Load() >= c.nth && end.err == nil {
		assert.True(f, end.panicked == errBoom || end.exited || c.method == "Value") //nolint:errorlint // the value of a panic
	}
	stillWorks(f)
	assert.Equal(f, u.given.Load(), u.ended.Load(), "the permits that were granted, and those that have ended")
}

// oddContext is done without an error, against the contract of context.Context.
type oddContext struct {
	context.Context

	done chan struct{}
}

func (c oddContext) Done() <-chan struct{} { return c.done }
func (oddContext) Err() error              { return nil }

// If the context of a purge is done but has no error, the purge still does not count as sent.
func TestContextsThatEndWithoutAnError(t *testing.T) {
	t.Parallel()
	inQueue(t, setup{}, webdelivery.QueueOptions{}, func(f *fixture, q *webdelivery.PurgeQueue) {
		for _, delay := range []time.Duration{0, time.Second} { // of the response: the purge waits, or is under way
			f.takePlaces()
			f.fail(testserver.Fault{Path: "/cache/purge", Count: 1, Delay: delay})
			ctx := oddContext{f.Context(), make(chan struct{})}
			time.AfterFunc(delay+500*time.Millisecond, func() { close(ctx.done) })
			receipt, err := q.Purge(ctx, webdelivery.Exact(object(1)))
			assert.Nil(f, receipt)
			require.ErrorIs(f, err, context.Canceled)
			time.Sleep(time.Minute)
		}
	})
}

// A login whose transport ignores its context delays only the callers that wait for it: they return 100 ms after
// their contexts end. A later call logs in again.
func TestLoginsThatAreLost(t *testing.T) {
	t.Parallel()
	inFakeTime(t, bySession, func(f *fixture) {
		release := make(chan struct{})
		var logins atomic.Int32
		next := f.http.Transport
		f.http.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path[len(r.URL.Path)-len("/sessions"):] == "/sessions" && logins.Add(1) == 1 {
				<-release
				r = r.WithContext(context.Background())
			}
			return next.RoundTrip(r)
		})
		f.srv.AddTask(testserver.TaskSpec{})
		f.client = f.newClient(f.srv.URL(), bySession)
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 3 {
			ctx, cancel := context.WithTimeout(f.Context(), time.Duration(1+i)*time.Second)
			defer cancel()
			wg.Go(func() {
				err := getTaskOf(ctx, f.client)
				assert.ErrorIs(f, err, context.DeadlineExceeded)
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			})
		}
		wg.Wait()
		assert.Equal(f, 3100*time.Millisecond, time.Since(began))
		require.NoError(f, getTaskOf(f.Context(), f.client))
		assert.EqualValues(f, 2, logins.Load())
		close(release)
		synctest.Wait()
		require.NoError(f, getTaskOf(f.Context(), f.client), "the session of the lost login does not replace the other")
		assert.EqualValues(f, 2, logins.Load())
	})
}

// If the body of a stream panics, the attempt ends, and its connection with it.
func TestStreamsWhoseBodyPanics(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"Read", "Close"} {
		for _, how := range []conduct{panics, exits} {
			for nth := range 3 {
				inFakeTime(t, setup{}, func(f *fixture) {
					var attempt context.Context
					next := f.http.Transport
					f.http.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
						attempt = r.Context()
						response, err := next.RoundTrip(r)
						if err == nil {
							response.Body = &panickingBody{response.Body, place, how, nth}
						}
						return response, err
					})
					f.client = f.newClient(f.srv.URL(), setup{})
					end := endOf(func() error {
						for _, err := range f.client.Stats.Events.Rows(f.Context(), lastHour(eventsAsked)) {
							if err != nil {
								return err
							}
						}
						return nil
					})
					if end.panicked == nil && !end.exited {
						assert.NoError(f, end.err)
					}
					assert.ErrorIs(f, attempt.Err(), context.Canceled)
				})
			}
		}
	}
}

// panickingBody does not close the body below it when it misbehaves.
type panickingBody struct {
	io.ReadCloser

	place   string
	conduct conduct
	left    int // reads that work; every Close misbehaves
}

func (b *panickingBody) Read(p []byte) (int, error) {
	if b.left--; b.place == "Read" && b.left < 0 {
		b.misbehave()
	}
	return b.ReadCloser.Read(p)
}

func (b *panickingBody) Close() error {
	if b.place == "Close" {
		b.misbehave()
	}
	return b.ReadCloser.Close()
}

func (b *panickingBody) misbehave() {
	if b.conduct == panics {
		panic(errBoom)
	}
	runtime.Goexit()
}
