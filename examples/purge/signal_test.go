//go:build unix

package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, "purge", run) }

// The first signal ends the program while it waits for a process that opens a FIFO, or writes into one.
func TestTheFirstSignalEndsIt(t *testing.T) { //nolint:paralleltest // the environment is the process's
	programtest.NoService(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} { //nolint:paralleltest // the environment is set
		for name, tt := range map[string]struct {
			fed  bool
			told string
		}{
			"nobody opens the FIFO": {false, "a FIFO opens when another process opens it to write"},
			"nobody writes":         {true, "not all was read: " + signal.String() + " signal received"},
		} {
			t.Run(signal.String()+"/"+name, func(t *testing.T) {
				fifo := filepath.Join(t.TempDir(), "fifo")
				programtest.Fifo(t, fifo)
				p := programtest.Start(t, nil, "-file", fifo)
				if tt.fed {
					programtest.Feed(t, fifo)
				}
				p.Signal(t, signal)
				code, stdout, stderr := p.End(t)
				assert.Equal(t, program.Failed, code)
				assert.Contains(t, stderr, tt.told)
				assert.Contains(t, stderr, signal.String()+" signal received")
				assert.Empty(t, stdout)
			})
		}
	}
}
