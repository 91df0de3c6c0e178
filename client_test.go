package webdelivery_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
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
	"github.com/webdelivery/webdelivery-go/internal/testserver"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// NewClient refuses, and names, each argument that cannot work, and everything that is wrong at once. TestCredentialsThatNoHeaderCarries
// and TestTokensThatACookieCarries have the credentials.
func TestNewClientRefusesNonsense(t *testing.T) {
	t.Parallel()
	const good = "https://api.example.com"
	one := func(o webdelivery.Option) []webdelivery.Option { return []webdelivery.Option{o} }
	spelled := func(d webdelivery.Dialect) []webdelivery.Option { return one(webdelivery.WithDialect(d)) }
	tests := []struct {
		baseURL, customer string
		options           []webdelivery.Option
		says              string
	}{
		{"api.example.com", fixture.Customer, nil, "invalid base URL: "},
		{"http://api.example.com", fixture.Customer, nil, "invalid base URL: http is only allowed for loopback hosts; use https or WithPlainHTTP"},
		{"https://user:t0ps3cret@api.example.com", fixture.Customer, nil, "invalid base URL: "},
		{good + "/acme", fixture.Customer, nil, "leave that out, as in https://api.example.com"},
		{good, "acme/v1", nil, "invalid customer: contains a slash or a backslash; write the name of the customer alone"},
		{good, fixture.Customer, one(nil), "invalid options[0]: is nil"},
		{good, fixture.Customer, one(webdelivery.WithHTTPClient(nil)), "invalid WithHTTPClient: is nil"},
		{good, fixture.Customer, one(webdelivery.WithHTTPClient(&http.Client{Timeout: -1})), "invalid WithHTTPClient: "},
		{good, fixture.Customer, one(webdelivery.WithAttemptTimeout(0)), "invalid WithAttemptTimeout: 0s is not above 0"},
		{good, fixture.Customer, one(webdelivery.WithIdleTimeout(0)), "invalid WithIdleTimeout: 0s is not above 0"},
		{good, fixture.Customer, one(webdelivery.WithLogger(nil)), "invalid WithLogger: is nil"},
		{good, fixture.Customer, one(webdelivery.WithUserAgent(" ")), "invalid WithUserAgent: "},
		{good, fixture.Customer, one(webdelivery.WithUserAgent("a\r\nX: y")), "invalid WithUserAgent: "},
		{good, fixture.Customer, one(webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: -1})), "invalid WithRetry.MaxAttempts: -1 is below 0; use 0 for the default"},
		{good, fixture.Customer, one(webdelivery.WithRetry(webdelivery.RetryPolicy{MinWait: 2, MaxWait: 1})), "invalid WithRetry: MinWait 2ns is above MaxWait 1ns"},
		{good, fixture.Customer, one(webdelivery.WithPurgeLimiter(nil)), "invalid WithPurgeLimiter: "},
		{good, fixture.Customer, one(webdelivery.WithMaxResponseBytes(0)), "invalid WithMaxResponseBytes: 0 is not above 0"},
		{good, fixture.Customer, spelled(webdelivery.Dialect{TasksPrefix: "ops"}), "invalid TasksPrefix: "},
		{good, fixture.Customer, spelled(webdelivery.Dialect{TasksPrefix: "/.."}), "invalid TasksPrefix: "},
		{good, fixture.Customer, spelled(webdelivery.Dialect{EntryDeletePath: "/a"}), "invalid EntryDeletePath: "},
		{good, fixture.Customer, spelled(webdelivery.Dialect{EntryDeletePath: "/{entry}/{list}"}), "invalid EntryDeletePath: "},
		{good, fixture.Customer, spelled(webdelivery.Dialect{EntryDeletePath: "//evil.example.com/{list}/{entry}"}), "invalid EntryDeletePath: "},
		{good, fixture.Customer, spelled(webdelivery.Dialect{BatchDeletionMethod: "PO ST"}), "invalid BatchDeletionMethod: "},
		{"ftp://api.example.com", fixture.Customer, one(webdelivery.WithMiddleware(func(http.RoundTripper) http.RoundTripper { return nil })), "; invalid WithMiddleware: "},
		{
			good, "a/b",
			[]webdelivery.Option{webdelivery.WithAttemptTimeout(-1), webdelivery.WithMaxResponseBytes(-1)},
			"; invalid WithAttemptTimeout: -1ns is not above 0; invalid WithMaxResponseBytes: -1 is not above 0",
		},
	}
	for _, tt := range tests {
		client, err := webdelivery.NewClient(tt.baseURL, tt.customer, webdelivery.BasicAuth(fixture.Username, fixture.Password), tt.options...)
		require.ErrorIs(t, err, webdelivery.ErrInvalid, tt.says)
		assert.Nil(t, client)
		assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		assert.Contains(t, err.Error(), tt.says)
		assert.NotContains(t, err.Error(), "t0ps3cret")
	}
	_, err := webdelivery.NewClient(good, fixture.Customer, webdelivery.Auth{})
	refusedAs(t, "auth", err, "no auth")
}

