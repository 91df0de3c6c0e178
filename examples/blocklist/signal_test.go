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

func TestMain(m *testing.M) { programtest.Main(m, "blocklist", run) }

// The first signal ends the program while it waits for a process that opens a FIFO, or writes into one.
func TestTheFirstSignalEndsIt(t *testing.T) {
	srv, list := service(t)
	t.Setenv("WEBDELIVERY_BASE_URL", srv.URL)
	const unopened, unwritten = "/FIFO: terminated signal received while waiting", "/FIFO: terminated signal received"
	for name, tt := range map[string]struct { //nolint:paralleltest // the environment is set
		fed  bool
		args []string
		told string
	}{
		"nobody opens the feed": {false, []string{"-apply", "blocklist"}, unopened},
		"nobody writes a feed":  {true, []string{"-apply", "blocklist"}, unwritten},
		"nobody opens the plan": {false, []string{"-apply-plan"}, unopened},
		"nobody writes a plan":  {true, []string{"-apply-plan"}, unwritten},
	} {
		t.Run(name, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "FIFO")
			programtest.Fifo(t, fifo)
			p := programtest.Start(t, nil, append(tt.args, fifo)...)
			if tt.fed {
				programtest.Feed(t, fifo)
			}
			p.Signal(t, syscall.SIGTERM)
			code, stdout, stderr := p.End(t)
			assert.Equal(t, program.Failed, code)
			assert.Contains(t, stderr, tt.told)
			assert.Empty(t, stdout)
		})
	}
	assert.Equal(t, held, srv.Entries(list))
}
