package suite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
)

// lures are addresses that a service may send to lead its client elsewhere; FuzzResolve finds others. {a} is the host and port of the service,
// {aport} its port. {b} is the host and port of another server that listens, {bport} its port.
var lures = []string{
	"http://{b}/acme/v1/tasks", "https://{b}/acme/v1/tasks", "//{b}/acme/v1/tasks", "///{b}/acme/v1/tasks", "http:{b}/acme/v1/tasks",
	"http://{a}@{b}/acme/v1/tasks", "http://{b}#@{a}/acme/v1/tasks", `http://{b}\@{a}/acme/v1/tasks`, `\\{b}\acme`, "/\t/{b}/acme/v1/tasks",
	" http://{b}/acme/v1/tasks", "@{b}/acme/v1/tasks", "{b}/acme/v1/tasks", "http://user:secret@{a}/acme/v1/tasks",
	"http://localhost:{bport}/acme/v1/tasks", "https://{a}/acme/v1/tasks", "file:///acme/v1/tasks", "http://localhost.:{aport}/acme/v1/tasks",
	"http://localhost%00.evil.example.com/acme/v1/tasks", "http://2130706433:{bport}/acme/v1/tasks", "http://127.1:{bport}/acme/v1/tasks",
	"http://[::ffff:127.0.0.1]:{bport}/acme/v1/tasks", "http://ｌｏｃａｌｈｏｓｔ:{bport}/acme/v1/tasks", "/acme/v1/../../other/v1/tasks",
	"/tasks/%2e%2e/%2e%2e/other", `/tasks\..\..\other`, "../other", "/", "", "?page=2", "http://{a}/other/v1/tasks",
	"http://{a}/acme/v10/tasks", "/tasks HTTP/1.1\r\nHost: {b}\r\n\r\n", "/tasks%0d%0aHost:%20{b}",
}

// luring is a service that answers everything with one lure, and that records its requests.
type luring struct {
	status int
	lure   string
	honest func(*http.Request) bool // requests that it answers without a lure

	polls    atomic.Int64
	mu       sync.Mutex
	requests []string // "METHOD host path"
}

func (l *luring) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	l.mu.Lock()
	l.requests = append(l.requests, r.Host+" "+r.RequestURI)
	l.mu.Unlock()
	header := w.Header()
	header.Set("Content-Type", "application/json")
	if l.honest(r) {
		_, _ = w.Write(everyResponse{text: honestText, address: honestAddress, page: 1}.to(r))
		return
	}
	for _, name := range []string{"Location", "Content-Location", "Uri"} {
		header[name] = []string{l.lure}
	}
	header["Refresh"] = []string{"0; url=" + l.lure}
	header["Link"] = []string{"<" + l.lure + `>; rel="next"`}
	header["Alt-Svc"] = []string{`h2="` + l.lure + `", h3="` + l.lure + `"`}
	// The first poll of a task or a transaction finds it pending, and its response contains the address of the next
	// poll.
	answer := everyResponse{
		text: honestText, address: func(string) string { return l.lure }, page: 1, more: true,
		pending: l.polls.Add(1) == 1, lacking: l.status != http.StatusOK,
	}
	w.WriteHeader(l.status)
	_, _ = w.Write(answer.to(r))
}

func honestText(member string) string {
	if member == "type" {
		return "IP"
	}
	return member
}

func honestAddress(member string) string {
	if member == "entries_batch_deletion_uri" {
		return "/config/networklists/" + fixture.ListID + "/entries/deletions"
	}
	return "/tasks/" + fixture.TaskID
}

// The client sends credentials to one origin only, and only below its base URL. Whatever a service answers to any
// call, the client connects to no other server. Each lure meets a third of the calls.
func TestNoResponseLeadsElsewhere(t *testing.T) {
	t.Parallel()
	var strangers atomic.Int64
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	stranger.Config.ConnState = func(net.Conn, http.ConnState) { strangers.Add(1) }
	t.Cleanup(stranger.Close)
	for _, auth := range []webdelivery.Auth{webdelivery.BasicAuth(fixture.Username, fixture.Password), webdelivery.SessionAuth(fixture.Username, fixture.Password)} {
		t.Run(auth.String(), func(t *testing.T) {
			t.Parallel()
			for i, lure := range lures {
				// Every status with one lure, and every lure with one status whose response the client reads.
				statuses := []int{200}
				switch {
				case i == 0:
					statuses = []int{200, 201, 300, 301, 302, 303, 307, 308}
				case auth.String() != "basic alice" && i%16 > 0: // both differ in one header only
					continue
				}
				for _, status := range statuses {
					lureSteps(t, everyNthStep(3, i+status), auth, status, lure, stranger.Listener.Addr().String())
				}
			}
		})
	}
	t.Cleanup(func() { assert.Zero(t, strangers.Load(), "the client connected to another server") })
}

