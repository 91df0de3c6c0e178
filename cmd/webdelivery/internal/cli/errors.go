package cli

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// Exit codes of every command.
const (
	Done   = 0
	Failed = 1
	Misuse = 2 // wrong usage; nothing was done
	Partly = 3 // a part was done
)

// Exit is an error with an exit code of its own.
type Exit struct {
	Code int
	Err  error
}

// Error returns the text of Err.
func (e *Exit) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Exit) Unwrap() error { return e.Err }

// Misused returns an error of the command line.
func Misused(format string, args ...any) error { return &Exit{Misuse, fmt.Errorf(format, args...)} }

// Ended returns the error of a command of whose things good were done, and others failed with these errors.
func Ended(good int, failed ...error) error {
	err := errors.Join(failed...)
	if err == nil {
		return nil
	}
	code := Failed
	if good > 0 {
		code = Partly
	}
	return &Exit{code, err}
}

// Advise adds the next step to an error, which is printed on a line of its own, instead of the one that is known for it.
func Advise(err error, step string) error { return &advised{err, step} }

type advised struct {
	error

	step string
}

func (a *advised) Unwrap() error { return a.error }

// report prints what went wrong and what to do about it, and returns the exit code.
func (a *App) report(err error) int {
	if err == nil {
		return Done
	}
	text := strings.ReplaceAll(err.Error(), "; invalid ", "\ninvalid ") // a line for each of several errors
	for line := range strings.SplitSeq(text, "\n") {
		a.Tell("%s", line)
	}
	if step := nextStep(err); step != "" {
		a.Tell("%s", step)
	}
	return code(err)
}

// Tell prints a line on standard error.
func (a *App) Tell(format string, args ...any) {
	a.Show("")
	fmt.Fprintln(a.Err, "webdelivery:", plain(fmt.Sprintf(format, args...)))
}

// plain returns a text of the SDK or the service in the words of the command line, which no terminal obeys.
func plain(text string) string { return Printable(WithFlags(text)) }

func code(err error) int {
	var exit *Exit
	switch {
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, webdelivery.ErrInvalid):
		return Misuse
	case errors.As(err, new(*webdelivery.PartialError)):
		return Partly
	default:
		return Failed
	}
}

// WithFlags returns the text of an error without the prefix of the SDK, and with flags for what only a program can set.
func WithFlags(text string) string { return inFlags.Replace(text) }

var inFlags = strings.NewReplacer("webdelivery: ", "",
	"; use https or WithPlainHTTP", "; use https",
	"or use Prefix for", "or add --both for both protocols, or --prefix for", "use Prefix", "add --prefix",
	"a longer Lookback finds", "a longer --lookback finds", "ExportOptions.Lookback", "--lookback",
	"set AcceptGap to go on", "--accept-gap goes on", "the earlier Start of the query", "the earlier --since",
	"call ClearEntries again", "run lists clear again")

// nextStep says what to do about an error of the service or of the settings. If nothing is known, it returns "".
func nextStep(err error) string {
	var own *advised
	var unreachable *net.OpError
	switch {
	case errors.As(err, &own):
		return own.step
	case errors.Is(err, webdelivery.ErrUnauthorized):
		return "check WEBDELIVERY_USERNAME and WEBDELIVERY_PASSWORD"
	case errors.Is(err, webdelivery.ErrForbidden):
		return "use a WEBDELIVERY_USERNAME that has the right to do this"
	case errors.Is(err, webdelivery.ErrNotFound):
		return "check WEBDELIVERY_BASE_URL and WEBDELIVERY_CUSTOMER, and the id, if you gave one"
	case errors.As(err, new(*webdelivery.Error)) && errors.As(err, &unreachable) && unreachable.Op == "dial":
		return "check WEBDELIVERY_BASE_URL, and that the service is running"
	default:
		return ""
	}
}
