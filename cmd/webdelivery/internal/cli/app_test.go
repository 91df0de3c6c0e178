package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// run runs a command line of a command that does this.
func run(do func(app *cli.App, ctx context.Context) error, args ...string) (code int, stdout, stderr string) {
	return runApp(context.Background(), &cli.App{}, do, args...)
}

func runApp(ctx context.Context, app *cli.App, do func(*cli.App, context.Context) error, args ...string) (code int, stdout, stderr string) {
	var out, told bytes.Buffer
	app.Out, app.Err = &out, &told
	code = app.Run(ctx, args, func(app *cli.App) *cobra.Command {
		each := &cobra.Command{Use: "each FILE...", Short: "do it", Args: cobra.MaximumNArgs(2)}
		age := cli.Duration(36 * time.Hour)
		each.Flags().Var(&age, "age", "a `length` of time, which this line describes with many words")
		each.RunE = func(c *cobra.Command, _ []string) error { return do(app, c.Context()) }
		return cli.Group("do", "do things", "Do things.", each)
	})
	return code, out.String(), told.String()
}

func fails(err error) func(*cli.App, context.Context) error {
	return func(*cli.App, context.Context) error { return err }
}

// What is wrong with a command line is one line with the next step, and the exit code is 2.
func TestMisuse(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"do eahc":           `there is no command "eahc"; did you mean each?; see webdelivery do --help`,
		"nothing alike":     `there is no command "nothing"; see webdelivery --help`,
		"do":                "the command is missing; see webdelivery do --help",
		"do each --agge 7d": "unknown flag: --agge; see webdelivery do each --help",
		"do each --age -1h": `invalid argument "-1h" for "--age" flag: want a duration such as 30m, 12h or 7d; see webdelivery do each --help`,
		"do each a b c":     "accepts at most 2 arg(s), received 3; see webdelivery do each --help",
	} {
		code, stdout, stderr := run(fails(nil), strings.Fields(line)...)
		assert.Equal(t, cli.Misuse, code, line)
		assert.Empty(t, stdout, line)
		assert.Equal(t, "webdelivery: "+want+"\n", stderr, line)
	}
}

// Help and version that are asked for go to standard output. No line of the help is longer than a terminal of 80 columns.
func TestHelp(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"": "Exit codes: 0 done", "help do": "Do things.", "do each --age 7d --help": "(default 36h)", "--version": runtime.GOOS + "/" + runtime.GOARCH,
	} {
		code, stdout, stderr := run(fails(nil), strings.Fields(line)...)
		assert.Equal(t, cli.Done, code, line)
		assert.Contains(t, stdout, want, line)
		assert.Empty(t, stderr, line)
		for text := range strings.Lines(stdout) {
			assert.LessOrEqual(t, len(strings.TrimSpace(text)), 80, text)
		}
	}
}

// The exit code says what came of a command. Each error is a line, in the words of the command line, and the next step.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		code int
		want string
	}{
		{nil, cli.Done, ""},
		{errors.New("a: webdelivery: b\nwebdelivery: c; invalid d"), cli.Failed, "webdelivery: a: b\nwebdelivery: c\nwebdelivery: invalid d\n"},
		{errors.New("plain http; use https or WithPlainHTTP"), cli.Failed, "webdelivery: plain http; use https\n"},
		{cli.Misused("x %w", io.EOF), cli.Misuse, "webdelivery: x EOF\n"},
		{cli.Advise(&webdelivery.Error{StatusCode: 401}, "try it again"), cli.Failed, " 401 Unauthorized\nwebdelivery: try it again\n"},
		{&cli.Exit{Code: 5, Err: io.EOF}, 5, "webdelivery: EOF\n"},
		{&webdelivery.ValidationError{Field: "limit", Reason: "is below 0"}, cli.Misuse, "webdelivery: invalid limit: is below 0\n"},
		{&webdelivery.PartialError{Err: io.EOF}, cli.Partly, "EOF"},
		{&webdelivery.IncompleteError{Got: 1, Total: 2}, cli.Failed, "1"},
		{cli.Ended(0, nil, nil), cli.Done, ""},
		{cli.Ended(0, nil, io.EOF), cli.Failed, "webdelivery: EOF\n"},
		{cli.Ended(1, io.EOF, nil), cli.Partly, "webdelivery: EOF\n"},
		{&webdelivery.Error{StatusCode: 401}, cli.Failed, "\nwebdelivery: check WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD\n"},
		{&webdelivery.Error{StatusCode: 403}, cli.Failed, "\nwebdelivery: use a WEBDELIVERY_USERNAME that has the right to do this\n"},
		{&webdelivery.Error{StatusCode: 404}, cli.Failed, "\nwebdelivery: check WEBDELIVERY_BASE_URL and WEBDELIVERY_CUSTOMER, and the id, if you gave one\n"},
	} {
		code, _, stderr := run(fails(tt.err), "do", "each")
		assert.Equal(t, tt.code, code, "%v", tt.err)
		assert.Contains(t, stderr, tt.want, "%v", tt.err)
	}
}

// Without settings nothing happens, and the error names what is missing and --fake. With wrong ones, it says so.
func TestSettings(t *testing.T) {
	for _, name := range []string{"BASE_URL", "CUSTOMER", "USERNAME", "PASSWORD", "PASSWORD_FILE", "AUTH", "DIALECT"} {
		t.Setenv("WEBDELIVERY_"+name, "")
	}
	connect := func(app *cli.App, ctx context.Context) error {
		client, err := app.Connect(webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
		if err == nil {
			_, err = client.Tasks.Get(ctx, "task-1")
		}
		return err
	}
	code, _, stderr := run(connect, "do", "each")
	assert.Equal(t, cli.Misuse, code)
	assert.Contains(t, stderr, "webdelivery: invalid WEBDELIVERY_BASE_URL: is not set in the environment\nwebdelivery: invalid WEBDELIVERY_CUSTOMER: ")
	assert.Contains(t, stderr, "\nwebdelivery: webdelivery --help lists the settings; to try a command without a service, add --fake\n")
	for _, name := range []string{"CUSTOMER", "USERNAME", "PASSWORD"} {
		t.Setenv("WEBDELIVERY_"+name, "a")
	}
	t.Setenv("WEBDELIVERY_BASE_URL", "https://127.0.0.1:1")
	code, _, stderr = run(connect, "do", "each")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, stderr, "refused\nwebdelivery: check WEBDELIVERY_BASE_URL, and that the service is running\n")
	code, _, stderr = run(connect, "do", "each", "--fake")
	assert.Equal(t, cli.Done, code)
	assert.Equal(t, "webdelivery: --fake: this is a fake service; nothing real happens\n", stderr)
}

// An address in a wrong form is wrong usage, also an empty one, which would serve to all computers; one in use is not.
func TestListen(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t)
	for listen, want := range map[string]int{
		"": cli.Misuse, "8080": cli.Misuse, "127.0.0.1:http!": cli.Misuse, "127.0.0.1:65536": cli.Misuse,
		strings.TrimPrefix(srv.URL, "http://"): cli.Failed,
	} {
		code, _, stderr := run(func(app *cli.App, ctx context.Context) error { return app.Serve(ctx, listen, nil, "%s") }, "do", "each")
		assert.Equal(t, want, code, stderr)
		assert.Contains(t, stderr, map[int]string{cli.Misuse: "write it like 127.0.0.1:8080", cli.Failed: "127.0.0.1:0 takes a free port"}[want])
	}
}
