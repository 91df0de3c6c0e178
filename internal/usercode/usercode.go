// Package usercode runs user code inside the SDK: transports, limiters, log handlers, callbacks, methods of contexts
// and errors. If user code panics or calls runtime.Goexit in the user's goroutine, that passes through to the user.
// In a goroutine that the SDK started, it becomes an error of the affected calls. Otherwise the panic would end the
// process, and the Goexit would leave callers waiting.
//
// The package knows functions and errors. It must not know requests, secrets, or what an error means to a caller. Its
// entry points are [Run], [Panic], [ErrGoexit], [Caused], [NoContext] and [Turn].
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

// Run calls f, and then done with its error. If f panics, done gets a [*Panic]; if f ends the goroutine, [ErrGoexit].
// done must not run user code, because nothing catches it there. So done must not call methods of an error that a
// user defined.
func Run(f func() error, done func(error)) {
	err := ErrGoexit
	defer func() {
		if recover() != nil { // printing the value of the panic panicked in turn
			err = errPanic
		}
		done(err)
	}()
	defer func() {
		if v := recover(); v != nil {
			err = errPanic // stays if printing v ends the goroutine
			err = newPanic(v)
		}
	}()
	err = f()
}

// Panic is a panic of user code as an error. It does not keep the panic value, which may contain secrets.
type Panic struct {
	text string
	is   func(error) bool
}

// newPanic must be called by the function that recovered the value, because its stack still shows where the panic
// was.
func newPanic(value any) *Panic {
	cause, _ := value.(error)
	return &Panic{
		fmt.Sprintf("panic in %s: %v", panickedIn(), value),
		func(target error) bool { return cause != nil && errors.Is(cause, target) },
	}
}

// Error returns the place of the panic and its value in full. It must not be clipped before secrets are redacted,
// because the end could then be a piece of a secret.
func (p *Panic) Error() string { return p.text }

// Is reports whether the panic value is an error that matches target.
func (p *Panic) Is(target error) bool { return p.is(target) }

// WithText returns the same panic with another text.
func (p *Panic) WithText(text string) *Panic { return &Panic{text, p.is} }

// Caused reports whether err comes from [Run] because user code panicked or ended its goroutine.
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

// Turn is a lock under which user code may run. In a testing/synctest bubble, time stands still while a goroutine
// waits for a sync.Mutex. So a callback that sleeps under a mutex would hang the user's test. Create a Turn with
// [NewTurn].
type Turn chan struct{}

// NewTurn returns an unlocked Turn.
func NewTurn() Turn { return make(Turn, 1) }

// Lock locks the Turn.
func (t Turn) Lock() { t <- struct{}{} }

// Unlock unlocks the Turn.
func (t Turn) Unlock() { <-t }