// lureSteps makes calls of a client of one such service. In fake time, a slow machine ends no call early.
func lureSteps(t *testing.T, steps []step, auth webdelivery.Auth, status int, lure, stranger string) {
	t.Helper()
	_, strangePort, err := net.SplitHostPort(stranger)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		port := strconv.Itoa(1024 + int(lurePorts.Add(1)%60_000))
		own := "localhost:" + port
		l := &luring{status: status}
		l.lure = strings.NewReplacer("{a}", own, "{aport}", port, "{b}", stranger, "{bport}", strangePort).Replace(lure)
		home := &pipes{accepted: make(chan net.Conn), done: make(chan struct{})}
		service := &http.Server{Handler: l, ReadHeaderTimeout: time.Hour}
		go func() { _ = service.Serve(home) }()
		defer func() { assert.NoError(t, service.Close()) }()

		dials := &dialer{own: own, home: home}
		transport := &http.Transport{DialContext: dials.dial}
		defer transport.CloseIdleConnections()
		for _, op := range steps {
			client, err := webdelivery.NewClient("http://"+own, fixture.Customer, auth, webdelivery.WithHTTPClient(&http.Client{Transport: transport}),
				webdelivery.WithPurgeLimiter(noLimit{}), webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
			require.NoError(t, err)
			l.lureStep(t, op, client, own, false)
			if op.Name == "NetworkLists.Apply" { // with honest entries, a plan gets as far as its changes
				l.lureStep(t, op, client, own, true)
			}
		}
		assert.Empty(t, dials.foreign(), "status %d, lure %q", status, lure)
	})
}

// lurePorts numbers the services: clients of one origin share state, which must not leave its bubble.
var lurePorts atomic.Uint32

// lureStep makes one call. The addresses of its requests belong to the service and are below the base.
func (l *luring) lureStep(t *testing.T, op step, client *webdelivery.Client, own string, honestEntries bool) {
	t.Helper()
	login := op.Kind == operations.LogsIn
	l.polls.Store(0)
	l.honest = func(r *http.Request) bool {
		path := r.URL.Path
		return !login && path == "/acme/v1/sessions" || honestEntries && r.Method == http.MethodGet && strings.Contains(path, fixture.ListID)
	}
	l.requests = nil
	ctx, cancel := context.WithCancel(t.Context())
	_ = op.run(ctx, client, func(...any) {}) // most calls end in an error, which is not what this is about
	cancel()
	synctest.Wait() // no request is under way any more

	what := fmt.Sprintf("%s, status %d, lure %q", op, l.status, l.lure)
	assert.NotEmpty(t, l.requests, what)
	for _, request := range l.requests {
		host, uri, _ := strings.Cut(request, " ")
		assert.Equal(t, own, host, what)
		assertBelow(t, uri, what)
	}
}

// assertBelow checks that an address is below the base, however its escapes are read.
func assertBelow(t *testing.T, uri, what string) {
	t.Helper()
	path, _, _ := strings.Cut(uri, "?")
	assert.True(t, strings.HasPrefix(path, "/acme/v1/"), "%s: %s", what, uri)
	for range 2 { // also for a proxy that decodes escapes before it routes
		for _, element := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			assert.NotContains(t, []string{".", ".."}, element, "%s: %s", what, uri)
		}
		plain, err := url.PathUnescape(path)
		require.NoError(t, err)
		path = plain
	}
}

// dialer connects to one address, and records the others that it should connect to.
type dialer struct {
	own    string
	home   *pipes
	mu     sync.Mutex
	others []string
}

func (d *dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	if address == d.own {
		return d.home.dial(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.others = append(d.others, address)
	return nil, errors.New("the address of another server")
}

func (d *dialer) foreign() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.others)
}

// pipes is a listener in memory: testing/synctest understands what blocks on it.
type pipes struct {
	accepted chan net.Conn
	once     sync.Once
	done     chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.accepted <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noLimit grants every permit at once.
type noLimit struct{}

func (noLimit) Wait(context.Context) error { return nil }
