package transport

import (
	"context"
	"errors"
	"io"
	"reflect"
)

// foreignError is an error of a context, a transport or a limiter of the user's that contains an error of the SDK from
// another call. It keeps the text. errors.Is finds only the user's errors in it, and errors.As finds nothing. So
// nothing of the other call seems to be true of this one.
type foreignError struct {
	err error
	own func(error) bool
}

func (e *foreignError) Error() string { return e.err.Error() }

// Is compares target with the user's errors only.
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

// foreign wraps an error in a foreignError if it contains one for which own returns true. own judges one error, without
// what that wraps. If own is nil, foreign wraps nothing.
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

// foreignBody is the body of a response. It may be the user's, and net/http returns the cause of a context from it.
type foreignBody struct {
	io.ReadCloser

	own func(error) bool
}

func (b *foreignBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // a Reader's io.EOF is never wrapped
		err = foreign(err, b.own)
	}
	return n, err
}

// walk calls visit with each error of a tree. If visit returns true, walk also visits what that error wraps.
func walk(err error, visit func(error) bool) {
	if err == nil || !visit(err) {
		return
	}
	switch e := err.(type) { //nolint:errorlint // each error of a tree is judged by itself
	case interface{ Unwrap() error }:
		walk(e.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			walk(err, visit)
		}
	}
}

// Foreign returns a limiter that wraps its errors if they contain one for which own returns true. own judges one error,
// without what that wraps.
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
