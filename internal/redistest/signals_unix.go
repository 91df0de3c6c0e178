//go:build unix

package redistest

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Suspend stops a process until Resume.
func Suspend(t *testing.T, p *os.Process) { require.NoError(t, p.Signal(syscall.SIGSTOP)) }

// Resume continues a process after Suspend.
func Resume(t *testing.T, p *os.Process) { require.NoError(t, p.Signal(syscall.SIGCONT)) }
