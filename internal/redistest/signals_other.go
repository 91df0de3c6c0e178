//go:build !unix

package redistest

import (
	"os"
	"testing"
)

// Suspend skips a test where a process cannot be stopped.
func Suspend(t *testing.T, _ *os.Process) { t.Skip("no SIGSTOP on this platform") }

// Resume does nothing.
func Resume(*testing.T, *os.Process) {}
