package doctor

import (
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

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

var alice = conformance.User{Name: "alice", Password: "correct-horse-battery"}

// fake returns a service of that dialect with an empty list, whose time passes at once, and how to reach it.
func fake(t *testing.T, dialect testserver.Dialect) (*testserver.Server, conformance.Target) {
	clock := testserver.NewClock(func() time.Time { return time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC) })
	server := testserver.New(testserver.Config{
		Dialect: dialect, Clock: clock, EventsPerSecond: 0.002, Users: []testserver.User{{Name: alice.Name, Password: alice.Password}},
	})
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	server.AddTask(testserver.TaskSpec{Operation: "networklist-update", Error: &testserver.TaskError{Message: "no"}})
	return server, conformance.Target{
		BaseURL: server.ListenMemory(), Customer: "acme", User: alice, Transport: server.Transport(),
		WriteList: server.AddNetworkList(testserver.NetworkListSpec{Name: "empty"}),
		Now:       clock.Now, Wait: func(_ context.Context, d time.Duration) error { clock.Advance(d); return nil },
	}
}

// doctor runs the command for a target.
func doctor(ctx context.Context, target conformance.Target) clitest.Result {
	app, stdout, stderr := clitest.App(nil, "")
	code := app.Run(ctx, []string{"doctor"}, func(app *cli.App) *cobra.Command {
		return &cobra.Command{Use: "doctor", RunE: func(c *cobra.Command, _ []string) error {
			return examine(c.Context(), app, target, "")
		}}
	})
	return clitest.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
}

// The Dialect of a service is found, also where only what the doctor changes shows it.
func TestTheDialectIsFound(t *testing.T) {
	t.Parallel()
	const entries = "/config/networklists/{list}/entries/{entry}"
	for want, dialect := range map[string]testserver.Dialect{
		"Their defaults fit.\n": {},
		"  export WEBDELIVERY_DIALECT=\"TasksPrefix=/config,EntryKey=value,BatchDeletionMethod=PUT\"\n": {
			TasksPrefix: "/config", EntryKey: "value", BatchDeletionMethod: "PUT", TaskPage: "array",
		},
		"  export WEBDELIVERY_DIALECT=\"StartTimeParam=startime,EntryDeletePath=" + entries + "\"\n": {
			StartTimeParam: "startime", EntryDeletePath: entries, EntriesReply: "empty",
		},
	} {
		server, target := fake(t, dialect)
		got := doctor(t.Context(), target)
		assert.Equal(t, cli.Done, got.Code, got)
		assert.Contains(t, got.Stdout, "\n"+want)
		assert.Contains(t, got.Stdout, "\n 10  4.2 spelling of starttime: ")
		assert.Empty(t, server.Entries(target.WriteList))
	}
}

// Without a flag the doctor changes nothing, and says which fields it has tried. The members that the document does not
// name are told by type, without their values.
func TestNothingIsChanged(t *testing.T) {
	t.Parallel()
	server, target := fake(t, testserver.Dialect{})
	server.Fail(testserver.Fault{Path: "/tasks/*", Status: http.StatusOK, Body: `{"id": "1", "x|new": "s3cret"}`})
	target.WriteList = ""
	got := doctor(t.Context(), target).Stdout
	assert.Contains(t, got, "were tried (--write-list tries all): TasksPrefix, StartTimeParam.\n")
	assert.Contains(t, got, "\nMembers that the document does not name, by type of the SDK:\n  Task: \"x|new\"\n\n")
	assert.NotContains(t, got, "s3cret")
	for _, r := range server.Requests() {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		assert.True(t, reads || strings.HasSuffix(r.Path, "/sessions"), "%s %s", r.Method, r.Path)
	}
}

// Wrong settings, another service and a broken rule are told, with what to check.
func TestTrouble(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.RedirectHandler("https://www.example.com/login?next=/acme", http.StatusFound))
	defer elsewhere.Close()
	for want, change := range map[string]func(*conformance.Target){
		"returned 404: check the customer, and the path of the base URL":  func(t *conformance.Target) { t.Customer = "acne" },
		"returned 302, a redirect to https://www.example.com: check the":  func(t *conformance.Target) { t.BaseURL, t.Transport = elsewhere.URL, nil },
		"returned 401: the service refuses the user name or the password": func(t *conformance.Target) { t.User.Password = "wrong" },
		"the base URL must begin with https://":                           func(t *conformance.Target) { t.BaseURL = "http://api.example.com" },
		"if purges differ, check that --purge-uri is of a property":       func(t *conformance.Target) { t.PurgeURI = "https://www.example.org/" },
	} {
		_, target := fake(t, testserver.Dialect{})
		change(&target)
		got := doctor(t.Context(), target)
		assert.NotEqual(t, cli.Done, got.Code)
		assert.Contains(t, got.Stderr, want)
		assert.Equal(t, target.PurgeURI != "", strings.Contains(got.Stdout, "\nDiffers from the document"), got.Stdout)
	}
}

