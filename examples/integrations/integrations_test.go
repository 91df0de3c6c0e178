// Package integrations_test runs each program as its reader would.
package integrations_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/redistest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// program returns a function that runs a program with the settings for a service, and returns what it prints.
func program(t *testing.T, srv *webdeliverytest.Server, name string) func(variables []string, args ...string) (printed string, err error) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), name+".exe") // a name that every system runs
	out, err := exec.CommandContext(t.Context(), "go", "build", "-race="+race(), "-ldflags=-w", "-o", binary, "./"+name).CombinedOutput()
	require.NoError(t, err, "%s", out)
	settings := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "WEBDELIVERY_") })
	settings = append(settings, "WEBDELIVERY_BASE_URL="+srv.URL, "WEBDELIVERY_CUSTOMER="+srv.Customer,
		"WEBDELIVERY_USERNAME="+srv.Username, "WEBDELIVERY_PASSWORD="+srv.Password)
	return func(variables []string, args ...string) (string, error) {
		command := exec.CommandContext(context.WithoutCancel(t.Context()), binary, args...)
		command.Env = slices.Concat(settings, variables)
		out, err := command.CombinedOutput()
		return string(out), err
	}
}

// race tells whether this test has the race detector. Programs that have it as well need nothing that is not compiled yet.
func race() string {
	info, _ := debug.ReadBuildInfo()
	i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" })
	return strconv.FormatBool(i >= 0)
}

// Processes share requests. Each learns what became of its own URIs.
func TestFleet(t *testing.T) {
	t.Parallel()
	redistest.OnServers(t, func(t *testing.T, redis *redistest.Server) {
		srv := webdeliverytest.NewServer(t)
		fleet, address := program(t, srv, "fleet"), []string{"REDIS_ADDR=" + redis.Addr}
		const processes = 10
		var running sync.WaitGroup
		for i := range processes {
			running.Go(func() {
				out, err := fleet(address, fmt.Sprint("https://www.example.com/", i))
				assert.NoError(t, err)
				assert.Regexp(t, `^The service has accepted transaction \d+\n$`, out)
			})
		}
		running.Wait()
		assert.Less(t, len(srv.Purged()), processes)

		out, err := fleet(address, "https://www.example.com/", "https://www.example.org/")
		assert.Error(t, err)
		assert.Regexp(t, `^The service has accepted transaction \d+\n.*https://www\.example\.org/: .*400`, out)
	})
}

// Each attempt is a span that is named by its operation, and the metrics are apart for each operation. No query is shown.
func TestObserve(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t)
	srv.Fail(webdeliverytest.FaultRule{Path: "/tasks", Count: 1, Status: 503})
	out, err := program(t, srv, "observe")(nil)
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(out, `{"Name":"Tasks.List"`))
	assert.Contains(t, out, `{"Key":"http.request.resend_count","Value":{"Type":"INT64","Value":1}}`)
	assert.Contains(t, out, `"Name":"http.client.request.duration"`)
	assert.Contains(t, out, `{"Key":"webdelivery.operation","Value":{"Type":"STRING","Value":"Tasks.List"}}`)
	assert.NotContains(t, out, "/tasks?")
}
