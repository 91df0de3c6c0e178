package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// This file tests what code of the user's can do to a client. It covers each place where the SDK calls such code,
// each way of not returning as it should, and each operation.

// conduct is how code of the user's behaves, once.
type conduct string

const (
	panics  conduct = "panics"
	exits   conduct = "ends its goroutine"
	obeys   conduct = "blocks until its context ends"
	ignores conduct = "ignores its context"
)

var errBoom = errors.New("boom")

// culprit is code of the user's that misbehaves in one place, at its n-th call there.
type culprit struct {
	place    string
	conduct  conduct
	nth      int32
	armed    atomic.Bool
	calls    atomic.Int32
	released chan struct{}

	given, ended atomic.Int32 // permits
}

// in is called wherever the SDK calls code of the user's.
func (u *culprit) in(ctx context.Context, place string) error {
	if place != u.place || !u.armed.Load() || u.calls.Add(1) != u.nth {
		return nil
	}
	switch u.conduct {
	case panics:
		panic(errBoom)
	case exits:
		runtime.Goexit()
	case obeys:
		select {
		case <-ctx.Done():
		case <-u.released: // net/http may let a dial go on
		}
	case ignores:
		<-u.released
	}
	return ctx.Err()
}

// behaved reports whether the culprit did nothing.
func (u *culprit) behaved() bool { return u.calls.Load() < u.nth }

// The places. Their names are those of the listing, with what distinguishes several of one.
const (
	inTransport   = "WithHTTPClient: Transport"
	inBody        = "WithHTTPClient: the body of a response, Read"
	inClose       = "WithHTTPClient: the body of a response, Close"
	inDialer      = "WithHTTPClient: the dialer of a Transport"
	inJar         = "WithHTTPClient: Jar and CheckRedirect"
	inEnabled     = "WithLogger: Enabled of the Handler"
	inHandle      = "WithLogger: Handle of the Handler"
	inWait        = "Limiter.Wait"
	inAcquire     = "PermitLimiter.Acquire"
	inDone        = "Permit.Done"
	inDoneOverdue = "Permit.Done, 5 s after the request was written"
	inPause       = "Limiter.Pause"
	inOnStats     = "QueueOptions.OnStats"
	inTake        = "PurgeQueue.PurgeFrom: take"
	inOnProgress  = "OnProgress"
	inOnSummary   = "OnSummary"
	inLoop        = "the body of a loop"
	inMarshal     = "Client.Do: in"
	inUnmarshal   = "Client.Do: out"
	inScan        = "Scan: T"
	inRows        = "Scan: rows"

	ofTransport = "an error of the transport, "
	ofLimiter   = "an error of the limiter, "
)

// inErrors are the methods of errors. The transport returns such an error instead of its response, or a limiter
// instead of its permit, until the method has been called often enough.
var inErrors = func() (all []string) {
	for _, of := range []string{ofTransport, ofLimiter} {
		for _, method := range []string{"Error", "Is", "As", "Unwrap"} {
			all = append(all, of+method)
		}
	}
	return slices.DeleteFunc(all, func(place string) bool { return place == ofLimiter+"Is" }) // the SDK does not call it
}()

// userError is an error with methods of the user's.
type userError struct {
	*culprit

	of string
}

func (e userError) call(method string) { _ = e.in(context.Background(), e.of+method) }

func (e userError) Error() string {
	e.call("Error")
	return "an error of the user's"
}

func (e userError) Is(error) bool {
	e.call("Is")
	return false
}

func (e userError) As(any) bool {
	e.call("As")
	return false
}

func (e userError) Unwrap() error {
	e.call("Unwrap")
	return nil
}

// fails returns the user's error if the error is what misbehaves.
func (u *culprit) fails(of string) error {
	if slices.Contains(inErrors, u.place) && strings.HasPrefix(u.place, of) && u.armed.Load() && u.behaved() {
		return userError{u, of}
	}
	return nil
}

var places = append([]string{
	inTransport, inBody, inClose, inDialer, inJar, inEnabled, inHandle, inWait, inAcquire, inDone, inDoneOverdue, inPause,
	inOnStats, inTake, inOnProgress, inOnSummary, inLoop, inMarshal, inUnmarshal, inScan, inRows,
}, inErrors...)