// A flag that cannot be right, also a list that is not what its flag needs, is wrong usage, and nothing was tried.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	const list = "075c8519-a932-8057-a009-00000000000a" // that of --fake has entries
	for args, want := range map[string]string{
		"--purge-uri=nonsense":                                `--purge-uri "nonsense" has no protocol, so it would purge http alone; begin with https://` + "\n",
		"--purge-wildcard=*.example.com/":                     "--purge-wildcard needs a pattern such as *.example.com/app, and --purge-uri",
		"--purge-uri=https://example.com/ --purge-wildcard=*": `--purge-wildcard contains a * in the last label`,
		"--full-list=..":                                      `--full-list: there is no list with the id ".." that the user may read`,
		"--delete-list=office":                                `--delete-list: there is no list with the id "office" that the user may read`,
		"--write-list=" + list:                                `--write-list: the list with the id "` + list + `" must be empty, and of type IP`,
		"--save=/nowhere/report.md":                           "--save: ",
	} {
		got := clitest.Run(t, nil, Command, "", append([]string{"doctor", "--fake"}, strings.Fields(args)...)...)
		assert.Equal(t, clitest.Result{Code: cli.Misuse, Stderr: got.Stderr}, got, args)
		assert.Contains(t, got.Stderr, "webdelivery: "+want)
	}
}

// What a service says never shows the credentials. What is interrupted prints what was found until then. What a busy
// service refuses is not tried.
func TestTroubleOnTheWay(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	server, target := fake(t, testserver.Dialect{})
	const stats = "/stats/**"
	server.Fail(testserver.Fault{Path: stats, Skip: 100, Handler: func(http.ResponseWriter, *http.Request) { cancel(io.ErrUnexpectedEOF) }})
	server.Fail(testserver.Fault{Path: stats, Count: 20, Status: http.StatusServiceUnavailable})
	server.Fail(testserver.Fault{Path: stats, Handler: func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		_, _ = fmt.Fprintf(w, "{\"%s\":\"%s\u202e\"}", password, r.Header.Get("Authorization"))
	}})
	got := doctor(ctx, target)
	assert.Regexp(t, `^webdelivery: ended early, after [1-3]?\d?\d of \d{3} rules: unexpected EOF\n$`, got.Stderr)
	assert.Contains(t, got.Stdout, "the service was busy: 503")
	assert.Contains(t, got.Stdout, "[redacted]")
	assert.NotRegexp(t, alice.Password+`|YWxpY2U6|\x{202e}`, got.Stdout)
}

// The settings are those of all commands. With --fake, a service of the command's own is examined.
func TestSettings(t *testing.T) {
	server := webdeliverytest.NewServer(t)
	folder := t.TempDir()
	password, report := filepath.Join(folder, "password"), filepath.Join(folder, "report.md")
	require.NoError(t, os.WriteFile(password, []byte(server.Password+"\n"), 0o600))
	for name, value := range map[string]string{
		"BASE_URL": server.URL, "CUSTOMER": server.Customer, "USERNAME": server.Username, "PASSWORD": "", "PASSWORD_FILE": password,
		"DIALECT": "EntryKey=value, TasksPrefix=/operations", "VISITOR_USERNAME": "", "VISITOR_PASSWORD": "",
	} {
		t.Setenv("WEBDELIVERY_"+name, value)
	}
	run := func(args ...string) clitest.Result {
		return clitest.Run(t, server, Command, "", append([]string{"doctor"}, args...)...)
	}
	assert.Contains(t, run().Stdout, "(--write-list tries all): StartTimeParam.\n") // no tasks there
	t.Setenv("WEBDELIVERY_VISITOR_USERNAME", server.Username)
	assert.Contains(t, run().Stderr, "set both WEBDELIVERY_VISITOR_USERNAME and")
	t.Setenv("WEBDELIVERY_VISITOR_PASSWORD", server.Password)
	assert.Contains(t, run().Stderr, "name the same user")

	got := run("--fake", "--save", report)
	assert.Equal(t, cli.Done, got.Code)
	assert.Regexp(t, `^\d+ rules: \d+ hold, 0 differ, `, got.Stdout)
	assert.Equal(t, "webdelivery: --fake: this examines a fake service; nothing real happens\n", got.Stderr)
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	assert.Contains(t, string(text), "\n| ")
}