// The address of a request is {base_url}/<customer_name>/v1. A path in the base URL is kept, and the customer is one
// escaped path element.
func TestWhereRequestsGo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ baseURL, customer, want string }{
		{"https://api.example.com:443", "acme", "https://api.example.com/acme/v1"},
		{"HTTPS://API.example.com:8443/root/", "b c?d#e%2e", "https://api.example.com:8443/root/b%20c%3Fd%23e%252e/v1"},
	} {
		var got string
		transport := fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			return &http.Response{StatusCode: 404, Body: http.NoBody, Header: http.Header{}}, nil
		})
		client, err := webdelivery.NewClient(tt.baseURL, tt.customer, webdelivery.BasicAuth(fixture.Username, fixture.Password),
			webdelivery.WithHTTPClient(&http.Client{Transport: transport}))
		require.NoError(t, err)
		_, err = client.Tasks.Get(t.Context(), "7")
		require.ErrorIs(t, err, webdelivery.ErrNotFound)
		assert.Equal(t, tt.want+"/tasks/7", got)
		assert.Equal(t, tt.want, client.URL())
	}
}

func TestPlainHTTPWhenAskedFor(t *testing.T) {
	t.Parallel()
	_, err := webdelivery.NewClient("http://api.example.com", fixture.Customer, webdelivery.BasicAuth(fixture.Username, fixture.Password), webdelivery.WithPlainHTTP())
	require.NoError(t, err)
}

