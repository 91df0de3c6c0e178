//go:build !unix

package redistest

import (
	"os"
	"testing"
)

// Suspend skips the test, because this platform cannot stop processes.
func Suspend(t *testing.T, _ *os.Process) { t.Skip("no SIGSTOP on this platform") }

// Resume does nothing.
func Resume(*testing.T, *os.Process) {}
