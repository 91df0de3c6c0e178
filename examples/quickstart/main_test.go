package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// quickstart runs the program as a shell would.
func quickstart(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return programtest.Run("quickstart", program.Streams{}, func(s program.Streams) error { return run(t.Context(), args, s) })
}

// configure starts a service and sets the environment for it.
func configure(t *testing.T) *webdeliverytest.Server {
	t.Helper()
	service := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
	programtest.UseService(t, service)
	t.Setenv("WEBDELIVERY_AUTH", "session")
	return service
}

// Without settings it does everything with a fake service of its own.
func TestQuickstartOnItsOwn(t *testing.T) { //nolint:paralleltest // the environment is the process's
	programtest.NoService(t)
	code, stdout, stderr := quickstart(t)
	assert.Equal(t, program.Done, code)
	assert.Empty(t, stderr)
	for _, line := range []string{
		"Started a fake service at http://", "Logged in.", "Submitted a purge of https://www.example.com/app.css", "PENDING",
		"The purge is done: COMPLETE.", "Task task-1 (deploy-property) is COMPLETE.", "2 tasks changed since yesterday.",
		"Task task-2 is done: COMPLETE.",
	} {
		assert.Contains(t, stdout, line)
	}
}

// The program does not wait for a task that runs for an hour. This is no failure.
func TestALongTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		service.AddTask(webdeliverytest.TaskSpec{ID: "task-1", Operation: "export-logs", Duration: time.Hour})
		var out bytes.Buffer
		began := time.Now()
		require.NoError(t, watchTasks(t.Context(), &out, service.Client(t), 5*time.Second))
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.Contains(t, out.String(), "Task task-1 has not ended after 5s, and continues. To wait up to an hour: quickstart -timeout 1h\n")
	})
}

// ^C during a wait prints how to wait again.
func TestInterruptedWait(t *testing.T) {
	t.Parallel()
	for step, tt := range map[string]struct {
		path string
		wait func(ctx context.Context, client *webdelivery.Client) error
	}{
		"quickstart: the purge continues; to wait again: purge -resume ": {"/transactions/*", func(ctx context.Context, client *webdelivery.Client) error {
			return purge(ctx, io.Discard, client, "https://www.example.com/a")
		}},
		"quickstart: task task-1 continues; to wait longer: quickstart -timeout 1h\n": {"/tasks/task-1", func(ctx context.Context, client *webdelivery.Client) error {
			return watchTasks(ctx, io.Discard, client, time.Hour)
		}},
	} {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				service := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
				service.AddTask(webdeliverytest.TaskSpec{ID: "task-1", Operation: "export-logs", Duration: time.Minute})
				ctx, interrupt := context.WithCancel(t.Context())
				service.Fail(webdeliverytest.FaultRule{Path: tt.path, Handler: func(_ http.ResponseWriter, r *http.Request) {
					interrupt()
					<-r.Context().Done()
				}})
				var told bytes.Buffer
				assert.Equal(t, program.Failed, program.Code("quickstart", &told, tt.wait(ctx, service.Client(t))))
				assert.Contains(t, told.String(), "\n"+step)
			})
		})
	}
}

// The program shows a failed poll, and continues to wait.
func TestAPollThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		service.AddTask(webdeliverytest.TaskSpec{ID: "task-1", Operation: "export-logs", Duration: time.Minute})
		service.Fail(webdeliverytest.FaultRule{Path: "/tasks/task-1", Skip: 1, Count: 4, Status: http.StatusServiceUnavailable})
		var out bytes.Buffer
		require.NoError(t, watchTasks(t.Context(), &out, service.Client(t), time.Hour))
		assert.Contains(t, out.String(), "503 Service Unavailable")
		assert.Contains(t, out.String(), "; polling again\n")
		assert.Contains(t, out.String(), "Task task-1 is done: COMPLETE.\n")
	})
}

// If the environment is set, it uses that service, and shows ten of its tasks. If the service rejects the purge, the
// program fails.
func TestQuickstartOnAService(t *testing.T) {
	service := configure(t)
	for i := range 12 {
		service.AddTask(webdeliverytest.TaskSpec{ID: fmt.Sprint("task-", i)})
	}
	code, stdout, stderr := quickstart(t)
	assert.Equal(t, program.Done, code, stderr)
	assert.Len(t, service.Purged(), 1)
	assert.Contains(t, stdout, "Using the service of WEBDELIVERY_BASE_URL.")
	assert.Equal(t, 10, strings.Count(stdout, "\nTask "))
	assert.Contains(t, stdout, "\nAnd 2 more tasks.\n12 tasks changed since yesterday.\nNone of them is running.")

	code, _, stderr = quickstart(t, "-uri", "https://www.example.org/not-ours.css")
	assert.Equal(t, program.Failed, code)
	assert.Contains(t, stderr, "quickstart: purge https://www.example.org/not-ours.css: ")
	assert.Contains(t, stderr, "400")

	t.Setenv("WEBDELIVERY_PASSWORD", "wrong-password")
	code, _, stderr = quickstart(t)
	assert.Equal(t, program.Failed, code)
	assert.Contains(t, stderr, "quickstart: log in: ")
}

// Wrong usage is an error, and nothing is purged.
func TestQuickstartUsedWrongly(t *testing.T) {
	tests := []struct {
		name, variable, value string
		args                  []string
		told                  string
	}{
		{name: "argument", args: []string{"https://www.example.com/other"}, told: "unexpected argument \"https://www.example.com/other\": all settings are flags"},
		{name: "unknown flag", args: []string{"-url", "https://www.example.com/other"}, told: "-url"},
		{name: "no time to wait", args: []string{"-timeout", "0s"}, told: "-timeout must be above 0s"},
		{name: "no span", args: []string{"-timeout", "soon"}, told: "want a duration"},
		{name: "no URI", args: []string{"-uri", ""}, told: `-uri "" is not the address of an object; write it like https://`},
		{name: "no host", args: []string{"-uri", "app.css"}, told: `-uri "app.css" is not the address`},
		{name: "fragment", args: []string{"-uri", "https://www.example.com/a#b"}, told: "a#b\" is not the address"},
		{name: "no address", variable: "WEBDELIVERY_BASE_URL", told: "WEBDELIVERY_BASE_URL: is not set"},
		{name: "no password", variable: "WEBDELIVERY_PASSWORD", told: "WEBDELIVERY_PASSWORD: is not set"},
		{name: "no way to log in", variable: "WEBDELIVERY_AUTH", value: "oauth", told: `"oauth" is neither basic nor session`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			service := configure(t)
			if tt.variable != "" {
				t.Setenv(tt.variable, tt.value)
			}
			code, stdout, stderr := quickstart(t, tt.args...)
			assert.Equal(t, program.Misuse, code)
			assert.Contains(t, stderr, tt.told)
			assert.NotContains(t, stdout, "fake service")
			assert.Empty(t, service.Requests(), "it did not log in")
		})
	}
}
