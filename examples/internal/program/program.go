// Package program is what the example programs share: how they end, and the service they work with.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
	Misuse = 2 // used wrongly: nothing was done
	Partly = 3 // some of it was done
)

// Exit is an error with an exit code of its own. Without Err there is nothing to tell.
type Exit struct {
	Code int
	Err  error
}

// Error is that of Err, or names the code when there is none.
func (e *Exit) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap gives what went wrong.
func (e *Exit) Unwrap() error { return e.Err }

// Misused is what is wrong with the command line.
func Misused(format string, args ...any) error { return &Exit{Misuse, fmt.Errorf(format, args...)} }

// Streams are what a program reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Which of them are terminals: nothing is waited for on the first, and there is no decoration but on the others.
	InTerminal, OutTerminal, ErrTerminal bool
}

// Main runs a program until it is done or interrupted, and ends the process. Without isTerminal nothing is a terminal. The
// first signal ends the context of the program, and a second later also writes to an output that nobody reads.
func Main(name string, isTerminal func(fd int) bool, run func(ctx context.Context, args []string, s Streams) error) {
	if isTerminal == nil {
		isTerminal = func(int) bool { return false }
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second ^C ends the process, whatever makes the program wait
	stderr := writing(ctx, os.Stderr)
	err := run(ctx, os.Args[1:], Streams{
		In: os.Stdin, Out: writing(ctx, os.Stdout), Err: stderr,
		InTerminal: isTerminal(int(os.Stdin.Fd())), OutTerminal: isTerminal(int(os.Stdout.Fd())), ErrTerminal: isTerminal(int(os.Stderr.Fd())),
	})
	code := Code(name, stderr, err)
	stop()
	os.Exit(code)
}

// Code tells what went wrong, and gives the exit code for it.
func Code(name string, stderr io.Writer, err error) int {
	var exit *Exit
	isExit := errors.As(err, &exit)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return Done
	}
	if !isExit || exit.Err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "\n"+name+": ")) // each of several
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

// Ended is how a program ends that did several things, of which some went well and the others ended in these errors.
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
