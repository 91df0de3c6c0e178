package webdeliverytest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// wire is a client without the SDK. Its methods return the status and the response as text.
type wire struct {
	t   *testing.T
	srv *webdeliverytest.Server
}

func (w wire) do(method, path, body string, edits ...func(*http.Request)) (status int, response string) {
	w.t.Helper()
	address := w.srv.URL + "/" + w.srv.Customer + "/v1" + path
	r, err := http.NewRequestWithContext(w.t.Context(), method, address, strings.NewReader(body))
	require.NoError(w.t, err)
	r.SetBasicAuth(w.srv.Username, w.srv.Password)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, edit := range edits {
		edit(r)
	}
	resp, err := w.srv.HTTPClient().Do(r)
	require.NoError(w.t, err)
	var text strings.Builder
	require.NoError(w.t, resp.Write(&text)) // status line, header and body
	require.NoError(w.t, resp.Body.Close())
	return resp.StatusCode, text.String()
}

func (w wire) purge(uri string) (status int) {
	w.t.Helper()
	status, _ = w.do(http.MethodPost, "/cache/purge",
		`{"purge_request":{"action":"PURGE","uris":[{"match_mode":"PREFIX_LITERAL","uri_pattern":"`+uri+`"}]}}`)
	return status
}

// purgesAt purges at these times, in milliseconds.
func (w wire) purgesAt(times ...int) (statuses []int) {
	w.t.Helper()
	now := 0
	for _, at := range times {
		w.srv.Clock.Advance(time.Duration(at-now) * time.Millisecond)
		now = at
		statuses = append(statuses, w.purge("https://www.example.com/app.css"))
	}
	return statuses
}

func (w wire) get(path string, edits ...func(*http.Request)) (status int, response string) {
	w.t.Helper()
	return w.do(http.MethodGet, path, "", edits...)
}

func as(name, password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(name, password) }
}

