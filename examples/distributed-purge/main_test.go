package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be the processes that run starts.
func TestMain(m *testing.M) {
	if os.Getenv(envNumber) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Three processes share one budget, and the service refuses none of their purges.
func TestProcessesShareOneBudget(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("REQUIRE_REDIS") == "1" {
			require.NoError(t, err)
		}
		t.Skip("redis-server is not on PATH")
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, 3, 2, ""))
	for _, number := range []string{"1", "2", "3"} {
		assert.Equal(t, 2, bytes.Count(out.Bytes(), []byte("process "+number+" has a permit")))
	}
	assert.Contains(t, out.String(), "6 purges in")
	assert.Contains(t, out.String(), ", 0 refused")
}
