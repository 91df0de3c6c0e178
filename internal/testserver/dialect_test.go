package testserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// An unknown value of a dialect must not be treated as the default.
func TestUnknownDialectIsNamed(t *testing.T) {
	t.Parallel()
	for _, s := range testserver.Spellings() {
		r := start(t, testserver.Config{Dialect: testserver.Dialect{}.With(s.Field, "x")}).get("/tasks")
		assert.Equal(t, 501, r.status)
		assert.Contains(t, r.body, `unknown Dialect.`+s.Field+` \"x\"`)
	}
	w := httptest.NewRecorder()
	s := testserver.New(testserver.Config{BasePath: "%zz"})
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	assert.Equal(t, 501, w.Code)
	require.ErrorContains(t, s.Err(), `Config.BasePath "/%zz"`)
	assert.NoError(t, testserver.New(testserver.Config{}).Err())
}
