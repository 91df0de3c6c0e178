package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/webdeliverytest"
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
	service := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
	t.Setenv("WEBDELIVERY_BASE_URL", service.URL)
	t.Setenv("WEBDELIVERY_CUSTOMER", service.Customer)
	t.Setenv("WEBDELIVERY_USERNAME", service.Username)
	t.Setenv("WEBDELIVERY_PASSWORD", service.Password)
	t.Setenv("WEBDELIVERY_AUTH", "session")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, "https://www.example.com/app.css"))
	require.Len(t, service.Purged(), 1)
	assert.Contains(t, out.String(), "None of them is running.")
	require.ErrorContains(t, run(t.Context(), &out, "https://www.example.org/not-ours.css"), "400")

	t.Setenv("WEBDELIVERY_PASSWORD", "wrong-password")
	require.ErrorContains(t, run(t.Context(), &out, "https://www.example.com/app.css"), "log in")
}