// userTransport is a RoundTripper, and the other fields of an http.Client.
type userTransport struct {
	*culprit
	next http.RoundTripper
}

func (t userTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if cookie := r.Header.Get("Cookie"); cookie == "authtoken=" {
		return nil, errors.New("a session without a token")
	}
	if err := t.in(r.Context(), inTransport); err != nil {
		return nil, err
	}
	if err := t.fails(ofTransport); err != nil {
		return nil, err
	}
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Body = userBody{t.culprit, r.Context(), response.Body}
	}
	return response, err
}

type userBody struct {
	*culprit
	ctx context.Context
	io.ReadCloser
}

func (b userBody) Read(p []byte) (int, error) {
	if err := b.in(b.ctx, inBody); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

func (b userBody) Close() error {
	defer func() { _ = b.ReadCloser.Close() }()
	return b.in(b.ctx, inClose)
}

// userHandler is a log handler.
type userHandler struct{ *culprit }

func (h userHandler) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.in(ctx, inEnabled) == nil
}
func (h userHandler) Handle(ctx context.Context, _ slog.Record) error { return h.in(ctx, inHandle) }
func (h userHandler) WithAttrs([]slog.Attr) slog.Handler              { return h }
func (h userHandler) WithGroup(string) slog.Handler                   { return h }

// userLimiter grants permits that need no end.
type userLimiter struct{ *culprit }

func (l userLimiter) Wait(ctx context.Context) error { return l.in(ctx, inWait) }
func (l userLimiter) Pause(ctx context.Context, _ time.Duration) error {
	return l.in(ctx, inPause)
}

// userPermits grants permits that must end.
type userPermits struct{ userLimiter }

func (l userPermits) Acquire(ctx context.Context) (webdelivery.Permit, error) {
	if err := l.in(ctx, inAcquire); err != nil {
		return webdelivery.Permit{}, err
	}
	if err := l.fails(ofLimiter); err != nil {
		return webdelivery.Permit{}, err
	}
	l.given.Add(1)
	granted := time.Now()
	return webdelivery.Permit{Done: func(ctx context.Context, _ time.Time) {
		l.ended.Add(1)
		place := inDone
		if time.Since(granted) >= 5*time.Second {
			place = inDoneOverdue
		}
		_ = l.in(ctx, place)
	}}, nil
}

// ofUsers is a body, and a column, with methods of the user's.
type ofUsers struct{ culprit *culprit }

func (v ofUsers) MarshalJSON() ([]byte, error) {
	return []byte("{}"), v.culprit.in(context.Background(), inMarshal)
}

func (v *ofUsers) UnmarshalJSON([]byte) error {
	return v.culprit.in(context.Background(), inUnmarshal)
}

// panickingText and exitingText are columns with a method of the user's.
type (
	panickingText string
	exitingText   string
)

func (*panickingText) UnmarshalText([]byte) error { panic(errBoom) }
func (*exitingText) UnmarshalText([]byte) error   { runtime.Goexit(); return nil }

// userJar is a cookie jar that must not be used.
type userJar struct{ *culprit }

func (j userJar) SetCookies(*url.URL, []*http.Cookie) { _ = j.in(context.Background(), inJar) }
func (j userJar) Cookies(*url.URL) []*http.Cookie {
	_ = j.in(context.Background(), inJar)
	return nil
}

// options returns the options with code of the user's. A limiter is one of the two kinds.
func (u *culprit) options(f *fixture) []webdelivery.Option {
	under := f.srv.Transport()
	under.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := u.in(ctx, inDialer); err != nil {
			return nil, err
		}
		return f.srv.DialContext(ctx, network, address)
	}
	f.Cleanup(under.CloseIdleConnections)
	client := &http.Client{
		Transport:     userTransport{u, under},
		Jar:           userJar{u},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error { return u.in(r.Context(), inJar) },
	}
	options := []webdelivery.Option{webdelivery.WithHTTPClient(client), webdelivery.WithLogger(slog.New(userHandler{u}))}
	switch u.place {
	case ofLimiter + "Error", ofLimiter + "As", ofLimiter + "Unwrap":
		options = append(options, webdelivery.WithPurgeLimiter(userPermits{userLimiter{u}}))
	case inWait, inPause:
		options = append(options, webdelivery.WithPurgeLimiter(userLimiter{u}))
	case inAcquire, inDone, inDoneOverdue:
		options = append(options, webdelivery.WithPurgeLimiter(userPermits{userLimiter{u}}))
	}
	return options
}

