package webdelivery_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// If a user with a session may not purge, all other calls work, and the purges cause one login in 30 s.
func TestAPurgeThatASessionMayNot(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
		f.AddFault(testserver.Fault{Path: "/cache/purge", Status: http.StatusForbidden})
		for range 29 {
			require.ErrorIs(f, fixture.Submit.Call(f.Context(), f.Client), webdelivery.ErrUnauthorized)
			require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
			assert.Equal(f, 2, f.Srv.Logins())
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		require.ErrorIs(f, fixture.Submit.Call(f.Context(), f.Client), webdelivery.ErrUnauthorized)
		assert.Equal(f, 3, f.Srv.Logins())
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
	})
}
