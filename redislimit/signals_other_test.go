//go:build !unix

package redislimit

import (
	"os"
	"testing"
)

// suspend skips a test where a process cannot be stopped.
func suspend(t *testing.T, _ *os.Process) { t.Skip("no SIGSTOP on this platform") }

func wakeUp(*testing.T, *os.Process) {}