// useOf is an operation with code of the user's in it.
type useOf struct {
	name  string
	queue bool // it ends with its context, whatever code of the user's does
	begin func(f *fixture, u *culprit) prepared
}

// calling returns an operation that needs no preparation.
func calling(name string, call func(ctx context.Context, f *fixture, u *culprit) error) useOf {
	return useOf{name: name, begin: func(f *fixture, u *culprit) prepared {
		return prepared{call: func(ctx context.Context, _ *webdelivery.Client) (int, error) { return 0, call(ctx, f, u) }}
	}}
}

// looping returns an operation that ranges over a sequence.
func looping[T any](name string, all func(ctx context.Context, c *webdelivery.Client) iter.Seq2[T, error]) useOf {
	return calling("a loop over "+name, func(ctx context.Context, f *fixture, u *culprit) error {
		for _, err := range all(ctx, f.client) {
			if err != nil {
				return err
			}
			if err := u.in(ctx, inLoop); err != nil {
				return err
			}
		}
		return nil
	})
}

func usesOf() []useOf {
	type client = webdelivery.Client
	progress := func(u *culprit) webdelivery.WaitOption {
		return webdelivery.OnProgress(func(webdelivery.Progress) { _ = u.in(context.Background(), inOnProgress) })
	}
	uses := []useOf{
		{"a queue that waits", true, func(f *fixture, u *culprit) prepared {
			q := f.client.Purge.NewQueue(webdelivery.QueueOptions{Wait: true, OnStats: func(webdelivery.QueueStats) {
				_ = u.in(context.Background(), inOnStats)
			}})
			return prepared{
				call: func(ctx context.Context, _ *client) (int, error) {
					_, err := q.Purge(ctx, webdelivery.Exact(newObject))
					return 0, err
				},
				end: q.Close,
			}
		}},
		{"PurgeFrom", true, func(f *fixture, u *culprit) prepared {
			q := f.client.Purge.NewQueue(webdelivery.QueueOptions{})
			return prepared{
				call: func(ctx context.Context, _ *client) (int, error) {
					results, err := q.PurgeFrom(ctx, func(ctx context.Context) ([][]webdelivery.PurgeURI, error) {
						return [][]webdelivery.PurgeURI{exacts(newObject)}, u.in(ctx, inTake)
					})
					for _, r := range results {
						err = r.Err
					}
					return 0, err
				},
				end: q.Close,
			}
		}},
		{"Tasks.Wait", false, func(f *fixture, u *culprit) prepared {
			id := f.srv.AddTask(testserver.TaskSpec{Duration: 5 * time.Second})
			return prepared{call: func(ctx context.Context, c *client) (int, error) {
				_, err := c.Tasks.Wait(ctx, id, progress(u))
				return 0, err
			}}
		}},
		{"Tasks.WaitAll", false, func(f *fixture, u *culprit) prepared {
			var ids []string
			for range 5 {
				ids = append(ids, f.srv.AddTask(testserver.TaskSpec{Duration: 5 * time.Second}))
			}
			return prepared{call: func(ctx context.Context, c *client) (int, error) {
				_, err := c.Tasks.WaitAll(ctx, ids, progress(u))
				return 0, err
			}}
		}},
		{"Purge.Wait", false, func(f *fixture, u *culprit) prepared {
			id := f.transaction()
			return prepared{call: func(ctx context.Context, c *client) (int, error) {
				_, err := c.Purge.Wait(ctx, id, progress(u))
				return 0, err
			}}
		}},
		{"NetworkLists.Apply", false, func(f *fixture, u *culprit) prepared {
			plan, err := f.client.NetworkLists.Plan(f.Context(), reliableList, []string{newEntry}, webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveAll})
			require.NoError(f, err)
			return prepared{call: func(ctx context.Context, c *client) (int, error) {
				_, err := c.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: true}, progress(u))
				return 0, err
			}}
		}},
		calling("Do", func(ctx context.Context, f *fixture, u *culprit) error {
			return errors.Join(
				f.client.Do(ctx, http.MethodPut, "/config/things/1", ofUsers{u}, nil),
				f.client.Do(ctx, http.MethodGet, "/tasks/task-1", nil, &ofUsers{u}),
			)
		}),
		calling("a stream with OnSummary", func(ctx context.Context, f *fixture, u *culprit) error {
			report := webdelivery.OnSummary(func(webdelivery.StreamSummary) { _ = u.in(context.Background(), inOnSummary) })
			return errors.Join(
				drain(f.client.Stats.Events.Rows(ctx, lastHour(eventsAsked), report), func(...any) {}),
				drain(f.client.Stats.Events.All(ctx, lastHour(eventsAsked), report), func(...any) {}),
			)
		}),
		calling("Scan", func(ctx context.Context, f *fixture, u *culprit) error {
			rows := f.client.Stats.Events.Rows(ctx, lastHour(eventsAsked))
			own := func(yield func(webdelivery.Row, error) bool) {
				if err := u.in(ctx, inRows); err == nil {
					rows(yield)
				}
			}
			if _, err := webdelivery.Collect(own); err != nil {
				return err
			}
			if u.place != inScan || !u.armed.Load() {
				return drain(webdelivery.Scan[struct {
					IP string `stats:"client_ip"`
				}](own), func(...any) {})
			}
			u.calls.Store(u.nth)
			if u.conduct == exits {
				return drain(webdelivery.Scan[struct {
					IP exitingText `stats:"client_ip"`
				}](own), func(...any) {})
			}
			return drain(webdelivery.Scan[struct {
				IP panickingText `stats:"client_ip"`
			}](own), func(...any) {})
		}),
	}
	for _, op := range distinct(operationsOf()) {
		if op.IsSequence() {
			uses = append(uses, looping(op.String(), func(ctx context.Context, c *client) iter.Seq2[any, error] {
				return op.Sequence(ctx, c, &operations.Use{List: reliableList, Show: func(...any) {}})
			}))
		}
		uses = append(uses, useOf{"operation " + op.String(), op.Shared, func(f *fixture, _ *culprit) prepared { return f.prepare(op) }})
	}
	return uses
}

