package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// run runs a command line of a command that does this.
func run(do func(app *cli.App, c *cobra.Command, args []string) error, args ...string) (code int, stdout, stderr string) {
	var out, told bytes.Buffer
	app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &told}
	code = app.Run(context.Background(), args, func(app *cli.App) *cobra.Command {
		each := &cobra.Command{Use: "each FILE...", Short: "do it", Args: cobra.MaximumNArgs(2)}
		each.Flags().Int("count", 0, "a `number`")
		each.RunE = func(c *cobra.Command, args []string) error { return do(app, c, args) }
		return cli.Group("do", "do things", "Do things.", each)
	})
	return code, out.String(), told.String()
}

func nothing(*cli.App, *cobra.Command, []string) error { return nil }

// What is wrong with a command line is one line with the next step, and the exit code is 2.
func TestMisuse(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"do eahc":               `there is no command "eahc"; did you mean each?; see webdelivery do --help`,
		"od":                    `there is no command "od"; did you mean do?; see webdelivery --help`,
		"nothing alike":         `there is no command "nothing"; see webdelivery --help`,
		"do":                    "the command is missing; see webdelivery do --help",
		"do each --cuont 1":     "unknown flag: --cuont; see webdelivery do each --help",
		"do each --count x":     `invalid argument "x" for "--count" flag: strconv.ParseInt: parsing "x": invalid syntax; see webdelivery do each --help`,
		"do each a b c --count": "flag needs an argument: --count; see webdelivery do each --help",
		"do each a b c":         "accepts at most 2 arg(s), received 3; see webdelivery do each --help",
	} {
		code, stdout, stderr := run(nothing, strings.Fields(line)...)
		assert.Equal(t, cli.Misuse, code, line)
		assert.Empty(t, stdout, line)
		assert.Equal(t, "webdelivery: "+want+"\n", stderr, line)
	}
}

// Help and version that are asked for go to standard output. No line of the help is longer than a terminal of 80 columns.
func TestHelp(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":               "WEBDELIVERY_BASE_URL",
		"--help":         "Exit codes: 0 done",
		"help do":        "Do things.",
		"do each --help": "--count number",
		"--version":      runtime.GOOS + "/" + runtime.GOARCH,
	} {
		code, stdout, stderr := run(nothing, strings.Fields(line)...)
		assert.Equal(t, cli.Done, code, line)
		assert.Contains(t, stdout, want, line)
		assert.Empty(t, stderr, line)
		for text := range strings.Lines(stdout) {
			assert.LessOrEqual(t, len(strings.TrimSpace(text)), 80, text)
		}
	}
}

// The exit code says what came of a command.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		code int
		want string
	}{
		{nil, cli.Done, ""},
		{errors.New("a\nwebdelivery: b"), cli.Failed, "webdelivery: a\nwebdelivery: b\n"},
		{cli.Misused("x %w", io.EOF), cli.Misuse, "webdelivery: x EOF\n"},
		{cli.Advise(io.EOF, "try it again"), cli.Failed, "webdelivery: EOF\nwebdelivery: try it again\n"},
		{&cli.Exit{Code: 5, Err: io.EOF}, 5, "webdelivery: EOF\n"},
		{&webdelivery.ValidationError{Field: "limit", Reason: "is below 0"}, cli.Misuse, "webdelivery: invalid limit: is below 0\n"},
		{&webdelivery.PartialError{Err: io.EOF}, cli.Partly, "EOF"},
		{&webdelivery.IncompleteError{Got: 1, Total: 2}, cli.Partly, "1"},
		{cli.Ended(0, nil, nil), cli.Done, ""},
		{cli.Ended(0, nil, io.EOF), cli.Failed, "webdelivery: EOF\n"},
		{cli.Ended(1, io.EOF, nil), cli.Partly, "webdelivery: EOF\n"},
		{errors.New("plain http; use https or WithPlainHTTP"), cli.Failed, "webdelivery: plain http; use https\n"},
	} {
		code, _, stderr := run(func(*cli.App, *cobra.Command, []string) error { return tt.err }, "do", "each")
		assert.Equal(t, tt.code, code, "%v", tt.err)
		assert.Contains(t, stderr, tt.want, "%v", tt.err)
	}
}

