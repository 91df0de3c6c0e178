// Package program has what the example programs share: flags, input, exit codes, and the service that they work with.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/webdelivery/webdelivery-go"
)

// Exit codes of every example program.
const (
	Done   = 0
	Failed = 1
	Misuse = 2 // wrong usage; nothing was done
	Partly = 3 // a part was done
)

// Exit is an error with an exit code of its own. If Err is nil, nothing is printed.
type Exit struct {
	Code int
	Err  error
}

// Error returns the text of Err. If Err is nil, it names the code.
func (e *Exit) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Exit) Unwrap() error { return e.Err }

// Misused returns an error of the command line.
func Misused(format string, args ...any) error { return &Exit{Misuse, fmt.Errorf(format, args...)} }

// Streams are the standard streams of a program.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Which of them are terminals. A program does not wait for input on a terminal, and shows progress and colours only
	// there.
	InTerminal, OutTerminal, ErrTerminal bool
}

// Main runs a program until it is done or interrupted, and ends the process. If isTerminal is nil, no stream is a
// terminal. The first signal ends the context of the program. A second later, writes to an output that no process reads
// end, too.
func Main(name string, isTerminal func(fd int) bool, run func(ctx context.Context, args []string, s Streams) error) {
	if isTerminal == nil {
		isTerminal = func(int) bool { return false }
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second ^C ends the process, even if the program waits for something
	stderr := writing(ctx, os.Stderr)
	err := run(ctx, os.Args[1:], Streams{
		In: os.Stdin, Out: writing(ctx, os.Stdout), Err: stderr,
		InTerminal: isTerminal(int(os.Stdin.Fd())), OutTerminal: isTerminal(int(os.Stdout.Fd())), ErrTerminal: isTerminal(int(os.Stderr.Fd())),
	})
	code := Code(name, stderr, err)
	stop()
	os.Exit(code)
}

// Code prints what went wrong and what to do about it, and returns the exit code.
func Code(name string, stderr io.Writer, err error) int {
	var exit *Exit
	isExit := errors.As(err, &exit)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return Done
	}
	if !isExit || exit.Err != nil {
		text := WithFlags(err.Error())
		fmt.Fprintf(stderr, "%s: %s\n", name, strings.ReplaceAll(text, "\n", "\n"+name+": ")) // each of several errors
		if step := nextStep(err); step != "" {
			fmt.Fprintf(stderr, "%s: %s\n", name, step)
		}
	}
	var partial *webdelivery.PartialError
	switch {
	case isExit:
		return exit.Code
	case errors.Is(err, webdelivery.ErrInvalid):
		return Misuse
	case errors.As(err, &partial):
		return Partly
	default:
		return Failed
	}
}

// WithFlags changes the advice of an error that only a Go program can follow.
func WithFlags(text string) string { return inPrograms.Replace(text) }

var inPrograms = strings.NewReplacer("; use https or WithPlainHTTP", "; use https",
	"; a longer Lookback finds such events", "; a longer -lookback finds such events",
	"; set AcceptGap to go on without them", "; -accept-gap goes on without them")

// Advise adds the next step to an error. Code prints it on a line of its own, instead of the step that it knows.
func Advise(err error, step string) error { return &advised{err, step} }

type advised struct {
	error

	step string
}

func (a *advised) Unwrap() error { return a.error }

// nextStep says what to do about an error of the service or of the settings. If nothing is known, it returns "".
func nextStep(err error) string {
	var own *advised
	var invalid *webdelivery.ValidationError
	var unreachable *net.OpError
	var unknown *net.DNSError
	switch {
	case errors.As(err, &own) && own.step != "":
		return own.step
	case errors.As(err, &invalid) && strings.HasPrefix(invalid.Field, "WEBDELIVERY_"):
		if unset := missing(); unset != nil {
			return "set " + strings.Join(unset, ", ") + ", or unset the others to use a fake service"
		}
		return "" // the reason says what to write
	case errors.Is(err, webdelivery.ErrUnauthorized):
		return "check WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD"
	case errors.Is(err, webdelivery.ErrForbidden):
		return "use a WEBDELIVERY_USERNAME that has the right to do this"
	case errors.Is(err, webdelivery.ErrNotFound):
		return "check WEBDELIVERY_BASE_URL and WEBDELIVERY_CUSTOMER, and the id, if you gave one"
	case errors.As(err, new(*webdelivery.Error)) && (errors.As(err, &unknown) || errors.As(err, &unreachable) && unreachable.Op == "dial"):
		return "check WEBDELIVERY_BASE_URL, and that the service is running"
	default:
		return ""
	}
}

// Ended returns the error of a program that did several things: good of them succeeded, and the others failed with
// these errors. It returns nil if none failed.
func Ended(good int, failed ...error) error {
	err := errors.Join(failed...)
	switch {
	case err == nil:
		return nil
	case good == 0:
		return &Exit{Failed, err}
	default:
		return &Exit{Partly, err}
	}
}
