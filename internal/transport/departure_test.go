package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/transport"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// A lease ends once, as soon as the latest time is known at which its request may have arrived. That is the time of the
// response, or 5 s after the request was written. If the transport does not report that, it is 5 s after the failure.
func TestWhenALeaseEnds(t *testing.T) {
	t.Parallel()
	const second = time.Second
	// written reports some writings, one a second, and goes on after the last.
	written := func(next exchange, errs ...error) exchange {
		return func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("api.example.com:443")
			trace.GotConn(httptrace.GotConnInfo{})
			for _, err := range errs {
				trace.WroteRequest(httptrace.WroteRequestInfo{Err: err})
				time.Sleep(second)
			}
			return next(r)
		}
	}
	for _, tt := range []struct {
		name    string
		service exchange
		want    ending
	}{
		{"a response at once", connected(answer(200, "")), ending{0, 0}},
		{"a response after 3 s", connected(after(3*second, answer(200, ""))), ending{3 * second, 3 * second}},
		{"a refusal after 3 s", connected(after(3*second, answer(400, ""))), ending{3 * second, 3 * second}},
		{"a response of a transport that reports nothing", after(20*second, answer(200, "")), ending{20 * second, 20 * second}},
		{"a response whose body takes long", connected(withBody(200, func(context.Context) io.Reader { return pausing{20 * second} })), ending{0, 0}},
		{"a response whose body breaks", connected(cutBody(200, "")), ending{0, 0}},
		{"a response after 20 s", connected(after(20*second, answer(200, ""))), ending{5 * second, 5 * second}},
		{"a cut after 2 s", connected(after(2*second, cut)), ending{2 * second, 5 * second}},
		{"a cut after 20 s", connected(after(20*second, cut)), ending{5 * second, 5 * second}},
		{"no response in time", connected(silent), ending{5 * second, 5 * second}},
		{"a cut, and the transport reports nothing", after(2*second, cut), ending{2 * second, 7 * second}},
		{"no connection", after(2*second, unconnected(errLost)), ending{2 * second, unsent}},
		{"no connection in time", connecting, ending{30 * second, unsent}},
		{"a request that was not written whole", written(cut, errLost), ending{second, 6 * second}},
		{"a request that was written twice", written(cut, nil, nil), ending{2 * second, 6 * second}},
		{"a request that was written twice, and no response", written(after(20*second, answer(200, "")), nil, nil), ending{6 * second, 6 * second}},
		{"a response after 5 s", connected(after(5*second, answer(200, ""))), ending{5 * second, 5 * second}},
		{"a request that was written at the second try", written(cut, errLost, nil), ending{2 * second, 6 * second}},
		{"a panic", after(2*second, func(*http.Request) (*http.Response, error) { panic(errBroken) }), ending{2 * second, 7 * second}},
		{"a panic after it was written", connected(after(2*second, func(*http.Request) (*http.Response, error) { panic(errBroken) })), ending{2 * second, 5 * second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(c *transport.Config) { c.Policy.MaxAttempts = 1 }, func(f *fixture) {
				l := &lender{}
				func() {
					defer func() { _ = recover() }()
					_, _ = f.send(limited(l.gate()))
				}()
				time.Sleep(time.Minute)
				assert.Equal(f, []ending{tt.want}, l.endings())
			}, tt.service)
		})
	}
}

// The caller who leaves does not free a place of which something may still arrive.
func TestWhenALeaseEndsOfACallerWhoLeaves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		service exchange
		want    ending
	}{
		{"before a connection", connecting, ending{time.Second, unsent}},
		{"before the response", connected(silent), ending{time.Second, 5 * time.Second}},
		{"of a transport that reports nothing", silent, ending{time.Second, 6 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				l := &lender{}
				ctx, cancel := context.WithTimeout(f.Context(), time.Second)
				defer cancel()
				f.failsWith(ctx, limited(l.gate()))
				time.Sleep(time.Minute)
				assert.Equal(f, []ending{tt.want}, l.endings())
			}, tt.service)
		})
	}
}

// A Done that runs while the response is overdue is seen out: nothing of it outlives the call. What it does in place of
// returning reaches the caller.
func TestADoneThatRunsWhileTheResponseIsOverdue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		done  func()
		ends  time.Duration // the call
		cause error
	}{
		{"returns", func() {}, 7 * time.Second, nil},
		{"takes long", func() { time.Sleep(20 * time.Second) }, 25 * time.Second, nil},
		{"panics", func() { panic(errBroken) }, 7 * time.Second, errBroken},
		{"ends its goroutine", runtime.Goexit, 7 * time.Second, usercode.ErrGoexit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, service := range []exchange{answer(200, ""), cut} {
				inFakeTime(t, nil, func(f *fixture) {
					l := &lender{done: tt.done}
					r := limited(l.gate())
					r.Class = transport.Once // what was cut is not sent again
					_, err := f.send(r)
					assert.Equal(f, tt.ends, time.Since(f.began))
					assert.Equal(f, []ending{{5 * time.Second, 5 * time.Second}}, l.endings())
					response, _ := service(nil)
					switch {
					case tt.cause != nil:
						require.ErrorIs(f, err, tt.cause)
						assert.Equal(f, 1, f.count())
					case response == nil:
						require.ErrorIs(f, err, errLost)
					default:
						require.NoError(f, err)
					}
				}, connected(after(7*time.Second, service)))
			}
		})
	}
}

// watchedConn counts how often it is closed.
type watchedConn struct {
	net.Conn
	closed int
}

func (c *watchedConn) Close() error {
	c.closed++
	return errors.New("closed")
}

// HTTP/1 does not look at the context before it writes, so a permit that has expired closes the connection; others do
// not.
func TestAnExpiredPermitClosesTheConnection(t *testing.T) {
	t.Parallel()
	for expires, want := range map[time.Duration]int{0: 0, time.Hour: 0, 1: 1} {
		inFakeTime(t, func(c *transport.Config) { c.Policy.MaxAttempts = 1 }, func(f *fixture) {
			conn := &watchedConn{}
			f.script = []exchange{func(r *http.Request) (*http.Response, error) {
				time.Sleep(time.Second)
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GetConn("api.example.com:443")
				trace.GotConn(httptrace.GotConnInfo{Conn: conn})
				assert.Equal(f, want == 1, r.Context().Err() != nil)
				return answer(200, "")(r)
			}}
			_, _ = f.send(limited((&lender{expires: func(int) time.Duration { return expires }}).gate()))
			assert.Equal(f, want, conn.closed)
		})
	}
}
