//go:build unix

package program_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
)

// TestMain makes the test binary a program that prints a line after the first signal.
func TestMain(m *testing.M) {
	programtest.Main(m, "x", func(ctx context.Context, _ []string, s program.Streams) error {
		<-ctx.Done()
		_, err := fmt.Fprintln(s.Out, "what became of it")
		return err
	})
}

// What is printed after the first signal arrives. The program also ends if no process reads the output.
func TestOutputAfterASignal(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, nil)
	p.Signal(t, syscall.SIGTERM)
	code, stdout, _ := p.End(t)
	assert.Equal(t, program.Done, code)
	assert.Equal(t, "what became of it\n", stdout)

	reader, full, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	defer full.Close()
	fill(t, full)
	p = programtest.Start(t, full)
	p.Signal(t, syscall.SIGTERM)
	code, _, stderr := p.End(t)
	assert.Equal(t, program.Failed, code)
	assert.Equal(t, "x: interrupted, and no process reads the output\n", stderr)
}

// fill writes into a pipe until there is no room.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	raw, err := pipe.SyscallConn()
	require.NoError(t, err)
	for some := make([]byte, 4096); err == nil; {
		require.NoError(t, raw.Write(func(fd uintptr) bool {
			_, err = syscall.Write(int(fd), some)
			return true
		}))
	}
	require.ErrorIs(t, err, syscall.EAGAIN)
}

// waitedFor is a context that ends as soon as a caller waits for its end.
type waitedFor struct {
	context.Context
	end func()
}

func (c waitedFor) Done() <-chan struct{} {
	c.end()
	return c.Context.Done()
}

// The end of a context ends the opening of a FIFO that has no writer. If a writer comes later, the FIFO is closed.
func TestOpenIsInterrupted(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	programtest.Fifo(t, fifo)
	enough := errors.New("enough")
	for name, open := range map[string]func(context.Context) error{
		"Open":     func(ctx context.Context) error { _, err := program.Open(ctx, fifo); return err },
		"ReadFile": func(ctx context.Context) error { _, err := program.ReadFile(ctx, fifo); return err },
	} {
		ctx, end := context.WithCancelCause(t.Context())
		err := open(waitedFor{ctx, func() { end(enough) }})
		require.ErrorIs(t, err, enough, name)
		require.EqualError(t, err, "open "+fifo+": enough while waiting; a FIFO opens when another process opens it to write")

		writer, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		require.NoError(t, err)
		for err == nil {
			_, err = writer.WriteString("for nobody")
		}
		require.ErrorIs(t, err, syscall.EPIPE)
		require.NoError(t, writer.Close())
	}
}

// After the end of its context, nothing is opened or read. No other error counts as the end of the context.
func TestOpenAndRead(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "file")
	_, err := program.ReadFile(t.Context(), name)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.NotContains(t, err.Error(), "FIFO")
	require.NoError(t, os.WriteFile(name, []byte("text"), 0o600))
	text, err := program.ReadFile(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, "text", string(text))
	_, err = program.ReadFile(t.Context(), filepath.Dir(name))
	require.ErrorContains(t, err, "is a directory")

	ctx, end := context.WithCancel(t.Context())
	file, err := program.Open(ctx, name)
	require.NoError(t, err)
	defer file.Close()
	end()
	_, err = file.Read(make([]byte, 1))
	require.ErrorIs(t, err, context.Canceled)
	_, err = program.Open(ctx, name)
	require.ErrorIs(t, err, context.Canceled)
}
