package webdelivery_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Arguments that NewClient refuses, and the word that its error contains.
func TestNewClientRefusesNonsense(t *testing.T) {
	t.Parallel()
	const good = "https://api.example.com"
	basic := webdelivery.BasicAuth(fixture.Username, fixture.Password)
	one := func(o webdelivery.Option) []webdelivery.Option { return []webdelivery.Option{o} }
	tests := []struct {
		name, baseURL, customer string
		auth                    webdelivery.Auth
		options                 []webdelivery.Option
		says                    string
	}{
		{"no scheme", "api.example.com", fixture.Customer, basic, nil, "base URL"},
		{"http off loopback", "http://api.example.com", fixture.Customer, basic, nil, "WithPlainHTTP"},
		{"userinfo", "https://user:t0ps3cret@api.example.com", fixture.Customer, basic, nil, "base URL"},
		{"base URL with the customer", good + "/acme", fixture.Customer, basic, nil, "leave that out, as in https://api.example.com"},
		{"customer with a slash", good, "acme/v1", basic, nil, "invalid customer: contains a slash or a backslash; write the name of the customer alone"},
		{"control byte in the password", good, fixture.Customer, webdelivery.BasicAuth(fixture.Username, "a\nb"), nil, "password"},
		{"no auth", good, fixture.Customer, webdelivery.Auth{}, nil, "auth"},
		{"empty user name", good, fixture.Customer, webdelivery.BasicAuth("", fixture.Password), nil, "user name"},
		{"colon in the user name", good, fixture.Customer, webdelivery.BasicAuth("a:b", fixture.Password), nil, "user name"},
		{"empty password", good, fixture.Customer, webdelivery.SessionAuth(fixture.Username, ""), nil, "password"},
		{"empty token", good, fixture.Customer, webdelivery.SessionToken(""), nil, "SessionToken"},
		{"token that injects a cookie", good, fixture.Customer, webdelivery.SessionToken("a; b=c"), nil, "SessionToken"},
		{"token with a newline", good, fixture.Customer, webdelivery.SessionToken("a\r\nb"), nil, "SessionToken"},
		{"nil option", good, fixture.Customer, basic, one(nil), "options[0]: is nil"},
		{"nil http client", good, fixture.Customer, basic, one(webdelivery.WithHTTPClient(nil)), "WithHTTPClient"},
		{"negative timeout of the http client", good, fixture.Customer, basic, one(webdelivery.WithHTTPClient(&http.Client{Timeout: -1})), "WithHTTPClient"},
		{"attempt timeout 0", good, fixture.Customer, basic, one(webdelivery.WithAttemptTimeout(0)), "WithAttemptTimeout"},
		{"nil logger", good, fixture.Customer, basic, one(webdelivery.WithLogger(nil)), "WithLogger"},
		{"empty user agent", good, fixture.Customer, basic, one(webdelivery.WithUserAgent(" ")), "WithUserAgent"},
		{"user agent that injects a header", good, fixture.Customer, basic, one(webdelivery.WithUserAgent("a\r\nX: y")), "WithUserAgent"},
		{"negative attempts", good, fixture.Customer, basic, one(webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: -1})), "WithRetry.MaxAttempts: -1 is below 0; use 0 for the default"},
		{"MinWait above MaxWait", good, fixture.Customer, basic, one(webdelivery.WithRetry(webdelivery.RetryPolicy{MinWait: 2, MaxWait: 1})), "WithRetry"},
		{"nil limiter", good, fixture.Customer, basic, one(webdelivery.WithPurgeLimiter(nil)), "WithPurgeLimiter"},
		{"response limit 0", good, fixture.Customer, basic, one(webdelivery.WithMaxResponseBytes(0)), "WithMaxResponseBytes"},
		{"tasks prefix without a slash", good, fixture.Customer, basic, one(webdelivery.WithDialect(webdelivery.Dialect{TasksPrefix: "ops"})), "TasksPrefix"},
		{"tasks prefix with dots", good, fixture.Customer, basic, one(webdelivery.WithDialect(webdelivery.Dialect{TasksPrefix: "/.."})), "TasksPrefix"},
		{"delete path without ids", good, fixture.Customer, basic, one(webdelivery.WithDialect(webdelivery.Dialect{EntryDeletePath: "/a"})), "EntryDeletePath"},
		{"delete path in the wrong order", good, fixture.Customer, basic, one(webdelivery.WithDialect(webdelivery.Dialect{EntryDeletePath: "/{entry}/{list}"})), "EntryDeletePath"},
		{"delete path that is no path", good, fixture.Customer, basic, one(webdelivery.WithDialect(webdelivery.Dialect{EntryDeletePath: "//evil.example.com/{list}/{entry}"})), "EntryDeletePath"},
		{"invalid method", good, fixture.Customer, basic, one(webdelivery.WithDialect(webdelivery.Dialect{BatchDeletionMethod: "PO ST"})), "BatchDeletionMethod"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client, err := webdelivery.NewClient(tt.baseURL, tt.customer, tt.auth, tt.options...)
			require.ErrorIs(t, err, webdelivery.ErrInvalid)
			assert.Nil(t, client)
			assert.Contains(t, err.Error(), tt.says)
			assert.NotContains(t, err.Error(), "t0ps3cret")
		})
	}
}

