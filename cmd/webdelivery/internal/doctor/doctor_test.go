package doctor

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
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
	t.Helper()
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

// doctor runs the command for a target, on a terminal that is that wide; 0 is no terminal.
func doctor(ctx context.Context, target conformance.Target, save string, width int) clitest.Result {
	app, stdout, stderr := clitest.App(nil, "")
	app.OutTerminal, app.Width = width > 0, width
	code := app.Run(ctx, []string{"doctor"}, func(app *cli.App) *cobra.Command {
		return &cobra.Command{Use: "doctor", RunE: func(c *cobra.Command, _ []string) error { return examine(c.Context(), app, target, save) }}
	})
	return clitest.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
}

// The Dialect of a service is found, also where only what the doctor changes shows it.
func TestTheDialectIsFound(t *testing.T) {
	t.Parallel()
	const entries = "/config/networklists/{list}/entries/{entry}"
	for want, dialect := range map[string]testserver.Dialect{
		"":                                       {},
		"TasksPrefix=/config":                    {TasksPrefix: "/config"},
		"EntryKey=value,BatchDeletionMethod=PUT": {EntryKey: "value", BatchDeletionMethod: "PUT", TaskPage: "array"},
		"StartTimeParam=startime,EntryKey=value,EntryDeletePath=" + entries + ",BatchDeletionMethod=DELETE": {
			StartTimeParam: "startime", EntryKey: "value", EntryDeletePath: entries, BatchDeletionMethod: "DELETE", EntriesReply: "empty",
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			server, target := fake(t, dialect)
			got := doctor(t.Context(), target, "", 80)
			assert.Equal(t, cli.Done, got.Code, got)
			if want == "" {
				assert.Contains(t, got.Stdout, "\nTheir defaults fit.\n")
			} else {
				assert.Contains(t, got.Stdout, "\n  export WEBDELIVERY_DIALECT=\""+want+"\"\n")
			}
			assert.Contains(t, got.Stdout, "\n 10  4.2 spelling of starttime: ")
			for line := range strings.Lines(got.Stdout) {
				assert.True(t, len(line) <= 81 || strings.HasPrefix(line, "  "), line) // what is to be copied is not broken
			}
			assert.Empty(t, server.Entries(target.WriteList))
		})
	}
}

// Without a flag the doctor changes nothing, and says which fields it has tried.
func TestNothingIsChanged(t *testing.T) {
	t.Parallel()
	server, target := fake(t, testserver.Dialect{})
	target.WriteList = ""
	assert.Contains(t, doctor(t.Context(), target, "", 0).Stdout, "were tried (--write-list tries all): TasksPrefix, StartTimeParam.\n")
	for _, r := range server.Requests() {
		assert.True(t, slices.Contains([]string{"GET", "HEAD"}, r.Method) || strings.HasSuffix(r.Path, "/sessions"), "%s %s", r.Method, r.Path)
	}
}

// Wrong settings, another service and a broken rule are told, with what to check.
func TestTrouble(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.RedirectHandler("https://www.example.com/login?next=/acme", http.StatusFound))
	defer elsewhere.Close()
	for want, change := range map[string]func(*conformance.Target){
		"returned 401: the service refuses the user name or the password": func(t *conformance.Target) { t.User.Password = "wrong" },
		"returned 404: check the customer, and the path of the base URL":  func(t *conformance.Target) { t.Customer = "acne" },
		"returned 302, a redirect to https://www.example.com: check the":  func(t *conformance.Target) { t.BaseURL, t.Transport = elsewhere.URL, nil },
		"the base URL must begin with https://":                           func(t *conformance.Target) { t.BaseURL = "http://api.example.com" },
		"if purges differ, check that --purge-uri is of a property":       func(t *conformance.Target) { t.PurgeURI = "https://www.example.org/" },
	} {
		_, target := fake(t, testserver.Dialect{})
		change(&target)
		got := doctor(t.Context(), target, "", 0)
		assert.NotEqual(t, cli.Done, got.Code)
		assert.Contains(t, got.Stderr, want)
		assert.Equal(t, target.PurgeURI != "", strings.Contains(got.Stdout, "\nDiffers from the document"), got.Stdout)
	}
}

