package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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
		"Task task-2 ", // a busy machine finds it done before it waits
	} {
		assert.Contains(t, stdout, line)
	}
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
