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

// errPanic is the result of a panic whose value cannot be printed.
var errPanic = errors.New("a function given to the SDK panicked with a value that cannot be printed")

// caught calls f, and then done with its error. If f panics, or ends the goroutine, done gets an error that says so. No
// code of the user's may run in done, where nothing catches it; so done may ask nothing of an error of the user's.
func caught(f func() error, done func(error)) {
	err := errGoexit
	defer func() {
		if recover() != nil { // the value of the panic panicked when it was printed
			err = errPanic
		}
		done(err)
	}()
	defer func() {
		if v := recover(); v != nil {
			err = errPanic
			err = newPanicError(v)
		}
	}()
	err = f()
}

// caught is the same for errors that reach the user. A transport may panic with the request that it sends, so they pass
// without secrets.
func (c *Client) caught(f func() error, done func(*failure)) {
	caught(f, func(err error) {
		var judged *failure
		caught(func() error {
			if err != nil {
				judged = judge(c.auth.withoutSecrets(err))
			}
			return nil
		}, func(err error) { // from a method of the error
			if err != nil {
				judged = judge(c.auth.withoutSecrets(err))
			}
			done(judged)
		})
	})
}

// withoutSecrets is redactError, and clips the text of a panic.
func (n *authenticator) withoutSecrets(err error) error {
	if panicked, ok := err.(*panicError); ok { //nolint:errorlint // one that is wrapped is shown by what wraps it
		return &panicError{printable(n.text(panicked.text)), panicked.is}
	}
	return n.redactError(err)
}

// failure is an error with what the SDK has to know of it. The methods of an error may be code of the user's (a limiter
// returns errors of its own), which may panic or block. So they are asked once, where that does no harm: under no lock.
type failure struct {
	err     error
	text    string
	outcome Outcome
}

// judge asks an error; nil of nil.
func judge(err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{err, err.Error(), OutcomeOf(err)}
}

// cause is the error itself; nil of nil.
func (f *failure) cause() error {
	if f == nil {
		return nil
	}
	return f.err
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
