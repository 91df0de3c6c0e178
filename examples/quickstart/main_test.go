package main

import (
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

// configure sets the environment for a service.
func configure(t *testing.T) *webdeliverytest.Server {
	t.Helper()
	service := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
	programtest.UseService(t, service)
	t.Setenv("WEBDELIVERY_AUTH", "session")
	return service
}

// Without settings it does the whole job on a service of its own.
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

// With the environment set it uses that service, and a refusal is an error.
func TestQuickstartOnAService(t *testing.T) {
	service := configure(t)
	code, stdout, stderr := quickstart(t)
	assert.Equal(t, program.Done, code, stderr)
	assert.Len(t, service.Purged(), 1)
	assert.Contains(t, stdout, "Using the service of WEBDELIVERY_BASE_URL.")
	assert.Contains(t, stdout, "None of them is running.")

	code, _, stderr = quickstart(t, "-uri", "https://www.example.org/not-ours.css")
	assert.Equal(t, program.Failed, code)
	assert.Contains(t, stderr, "quickstart: purge https://www.example.org/not-ours.css: ")
	assert.Contains(t, stderr, "400")

	t.Setenv("WEBDELIVERY_PASSWORD", "wrong-password")
	code, _, stderr = quickstart(t)
	assert.Equal(t, program.Failed, code)
	assert.Contains(t, stderr, "quickstart: log in: ")
}

// What cannot be meant is refused, and nothing is purged.
func TestQuickstartUsedWrongly(t *testing.T) {
	tests := []struct {
		name, variable, value string
		args                  []string
		told                  string
	}{
		{name: "argument", args: []string{"https://www.example.com/other"}, told: "-uri says what to purge"},
		{name: "unknown flag", args: []string{"-url", "https://www.example.com/other"}, told: "-url"},
		{name: "no URI", args: []string{"-uri", ""}, told: "invalid uris[0]"},
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
			assert.Empty(t, service.Purged())
		})
	}
}

// The help is the package comment, with the settings and the flags.
func TestQuickstartHelp(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := quickstart(t, "-h")
	assert.Equal(t, program.Done, code)
	assert.Empty(t, stdout)
	for _, part := range []string{"Quickstart does the main job", "Exit codes: 0 done", "WEBDELIVERY_PASSWORD", "-uri string"} {
		assert.Contains(t, stderr, part)
	}
}
