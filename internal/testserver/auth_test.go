package testserver_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

func (f fake) login() string {
	f.t.Helper()
	r := f.do(http.MethodPost, "/sessions", "")
	require.Equal(f.t, http.StatusCreated, r.status, r.body)
	id, _ := r.object(f.t)["id"].(string)
	require.NotEmpty(f.t, id)
	return id
}

// Section 5: the document does not show the lifetime. Here a session ends with its configured lifetime, or with
// ExpireSessions.
func TestSection5SessionsEnd(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{SessionLifetime: time.Minute})
	id := f.login()
	f.Clock().Advance(time.Minute - 1)
	assert.Equal(t, 200, f.get("/tasks", session(id)).status)
	f.Clock().Advance(1)
	assert.Equal(t, 401, f.get("/tasks", session(id)).status)
	assert.Equal(t, 403, f.get("/transactions/1", session(id)).status)

	id = f.login()
	f.ExpireSessions()
	assert.Equal(t, 401, f.get("/tasks", session(id)).status)
	assert.Equal(t, 200, f.get("/tasks", session(f.login())).status, "later sessions are good")
	assert.Equal(t, 3, f.Logins())

	f = start(t, testserver.Config{})
	id = f.login()
	f.Clock().Advance(1000 * time.Hour)
	assert.Equal(t, 200, f.get("/tasks", session(id)).status, "no lifetime set")
}
