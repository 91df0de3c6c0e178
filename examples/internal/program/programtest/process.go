package programtest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// role is the variable of the environment that makes a test binary the program.
const role = "PROGRAMTEST_ROLE"

// started is the first line on stderr of a Process.
const started = "started\n"

// Main is the TestMain of a program. Start runs the test binary as the program, for tests that need a process, such as
// those of signals.
func Main(m *testing.M, name string, run func(ctx context.Context, args []string, s program.Streams) error) {
	if os.Getenv(role) == "" {
		os.Exit(m.Run())
	}
	program.Main(name, nil, func(ctx context.Context, args []string, s program.Streams) error {
		fmt.Fprint(os.Stderr, started)
		return run(ctx, args, s)
	})
}

// Process is the program as a process of its own.
type Process struct {
	cmd    *exec.Cmd
	stderr *bufio.Reader
	stdout bytes.Buffer
	killed func() error // returns why it was killed, or nil
}

// Start starts the program as a process of its own, and returns when it catches signals. It kills a process that does
// not end. The process writes to the given file; if that is nil, End returns its stdout.
func Start(t *testing.T, stdout *os.File, args ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(stop)
	p := &Process{cmd: exec.CommandContext(ctx, self, args...), killed: ctx.Err}
	p.cmd.Env = append(os.Environ(), role+"=program", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stdout = &p.stdout
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	p.stderr = bufio.NewReader(stderr)
	line, err := p.stderr.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, started, line)
	return p
}

// Signal sends a signal, once.
func (p *Process) Signal(t *testing.T, signal os.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(signal))
}

// End waits for the end of the program. Its code is -1 if a signal ended it.
func (p *Process) End(t *testing.T) (code int, stdout, stderr string) {
	t.Helper()
	told, err := io.ReadAll(p.stderr)
	require.NoError(t, err)
	_ = p.cmd.Wait()
	assert.NoError(t, p.killed(), "it did not end")
	return p.cmd.ProcessState.ExitCode(), p.stdout.String(), string(told)
}
