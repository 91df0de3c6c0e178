package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

const (
	username = "alice"
	password = "correct-horse-battery"
	// basicPair is the Base64 encoding of alice:correct-horse-battery, worked out by coreutils' base64.
	basicPair = "YWxpY2U6Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"
)

var errLost = errors.New("connection lost")

// fixture is a transport, the service that it sends to, and its log, in a bubble of fake time.
type fixture struct {
	*testing.T
	*service

	transport *transport.Transport
	log       *bytes.Buffer
}

// inFakeTime runs a test against a service that answers the requests as the script says. The last element of the script
// answers all further requests. bend may be nil.
func inFakeTime(t *testing.T, bend func(c *transport.Config), test func(f *fixture), script ...exchange) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		base, err := address.Parse("https://api.example.com", "acme", false)
		require.NoError(t, err)
		f := &fixture{T: t, service: &service{began: time.Now(), script: script}, log: &bytes.Buffer{}}
		config := transport.Config{
			Base: base, Credentials: transport.Credentials{Username: username, Password: redact.New(password)}, Next: f.service,
			Policy:         transport.Policy{MaxAttempts: 4, MinWait: 1, MaxWait: 20 * time.Second, ThrottleTimeout: 5 * time.Minute},
			AttemptTimeout: 30 * time.Second, IdleTimeout: 10 * time.Second, MaxBody: 1 << 20, UserAgent: "agent/1",
			Logger: slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})),
		}
		if bend != nil {
			bend(&config)
		}
		f.transport = transport.New(config)
		test(f)
	})
}

// send sends a request with the test's context.
func (f *fixture) send(r transport.Request) (*transport.Response, error) {
	return f.transport.Send(f.Context(), r)
}

// succeeds sends a request that must succeed.
func (f *fixture) succeeds(r transport.Request) *transport.Response {
	f.Helper()
	response, err := f.send(r)
	require.NoError(f, err)
	return response
}

// fails sends a request that must fail.
func (f *fixture) fails(r transport.Request) *transport.Failure {
	f.Helper()
	return f.failsWith(f.Context(), r)
}

func (f *fixture) failsWith(ctx context.Context, r transport.Request) *transport.Failure {
	f.Helper()
	response, err := f.transport.Send(ctx, r)
	require.Nil(f, response)
	failure, ok := err.(*transport.Failure) //nolint:errorlint // it comes as it is
	require.True(f, ok, "%v", err)
	return failure
}

// exchange answers one request.
type exchange func(r *http.Request) (*http.Response, error)

// seen is a request as the service got it.
type seen struct {
	at          time.Duration // since the test began
	method, url string
	header      http.Header
	body        string
	hasGetBody  bool
	context     context.Context
}

// service keeps to the contract of http.RoundTripper: it reads and closes the body of each request, and changes
// nothing.
type service struct {
	began  time.Time
	script []exchange

	mu   sync.Mutex
	seen []seen
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	s.mu.Lock()
	s.seen = append(s.seen, seen{time.Since(s.began), r.Method, r.URL.String(), r.Header.Clone(), string(body), r.GetBody != nil, r.Context()})
	next := s.script[min(len(s.seen), len(s.script))-1]
	s.mu.Unlock()
	return next(r)
}

// requests returns what the service got so far.
func (s *service) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.seen...)
}

func (s *service) count() int { return len(s.requests()) }

// times are the moments at which requests came.
func (s *service) times() []time.Duration {
	var times []time.Duration
	for _, r := range s.requests() {
		times = append(times, r.at)
	}
	return times
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// respond makes a response with a length. The header is given as name, value, name, value.
func respond(status int, body string, header ...string) *http.Response {
	resp := &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Add(header[i], header[i+1])
	}
	return resp
}

// answer answers at once.
func answer(status int, body string, header ...string) exchange {
	return func(*http.Request) (*http.Response, error) { return respond(status, body, header...), nil }
}

// after answers later.
func after(d time.Duration, next exchange) exchange {
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(d)
		return next(r)
	}
}

// cut is a connection that ends without a response.
func cut(*http.Request) (*http.Response, error) { return nil, errLost }

// silent never answers.
func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// cutBody is a body of which less arrives than its length says.
func cutBody(status int, body string, header ...string) exchange {
	return withBody(status, func(context.Context) io.Reader {
		return io.MultiReader(strings.NewReader(body), failing{io.ErrUnexpectedEOF})
	}, header...)
}

// withBody answers with a body of unknown length, in chunks.
func withBody(status int, body func(ctx context.Context) io.Reader, header ...string) exchange {
	return func(r *http.Request) (*http.Response, error) {
		resp := respond(status, "", header...)
		resp.Body, resp.ContentLength, resp.TransferEncoding = io.NopCloser(body(r.Context())), -1, []string{"chunked"}
		return resp, nil
	}
}

// endless is a body whose end is that of the connection.
func endless(body string) exchange {
	return func(*http.Request) (*http.Response, error) {
		resp := respond(http.StatusOK, body)
		resp.ContentLength = -1
		return resp, nil
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// standing is a body that sends nothing until the context ends.
type standing struct{ ctx context.Context }

func (s standing) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// pausing is a body that sends nothing for some time, and then ends.
type pausing struct{ d time.Duration }

func (p pausing) Read([]byte) (int, error) {
	time.Sleep(p.d)
	return 0, io.EOF
}

// closing counts how often a body is closed, and notes whether it is read after that.
type closing struct {
	io.Reader
	times int
	late  bool
}

func (c *closing) Read(p []byte) (int, error) {
	c.late = c.late || c.times > 0
	return c.Reader.Read(p)
}

func (c *closing) Close() error {
	c.times++
	return nil
}

// unconnected reports, as net/http does, that it wants a connection, and gets none.
func unconnected(err error) exchange {
	return func(r *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(r.Context()).GetConn("api.example.com:443")
		return nil, err
	}
}

// connected reports a connection and that the request was written, as net/http does.
func connected(next exchange) exchange {
	return func(r *http.Request) (*http.Response, error) {
		trace := httptrace.ContextClientTrace(r.Context())
		trace.GetConn("api.example.com:443")
		trace.GotConn(httptrace.GotConnInfo{})
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		trace.WroteHeaders()
		if trace.WroteRequest != nil {
			trace.WroteRequest(httptrace.WroteRequestInfo{})
		}
		return next(r)
	}
}

// aRead, aWrite and so on are requests of each class.
var (
	aRead      = transport.Request{Class: transport.Read, Method: http.MethodGet, Path: "/things"}
	aDelete    = transport.Request{Class: transport.Delete, Method: http.MethodDelete, Path: "/things/7"}
	aRepeated  = transport.Request{Class: transport.Repeatable, Method: http.MethodPost, Path: "/things", Body: []byte(`{}`)}
	aWrite     = transport.Request{Class: transport.Once, Method: http.MethodPost, Path: "/things", Body: []byte(`{}`)}
	aLogin     = transport.Request{Class: transport.Login, Method: http.MethodPost, Path: "/sessions"}
	allClasses = []transport.Request{aRead, aDelete, aRepeated, aWrite, aLogin}
)
