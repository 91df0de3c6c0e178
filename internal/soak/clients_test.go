package soak

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// The only user of the fake service.
const (
	customer = "acme"
	username = "alice"
	password = "correct-horse-battery"
)

// clients are the clients of the service: one for each way to log in, and several retry policies.
type clients struct {
	url        string
	fixed      []*webdelivery.Client
	token      atomic.Pointer[webdelivery.Client] // with a fixed token, as long as the token is valid
	quiet      *webdelivery.Client                // for preparations and cleanup
	transports []*http.Transport
	tokenWire  *http.Client
}

// connect creates the clients for a listening server.
func (s *soak) connect(address string) {
	s.url = address
	// No policy waits long. If a service asks for a wait of an hour, the call fails instead, and pauses the purges no
	// longer than its policy allows.
	patient := webdelivery.RetryPolicy{MinWait: 200 * time.Millisecond, MaxWait: 2 * time.Second}
	eager := webdelivery.RetryPolicy{MaxAttempts: 6, MinWait: 5 * time.Millisecond, MaxWait: 1500 * time.Millisecond}
	once := webdelivery.RetryPolicy{MaxAttempts: 1, MaxWait: time.Second}
	basic, session := webdelivery.BasicAuth(username, password), webdelivery.SessionAuth(username, password)
	s.fixed = []*webdelivery.Client{
		s.newClient(basic, s.newWire(), patient),
		s.newClient(basic, s.newWire(), eager),
		s.newClient(basic, s.newWire(), once),
		s.newClient(session, s.newWire(), patient),
		s.newClient(session, s.newWire(), eager),
	}
	s.quiet = s.newClient(basic, s.newWire(), patient)
	s.tokenWire = s.newWire()
	s.token.Store(s.newClient(webdelivery.SessionToken("made-by-nobody"), s.tokenWire, eager))
}

func (s *soak) newClient(auth webdelivery.Auth, through *http.Client, retry webdelivery.RetryPolicy) *webdelivery.Client {
	c, err := webdelivery.NewClient(s.url, customer, auth,
		webdelivery.WithHTTPClient(through), webdelivery.WithRetry(retry), webdelivery.WithLogger(slog.New(slog.DiscardHandler)),
		webdelivery.WithAttemptTimeout(2*time.Second), webdelivery.WithIdleTimeout(time.Second))
	require.NoError(s, err)
	return c
}

// client draws a client. The client with a fixed token comes less often, because the service rejects its token most of
// the time.
func (s *soak) client(r *rand.Rand) *webdelivery.Client {
	if r.IntN(20) == 0 {
		return s.token.Load()
	}
	return s.fixed[r.IntN(len(s.fixed))]
}

func (s *soak) closeIdleConnections() {
	for _, t := range s.transports {
		t.CloseIdleConnections()
	}
}

// createSession creates a session. The next client with a fixed token uses it.
func (w *worker) createSession(ctx context.Context, c *webdelivery.Client) error {
	if c == w.token.Load() {
		c = w.fixed[0] // a token cannot log in
	}
	before := w.srv.Logins()
	session, err := c.Sessions.Create(ctx)
	w.wrote("Sessions.Create", err)
	if err != nil {
		return err
	}
	if session.ID == "" || w.srv.Logins() <= before {
		w.problem("Sessions.Create", "a session of %d characters, and the service made none", len(session.ID))
	}
	w.token.Store(w.newClient(webdelivery.SessionToken(session.ID), w.tokenWire, webdelivery.RetryPolicy{MaxWait: time.Second}))
	return nil
}

// newWire creates an http.Client with its own connections.
func (s *soak) newWire() *http.Client {
	transport := s.srv.Transport()
	transport.MaxIdleConnsPerHost = workers
	s.transports = append(s.transports, transport)
	address, err := url.Parse(s.url)
	require.NoError(s, err)
	return &http.Client{Transport: &wire{soak: s, base: transport, host: address.Host}}
}

// wire is the RoundTripper of all requests.
type wire struct {
	soak *soak
	base *http.Transport
	host string
}

// RoundTrip implements [http.RoundTripper].
func (t *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if req.URL.Host != t.host {
		t.soak.problem("redirect", "a request went to %s", req.URL.Host)
	}
	t.soak.weather.tick()
	t.soak.noteGoroutines()
	step(ctx)
	resp, err := t.base.RoundTrip(req)
	step(ctx)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get(weatherHeader) == "" {
		t.soak.tooFast.Add(1)
	}
	resp.Body = &steppingBody{resp.Body, ctx}
	return resp, nil
}

func (s *soak) noteGoroutines() {
	now := int64(runtime.NumGoroutine())
	for {
		most := s.maxGoroutines.Load()
		if now <= most || s.maxGoroutines.CompareAndSwap(most, now) {
			return
		}
	}
}

// steppingBody counts its reads as steps.
type steppingBody struct {
	io.ReadCloser

	ctx context.Context
}

// Read implements [io.Reader].
func (b *steppingBody) Read(p []byte) (int, error) {
	step(b.ctx)
	return b.ReadCloser.Read(p)
}