// The address of a request is {base_url}/<customer_name>/v1. A path in the base URL is kept, and the customer is one
// escaped path element.
func TestWhereRequestsGo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		baseURL, customer, want string
	}{
		{"https://api.example.com", "acme", "https://api.example.com/acme/v1/tasks/7"},
		{"HTTPS://API.example.com:8443/root/", "b c?d#e%2e", "https://api.example.com:8443/root/b%20c%3Fd%23e%252e/v1/tasks/7"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
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
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestPlainHTTPWhenAskedFor(t *testing.T) {
	t.Parallel()
	_, err := webdelivery.NewClient("http://api.example.com", fixture.Customer, webdelivery.BasicAuth(fixture.Username, fixture.Password), webdelivery.WithPlainHTTP())
	require.NoError(t, err)
}

func TestNewClientFromEnv(t *testing.T) {
	set := map[string]string{
		"WEBDELIVERY_BASE_URL": "https://api.example.com", "WEBDELIVERY_CUSTOMER": "acme",
		"WEBDELIVERY_USERNAME": fixture.Username, "WEBDELIVERY_PASSWORD": fixture.Password, "WEBDELIVERY_AUTH": "",
	}
	for name, value := range set {
		t.Setenv(name, value)
	}
	_, err := webdelivery.NewClientFromEnv()
	require.NoError(t, err)

	t.Setenv("WEBDELIVERY_AUTH", "session")
	var paths []string
	_, err = webdelivery.NewClientFromEnv()
	require.NoError(t, err)
	client, err := webdelivery.NewClientFromEnv(webdelivery.WithHTTPClient(&http.Client{
		Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
			paths = append(paths, r.URL.Path)
			return &http.Response{StatusCode: 403, Body: http.NoBody, Header: http.Header{}}, nil
		}),
	}))
	require.NoError(t, err)
	_, err = client.Tasks.Get(t.Context(), "7")
	require.ErrorIs(t, err, webdelivery.ErrUnauthorized)
	assert.Equal(t, []string{"/acme/v1/sessions"}, paths, "WEBDELIVERY_AUTH=session means a login")

	t.Setenv("WEBDELIVERY_AUTH", "kerberos")
	_, err = webdelivery.NewClientFromEnv()
	require.ErrorContains(t, err, "WEBDELIVERY_AUTH")

	t.Setenv("WEBDELIVERY_AUTH", "")
	for name, wrong := range map[string]string{
		"WEBDELIVERY_BASE_URL": "https://api.example.com/acme/v1", "WEBDELIVERY_CUSTOMER": "acme/v1", "WEBDELIVERY_USERNAME": "a:b",
		"WEBDELIVERY_PASSWORD": "a\nb",
	} {
		t.Setenv(name, wrong)
		_, err = webdelivery.NewClientFromEnv()
		require.ErrorContains(t, err, "webdelivery: invalid WEBDELIVERY_")
		require.ErrorContains(t, err, name, "the error names the variable")
		t.Setenv(name, set[name])
	}
	for _, name := range []string{"WEBDELIVERY_BASE_URL", "WEBDELIVERY_CUSTOMER", "WEBDELIVERY_USERNAME", "WEBDELIVERY_PASSWORD"} {
		t.Setenv(name, "")
		_, err = webdelivery.NewClientFromEnv()
		require.ErrorIs(t, err, webdelivery.ErrInvalid)
		require.ErrorContains(t, err, name)
		assert.NotContains(t, err.Error(), fixture.Password)
	}
	// At this point all four are missing: one error names them all.
	for _, name := range []string{"WEBDELIVERY_BASE_URL", "WEBDELIVERY_CUSTOMER", "WEBDELIVERY_USERNAME", "WEBDELIVERY_PASSWORD"} {
		assert.Equal(t, 1, strings.Count(err.Error(), name))
	}
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

// Do returns an error for a rejection under HTTP 200 too; the code of a transaction is no rejection.
func TestDoAndEnvelopes(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 200, Body: `{"code":403,"description":"not yours"}`})
		err := f.Client.Do(f.Context(), http.MethodDelete, "/config/things/1", nil, nil)
		require.ErrorIs(f, err, webdelivery.ErrForbidden)
		require.ErrorContains(f, err, "not yours")
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		require.ErrorIs(f, f.Client.Do(f.Context(), http.MethodGet, "/transactions/7", nil, nil), webdelivery.ErrForbidden, "the response is no transaction")
	})
	fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 200, Body: `{"code":403,"description":"not yours","transaction_id":7}`})
		require.NoError(f, f.Client.Do(f.Context(), http.MethodGet, "/transactions/7", nil, nil))
	})
}

