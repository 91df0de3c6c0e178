package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

var alice = conformance.User{Name: "alice", Password: "correct-horse-battery"}

// fake returns a service of that dialect with an empty list, and how to reach it.
func fake(t *testing.T, dialect testserver.Dialect) (*testserver.Server, conformance.Target) {
	t.Helper()
	clock := testserver.NewClock(func() time.Time { return time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC) })
	server := testserver.New(testserver.Config{
		Dialect: dialect, Clock: clock, EventsPerSecond: 0.002, Users: []testserver.User{{Name: alice.Name, Password: alice.Password}},
	})
	server.AddTask(testserver.TaskSpec{Operation: "networklist-update"})
	return server, conformance.Target{
		BaseURL: server.ListenMemory(), Customer: "acme", User: alice, Transport: server.Transport(),
		WriteList: server.AddNetworkList(testserver.NetworkListSpec{Name: "empty"}),
		Now:       clock.Now, Wait: func(_ context.Context, d time.Duration) error { clock.Advance(d); return nil },
	}
}

// The doctor finds the Dialect of a service, also where only what it changes shows it.
func TestTheDialectIsFound(t *testing.T) {
	t.Parallel()
	const entries = "/config/networklists/{list}/entries/{entry}"
	for want, dialect := range map[string]testserver.Dialect{
		"":                                       {},
		"TasksPrefix=/config":                    {TasksPrefix: "/config"},
		"StartTimeParam=startime":                {StartTimeParam: "startime"},
		"EntryKey=value":                         {EntryKey: "value"},
		"EntryDeletePath=" + entries:             {EntryDeletePath: entries},
		"BatchDeletionMethod=DELETE":             {BatchDeletionMethod: "DELETE"},
		"EntryKey=value,BatchDeletionMethod=PUT": {EntryKey: "value", BatchDeletionMethod: "PUT", TaskPage: "array"},
		"TasksPrefix=/config,StartTimeParam=startime": {TasksPrefix: "/config", StartTimeParam: "startime", Errors: "html"},
		"StartTimeParam=startime,EntryKey=value":      {StartTimeParam: "startime", EntryKey: "value", NextURI: "absolute"},
		"StartTimeParam=startime,EntryKey=value,EntryDeletePath=" + entries + ",BatchDeletionMethod=DELETE": {
			StartTimeParam: "startime", EntryKey: "value", EntryDeletePath: entries, BatchDeletionMethod: "DELETE", EntriesReply: "empty",
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			server, target := fake(t, dialect)
			defer func() { assert.NoError(t, server.Close()) }()
			var out bytes.Buffer
			require.NoError(t, examine(t.Context(), &out, target, nil), out.String())
			if want == "" {
				assert.Contains(t, out.String(), "The default Dialect fits")
			} else {
				assert.Contains(t, out.String(), `export WEBDELIVERY_DIALECT="`+want+"\"\n")
			}
			assert.Contains(t, out.String(), " 10  4.2 spelling of starttime: ")
			assert.Empty(t, server.Entries(target.WriteList))
		})
	}
}

// Without a flag the doctor changes nothing, and says which fields it could not see.
func TestNothingIsChanged(t *testing.T) {
	t.Parallel()
	server, target := fake(t, testserver.Dialect{})
	defer func() { assert.NoError(t, server.Close()) }()
	target.WriteList = ""
	var out bytes.Buffer
	require.NoError(t, examine(t.Context(), &out, target, nil))
	for _, r := range server.Requests() {
		assert.True(t, r.Method == http.MethodGet || r.Method == http.MethodHead || strings.HasSuffix(r.Path, "/sessions"), "%s %s", r.Method, r.Path)
	}
	assert.Contains(t, out.String(), "fits, as far as it was tried for TasksPrefix, StartTimeParam.")
}

