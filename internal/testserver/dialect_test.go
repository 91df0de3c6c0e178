package testserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Section 7: the body of a rejection has code and description. Open point 31 lists the other forms.
func TestSection7ErrorBodies(t *testing.T) {
	t.Parallel()
	const jsonType, text = "application/json", `task \"nope\" does not exist`
	for form, want := range map[string]struct{ contentType, body string }{
		"":           {jsonType, `{"code":404,"description":"` + text + `"}`},
		"code":       {jsonType, `{"code":404,"description":"` + text + `"}`},
		"message":    {jsonType, `{"message":"` + text + `"}`},
		"error_info": {jsonType, `{"error_info":{"details":[{"message":"` + text + `"}],"message":"` + text + `","type":"Not Found"}}`},
		"html":       {"text/html; charset=utf-8", "<html><body><h1>404 Not Found</h1></body></html>"},
		"empty":      {"", ""},
	} {
		t.Run("as "+form, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{Dialect: testserver.Dialect{Errors: form}})
			r := f.get("/tasks/nope")
			assert.Equal(t, 404, r.status)
			assert.Equal(t, want.contentType, r.header.Get("Content-Type"))
			if want.body != "" {
				want.body += "\n"
			}
			assert.Equal(t, want.body, r.body)
			for _, status := range []int{401, 403} {
				path := map[int]string{401: "/tasks", 403: "/transactions/1"}[status]
				assert.Equal(t, status, f.get(path, anonymous).status)
			}
		})
	}
}

// Sections 2.3 and 7: the body of a rejected purge has code and description in every dialect.
func TestSection7PurgeErrorsHaveTheirEnvelopeInEveryDialect(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"code", "message", "error_info", "html", "empty"} {
		f := start(t, testserver.Config{Dialect: testserver.Dialect{Errors: form}})
		for _, r := range []response{f.purge(`{}`), f.purge(onePurge, anonymous)} {
			body := r.object(t)
			assert.Equal(t, json.Number(strconv.Itoa(r.status)), body["code"], form)
			assert.NotEmpty(t, body["description"], form)
		}
	}
}

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