// A success with an HTML page is no response of the service: a proxy with a login page sends it. So the outcome of a
// write is unknown, whatever the method. A response without a body may carry any label.
func TestALoginPageIsNoResponse(t *testing.T) {
	t.Parallel()
	html, json := http.Header{"Content-Type": {"text/html; charset=utf-8"}}, http.Header{"Content-Type": {"application/json"}}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead} {
		for body, header := range map[string]http.Header{"<html>log in</html>": html, "log in": html, "": html, " \n": html, "\n<!DOCTYPE html>": json} {
			t.Run(method+" "+body, func(t *testing.T) {
				t.Parallel()
				fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
					f.AddFault(testserver.Fault{Path: "/config/things", Status: 200, Header: header, Body: body})
					err := f.Client.Do(f.Context(), method, "/config/things", nil, nil)
					switch {
					case method == http.MethodHead || strings.TrimSpace(body) == "":
						assert.NoError(f, err)
					case method == http.MethodGet:
						assert.ErrorIs(f, err, webdelivery.ErrBadResponse)
					default:
						assert.ErrorIs(f, err, webdelivery.ErrBadResponse)
						assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
					}
				})
			})
		}
	}
}

// If a response cannot be read into the argument, Do returns an error before it sends anything.
func TestDoRefusesWhatIsNoPointer(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		var none *webdelivery.Task
		for _, out := range []any{webdelivery.Task{}, none, 7} {
			err := f.Client.Do(f.Context(), http.MethodPost, "/config/things", nil, out)
			require.ErrorIs(f, err, webdelivery.ErrInvalid)
		}
		assert.Empty(f, f.Srv.Requests())
	})
}

// Arguments that Do refuses before it sends anything.
func TestDoRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, method, path string
		in                 any
	}{
		{"bytes", "POST", "/config/things", []byte(`{}`)},
		{"a reader", "POST", "/config/things", strings.NewReader(`{}`)},
		{"no method", "", "/tasks", nil},
		{"a method with a blank", "GET /x", "/tasks", nil},
		{"no path", "GET", "", nil},
		{"a relative path", "GET", "tasks", nil},
		{"another origin", "GET", "https://evil.example.com/acme/v1/tasks", nil},
		{"a host alone", "GET", "//evil.example.com/tasks", nil},
		{"a way out", "GET", "/../other/v1/tasks", nil},
		{"an escaped way out", "GET", "/%2e%2E/other", nil},
		{"an empty element", "GET", "/tasks//7", nil},
		{"a bad escape", "GET", "/tasks/%zz", nil},
		{"a backslash", "GET", `/tasks\7`, nil},
		{"an escaped backslash", "GET", `/tasks%5c7`, nil},
		{"a newline", "GET", "/tasks\n", nil},
		{"a fragment", "GET", "/tasks#x", nil},
		{"a body that is not JSON", "POST", "/tasks", func() {}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
				err := f.Client.Do(f.Context(), tt.method, tt.path, tt.in, nil)
				require.ErrorIs(f, err, webdelivery.ErrInvalid)
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				assert.Empty(f, f.Srv.Requests())
				assert.Zero(f, f.Srv.ForeignDials())
			})
		})
	}
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
		webdelivery.WithPurgeLimiter(limiter{wait: func(context.Context) error { return nil }}),
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

// NewClient names everything that is wrong, as other calls do.
func TestNewClientNamesAllProblems(t *testing.T) {
	t.Parallel()
	_, err := webdelivery.NewClient("api.example.com", "a/b", webdelivery.BasicAuth("alice", ""), webdelivery.WithAttemptTimeout(-1), webdelivery.WithMaxResponseBytes(-1))
	require.ErrorIs(t, err, webdelivery.ErrInvalid)
	for _, part := range []string{"base URL", "password", "WithAttemptTimeout", "WithMaxResponseBytes"} {
		assert.Contains(t, err.Error(), part)
	}
	assert.NotContains(t, err.Error(), "\n")
}
