package testserver_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

func (f fake) login() string {
	f.t.Helper()
	r := f.do(http.MethodPost, "/sessions", "")
	require.Equal(f.t, http.StatusCreated, r.status, r.body)
	id, _ := r.object(f.t)["id"].(string)
	require.NotEmpty(f.t, id)
	return id
}

// Section 5: failed authentication returns 401, and 403 in the purge area (open point 6: also for transactions).
func TestSection5Authentication(t *testing.T) {
	t.Parallel()
	endpoints := []struct {
		method, path, body string
		good, denied       int
	}{
		{http.MethodGet, "/tasks", "", 200, 401},
		{http.MethodGet, "/tasks/1", "", 200, 401},
		{http.MethodPost, "/sessions", "", 201, 401},
		{http.MethodPost, "/cache/purge", onePurge, 201, 403},
		{http.MethodGet, "/transactions/1", "", 404, 403},
		{http.MethodGet, "/stats/security/events/data", "", 400, 401},
		{http.MethodGet, "/stats/security/waf/topk/ruleid/groupings", "", 200, 401},
		{http.MethodHead, "/stats/security/request/trends", "", 200, 401},
	}
	for name, tc := range map[string]struct {
		edits []edit
		good  bool
	}{
		"basic":                  {nil, true},
		"second user":            {[]edit{basic("bob", "other:words")}, true},
		"nothing":                {[]edit{anonymous}, false},
		"wrong password":         {[]edit{basic("alice", "wrong")}, false},
		"password of another":    {[]edit{basic("alice", "other:words")}, false},
		"unknown user":           {[]edit{basic("carol", "correct-horse-battery")}, false},
		"user in capitals":       {[]edit{basic("Alice", "correct-horse-battery")}, false},
		"unknown session":        {[]edit{session("nobody")}, false},
		"another scheme":         {[]edit{header("Authorization", "Bearer abc")}, false},
		"not Base64":             {[]edit{header("Authorization", "Basic ###")}, false},
		"two Authorizations":     {[]edit{header("Authorization", "Basic YTpi", "Basic YTpi")}, false},
		"bad basic, bad session": {[]edit{basic("alice", "x"), header("Cookie", "authtoken=x")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{Users: []testserver.User{
				{Name: "alice", Password: "correct-horse-battery"}, {Name: "bob", Password: "other:words"},
			}})
			f.AddTask(testserver.TaskSpec{ID: "1"})
			for _, e := range endpoints {
				r := f.do(e.method, e.path, e.body, tc.edits...)
				want, challenge := e.good, ""
				if !tc.good {
					want = e.denied
				}
				if want == http.StatusUnauthorized {
					challenge = `Basic realm="acme"`
				}
				assert.Equal(t, want, r.status, "%s %s", e.method, e.path)
				assert.Equal(t, challenge, r.header.Get("WWW-Authenticate"))
			}
		})
	}
}

// Section 5: the session id is sent as the value of a cookie named authtoken.
func TestSection5SessionCookie(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	id, other := f.login(), f.login()
	assert.NotEqual(t, id, other)
	assert.GreaterOrEqual(t, len(id), 20)
	assert.Equal(t, 2, f.Logins())

	for name, tc := range map[string]struct {
		edits  []edit
		status int
	}{
		"cookie":                {[]edit{session(id)}, 200},
		"among other cookies":   {[]edit{anonymous, header("Cookie", "a=b; authtoken="+id)}, 200},
		"other name":            {[]edit{anonymous, header("Cookie", "Authtoken="+id)}, 401},
		"two of them":           {[]edit{anonymous, header("Cookie", "authtoken="+id+"; authtoken="+other)}, 401},
		"as bearer token":       {[]edit{header("Authorization", "Bearer "+id)}, 401},
		"as a query parameter":  {[]edit{anonymous, func(r *http.Request) { r.URL.RawQuery = "authtoken=" + id }}, 401},
		"beside a bad password": {[]edit{session(id), basic("alice", "wrong")}, 401},
	} {
		assert.Equal(t, tc.status, f.get("/tasks", tc.edits...).status, name)
	}
	assert.Equal(t, 401, f.do(http.MethodPost, "/sessions", "", session(id)).status, "a login takes a password only")
	assert.Equal(t, 201, f.purge(onePurge, session(id)).status)
	assert.Equal(t, "alice", f.Purged()[0].User)
}

// Section 5: the document does not show the lifetime. Here a session ends with its configured lifetime, or with
// ExpireSessions.
func TestSection5SessionsEnd(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{SessionLifetime: time.Minute})
	id := f.login()
	f.Clock().Advance(time.Minute - 1)
	assert.Equal(t, 200, f.get("/tasks", session(id)).status)
	f.Clock().Advance(1)
	assert.Equal(t, 401, f.get("/tasks", session(id)).status)
	assert.Equal(t, 403, f.get("/transactions/1", session(id)).status)

	id = f.login()
	f.ExpireSessions()
	assert.Equal(t, 401, f.get("/tasks", session(id)).status)
	assert.Equal(t, 200, f.get("/tasks", session(f.login())).status, "later sessions are good")
	assert.Equal(t, 3, f.Logins())

	f = start(t, testserver.Config{})
	id = f.login()
	f.Clock().Advance(1000 * time.Hour)
	assert.Equal(t, 200, f.get("/tasks", session(id)).status, "no lifetime set")
}

// Open point 5: the possible shapes of the response to POST /sessions.
func TestSection45SessionReplies(t *testing.T) {
	t.Parallel()
	member := func(name string) func(*testing.T, response) string {
		return func(t *testing.T, r response) string {
			t.Helper()
			object := r.object(t)
			assert.Len(t, object, 1)
			id, _ := object[name].(string)
			return id
		}
	}
	for spelling, read := range map[string]func(*testing.T, response) string{
		"": member("id"), "id": member("id"), "session_id": member("session_id"), "sessionid": member("sessionid"),
		"authtoken": member("authtoken"), "token": member("token"),
		"string": func(t *testing.T, r response) (id string) {
			t.Helper()
			assert.NoError(t, json.Unmarshal([]byte(r.body), &id))
			return id
		},
		"text": func(t *testing.T, r response) string {
			t.Helper()
			assert.Equal(t, "text/plain", r.header.Get("Content-Type"))
			return r.body
		},
		"cookie": func(t *testing.T, r response) string {
			t.Helper()
			assert.Empty(t, r.body)
			cookie, err := http.ParseSetCookie(r.header.Get("Set-Cookie"))
			require.NoError(t, err)
			assert.Equal(t, "authtoken", cookie.Name)
			return cookie.Value
		},
	} {
		t.Run("as "+spelling, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{Dialect: testserver.Dialect{SessionReply: spelling}})
			r := f.do(http.MethodPost, "/sessions", "")
			require.Equal(t, http.StatusCreated, r.status)
			assert.Equal(t, 200, f.get("/tasks", session(read(t, r))).status)
		})
	}
}
