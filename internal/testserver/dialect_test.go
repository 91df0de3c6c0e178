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
	for field, d := range map[string]testserver.Dialect{
		"TaskPage": {TaskPage: "x"}, "SessionReply": {SessionReply: "x"}, "PurgeReply": {PurgeReply: "x"},
		"NextURI": {NextURI: "x"}, "Timestamps": {Timestamps: "x"}, "Errors": {Errors: "x"},
		"MemberOrder": {MemberOrder: "x"}, "Names": {Names: "x"}, "Groupings": {Groupings: "x"}, "TopKTotal": {TopKTotal: "x"},
		"TooFast": {TooFast: "x"}, "TransactionDenied": {TransactionDenied: "x"}, "Vocabulary": {Vocabulary: "x"},
	} {
		r := start(t, testserver.Config{Dialect: d}).get("/tasks")
		assert.Equal(t, 501, r.status)
		assert.Contains(t, r.body, `unknown Dialect.`+field+` \"x\"`)
	}
	w := httptest.NewRecorder()
	s := testserver.New(testserver.Config{BasePath: "%zz"})
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	assert.Equal(t, 501, w.Code)
	require.ErrorContains(t, s.Err(), `Config.BasePath "/%zz"`)
	assert.NoError(t, testserver.New(testserver.Config{}).Err())
}
