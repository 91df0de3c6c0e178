//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
)

// The first signal ends the program while it waits for a redis-server that does not respond.
func TestASignalEndsTheStart(t *testing.T) {
	folder := t.TempDir()
	fifo := filepath.Join(folder, "fifo")
	programtest.Fifo(t, fifo)
	mute := "#!/bin/sh\necho started > " + fifo + "\nexec sleep 1000\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "redis-server"), []byte(mute), 0o700))
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))

	p := programtest.Start(t, nil)
	_, err := os.ReadFile(fifo) // returns when it has started
	require.NoError(t, err)
	p.Signal(t, syscall.SIGTERM)
	code, stdout, stderr := p.End(t)
	assert.Equal(t, program.Failed, code)
	assert.Contains(t, stderr, "distributed-purge: terminated signal received")
	assert.Empty(t, stdout)
}
