package webdelivery

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An invalid address returns a ValidationError, with the field and the reason of internal/address.
func TestErrorsOfAddressesAreValidationErrors(t *testing.T) {
	t.Parallel()
	auth := BasicAuth("alice", "t0ps3cret")
	client, err := NewClient("https://api.example.com", "acme", auth)
	require.NoError(t, err)

	_, ofBase := NewClient("http://api.example.com", "acme", auth)
	_, ofID := expand("/tasks/{task_id}", "..")
	ofPath := checkPath("path", "tasks")
	_, _, ofAddress := client.conn.resolve("uri", "https:x")
	for _, tt := range []struct {
		err  error
		want ValidationError
	}{
		{ofBase, ValidationError{"base URL", "http is only allowed for loopback hosts; use https or WithPlainHTTP"}},
		{ofID, ValidationError{"task_id", `".." would change the path`}},
		{ofPath, ValidationError{"path", `path "tasks" does not begin with a slash`}},
		{ofAddress, ValidationError{"uri", "must consist of a path and a query only"}},
	} {
		assert.Equal(t, &tt.want, tt.err)
		require.ErrorIs(t, tt.err, ErrInvalid)
	}

	other := errors.New("of something else")
	assert.Equal(t, other, asValidation(other))
	require.NoError(t, asValidation(nil))
}
