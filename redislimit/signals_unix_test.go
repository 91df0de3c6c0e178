//go:build unix

package redislimit

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// suspend stops a process until wakeUp.
func suspend(t *testing.T, p *os.Process) { require.NoError(t, p.Signal(syscall.SIGSTOP)) }

func wakeUp(t *testing.T, p *os.Process) { require.NoError(t, p.Signal(syscall.SIGCONT)) }
