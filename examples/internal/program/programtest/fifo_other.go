//go:build !unix

package programtest

import "testing"

// Fifo creates a named pipe. Where there are none, it skips the test.
func Fifo(t testing.TB, _ string) {
	t.Helper()
	t.Skip("no named pipes on this platform")
}
