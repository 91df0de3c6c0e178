package transport

import (
	"context"
	"errors"
	"reflect"
)

// foreignError is an error of a context, a transport or a limiter of the user's that holds an error of the SDK: that of
// another call. It keeps the text. errors.Is finds in it what is the user's, and errors.As nothing, so that what is true
// of the other call is not said of this one.
type foreignError struct {
	err error
	own func(error) bool
}

func (e *foreignError) Error() string { return e.err.Error() }

// Is looks for target in what is the user's.
func (e *foreignError) Is(target error) bool {
	if e.own(target) || !reflect.TypeOf(target).Comparable() {
		return false
	}
	found := false
	walk(e.err, func(err error) bool {
		if e.own(err) || found {
			return false
		}
		is, ok := err.(interface{ Is(error) bool })
		found = err == target || ok && is.Is(target)
		return true
	})
	return found
}

// foreign closes an error if it holds one for which own returns true. own asks one error, and not what that wraps; nil
// closes none.
func foreign(err error, own func(error) bool) error {
	holds := false
	if err == nil || own == nil {
		return err
	}
	walk(err, func(err error) bool {
		holds = holds || own(err)
		return !holds
	})
	if !holds {
		return err
	}
	return &foreignError{err, own}
}

// walk calls visit with each error of a tree, and goes on with what that wraps if visit returns true.
func walk(err error, visit func(error) bool) {
	if err == nil || !visit(err) {
		return
	}
	switch e := err.(type) { //nolint:errorlint // each error of a tree is looked at by itself
	case interface{ Unwrap() error }:
		walk(e.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			walk(err, visit)
		}
	}
}

// Foreign returns a limiter whose errors are closed if they hold one for which own returns true. own asks one error, and
// not what that wraps.
func (l *Limiter) Foreign(own func(error) bool) *Limiter {
	if l == nil {
		return nil
	}
	closed := *l
	closed.Acquire = func(ctx context.Context) (Lease, error) {
		lease, err := l.Acquire(ctx)
		if err == nil {
			return lease, nil
		}
		err = foreign(err, own)
		if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
			err = joinCause(ended, err)
		}
		return Lease{}, err
	}
	return &closed
}
