// Package usercode runs code of the user's inside the SDK: transports, limiters, log handlers, callbacks, methods of
// contexts and of errors. In a goroutine of the user's, a panic or runtime.Goexit in it passes through to the user. In a
// goroutine that the SDK started it becomes an error of the calls concerned: nobody could recover the panic, and nobody
// would hear of the Goexit.
//
// The package knows functions and errors. It may know nothing of requests, of secrets and of what an error means to a
// caller. Its entry points are [Run], [Panic], [ErrGoexit], [Caused], [NoContext] and [Turn].
package usercode

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// ErrGoexit is the error of a function that ended its goroutine.
var ErrGoexit = errors.New("a function given to the SDK called runtime.Goexit")

// errPanic is the error of a panic whose value cannot be printed.
var errPanic = errors.New("a function given to the SDK panicked with a value that cannot be printed")

// Run calls f, and then done with its error. If f panics, done gets a [*Panic]; if f ends the goroutine, [ErrGoexit]. No
// code of the user's may run in done, where nothing catches it; so done may ask nothing of an error of the user's.
func Run(f func() error, done func(error)) {
	err := ErrGoexit
	defer func() {
		if recover() != nil { // the value of the panic panicked when it was printed
			err = errPanic
		}
		done(err)
	}()
	defer func() {
		if v := recover(); v != nil {
			err = errPanic
			err = newPanic(v)
		}
	}()
	err = f()
}

// Panic is a panic in code of the user's, as an error. It does not hold the value, which may hold anything.
type Panic struct {
	text string
	is   func(error) bool
}

// newPanic must be called by the function that recovered the value: there the stack still shows where it was.
func newPanic(value any) *Panic {
	cause, _ := value.(error)
	return &Panic{
		fmt.Sprintf("panic in %s: %v", panickedIn(), value),
		func(target error) bool { return cause != nil && errors.Is(cause, target) },
	}
}

// Error returns the place of the panic and its value, in full: if it were clipped before the secrets are taken out of it,
// it might end in a piece of one.
func (p *Panic) Error() string { return p.text }

// Is compares the value of the panic, if that is an error.
func (p *Panic) Is(target error) bool { return p.is(target) }

// WithText returns the same panic with another text.
func (p *Panic) WithText(text string) *Panic { return &Panic{text, p.is} }

// Caused reports whether err is what [Run] makes of a panic or of an ended goroutine.
func Caused(err error) bool {
	_, panicked := errors.AsType[*Panic](err)
	return panicked || errors.Is(err, ErrGoexit) || errors.Is(err, errPanic)
}

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

// NoContext reports whether ctx is nil, or a nil pointer that was passed as a context.
func NoContext(ctx context.Context) bool {
	if ctx == nil {
		return true
	}
	v := reflect.ValueOf(ctx)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Turn is a lock under which code of the user's runs. For a sync.Mutex a testing/synctest bubble lets no time pass, so a
// callback that sleeps in a test of the user's would hang it. The zero value is of no use: see [NewTurn].
type Turn chan struct{}

// NewTurn returns a turn that nobody has.
func NewTurn() Turn { return make(Turn, 1) }

// Lock waits for the turn.
func (t Turn) Lock() { t <- struct{}{} }

// Unlock passes it on.
func (t Turn) Unlock() { <-t }
