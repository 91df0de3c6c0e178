package testserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Section 1 and 9: every path is relative to {base_url}/<customer_name>/v1.
func TestSection1Addresses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path   string
		status int
	}{
		"known":                     {"/root/dir/acme/v1/tasks", 200},
		"without base":              {"/acme/v1/tasks", 404},
		"another customer":          {"/root/dir/other/v1/tasks", 404},
		"customer in capitals":      {"/root/dir/ACME/v1/tasks", 404},
		"another version":           {"/root/dir/acme/v2/tasks", 404},
		"customer escaped":          {"/root/dir/%61cme/v1/tasks", 200},
		"unknown resource":          {"/root/dir/acme/v1/nothing", 404},
		"no resource":               {"/root/dir/acme/v1", 404},
		"empty resource":            {"/root/dir/acme/v1/", 404},
		"empty id":                  {"/root/dir/acme/v1/tasks/", 404},
		"doubled slash":             {"/root/dir/acme/v1//tasks", 404},
		"dots are not resolved":     {"/root/dir/acme/v1/x/../tasks", 404},
		"id with an escaped slash":  {"/root/dir/acme/v1/tasks/a%2Fb", 200},
		"id split by a plain slash": {"/root/dir/acme/v1/tasks/a/b", 404},
		"id with other characters":  {"/root/dir/acme/v1/tasks/%3F%25%20%C3%BC", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{BasePath: "/root/dir"})
			f.AddTask(testserver.TaskSpec{ID: "a/b"})
			f.AddTask(testserver.TaskSpec{ID: "?% ü"})
			r := f.request(http.MethodGet, f.URL(), "")
			r.URL.Path, r.URL.RawPath = "", ""
			r.URL.Opaque = "//" + r.URL.Host + tc.path // sent unchanged
			resp, err := f.client.Do(r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, tc.status, resp.StatusCode)
			assert.Equal(t, tc.path, f.Requests()[0].Path)
		})
	}
}

// Section 4: a known path has only the methods of the endpoint tables.
func TestSection4Methods(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ method, path, allow string }{
		{http.MethodPost, "/tasks", "GET"},
		{http.MethodHead, "/tasks", "GET"},
		{http.MethodDelete, "/tasks/1", "GET"},
		{http.MethodGet, "/cache/purge", "POST"},
		{http.MethodPut, "/cache/purge", "POST"},
		{http.MethodPost, "/transactions/1", "GET"},
		{http.MethodGet, "/sessions", "POST"},
	} {
		t.Run(tc.method+tc.path, func(t *testing.T) {
			t.Parallel()
			r := start(t, testserver.Config{}).do(tc.method, tc.path, "", anonymous)
			assert.Equal(t, http.StatusMethodNotAllowed, r.status)
			assert.Equal(t, tc.allow, r.header.Get("Allow"))
		})
	}
}

// Section 1: everything is JSON over HTTP.
func TestSection1ContentTypes(t *testing.T) {
	t.Parallel()
	const anyPurge, noPurge = 201, 406
	for name, tc := range map[string]struct {
		header string
		values []string
		status int
	}{
		"body as JSON":                {"Content-Type", []string{"application/json"}, anyPurge},
		"with a parameter":            {"Content-Type", []string{"Application/JSON; charset=utf-8"}, anyPurge},
		"body without a type":         {"Content-Type", nil, noPurge},
		"body as text":                {"Content-Type", []string{"text/plain"}, noPurge},
		"body as a form":              {"Content-Type", []string{"application/x-www-form-urlencoded"}, noPurge},
		"malformed type":              {"Content-Type", []string{"application/json; ="}, noPurge},
		"no Accept":                   {"Accept", nil, anyPurge},
		"anything accepted":           {"Accept", []string{"*/*"}, anyPurge},
		"JSON among others":           {"Accept", []string{"text/html, application/json;q=0.1"}, anyPurge},
		"JSON in a second header":     {"Accept", []string{"text/html", "application/json"}, anyPurge},
		"application/*":               {"Accept", []string{"application/*"}, anyPurge},
		"HTML only":                   {"Accept", []string{"text/html"}, noPurge},
		"JSON excluded":               {"Accept", []string{"application/json;q=0"}, noPurge},
		"all but JSON":                {"Accept", []string{"application/json;q=0, */*"}, noPurge},
		"all but JSON, range first":   {"Accept", []string{"*/*, application/json;q=0.0"}, noPurge},
		"JSON although the rest is 0": {"Accept", []string{"application/json, */*;q=0"}, anyPurge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{})
			assert.Equal(t, tc.status, f.purge(onePurge, header(tc.header, tc.values...)).status)
		})
	}
}

// Sections 4.1 and 4.4: parameters and bodies that an endpoint does not have are rejected.
func TestSection4NothingButWhatIsDocumented(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ method, path, body string }{
		"body on GET":            {http.MethodGet, "/tasks", `{}`},
		"body on POST sessions":  {http.MethodPost, "/sessions", `{}`},
		"parameter on task":      {http.MethodGet, "/tasks/1?page=1", ""},
		"parameter on purge":     {http.MethodPost, "/cache/purge?dry=1", onePurge},
		"parameter on tasks":     {http.MethodGet, "/tasks?limit=1", ""},
		"parameter in capitals":  {http.MethodGet, "/tasks?Page=1", ""},
		"parameter given twice":  {http.MethodGet, "/tasks?page=1&page=1", ""},
		"parameter without text": {http.MethodGet, "/tasks?status=", ""},
		"malformed query":        {http.MethodGet, "/tasks?page=%zz", ""},
		"semicolon in query":     {http.MethodGet, "/tasks?page=1;count=2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{})
			f.AddTask(testserver.TaskSpec{ID: "1"})
			r := f.do(tc.method, tc.path, tc.body)
			assert.Equal(t, http.StatusBadRequest, r.status, r.body)
			assert.Zero(t, f.Logins())
			assert.Empty(t, f.Purged())
		})
	}
}

// Section 7: the checks come in a fixed order.
func TestSection7OrderOfChecks(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{PurgeRate: 1})
	assert.Equal(t, 404, f.do(http.MethodPut, "/nothing", "", anonymous).status, "address before method")
	assert.Equal(t, 405, f.do(http.MethodPut, "/cache/purge", "", anonymous).status, "method before authentication")
	assert.Equal(t, 403, f.purge(`{`, anonymous).status, "authentication before the body")
	assert.Equal(t, 406, f.purge(`{`, header("Accept", "text/html")).status, "type before the body")
	assert.Equal(t, 503, f.purge(`{`, header("Accept", "text/html")).status, "rate before type; refused types counted")
	assert.Equal(t, 403, f.purge(`{`, anonymous).status, "authentication before rate")
}
