package main

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// TestMain lets the test binary run as the processes that the program starts.
func TestMain(m *testing.M) {
	if os.Getenv(envNumber) != "" {
		main()
		os.Exit(0)
	}
	programtest.Main(m, "distributed-purge", run)
}

// Three processes share one budget, and the service accepts all of their purges.
func TestProcessesShareOneBudget(t *testing.T) {
	t.Setenv("WEBDELIVERY_BASE_URL", "http://127.0.0.1:1") // the program must not use it
	t.Setenv("WEBDELIVERY_PASSWORD", "another")
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("REQUIRE_REDIS") == "1" {
			require.NoError(t, err)
		}
		t.Skip("redis-server is not on PATH")
	}
	code, stdout, stderr := call(t, "-processes", "3", "-purges", "2")
	require.Equal(t, program.Done, code, stderr)
	assert.Contains(t, stderr, "nothing real happens")
	for _, number := range []string{"1", "2", "3"} {
		assert.Equal(t, 2, strings.Count(stdout, "process "+number+" has a permit, after "))
		assert.Equal(t, 1, strings.Count(stdout, "process "+number+" has waited 2 s for a permit, and waits on"), stdout)
	}
	assert.Contains(t, stdout, "6 purges in")
	assert.Contains(t, stdout, ", 0 refused")
}

// If Redis is unreachable, the next step is about Redis and not about the service.
func TestRedisIsUnreachable(t *testing.T) {
	programtest.UseService(t, webdeliverytest.NewServer(t))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	t.Setenv(envRedis, listener.Addr().String())
	t.Setenv(envBegan, "0")
	code, _, stderr := programtest.Run("distributed-purge", program.Streams{}, func(s program.Streams) error {
		return purge(t.Context(), s.Out, "1", 1)
	})
	assert.Equal(t, program.Failed, code)
	assert.Contains(t, stderr, "\ndistributed-purge: check that Redis or Valkey is running at "+listener.Addr().String()+"; -redis names another address\n")
	assert.NotContains(t, stderr, "WEBDELIVERY_")
}

// call runs the program as a shell would.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return programtest.Run("distributed-purge", program.Streams{}, func(s program.Streams) error { return run(t.Context(), args, s) })
}

// The help says what the program does, and that it ignores the service of the environment. Wrong usage is an error.
func TestHelpAndMisuse(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, "-h")
	assert.Equal(t, program.Done, code)
	assert.Empty(t, stdout)
	for _, part := range []string{"shows several processes", "its own fake service", "Exit codes: 0 done", "-redis host:port"} {
		assert.Contains(t, stderr, part)
	}
	assert.NotContains(t, stderr, "WEBDELIVERY_")

	for want, args := range map[string][]string{
		"-processes and -purges must be at least 1": {"-processes", "0"},
		"must be at least 1":                        {"-purges", "-1"},
		`unexpected argument "4"`:                   {"4"},
		"-process":                                  {"-process", "4"},
	} {
		code, stdout, stderr := call(t, args...)
		assert.Equal(t, program.Misuse, code, want)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, want)
	}
}