// The environment sets everything that NewClient needs. The password of a file is that of the file now. An error names the
// variable, or all that are missing, and never the password.
func TestNewClientFromEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	set := map[string]string{
		"WEBDELIVERY_BASE_URL": "https://api.example.com", "WEBDELIVERY_CUSTOMER": fixture.Customer,
		"WEBDELIVERY_USERNAME": fixture.Username, "WEBDELIVERY_PASSWORD": fixture.Password,
		"WEBDELIVERY_PASSWORD_FILE": "", "WEBDELIVERY_AUTH": "", "WEBDELIVERY_DIALECT": "",
	}
	with := func(name, value string) {
		for n, v := range set {
			t.Setenv(n, v)
		}
		t.Setenv(name, value)
	}
	var sent []string
	requests := func() []string {
		sent = nil
		synctest.Test(t, func(t *testing.T) { // at once, as a refused login cools down for a second
			client, err := webdelivery.NewClientFromEnv(webdelivery.WithHTTPClient(&http.Client{
				Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
					_, password, _ := r.BasicAuth()
					sent = append(sent, r.Method+" "+r.URL.String()+" "+password)
					write(fixture.Password) // from now on
					return fixture.Response(http.StatusNotFound, nil), nil
				}),
			}))
			require.NoError(t, err)
			for range 2 {
				require.Error(t, fixture.GetTask.Call(t.Context(), client))
			}
		})
		return sent
	}
	const base = "https://api.example.com/acme/v1"
	with("WEBDELIVERY_DIALECT", " TasksPrefix = /ops , StartTimeParam=startime")
	assert.Equal(t, slices.Repeat([]string{"GET " + base + "/ops/tasks/task-1 " + fixture.Password}, 2), requests())
	with("WEBDELIVERY_AUTH", "session")
	assert.Equal(t, []string{"POST " + base + "/sessions " + fixture.Password}, requests(), "a refused login cools down")
	write(yesterdays + "\r\n")
	with("WEBDELIVERY_PASSWORD_FILE", file)
	t.Setenv("WEBDELIVERY_PASSWORD", "")
	assert.Equal(t, []string{"GET " + base + "/tasks/task-1 " + yesterdays, "GET " + base + "/tasks/task-1 " + fixture.Password}, requests())

	wrong := map[string][]string{
		"WEBDELIVERY_BASE_URL": {"https://api.example.com/acme/v1"}, "WEBDELIVERY_CUSTOMER": {"acme/v1"}, "WEBDELIVERY_USERNAME": {"a:b"},
		"WEBDELIVERY_PASSWORD": {"a\nb"}, "WEBDELIVERY_PASSWORD_FILE": {file + "-missing"}, "WEBDELIVERY_AUTH": {"kerberos"},
		"WEBDELIVERY_DIALECT": {"EntryKey", "entryKey=a", "=a", "EntryKey=a,", "EntryDeletePath=/x", "BatchDeletionMethod=a b"},
	}
	for name, values := range wrong {
		for _, value := range values {
			with(name, value)
			_, err := webdelivery.NewClientFromEnv()
			field := name
			if strings.Contains(value, "\n") {
				field = "WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD"
			}
			assert.Equal(t, []string{field}, invalidFields(err), "%s=%s", name, value)
		}
	}
	needed := []string{"WEBDELIVERY_BASE_URL", "WEBDELIVERY_CUSTOMER", "WEBDELIVERY_USERNAME", "WEBDELIVERY_PASSWORD"}
	for n, name := range needed {
		with(name, "")
		for _, earlier := range needed[:n] {
			t.Setenv(earlier, "")
		}
		_, err := webdelivery.NewClientFromEnv()
		assert.Equal(t, needed[:n+1], invalidFields(err))
		assert.NotContains(t, err.Error(), fixture.Password)
	}

	if runtime.GOOS == "windows" {
		return // has no files that hang as a pipe does
	}
	hangs, writer, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _, _ = hangs.Close(), writer.Close() }()
	with("WEBDELIVERY_PASSWORD_FILE", "/dev/fd/"+strconv.Itoa(int(hangs.Fd())))
	_, err = webdelivery.NewClientFromEnv(webdelivery.WithAttemptTimeout(10 * time.Millisecond))
	require.ErrorContains(t, err, "not read within 10ms")
	assert.Equal(t, []string{"WEBDELIVERY_PASSWORD_FILE"}, invalidFields(err))
}

