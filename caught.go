package webdelivery

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Code of the user's runs inside the SDK: transports, limiters, log handlers, callbacks. In a goroutine of the user's, a
// panic or runtime.Goexit in it passes through to the user. In a goroutine that the SDK started it becomes an error of
// the calls concerned: nobody could recover the panic, and nobody would hear of the Goexit.

// errGoexit is the result of what ended its goroutine.
var errGoexit = errors.New("a function given to the SDK called runtime.Goexit")

// caught calls f, and then done with its error. If f panics, or ends the goroutine, done gets an error that says so.
func caught(f func() error, done func(error)) {
	err := errGoexit
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError(v)
		}
		done(err)
	}()
	err = f()
}

// caught is the same for errors that reach the user as they are. A transport may panic with the request that it sends.
func (c *Client) caught(f func() error, done func(error)) {
	caught(f, func(err error) {
		if panicked, ok := err.(*panicError); ok { //nolint:errorlint // one that is wrapped is shown by what wraps it
			err = &panicError{printable(c.auth.text(panicked.text)), panicked.is}
		} else if err != nil {
			err = c.auth.redactError(err)
		}
		done(err)
	})
}

// panicError is a panic in code of the user's. It does not hold the value, which may hold anything.
type panicError struct {
	text string
	is   func(error) bool
}

// newPanicError must be called by the function that recovered the value: there the stack still shows where it was.
func newPanicError(value any) *panicError {
	cause, _ := value.(error)
	return &panicError{
		fmt.Sprintf("panic in %s: %v", panickedIn(), value),
		func(target error) bool { return cause != nil && errors.Is(cause, target) },
	}
}

// Error is not clipped yet: what is clipped before the secrets are out of it may end in a piece of one.
func (e *panicError) Error() string { return e.text }

// Is compares the value of the panic, if that is an error.
func (e *panicError) Is(target error) bool { return e.is(target) }

// outcomeOfWrite is not that of the value, which may be an error of another call.
func (e *panicError) outcomeOfWrite() Outcome { return Unknown }

// panickedIn returns the function that panicked, with file and line.
func panickedIn() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for panicking := false; ; {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf("%s (%s:%d)", frame.Function, filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return "an unknown function"
		}
	}
}

// turn is a lock under which code of the user's runs. For a sync.Mutex a testing/synctest bubble lets no time pass, so a
// callback that sleeps in a test of the user's would hang it.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// Lock waits for the turn.
func (t turn) Lock() { t <- struct{}{} }

// Unlock passes it on.
func (t turn) Unlock() { <-t }
