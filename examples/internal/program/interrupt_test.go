package program_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

const deaf = "PROGRAM_TEST_DEAF"

// TestMain runs the tests, or is a program that does not notice the end of its context.
func TestMain(m *testing.M) {
	if os.Getenv(deaf) == "" {
		os.Exit(m.Run())
	}
	program.Main("deaf", nil, func(_ context.Context, _ []string, s program.Streams) error {
		fmt.Fprintln(s.Out, "ready")
		_, err := s.In.Read(make([]byte, 1)) // nobody writes
		return err
	})
}

// The first ^C asks a program to end; one that waits for something else is ended by the second.
func TestTheSecondInterruptEnds(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), deaf+"=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)

	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for range 1_000_000 { // signals that come together count as one
		select {
		case err := <-ended:
			assert.EqualError(t, err, "signal: interrupt")
			return
		default:
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
	require.NoError(t, cmd.Process.Kill())
	assert.EqualError(t, <-ended, "signal: interrupt")
}