// Wrong settings, another service and a broken rule are told in one line. If the service refuses every purge, the URI may be
// wrong, too.
func TestTroubleIsOneLine(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<p>hello</p>")) }))
	defer page.Close()
	elsewhere := httptest.NewServer(http.RedirectHandler("https://www.example.com/login?next=/acme", http.StatusFound))
	defer elsewhere.Close()
	down := httptest.NewServer(nil)
	down.Close()
	denying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer denying.Close()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	defer busy.Close()
	for want, change := range map[string]func(*conformance.Target){
		"returned 401: the service refuses the user name or the password":    func(t *conformance.Target) { t.User.Password = "wrong" },
		"returned 404: check the customer, and the path of the base URL":     func(t *conformance.Target) { t.Customer = "acne" },
		"returned no JSON: this is another service, check the base URL":      func(t *conformance.Target) { t.BaseURL, t.Transport = page.URL, nil },
		"returned 302, a redirect to https://www.example.com: check the":     func(t *conformance.Target) { t.BaseURL, t.Transport = elsewhere.URL, nil },
		"cannot reach the service: GET /config/networklists: ":               func(t *conformance.Target) { t.BaseURL, t.Transport = down.URL, nil },
		"returned 403: the user may not read this customer, or the customer": func(t *conformance.Target) { t.BaseURL, t.Transport = denying.URL, nil },
		"the service was busy: 429":                                          func(t *conformance.Target) { t.BaseURL, t.Transport = busy.URL, nil },
		"the base URL must begin with https://":                              func(t *conformance.Target) { t.BaseURL = "http://api.example.com" },
		"the base URL must be a scheme, a host and a path alone":             func(t *conformance.Target) { t.BaseURL = "api.example.com" },
	} {
		server, target := fake(t, testserver.Dialect{})
		change(&target)
		var out bytes.Buffer
		err := examine(t.Context(), &out, target, nil)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "\n")
		assert.Empty(t, out.String())
		require.NoError(t, server.Close())
	}

	server, target := fake(t, testserver.Dialect{PurgeReply: "200"})
	defer func() { assert.NoError(t, server.Close()) }()
	for uri, advice := range map[string]string{
		"https://www.example.com/app.css": "",
		"https://www.example.org/app.css": "doctor: no purge was accepted: check that -purge-uri is of a property of this customer, " +
			"and that the user may purge it\n",
	} {
		target.PurgeURI = uri
		code, stdout, stderr := programtest.Run("doctor", program.Streams{}, func(s program.Streams) error {
			return examine(t.Context(), s.Out, target, nil)
		})
		assert.Equal(t, program.Failed, code)
		assert.Equal(t, "doctor: the service differs from the service document\n"+advice, stderr)
		assert.Contains(t, stdout, "4.4 a purge returns 201, or with 303 and code 201: ")
	}
}

// A flag or a visitor that cannot be right is wrong usage, told in one line before anything is sent.
func TestWrongUsage(t *testing.T) {
	srv := webdeliverytest.NewServer(t)
	programtest.UseService(t, srv)
	const object, pattern = "; write an object, such as https://www.example.com/app.css", "; write a pattern, such as *.example.com/app"
	const empty = " is empty: set the variable that it comes from, or remove it"
	for _, tc := range []struct{ args, want string }{
		{"-purge-uri=nonsense", `-purge-uri: "nonsense" has no protocol, so it would purge http alone` + object},
		{"-purge-uri=https://", `-purge-uri: "https://" has no host` + object},
		{"-purge-uri=ftp://example.com/", `-purge-uri: "ftp://example.com/" has a protocol other than https and http` + object},
		{"-purge-uri=https://example.com/#a", `-purge-uri: "https://example.com/#a" contains a fragment (#), which never reaches a cache` + object},
		{"-purge-uri=http://a.com/*/b", `-purge-uri: "http://a.com/*/b" contains a * after the domain, where it is not a wildcard` + object},
		{"-purge-uri=", "-purge-uri" + empty},
		{"-purge-wildcard=*", `-purge-wildcard: "*" contains a * in the last label of its domain, where no property can have one` + pattern},
		{"-purge-wildcard=example.com/", `-purge-wildcard: "example.com/" has no wildcard in its domain` + pattern},
		{"-purge-wildcard=*.example.com/", "-purge-wildcard needs -purge-uri, without which nothing is purged"},
		{"-write-list=", "-write-list" + empty},
		{"-full-list=..", `-full-list: ".." is not the ID of a list`},
		{"-delete-list=a\nb", `-delete-list: "a\nb" is not the ID of a list`},
		{"-delete-list=a1 -write-list=A1", "-write-list and -delete-list name the same list; each needs a list of its own"},
		{"-report=", "-report" + empty},
	} {
		code, stdout, stderr := programtest.Run("doctor", program.Streams{}, func(s program.Streams) error {
			return run(t.Context(), strings.Split(tc.args, " "), s)
		})
		assert.Equal(t, program.Misuse, code, tc.args)
		assert.Empty(t, stdout)
		assert.Equal(t, "doctor: "+tc.want+"\n", stderr)
	}
	t.Setenv("WEBDELIVERY_VISITOR_USERNAME", srv.Username)
	err := run(t.Context(), nil, program.Streams{})
	require.EqualError(t, err, "set both WEBDELIVERY_VISITOR_USERNAME and WEBDELIVERY_VISITOR_PASSWORD, or neither")
	t.Setenv("WEBDELIVERY_VISITOR_PASSWORD", srv.Password)
	err = run(t.Context(), nil, program.Streams{})
	require.EqualError(t, err, "WEBDELIVERY_VISITOR_USERNAME and WEBDELIVERY_USERNAME name the same user; the visitor has fewer rights")
	assert.Empty(t, srv.Requests())
}

