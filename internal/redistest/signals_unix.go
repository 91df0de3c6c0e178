//go:build unix

package redistest

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Hang makes the server accept connections without responding, until Wake.
func (s *Server) Hang(t *testing.T) { require.NoError(t, s.process.Process.Signal(syscall.SIGSTOP)) }

// Wake ends a Hang.
func (s *Server) Wake(t *testing.T) { require.NoError(t, s.process.Process.Signal(syscall.SIGCONT)) }
