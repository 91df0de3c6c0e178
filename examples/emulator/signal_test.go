//go:build unix

package main

import (
	"bufio"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
)

// A signal stops the emulator with exit code 0.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			reader, stdout, err := os.Pipe()
			require.NoError(t, err)
			defer reader.Close()
			p := programtest.Start(t, stdout, "-listen", "127.0.0.1:0")
			require.NoError(t, stdout.Close())
			lines, last := bufio.NewScanner(reader), ""
			for lines.Scan() {
				last = lines.Text()
				if urlIn(last) != "" {
					p.Signal(t, signal)
				}
			}
			assert.Equal(t, "Stopped.", last)
			code, _, stderr := p.End(t)
			assert.Equal(t, program.Done, code, stderr)
		})
	}
}