// A flag that cannot be right, also a list that is not what its flag needs, is wrong usage, and nothing was tried.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	server := webdeliverytest.NewServer(t)
	filled := cli.Fill(server) // the ids of a fake are always the same
	for want, args := range map[string]string{
		`--purge-uri "nonsense" has no protocol, so it would purge http alone; begin with https://`: "--purge-uri=nonsense",
		`--purge-uri "http://a.com/*/b" contains a * after the domain`:                              "--purge-uri=http://a.com/*/b",
		"--purge-wildcard needs a pattern such as *.example.com/app, and --purge-uri":               "--purge-wildcard=*.example.com/",
		`--purge-wildcard contains a * in the last label`:                                           "--purge-uri=https://example.com/ --purge-wildcard=*",
		`--full-list: there is no list with the id ".." that the user may read`:                     "--full-list=..",
		`--delete-list: there is no list with the id "office" that the user may read`:               "--delete-list=office",
		"--write-list: the list with the id \"" + filled + "\" must be empty, and of type IP":       "--write-list=" + filled,
		"--save: ": "--save=/nowhere/report.md",
	} {
		got := clitest.Run(t, nil, Command, "", append([]string{"doctor", "--fake"}, strings.Fields(args)...)...)
		assert.Equal(t, cli.Misuse, got.Code, args)
		assert.Empty(t, got.Stdout)
		assert.Contains(t, got.Stderr, "webdelivery: "+want)
	}
}

// What a service says never shows the credentials. What is interrupted prints what was found until then. What a busy
// service refuses is not tried.
func TestTroubleOnTheWay(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	server, target := fake(t, testserver.Dialect{})
	server.Fail(testserver.Fault{Path: "/stats/**", Skip: 100, Handler: func(http.ResponseWriter, *http.Request) { cancel(io.ErrUnexpectedEOF) }})
	server.Fail(testserver.Fault{Path: "/stats/**", Count: 20, Status: http.StatusServiceUnavailable})
	server.Fail(testserver.Fault{Path: "/stats/**", Handler: func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		_, _ = fmt.Fprintf(w, `{"%s":"%s"}`, password, r.Header.Get("Authorization"))
	}})
	file := filepath.Join(t.TempDir(), "report.md")
	got := doctor(ctx, target, file, 0)
	report, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Regexp(t, `^webdelivery: ended early, after \d+ of \d+ rules: unexpected EOF\n$`, got.Stderr)
	for _, text := range []string{got.Stdout, string(report)} {
		assert.Contains(t, text, "the service was busy: 503")
		assert.Contains(t, text, "[redacted]")
		assert.NotContains(t, text, alice.Password)
		assert.NotContains(t, text, "YWxpY2U6")
	}
}

// The members that the document does not name are told by type, without their values.
func TestUnnamedMembers(t *testing.T) {
	t.Parallel()
	server, target := fake(t, testserver.Dialect{})
	server.Fail(testserver.Fault{Path: "/tasks/*", Status: http.StatusOK, Body: `{"id": "1", "x|new": "s3cret"}`})
	got := doctor(t.Context(), target, "", 0)
	assert.Contains(t, got.Stdout, "\nMembers that the document does not name, by type of the SDK:\n  Task: \"x|new\"\n\n")
	assert.NotContains(t, got.Stdout, "s3cret")
}

// The settings are those of all commands. With --fake, a service of the command's own is examined.
func TestSettings(t *testing.T) {
	server := webdeliverytest.NewServer(t)
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte(server.Password+"\n"), 0o600))
	for name, value := range map[string]string{
		"BASE_URL": server.URL, "CUSTOMER": server.Customer, "USERNAME": server.Username, "PASSWORD": "", "PASSWORD_FILE": file,
		"DIALECT": "EntryKey=value, TasksPrefix=/operations", "VISITOR_USERNAME": "", "VISITOR_PASSWORD": "",
	} {
		t.Setenv("WEBDELIVERY_"+name, value)
	}
	assert.Contains(t, clitest.Run(t, server, Command, "", "doctor").Stdout, "(--write-list tries all): StartTimeParam.\n") // no tasks there
	seen := len(server.Requests())
	t.Setenv("WEBDELIVERY_VISITOR_USERNAME", server.Username)
	assert.Contains(t, clitest.Run(t, server, Command, "", "doctor").Stderr, "set both WEBDELIVERY_VISITOR_USERNAME and")
	t.Setenv("WEBDELIVERY_VISITOR_PASSWORD", server.Password)
	assert.Contains(t, clitest.Run(t, server, Command, "", "doctor").Stderr, "name the same user")

	report := filepath.Join(t.TempDir(), "report.md")
	got := clitest.Run(t, server, Command, "", "doctor", "--fake", "--save", report)
	assert.Equal(t, cli.Done, got.Code)
	assert.Contains(t, got.Stdout, " hold, 0 differ, ")
	assert.Equal(t, "webdelivery: --fake: this examines a fake service; nothing real happens\n", got.Stderr)
	assert.Len(t, server.Requests(), seen)
	assert.FileExists(t, report)
}