// Each option has an effect that a request shows.
func TestOptions(t *testing.T) {
	t.Parallel()
	const css = "https://www.example.com/app.css"
	for name, tc := range map[string]struct {
		options []webdeliverytest.Option
		test    func(t *testing.T, w wire)
	}{
		"none": {nil, func(t *testing.T, w wire) {
			assert.Regexp(t, `^http://127\.\d+\.\d+\.\d+:8080$`, w.srv.URL)
			assert.Equal(t, []string{"acme", "alice", "correct-horse-battery"}, []string{w.srv.Customer, w.srv.Username, w.srv.Password})
			// Service document, section 8: two purge requests per second and customer, in any window.
			assert.Equal(t, []int{201, 201, 503, 503, 201, 503, 201}, w.purgesAt(0, 900, 950, 999, 1000, 1899, 1900))
		}},
		"customer": {[]webdeliverytest.Option{webdeliverytest.WithCustomer("my shop")}, func(t *testing.T, w wire) {
			_, err := w.srv.Client(t).Tasks.List(t.Context(), webdelivery.TaskListOptions{})
			require.NoError(t, err)
			assert.Equal(t, "/my%20shop/v1/tasks", w.srv.Requests()[0].Path)
		}},
		"users": {[]webdeliverytest.Option{webdeliverytest.WithUsers(
			webdeliverytest.User{Name: "bob", Password: "one:two", Domains: []string{"*.example.net"}},
			webdeliverytest.User{Name: "eve", Password: "p", MayNotViewConfig: true},
		)}, func(t *testing.T, w wire) {
			assert.Equal(t, []int{400, 201}, []int{w.purge("www.example.com/"), w.purge("www.example.net/")})
			status, _ := w.get("/config/networklists")
			assert.Equal(t, 200, status)
			for _, path := range []string{"", "/l", "/l/entries", "/l/entries/e"} {
				status, _ = w.get("/config/networklists"+path, as("eve", "p"))
				assert.Equal(t, 403, status, path)
			}
			status, _ = w.get("/tasks", as("alice", "correct-horse-battery"))
			assert.Equal(t, 401, status)
		}},
		"session lifetime": {[]webdeliverytest.Option{webdeliverytest.WithSessionLifetime(time.Minute)}, func(t *testing.T, w wire) {
			client := w.srv.ClientAs(t, webdelivery.SessionAuth(w.srv.Username, w.srv.Password))
			var logins []int
			for _, while := range []time.Duration{0, time.Minute - 1, 1} {
				w.srv.Clock.Advance(while)
				_, err := client.Tasks.List(t.Context(), webdelivery.TaskListOptions{})
				require.NoError(t, err)
				logins = append(logins, w.srv.Logins())
			}
			assert.Equal(t, []int{1, 1, 2}, logins)
		}},
		"purge rate": {[]webdeliverytest.Option{webdeliverytest.WithPurgeRate(1, time.Minute), webdeliverytest.WithDialect(webdeliverytest.Dialect{
			TooFast: "429-retry-after",
		})}, func(t *testing.T, w wire) {
			assert.Equal(t, 201, w.purge(css))
			status, response := w.do(http.MethodPost, "/cache/purge", "{}")
			assert.Equal(t, 429, status)
			assert.Contains(t, response, "Retry-After: 60\r\n")
			w.srv.Clock.Advance(time.Minute)
			assert.Equal(t, 201, w.purge(css))
		}},
		"refused purges": {[]webdeliverytest.Option{webdeliverytest.WithRefusedPurgesCounted()}, func(t *testing.T, w wire) {
			// Open point 39.
			assert.Equal(t, []int{201, 201, 503, 201, 503, 503, 503, 503, 201, 201},
				w.purgesAt(0, 0, 500, 1000, 1400, 1500, 2399, 2499, 3400, 3500))
		}},
		"purge duration": {[]webdeliverytest.Option{webdeliverytest.WithPurgeDuration(time.Hour)}, func(t *testing.T, w wire) {
			assert.Equal(t, []bool{true, false}, pending(t, w, time.Hour-time.Second, time.Second))
		}},
		"no durations": {[]webdeliverytest.Option{webdeliverytest.WithPurgeDuration(0), webdeliverytest.WithDeployDuration(0)}, func(t *testing.T, w wire) {
			assert.Equal(t, []bool{false}, pending(t, w, 0))
			assert.True(t, clearList(t, w).Complete)
		}},
		"deploy duration": {[]webdeliverytest.Option{webdeliverytest.WithDeployDuration(time.Hour)}, func(t *testing.T, w wire) {
			assert.False(t, clearList(t, w).Complete)
		}},
		"host patterns": {[]webdeliverytest.Option{
			webdeliverytest.WithHostPatterns("shop.example.com", "*.example.net"), webdeliverytest.WithUnlimitedPurges(),
		}, func(t *testing.T, w wire) {
			assert.Equal(t, []int{400, 201, 201}, []int{w.purge("www.example.com/"), w.purge("shop.example.com/"), w.purge("*.example.net/")})
			none := webdeliverytest.NewServer(t, webdeliverytest.WithHostPatterns(), webdeliverytest.InMemory())
			assert.Equal(t, 400, wire{t, none}.purge(css))
		}},
		"dialect": {[]webdeliverytest.Option{webdeliverytest.WithDialect(webdeliverytest.Dialect{
			TasksPrefix: "/ops", SessionReply: "text", Errors: "empty",
		})}, func(t *testing.T, w wire) {
			status, response := w.get("/tasks")
			assert.Equal(t, 404, status)
			assert.True(t, strings.HasSuffix(response, "\r\n\r\n"), "no body")
			client := w.srv.ClientAs(t, webdelivery.SessionAuth(w.srv.Username, w.srv.Password),
				webdelivery.WithDialect(webdelivery.Dialect{TasksPrefix: "/ops"}))
			_, err := client.Tasks.List(t.Context(), webdelivery.TaskListOptions{})
			require.NoError(t, err)
		}},
		"small ids, and unlimited purges": {[]webdeliverytest.Option{webdeliverytest.WithSmallIDs(), webdeliverytest.WithUnlimitedPurges()}, func(t *testing.T, w wire) {
			for range 10 {
				require.Equal(t, 201, w.purge("www.example.com/"))
			}
			status, _ := w.get("/transactions/10")
			assert.Equal(t, 200, status)
		}},
		"several rules and request ids": {nil, func(t *testing.T, w wire) {
			w.srv.Fail(webdeliverytest.FaultRule{Delay: time.Second})
			w.srv.Fail(webdeliverytest.FaultRule{Delay: 2 * time.Second, Header: http.Header{"X-Served-By": {"edge"}}})
			w.srv.Fail(webdeliverytest.FaultRule{Status: 503, Count: 1})
			w.srv.Fail(webdeliverytest.FaultRule{Status: 404, Count: 1})
			began := time.Now()
			for i, want := range []int{503, 404, 200} {
				status, response := w.get("/tasks?since=2026-01-31T05:30:00.000-0500")
				assert.Equal(t, want, status)
				assert.Contains(t, response, "X-Served-By: edge\r\n")
				assert.Contains(t, response, fmt.Sprintf("X-Request-Id: request-%d\r\n", i+1))
			}
			assert.Equal(t, 9*time.Second, time.Since(began), "delays add up")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tc.test(t, wire{t, webdeliverytest.NewServer(t, append(tc.options, webdeliverytest.InMemory())...)})
			})
		})
	}
}

// pending submits a purge, advances the clock by each while, and returns whether the transaction was pending then.
func pending(t *testing.T, w wire, whiles ...time.Duration) (states []bool) {
	t.Helper()
	require.Equal(t, 201, w.purge("www.example.com/"))
	for _, while := range whiles {
		w.srv.Clock.Advance(while)
		tx, err := w.srv.Client(t).Purge.Status(t.Context(), w.srv.Purged()[0].TransactionID)
		require.NoError(t, err)
		states = append(states, tx.Status == "PENDING")
	}
	return states
}

// clearList empties a list and returns the task of its deployment.
func clearList(t *testing.T, w wire) *webdelivery.Task {
	t.Helper()
	client := w.srv.Client(t)
	task, err := client.NetworkLists.ClearEntries(t.Context(), w.srv.AddNetworkList(webdeliverytest.NetworkListSpec{Entries: []string{"192.0.2.1"}}))
	require.NoError(t, err)
	require.NotNil(t, task)
	return task
}

// A server with a request log stores no requests. A server with its own address works like any other.
func TestWithRequestLogAndAddress(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var logged []webdeliverytest.Request
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithAddress("127.0.0.3:0"), webdeliverytest.WithRequestLog(func(r webdeliverytest.Request) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, r)
	}))
	assert.Regexp(t, `^http://127\.0\.0\.3:\d+$`, srv.URL)
	status, _ := wire{t, srv}.get("/tasks")
	assert.Equal(t, 200, status)
	srv.Close() // all requests are in the log then
	require.Len(t, logged, 1)
	assert.Equal(t, "/acme/v1/tasks", logged[0].Path)
	assert.Equal(t, 200, logged[0].Status)
	assert.Empty(t, srv.Requests())
	assert.Zero(t, srv.Count("", ""))
}
