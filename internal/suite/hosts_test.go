package suite_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
)

// lures are addresses that a service may send to lead its client elsewhere; FuzzResolve finds others. {a} is the host and
// port of the service, {b} those of another server, {bport} its port.
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
	requests []string // "scheme://host path"
}

// RoundTrip gets every request with the address that its connection would have.
func (l *luring) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	l.mu.Lock()
	l.requests = append(l.requests, r.URL.Scheme+"://"+r.URL.Host+r.Host+" "+r.URL.RequestURI())
	l.mu.Unlock()
	if l.honest(r) {
		return fixture.Response(http.StatusOK, everyResponse{text: honestText, address: honestAddress, page: 1}.to(r)), nil
	}
	// The first poll of a task or a transaction finds it pending, and its response contains the address of the next
	// poll.
	resp := fixture.Response(l.status, everyResponse{
		text: honestText, address: func(string) string { return l.lure }, page: 1, more: true,
		pending: l.polls.Add(1) == 1, lacking: l.status != http.StatusOK,
	}.to(r))
	for _, name := range []string{"Location", "Content-Location", "Uri"} {
		resp.Header[name] = []string{l.lure}
	}
	resp.Header["Refresh"] = []string{"0; url=" + l.lure}
	resp.Header["Link"] = []string{"<" + l.lure + `>; rel="next"`}
	return resp, nil
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
	basic := webdelivery.BasicAuth(fixture.Username, fixture.Password)
	for i, lure := range lures {
		t.Run(lure, func(t *testing.T) {
			t.Parallel()
			// Every status with one lure, and every lure with one status whose response the client reads.
			statuses := []int{200}
			if i == 0 {
				statuses = []int{200, 201, 300, 301, 302, 303, 307, 308}
			}
			for _, status := range statuses {
				lureSteps(t, everyNthStep(3, i+status), basic, status, lure)
			}
			if i%16 == 0 { // a session differs in one header only
				lureSteps(t, everyNthStep(3, i+200), webdelivery.SessionAuth(fixture.Username, fixture.Password), 200, lure)
			}
		})
	}
}

func lureSteps(t *testing.T, steps []step, auth webdelivery.Auth, status int, lure string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		port := fmt.Sprint(1024 + lurePorts.Add(1)%60_000)
		own := "localhost:" + port
		l := &luring{status: status}
		l.lure = strings.NewReplacer("{a}", own, "{aport}", port, "{b}", "localhost:1", "{bport}", "1").Replace(lure)
		for _, op := range steps {
			client, err := webdelivery.NewClient("http://"+own, fixture.Customer, auth, webdelivery.WithHTTPClient(&http.Client{Transport: l}),
				webdelivery.WithPurgeLimiter(fixture.Unlimited{}), webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
			require.NoError(t, err)
			l.lureStep(t, op, client, own, false)
			if op.Name == "NetworkLists.Apply" { // with honest entries, a plan gets as far as its changes
				l.lureStep(t, op, client, own, true)
			}
		}
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
		origin, uri, _ := strings.Cut(request, " ")
		assert.Equal(t, "http://"+own, origin, what)
		assertBelow(t, uri, what)
	}
}

// assertBelow checks that an address is below the base, however its escapes are read, also by a proxy that decodes them
// before it routes.
func assertBelow(t *testing.T, uri, what string) {
	t.Helper()
	path, _, _ := strings.Cut(uri, "?")
	assert.True(t, strings.HasPrefix(path, "/acme/v1/"), "%s: %s", what, uri)
	for range 2 {
		assert.NotRegexp(t, `(^|[/\\])\.\.?([/\\]|$)`, path, what)
		plain, err := url.PathUnescape(path)
		require.NoError(t, err)
		path = plain
	}
}