// A list that the service does not have, or that is not what its flag needs, is wrong usage, told in one line. By then the
// service was only read. What the service breaks is left to the rules.
func TestAListThatIsNotThere(t *testing.T) {
	t.Parallel()
	server, target := fake(t, testserver.Dialect{})
	defer func() { assert.NoError(t, server.Close()) }()
	geo := server.AddNetworkList(testserver.NetworkListSpec{Type: "GEO"})
	used := server.AddNetworkList(testserver.NetworkListSpec{Entries: []string{"192.0.2.1"}})
	server.Fail(testserver.Fault{Path: "/config/networklists/hidden", Status: http.StatusForbidden})
	server.Fail(testserver.Fault{Path: "/config/networklists/refused", Status: http.StatusBadRequest})
	const missing = ": the service has no list with the ID %q that the user may read (%d); the name of a list is not its ID"
	const listed = ": the list with the ID %q is "
	for want, named := range map[string]conformance.Target{
		fmt.Sprintf("-write-list"+missing, "nolist", 404):                         {WriteList: "nolist"},
		fmt.Sprintf("-full-list"+missing, "hidden", 403):                          {FullList: "hidden"},
		fmt.Sprintf("-delete-list"+missing, "refused", 400):                       {DeleteList: "refused"},
		fmt.Sprintf("-write-list"+listed+"of type GEO; name one of type IP", geo): {WriteList: geo},
		fmt.Sprintf("-full-list"+listed+"of type GEO; name one of type IP", geo):  {FullList: geo},
		fmt.Sprintf("-write-list"+listed+"not empty; name an empty one", used):    {WriteList: used},
	} {
		target.WriteList, target.FullList, target.DeleteList = named.WriteList, named.FullList, named.DeleteList
		code, stdout, stderr := programtest.Run("doctor", program.Streams{}, func(s program.Streams) error {
			return examine(t.Context(), s.Out, target, nil)
		})
		assert.Equal(t, program.Misuse, code, want)
		assert.Empty(t, stdout)
		assert.Equal(t, "doctor: "+want+"\n", stderr)
	}
	for _, r := range server.Requests() {
		assert.Equal(t, http.MethodGet, r.Method)
	}
}

// What a service says never shows the credentials. ^C prints what was found until then. What a busy service refuses is not
// tried.
func TestTroubleOnTheWay(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server, target := fake(t, testserver.Dialect{})
	defer func() { assert.NoError(t, server.Close()) }()
	server.Fail(testserver.Fault{Path: "/stats/**", Skip: 100, Handler: func(http.ResponseWriter, *http.Request) { cancel() }})
	server.Fail(testserver.Fault{Path: "/stats/**", Count: 20, Status: http.StatusServiceUnavailable})
	server.Fail(testserver.Fault{Path: "/stats/**", Handler: func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		_, _ = fmt.Fprintf(w, `{"%s":"%s"}`, password, r.Header.Get("Authorization"))
	}})
	var out bytes.Buffer
	require.ErrorIs(t, examine(ctx, &out, target, &out), context.Canceled)
	assert.Contains(t, out.String(), "the service was busy: 503")
	assert.Contains(t, out.String(), "[redacted]")
	assert.NotContains(t, out.String(), alice.Password)
	assert.NotContains(t, out.String(), "YWxpY2U6")
}

