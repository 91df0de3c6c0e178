//go:build unix

package redistest

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// suspend stops a process until resume.
func suspend(t *testing.T, p *os.Process) { require.NoError(t, p.Signal(syscall.SIGSTOP)) }

func resume(t *testing.T, p *os.Process) { require.NoError(t, p.Signal(syscall.SIGCONT)) }
