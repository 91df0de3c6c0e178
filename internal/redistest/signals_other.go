//go:build !unix

package redistest

import "testing"

// Hang skips the test, because this platform cannot stop processes.
func (*Server) Hang(t *testing.T) { t.Skip("no SIGSTOP on this platform") }

// Wake does nothing.
func (*Server) Wake(*testing.T) {}