const (
	patienceOfUser = 20 * time.Second // of each call
	released       = time.Hour        // when a function that ignores its context returns
)

// withoutContext are the places where code of the user's has no context that could end. In a goroutine of its own it
// delays only itself.
var withoutContext = append([]string{inJar, inOnStats, inOnProgress, inOnSummary, inLoop, inMarshal, inUnmarshal, inScan, inRows}, inErrors...)

// A panic or Goexit in code of the user's reaches the user. It passes through in the user's own goroutine, and
// becomes an error in one of the SDK's. A Purge of a queue, which has left its goroutine, ends with its context, and
// so does Close. Afterwards the client works as before, and every permit has ended.
func TestCodeOfUsers(t *testing.T) {
	t.Parallel()
	most := int32(3) // the calls up to the one that misbehaves
	if testing.Short() {
		most = 1
	}
	for _, place := range places {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			reached := false
			for _, use := range usesOf() {
				for _, how := range []conduct{panics, exits, obeys, ignores} {
					switch {
					case how == panics && place == inDialer:
						continue // net/http dials in a goroutine of its own, where a panic ends the process
					case how == obeys && slices.Contains(withoutContext, place):
						continue
					case place == inScan && (how == obeys || how == ignores):
						continue
					}
					for nth := int32(1); nth <= most; nth++ {
						u := &culprit{place: place, conduct: how, nth: nth}
						t.Run(fmt.Sprintf("%s, %s, call %d", use.name, how, nth), func(t *testing.T) { u.misbehave(t, use) })
						if u.behaved() {
							break
						}
						reached = true
					}
				}
			}
			assert.Equal(t, place != inJar, reached)
		})
	}
}

