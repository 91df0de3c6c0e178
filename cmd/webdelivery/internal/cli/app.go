// Package cli has what the commands share: the service, input and output, flags, errors and exit codes.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/webdelivery/webdelivery-go"
)

// App is what a command works with.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	// Which of them are terminals: there a command asks questions and shows progress, and it waits for no other input.
	InTerminal, OutTerminal, ErrTerminal bool
	Width                                int // of the terminal in characters; 0 is unknown
	// Connect creates the client of the service. Run sets it, if it is nil, for the service of the environment.
	Connect func(options ...webdelivery.Option) (*webdelivery.Client, error)

	ctx     context.Context
	fake    bool // --fake
	started bool // the command line was understood
}

const about = `Webdelivery drives a web-delivery management service: it purges caches, changes
network lists, watches tasks, and reads security statistics and events.

Settings come from the environment:

  WEBDELIVERY_BASE_URL, WEBDELIVERY_CUSTOMER, WEBDELIVERY_USERNAME
  WEBDELIVERY_PASSWORD, or WEBDELIVERY_PASSWORD_FILE with its name
  WEBDELIVERY_AUTH=session   logs in; otherwise each request has the password
  WEBDELIVERY_DIALECT        what "webdelivery doctor" says your service needs

Exit codes: 0 done, 1 failed or interrupted, 2 wrong usage and nothing was done,
3 partly done; of lists plan and apply also 4, there is something to change,
and 5, the plan exceeds a limit.

With -o json, a command prints one JSON document, and with ndjson one per line.
Both keep their members; ids are texts.`

// Main runs the command line of the process, and returns its exit code. The first signal ends the context of the
// command; the second one ends the process.
func Main(commands ...func(*App) *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	terminal := func(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }
	app := &App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal: terminal(os.Stdin), OutTerminal: terminal(os.Stdout), ErrTerminal: terminal(os.Stderr),
	}
	if app.OutTerminal {
		app.Out = console{os.Stdout}
	}
	app.Width, _, _ = term.GetSize(int(os.Stderr.Fd()))
	return app.Run(ctx, os.Args[1:], commands...)
}

// Run runs a command line, and returns its exit code.
func (a *App) Run(ctx context.Context, args []string, commands ...func(*App) *cobra.Command) int {
	a.ctx = ctx
	if a.Connect == nil {
		a.Connect = a.connect
	}
	root := Group("webdelivery", "Drive a web-delivery management service", about)
	root.Version = fmt.Sprintf("v%s, %s, %s/%s", webdelivery.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentFlags().BoolVar(&a.fake, "fake", false, "use a fake service of this process; nothing real happens")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) (err error) {
		c.Flags().Visit(func(f *pflag.Flag) { // from a variable that is not set, which would change the meaning
			if f.Value.Type() == "string" && f.Value.String() == "" && !slices.Contains([]string{"by", "redis"}, f.Name) {
				err = fmt.Errorf("--%s is empty: set the variable that it comes from, or remove it", f.Name)
			}
		})
		a.started = err == nil
		return err
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetArgs(args)
	for _, command := range commands {
		root.AddCommand(command(a))
	}
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = Misused("%w; see %s --help", err, command.CommandPath())
	}
	return a.report(err)
}

// Group returns a command that only has other commands.
func Group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs, SuggestionsMinimumDistance: 2}
	group.RunE = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && !group.HasParent():
			return group.Help()
		case len(args) == 0:
			return Misused("the command is missing; see %s --help", group.CommandPath())
		}
		text := fmt.Sprintf("there is no command %q", args[0])
		if similar := group.SuggestionsFor(args[0]); len(similar) > 0 {
			text += "; did you mean " + strings.Join(similar, " or ") + "?"
		}
		return Misused("%s; see %s --help", text, group.CommandPath())
	}
	group.AddCommand(commands...)
	return group
}
