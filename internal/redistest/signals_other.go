//go:build !unix

package redistest

import (
	"os"
	"testing"
)

// suspend skips a test where a process cannot be stopped.
func suspend(t *testing.T, _ *os.Process) { t.Skip("no SIGSTOP on this platform") }

func resume(*testing.T, *os.Process) {}
