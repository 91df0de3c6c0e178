package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
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

// Three processes share one budget or one queue, and the service accepts all of their purges.
func TestProcessesShareOneBudget(t *testing.T) { //nolint:tparallel // the environment is the process's
	t.Setenv("WEBDELIVERY_BASE_URL", "http://127.0.0.1:1") // the program must not use it
	t.Setenv("WEBDELIVERY_PASSWORD", "another")
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("REQUIRE_REDIS") == "1" {
			require.NoError(t, err)
		}
		t.Skip("redis-server is not on PATH")
	}
	t.Run("permits", func(t *testing.T) {
		t.Parallel()
		code, stdout, stderr := call(t, "-processes", "3", "-purges", "2")
		require.Equal(t, program.Done, code, stderr)
		assert.Contains(t, stderr, "nothing real happens")
		for _, number := range []string{"1", "2", "3"} {
			assert.Equal(t, 2, strings.Count(stdout, "process "+number+" has a permit, after "))
		}
		last := summary(t, stdout)
		assert.Equal(t, []string{"6", "6", "0"}, last[:3])
		wait, err := strconv.ParseFloat(last[3], 64)
		require.NoError(t, err)
		assert.Greater(t, wait, 0.4) // for another process
	})
	t.Run("queue", func(t *testing.T) {
		t.Parallel()
		code, stdout, stderr := call(t, "-processes", "3", "-purges", "10", "-queue")
		require.Equal(t, program.Done, code, stderr)
		last := summary(t, stdout)
		assert.Equal(t, []string{"30", "0"}, []string{last[0], last[2]})
		requests, err := strconv.Atoi(last[1])
		require.NoError(t, err)
		assert.Less(t, requests, 10)
	})
}

// summary returns the purges, the requests, the refused ones and the longest wait of the last line.
func summary(t *testing.T, stdout string) []string {
	t.Helper()
	line := regexp.MustCompile(`(\d+) purges in (\d+) requests? and [\d.]+ s, at most [12] within a second, (\d+) refused; the longest wait was ([\d.]+) s\n$`)
	found := line.FindStringSubmatch(stdout)
	require.NotNil(t, found, stdout)
	return found[1:]
}

// The waits of the processes are no output. The longest one is kept.
func TestTheLongestWait(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := &lineWriter{out: &out}
	for _, text := range []string{"process 1\nlongest wait: 1.5s\n", "longest wait: 2.5s\n", "longest wait: 900ms\n", "process 2\n"} {
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
	}
	assert.Equal(t, 2500*time.Millisecond, w.longest)
	assert.Equal(t, "process 1\nprocess 2\n", out.String())
}

// A purge that the service does not have is an error.
func TestAMissingPurge(t *testing.T) {
	t.Parallel()
	service := webdeliverytest.NewServer(t)
	_, err := oneByOne(t.Context(), service.Client(t), []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/")})
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, summarize(&out, service, 1, time.Second))
	assert.Equal(t, "1 purge in 1 request and 0.0 s, at most 1 within a second, 0 refused; the longest wait was 1.0 s\n", out.String())
	require.ErrorContains(t, summarize(io.Discard, service, 2, time.Second), "the service has 1 purge instead of 2;")
}

// If Redis is unreachable, the next step is about Redis and not about the service.
func TestRedisIsUnreachable(t *testing.T) {
	programtest.UseService(t, webdeliverytest.NewServer(t))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	t.Setenv(envRedis, listener.Addr().String())
	t.Setenv(envBegan, "0")
	for name, queued := range map[string]bool{"permits": false, "queue": true} { //nolint:paralleltest // the environment is the process's
		t.Run(name, func(t *testing.T) {
			code, _, stderr := programtest.Run("distributed-purge", program.Streams{}, func(s program.Streams) error {
				return purge(t.Context(), s.Out, "1", 1, queued)
			})
			assert.Equal(t, program.Failed, code)
			assert.Contains(t, stderr, "\ndistributed-purge: check that Redis or Valkey is running at "+listener.Addr().String()+"; -redis names another address\n")
			assert.NotContains(t, stderr, "WEBDELIVERY_")
		})
	}
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
	for _, part := range []string{"shows several processes", "its own fake service", "Exit codes: 0 done", "-redis host:port", "-queue"} {
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
