package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Without settings it does the whole job on a service of its own.
func TestQuickstartOnItsOwn(t *testing.T) {
	t.Setenv("WEBDELIVERY_BASE_URL", "")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, "https://www.example.com/app.css"))
	for _, line := range []string{
		"Logged in.", "Submitted a purge of https://www.example.com/app.css", "PENDING", "The purge is done: COMPLETE.",
		"Task task-1 (deploy-property) is COMPLETE.", "2 tasks changed since yesterday.", "Task task-2 is done: COMPLETE.",
	} {
		assert.Contains(t, out.String(), line)
	}
}

// With the environment set it uses that service, and a refusal is an error.
func TestQuickstartOnAService(t *testing.T) {
	service := testserver.New(testserver.Config{PurgeDuration: -1})
	url, err := service.ListenTCP()
	require.NoError(t, err)
	defer func() { require.NoError(t, service.Close()) }()
	t.Setenv("WEBDELIVERY_BASE_URL", url)
	t.Setenv("WEBDELIVERY_CUSTOMER", "acme")
	t.Setenv("WEBDELIVERY_USERNAME", "alice")
	t.Setenv("WEBDELIVERY_PASSWORD", "correct-horse-battery")
	t.Setenv("WEBDELIVERY_AUTH", "session")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, "https://www.example.com/app.css"))
	require.Len(t, service.Purged(), 1)
	assert.Contains(t, out.String(), "None of them is running.")
	require.ErrorContains(t, run(t.Context(), &out, "https://www.example.org/not-ours.css"), "400")

	t.Setenv("WEBDELIVERY_PASSWORD", "wrong-password")
	require.ErrorContains(t, run(t.Context(), &out, "https://www.example.com/app.css"), "log in")
}