// misbehave lets the culprit misbehave in one operation, and checks that the client still works.
func (u *culprit) misbehave(t *testing.T, use useOf) {
	s := bySession
	s.server.EventsPerSecond = 0.01
	inReliableService(t, s, func(f *fixture) {
		s.options = u.options(f)
		f.client = f.newClient(f.srv.URL(), s)
		u.released = make(chan struct{})
		release := sync.OnceFunc(func() { close(u.released) })
		defer release()
		f.answerThings()
		call := use.begin(f, u)
		switch u.place {
		case inPause:
			f.fail(testserver.Fault{Path: "/cache/purge", Status: 503, Count: 1})
		case inDoneOverdue:
			f.fail(testserver.Fault{Path: "/cache/purge", Delay: 10 * time.Second, Count: 1})
		}

		u.armed.Store(true)
		ctx, cancel := context.WithTimeout(f.Context(), patienceOfUser)
		defer cancel()
		began := time.Now()
		timer := time.AfterFunc(released, release)
		end := endOf(func() error {
			_, err := call.call(ctx, f.client)
			return err
		})
		timer.Stop()
		took := time.Since(began)
		var closed error
		if call.end != nil {
			ctx, cancel := context.WithTimeout(f.Context(), patienceOfUser)
			defer cancel()
			began := time.Now()
			closed = call.end(ctx)
			assert.LessOrEqual(f, time.Since(began), patienceOfUser+100*time.Millisecond, "Close takes longer than its context")
		}
		u.armed.Store(false)
		release()
		if u.behaved() {
			return
		}
		if u.place == inOnStats {
			require.NoError(f, end.err)
			end.err = closed
		}
		switch u.conduct {
		case panics:
			if slices.Contains(inErrors, u.place) {
				break // package fmt recovers such a panic, too, and prints it
			}
			if end.panicked == nil {
				require.ErrorIs(f, end.err, errBoom)
				require.ErrorContains(f, end.err, "usercode_test.go:", "the place of the panic")
			} else {
				require.Equal(f, errBoom, end.panicked)
			}
		case exits:
			if !end.exited && u.place != inDialer && !slices.Contains(inErrors, u.place) { // net/http waits for the dialer, and the next attempt works
				require.ErrorContains(f, end.err, "Goexit")
			}
		case obeys:
			assert.LessOrEqual(f, took, patienceOfUser)
		case ignores:
			if use.queue {
				assert.LessOrEqual(f, took, patienceOfUser)
			}
		}
		if use.queue {
			assert.Nil(f, end.panicked)
			assert.False(f, end.exited)
		}
		stillWorks(f)
		assert.Equal(f, u.given.Load(), u.ended.Load(), "the permits that were granted, and those that have ended")
	})
}

// outcomeOfCall is how a call ended.
type outcomeOfCall struct {
	err      error
	panicked any
	exited   bool
}

func endOf(call func() error) (end outcomeOfCall) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		end.exited = true
		defer func() {
			if v := recover(); v != nil {
				end.panicked, end.exited = v, false
			}
		}()
		end.err = call()
		end.exited = false
	}()
	<-done
	return end
}

// stillWorks sends purges, one by one and by a queue, and makes another call.
func stillWorks(f *fixture) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Minute)
	defer cancel()
	for range 3 {
		_, err := f.client.Purge.Submit(ctx, purgeOf(anObject))
		require.NoError(f, err)
	}
	require.NoError(f, getTaskOf(ctx, f.client))
	q := f.client.Purge.NewQueue(webdelivery.QueueOptions{})
	_, err := q.Purge(ctx, webdelivery.Exact(anObject))
	require.NoError(f, err)
	require.NoError(f, q.Close(ctx))
}

func getTaskOf(ctx context.Context, c *webdelivery.Client) error {
	_, err := c.Tasks.Get(ctx, "task-1")
	return err
}
