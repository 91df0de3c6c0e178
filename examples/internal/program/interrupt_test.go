//go:build unix

package program_test

import (
	"context"
	"fmt"
	"os"
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
