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
