// Package clitest runs commands in tests.
package clitest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// Result is what a command line came to.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// App returns an App for a service, whose Out and Err are buffers and no terminals.
func App(srv *webdeliverytest.Server, stdin string) (app *cli.App, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &cli.App{
		In: strings.NewReader(stdin), Out: stdout, Err: stderr,
		Connect: func(options ...webdelivery.Option) (*webdelivery.Client, error) {
			return srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password), options...)
		},
	}, stdout, stderr
}

// Run runs a command line, such as tasks list -o json, against a service.
func Run(t testing.TB, srv *webdeliverytest.Server, command func(*cli.App) *cobra.Command, stdin string, args ...string) Result {
	t.Helper()
	app, stdout, stderr := App(srv, stdin)
	code := app.Run(t.Context(), args, command)
	return Result{code, stdout.String(), stderr.String()}
}
