package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// Some system calls wait for other processes and take no context. Open waits for the writer of a FIFO, read for input
// in a pipe, write for room in it. Here they end with the context of the program, and so with the first signal.

// Until calls a function that takes no context, and returns its result. If the context ends first, Until returns its
// cause. The call then continues in the background, and late gets its result unless it is an error.
func Until[T any](ctx context.Context, call func() (T, error), late func(T)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	go func() {
		if r := <-done; r.err == nil {
			late(r.value)
		}
	}()
	return none, context.Cause(ctx)
}

// Open opens a file that the user names, to read it. If it cannot be opened, that is a Misused error. If the context
// ends, the opening and every read return its cause.
func Open(ctx context.Context, name string) (io.ReadCloser, error) {
	file, err := Until(ctx, func() (*os.File, error) {
		return os.Open(name)
	}, func(file *os.File) { _ = file.Close() })
	switch {
	case err == nil:
		return struct {
			io.Reader
			io.Closer
		}{reading(ctx, file), file}, nil
	case errors.Is(err, context.Cause(ctx)):
		return nil, fmt.Errorf("open %s: %w while waiting; a FIFO opens when another process opens it to write", name, err)
	default:
		return nil, Misused("%w", err)
	}
}

// ReadFile reads a file that the user names. If it cannot be opened, that is a Misused error. If the context ends
// first, ReadFile returns its cause.
func ReadFile(ctx context.Context, name string) ([]byte, error) {
	file, err := Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

type function func([]byte) (int, error)

// Read and Write call the function.
func (f function) Read(p []byte) (int, error)  { return f(p) }
func (f function) Write(p []byte) (int, error) { return f(p) }

// reading reads from a source until the context ends. A read that waits at that moment continues in the background.
func reading(ctx context.Context, in io.Reader) io.Reader {
	own := make([]byte, 32<<10) // a read in the background must not write into the caller's buffer
	return function(func(p []byte) (int, error) {
		n, err := Until(ctx, func() (int, error) { return in.Read(own[:min(len(p), len(own))]) }, func(int) {})
		return copy(p, own[:n]), err
	})
}

// patience is how long a write may wait for its reader after the end of the context: the program then reports how far
// it came.
const patience = time.Second

// writing writes to an output. After the end of the context, writes fail if no process reads the output.
func writing(ctx context.Context, out io.Writer) io.Writer {
	var unread atomic.Bool
	return function(func(p []byte) (int, error) {
		if unread.Load() {
			return 0, errUnread
		}
		type result struct {
			n   int
			err error
		}
		done, own := make(chan result, 1), bytes.Clone(p)
		go func() {
			n, err := out.Write(own)
			done <- result{n, err}
		}()
		select {
		case r := <-done:
			return r.n, r.err
		case <-ctx.Done():
		}
		select {
		case r := <-done:
			return r.n, r.err
		case <-time.After(patience):
			unread.Store(true)
			return 0, errUnread
		}
	})
}

var errUnread = errors.New("interrupted, and no process reads the output")
