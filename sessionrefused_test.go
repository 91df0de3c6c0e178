package webdelivery_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// If a user with a session may not purge, all other calls work, and the purges cause one login in 30 s.
func TestAPurgeThatASessionMayNot(t *testing.T) {
	t.Parallel()
	inService(t, bySession, func(f *fixture) {
		require.NoError(f, getTask.call(f.Context(), f.client))
		f.fail(testserver.Fault{Path: "/cache/purge", Status: http.StatusForbidden})
		for range 29 {
			require.ErrorIs(f, submit.call(f.Context(), f.client), webdelivery.ErrUnauthorized)
			require.NoError(f, getTask.call(f.Context(), f.client))
			assert.Equal(f, 2, f.srv.Logins())
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		require.ErrorIs(f, submit.call(f.Context(), f.client), webdelivery.ErrUnauthorized)
		assert.Equal(f, 3, f.srv.Logins())
		require.NoError(f, getTask.call(f.Context(), f.client))
	})
}