// Do calls addresses that have no method in the SDK, in the same way as methods do.
func TestDo(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/config/networklists/*", Method: http.MethodPut, Count: 1, Status: 503, Header: http.Header{"Retry-After": {"1"}}})
		f.AddFault(testserver.Fault{Path: "/config/networklists/*", Status: 200, Body: `{"name":"feeds","n":9007199254740993}`})
		var out struct {
			Name string
			N    int64
		}
		in := map[string]string{"name": "a<b>&c"}
		require.NoError(f, f.Client.Do(f.Context(), http.MethodPut, "/config/networklists/a%2Fb?force=true&x=%20", in, &out))
		assert.Equal(f, "feeds", out.Name)
		assert.Equal(f, int64(9007199254740993), out.N)

		seen := f.Srv.Requests()
		last := seen[len(seen)-1]
		assert.Equal(f, "/acme/v1/config/networklists/a%2Fb", last.Path)
		assert.Equal(f, "force=true&x=%20", last.RawQuery)
		assert.Equal(f, `{"name":"a<b>&c"}`, string(last.Body))
		assert.Equal(f, []string{"application/json"}, last.Header["Content-Type"])
	})
}

// Do returns an error for a rejection under HTTP 200 too, or for a graver one than the status; the code of a transaction is no
// rejection. null is no object.
func TestDoAndEnvelopes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status     int
		body, path string
		want       error
	}{
		{200, `{"code":403,"description":"not yours"}`, "/config/things/1", webdelivery.ErrForbidden},
		{200, `{"code":399}`, "/config/things/1", nil},
		{404, `{"code":503}`, "/config/things/1", webdelivery.ErrServer},
		{404, `{"code":400}`, "/config/things/1", webdelivery.ErrNotFound},
		{500, `{"code":400}`, "/config/things/1", webdelivery.ErrServer},
		{200, `{"code":403,"description":"no transaction"}`, "/transactions/7", webdelivery.ErrForbidden},
		{200, `{"code":403,"description":"not yours","transaction_id":7}`, "/transactions/7", nil},
		{200, " null\n", "/config/things/1", webdelivery.ErrBadResponse},
	} {
		client := fixture.Answered(t, func(*http.Request) *http.Response { return fixture.Response(tt.status, []byte(tt.body)) })
		require.ErrorIs(t, client.Do(t.Context(), http.MethodGet, tt.path, nil, new(webdelivery.Task)), tt.want, "%d %s", tt.status, tt.body)
	}
	client := fixture.Always(t, []byte(`{"code":403,"description":"not yours"}`))
	err := client.Do(t.Context(), http.MethodDelete, "/config/things/1", nil, nil)
	require.ErrorContains(t, err, "not yours")
	assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	list := []string{"a"}
	require.NoError(t, fixture.Always(t, []byte("null")).Do(t.Context(), http.MethodGet, "/config/things/1", nil, &list))
	assert.Nil(t, list)
}

// A success with an HTML page is no response of the service: a proxy with a login page sends it. So the outcome of a
// write is unknown, whatever the method. A response without a body may carry any label.
func TestALoginPageIsNoResponse(t *testing.T) {
	t.Parallel()
	html, json := http.Header{"Content-Type": {"text/html; charset=utf-8"}}, http.Header{"Content-Type": {"application/json"}}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodHead} {
			for body, header := range map[string]http.Header{"<html>log in</html>": html, "log in": html, "": html, " \n": html, "\n<!DOCTYPE html>": json} {
				remove := f.Srv.Fail(testserver.Fault{Path: "/config/things", Status: 200, Header: header, Body: body})
				err := f.Client.Do(f.Context(), method, "/config/things", nil, nil)
				remove()
				if method == http.MethodHead || strings.TrimSpace(body) == "" {
					require.NoError(f, err, "%s %q", method, body)
					continue
				}
				require.ErrorIs(f, err, webdelivery.ErrBadResponse, "%s %q", method, body)
				assert.Equal(f, method == http.MethodGet, webdelivery.OutcomeOf(err) == webdelivery.OutcomeNotApplied)
			}
		}
	})
}

// Arguments that Do refuses before it sends anything.
func TestDoRefuses(t *testing.T) {
	t.Parallel()
	var none *webdelivery.Task
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		for _, tt := range []struct {
			method, path string
			in, out      any
			field        string
		}{
			{"POST", "/config/things", []byte(`{}`), nil, "in"},
			{"POST", "/config/things", strings.NewReader(`{}`), nil, "in"},
			{"POST", "/cache/purge", nil, nil, "in"},              // net/http itself would retry a purge whose body looks empty to it
			{"POST", "/config/things", func() {}, nil, "request"}, // is not JSON
			{"POST", "/config/things", nil, webdelivery.Task{}, "out"},
			{"POST", "/config/things", nil, none, "out"},
			{"POST", "/config/things", nil, 7, "out"},
			{"", "/tasks", nil, nil, "method"},
			{"get", "/tasks", nil, nil, "method"}, // "post" would be no purge, and take no permit
			{"GET /x", "/tasks", nil, nil, "method"},
			{"GET", "", nil, nil, "path"},
			{"GET", "tasks", nil, nil, "path"},
			{"GET", "https://evil.example.com/acme/v1/tasks", nil, nil, "path"},
			{"GET", "//evil.example.com/tasks", nil, nil, "path"},
			{"GET", "/../other/v1/tasks", nil, nil, "path"},
			{"GET", "/%2e%2E/other", nil, nil, "path"},
			{"GET", "/tasks//7", nil, nil, "path"},
			{"GET", "/tasks/%zz", nil, nil, "path"},
			{"GET", `/tasks\7`, nil, nil, "path"},
			{"GET", `/tasks%5c7`, nil, nil, "path"},
			{"GET", "/tasks\n", nil, nil, "path"},
			{"GET", "/tasks?a= b", nil, nil, "path"},
			{"GET", "/tasks#x", nil, nil, "path"},
		} {
			call := tt.method + " " + tt.path
			refusedAs(f.T, tt.field, f.Client.Do(f.Context(), tt.method, tt.path, tt.in, tt.out), call)
			assert.Empty(f, f.Srv.Requests(), call)
			assert.Zero(f, f.Srv.ForeignDials(), call)
		}
	})
}

// The user's http.Client is unchanged: no field is set or replaced, and its jar is never used.
func TestTheHTTPClientOfTheUserIsLeftAlone(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		jar := forbiddenJar{f}
		follow := func(*http.Request, []*http.Request) error { return nil }
		f.HTTP.Jar, f.HTTP.CheckRedirect = jar, follow
		transport := f.HTTP.Transport
		client := f.NewClient(f.Srv.URL(), fixture.BySession)
		require.NoError(f, fixture.GetTask.Call(f.Context(), client))
		f.AddFault(testserver.Fault{Status: 302, Header: http.Header{"Location": {"/elsewhere"}, "Set-Cookie": {"a=b"}}})
		require.ErrorIs(f, fixture.GetTask.Call(f.Context(), client), webdelivery.ErrBadResponse)
		assert.Same(f, transport, f.HTTP.Transport)
		assert.Equal(f, jar, f.HTTP.Jar)
		assert.NotNil(f, f.HTTP.CheckRedirect)
		assert.Zero(f, f.HTTP.Timeout)
	})
}

// forbiddenJar fails the test when it is used.
type forbiddenJar struct{ f *fixture.Fixture }

func (j forbiddenJar) SetCookies(*url.URL, []*http.Cookie) {
	j.f.Error("the client stores a cookie in the jar")
}

func (j forbiddenJar) Cookies(*url.URL) []*http.Cookie {
	j.f.Error("the client reads the jar")
	return nil
}

// Many goroutines use one client, with every kind of fault.
func TestOneClientForManyGoroutines(t *testing.T) {
	t.Parallel()
	s := fixture.BySession
	s.Options = []webdelivery.Option{
		webdelivery.WithLogger(slog.New(slog.DiscardHandler)),
		webdelivery.WithPurgeLimiter(fixture.Unlimited{}),
	}
	s.Server.PurgeRate = -1
	fixture.InService(t, s, func(f *fixture.Fixture) {
		var wg sync.WaitGroup
		for i := range 100 {
			if i%10 == 5 {
				// Not for logins: two faults for one login end it.
				f.AddFault(testserver.Fault{Path: "/tasks/*", Skip: i, Count: 1, Status: 503})
				f.AddFault(testserver.Fault{Path: "/cache/purge", Skip: i, Count: 1, Cut: testserver.CutAfterRead})
			}
			wg.Go(func() {
				for _, op := range []fixture.Operation{fixture.GetTask, fixture.Submit, fixture.CreateSession} {
					assert.NoError(f, op.Call(f.Context(), f.Client))
				}
			})
		}
		time.Sleep(time.Millisecond)
		f.Srv.ExpireSessions()
		wg.Wait()
	})
}

// A client of net/http without a Transport has that of net/http.
func TestAnHTTPClientWithoutATransport(t *testing.T) { //nolint:paralleltest // it replaces http.DefaultTransport
	defer func(before http.RoundTripper) { http.DefaultTransport = before }(http.DefaultTransport)
	http.DefaultTransport = fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
		return fixture.Response(http.StatusNotFound, nil), nil
	})
	client, err := webdelivery.NewClient("https://api.example.com", fixture.Customer,
		webdelivery.BasicAuth(fixture.Username, fixture.Password), webdelivery.WithHTTPClient(&http.Client{}))
	require.NoError(t, err)
	require.ErrorIs(t, fixture.GetTask.Call(t.Context(), client), webdelivery.ErrNotFound)
}

// overDefault runs a test with the transport that a client has by default, connected to a service in memory.
func overDefault(t *testing.T, s fixture.Setup, test func(f *fixture.Fixture, tr *http.Transport)) {
	t.Helper()
	fixture.InService(t, s, func(f *fixture.Fixture) {
		tr := transport.NewRoundTripper()
		defer tr.CloseIdleConnections()
		tr.DialContext = f.Srv.DialContext
		f.HTTP.Transport = tr
		f.Client = f.NewClient(f.Srv.URL(), s)
		test(f, tr)
	})
}

// blackHole is a connection that discards what is written after it was closed off: no response comes any more.
type blackHole struct {
	net.Conn
	off *atomic.Bool
}

func (c blackHole) Write(p []byte) (int, error) {
	if c.off.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// A ping detects within the attempt that a connection of HTTP/2 is dead. The client does not use that connection
// again.
func TestHTTP2BlackHole(t *testing.T) {
	t.Parallel()
	overDefault(t, fixture.Setup{}, func(f *fixture.Fixture, tr *http.Transport) {
		tr.Protocols = new(http.Protocols)
		tr.Protocols.SetUnencryptedHTTP2(true)
		var off atomic.Bool
		var dials atomic.Int32
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := f.Srv.DialContext(ctx, network, addr)
			if dials.Add(1) == 1 {
				conn = blackHole{conn, &off}
			}
			return conn, err
		}
		client := f.NewClient(f.Srv.URL(), fixture.Setup{}) // of a transport that speaks HTTP/2
		require.NoError(f, fixture.GetTask.Call(f.Context(), client))
		off.Store(true)
		began := time.Now()
		require.NoError(f, fixture.GetTask.Call(f.Context(), client))
		assert.Less(f, time.Since(began), 30*time.Second)
		assert.Equal(f, int32(2), dials.Load())
	})
}

// A server that closes idle connections after 20 s never closes one during a request: the client closes it earlier.
func TestServerClosesIdleConnectionAsPOSTIsSent(t *testing.T) {
	t.Parallel()
	s := fixture.Setup{Server: testserver.Config{IdleTimeout: 20 * time.Second}}
	overDefault(t, s, func(f *fixture.Fixture, _ *http.Transport) {
		for range 20 {
			require.ErrorIs(f, fixture.PostWrite.Call(f.Context(), f.Client), webdelivery.ErrNotFound, "not without a response")
			time.Sleep(20 * time.Second)
		}
		assert.Equal(f, 20, f.Srv.Connections())
	})
}

// 64 goroutines keep their connections: the second round dials none.
func TestIdleConnectionsForManyGoroutines(t *testing.T) {
	t.Parallel()
	overDefault(t, fixture.Setup{}, func(f *fixture.Fixture, _ *http.Transport) {
		f.Warm()                                         // otherwise all calls would wait for the first response
		f.AddFault(testserver.Fault{Delay: time.Second}) // so that all are under way at once
		for range 2 {
			for range 64 {
				go func() { _ = fixture.GetTask.Call(f.Context(), f.Client) }()
			}
			time.Sleep(2 * time.Second)
		}
		assert.Equal(f, 64, f.Srv.Connections())
	})
}
