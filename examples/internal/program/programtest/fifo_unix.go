//go:build unix

package programtest

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Fifo creates a named pipe. Where there are none, it skips the test.
func Fifo(t testing.TB, path string) {
	t.Helper()
	require.NoError(t, syscall.Mkfifo(path, 0o600))
}