// An error of the service says what to do next.
func TestNextSteps(t *testing.T) {
	t.Parallel()
	closed := webdeliverytest.NewServer(t, webdeliverytest.WithAddress("127.0.0.1:0"))
	closed.Close()
	for want, status := range map[string]int{
		"check WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD":                              http.StatusUnauthorized,
		"use a WEBDELIVERY_USERNAME that has the right to do this":                         http.StatusForbidden,
		"check WEBDELIVERY_BASE_URL and WEBDELIVERY_CUSTOMER, and the id, if you gave one": http.StatusNotFound,
		"check WEBDELIVERY_BASE_URL, and that the service is running":                      0,
	} {
		srv := closed
		if status != 0 {
			srv = webdeliverytest.NewServer(t)
			srv.Fail(webdeliverytest.FaultRule{Status: status})
		}
		client, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password), webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
		require.NoError(t, err)
		code, _, stderr := run(func(_ *cli.App, c *cobra.Command, _ []string) error {
			_, err := client.Tasks.Get(c.Context(), "task-1")
			return err
		}, "do", "each")
		assert.Equal(t, cli.Failed, code)
		assert.True(t, strings.HasSuffix(stderr, "\nwebdelivery: "+want+"\n"), stderr)
	}
}

// Without settings nothing happens, and the error names what is missing and --fake.
func TestSettings(t *testing.T) {
	for _, name := range []string{"BASE_URL", "CUSTOMER", "USERNAME", "PASSWORD", "PASSWORD_FILE", "AUTH", "DIALECT"} {
		t.Setenv("WEBDELIVERY_"+name, "")
	}
	connect := func(app *cli.App, c *cobra.Command, _ []string) error {
		client, err := app.Connect()
		if err != nil {
			return err
		}
		_, err = client.Tasks.List(c.Context(), webdelivery.TaskListOptions{})
		return err
	}
	code, _, stderr := run(connect, "do", "each")
	assert.Equal(t, cli.Misuse, code)
	assert.Equal(t, "webdelivery: set WEBDELIVERY_BASE_URL, WEBDELIVERY_CUSTOMER, WEBDELIVERY_USERNAME, WEBDELIVERY_PASSWORD; "+
		"to try a command without a service, add --fake\n", stderr)
	code, _, stderr = run(connect, "do", "each", "--fake")
	assert.Equal(t, cli.Done, code)
	assert.Equal(t, "webdelivery: --fake: this is a fake service; nothing real happens\n", stderr)
	t.Setenv("WEBDELIVERY_USERNAME", "deploy")
	t.Setenv("WEBDELIVERY_PASSWORD_FILE", "password")
	_, _, stderr = run(connect, "do", "each")
	assert.Contains(t, stderr, "set WEBDELIVERY_BASE_URL, WEBDELIVERY_CUSTOMER; to try")
}

// Without a terminal, nothing is asked: --yes must answer.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer        string
		terminal, yes bool
		want          string // of the error; "" if the answer is yes
	}{
		{yes: true},
		{want: "Delete it? Add --yes"},
		{answer: "y\n", want: "Add --yes"},
		{answer: "y\n", terminal: true},
		{answer: " YES \r\n", terminal: true},
		{answer: "\n", terminal: true, want: "nothing was changed"},
		{terminal: true, want: "nothing was changed"},
		{answer: "yeah\n", terminal: true, want: "nothing was changed"},
	} {
		app := &cli.App{In: strings.NewReader(tt.answer), Err: io.Discard, InTerminal: tt.terminal, ErrTerminal: tt.terminal}
		err := app.Confirm(tt.yes, "Delete it?")
		if tt.want == "" {
			require.NoError(t, err, "%+v", tt)
		} else {
			require.ErrorContains(t, err, tt.want, "%+v", tt)
		}
	}
}