// The members that the document does not name are told by type, without their values.
func TestUnnamedMembers(t *testing.T) {
	t.Parallel()
	server, target := fake(t, testserver.Dialect{})
	defer func() { assert.NoError(t, server.Close()) }()
	server.AddTask(testserver.TaskSpec{Error: &testserver.TaskError{Message: "no"}})
	target.PurgeURI = "https://www.example.com/app.css"
	const more = `"x|new":"s3cret-1","owner":{"id":"s3cret-2"},`
	target.Transport = withMembers{target.Transport, strings.NewReplacer(
		`"complete":`, more+`"complete":`, `"error_info":{`, `"error_info":{"hint":1,`, `"entries_uri":`, more+`"entries_uri":`,
		`"added_by":`, `"until":null,"`+alice.Password+`":1,"added_by":`, `"transaction_id":`, `"x_id":1,"transaction_id":`,
		`"transaction_status_uri":`, `"eta":1,"transaction_status_uri":`, `"transaction_status":`, `"eta":1,"transaction_status":`,
	)}
	var out, report bytes.Buffer
	require.NoError(t, examine(t.Context(), &out, target, &report), out.String())
	assert.Contains(t, out.String(), `by type of the SDK:
  Task: "owner", "x|new"
  ErrorInfo: "hint"
  PurgeReceipt: "purge_response.eta", "x_id"
  Transaction: "transaction_response.eta", "x_id"
  NetworkList: "owner", "x|new"
  NetworkListEntry: "[redacted]", "until"

`)
	assert.Contains(t, report.String(), "\n- Task: \"owner\", \"x\\|new\"\n- ErrorInfo: \"hint\"\n")
	assert.NotContains(t, out.String()+report.String(), "s3cret")
}

// withMembers adds members to the responses.
type withMembers struct {
	http.RoundTripper
	*strings.Replacer
}

func (w withMembers) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(w.Replace(string(body)))), -1
	return resp, err
}

// Without settings the doctor examines a fake service.
func TestWithoutSettings(t *testing.T) { //nolint:paralleltest // it sets environment variables
	programtest.NoService(t)
	var out, errs bytes.Buffer
	file := t.TempDir() + "/report.md"
	require.NoError(t, run(t.Context(), []string{"-report", file}, program.Streams{Out: &out, Err: &errs}))
	assert.Contains(t, errs.String(), "fake")
	assert.Contains(t, out.String(), " rules hold, 0 differ, ")
	assert.NotContains(t, out.String(), "does not name")
	assert.FileExists(t, file)
}

// The settings are those of every program: a password in a file, and a missing variable by its name.
func TestSettings(t *testing.T) {
	srv := webdeliverytest.NewServer(t)
	programtest.UseService(t, srv)
	t.Setenv("WEBDELIVERY_PASSWORD", "")
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte(srv.Password+"\n"), 0o600))
	t.Setenv("WEBDELIVERY_PASSWORD_FILE", file)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), nil, program.Streams{Out: &out, Err: &out}), out.String())

	t.Setenv("WEBDELIVERY_DIALECT", "EntryKey=value, TasksPrefix=/config")
	require.ErrorContains(t, run(t.Context(), []string{"-report", t.TempDir() + "/none/report.md"}, program.Streams{Out: &out, Err: &out}), "-report")
	out.Reset()
	require.Error(t, run(t.Context(), nil, program.Streams{Out: &out, Err: &out}))
	assert.Contains(t, out.String(), "Tasks were not found")

	t.Setenv("WEBDELIVERY_CUSTOMER", "")
	require.ErrorContains(t, run(t.Context(), nil, program.Streams{Out: &out, Err: &out}), "WEBDELIVERY_CUSTOMER")
}
