package webdelivery_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// The body of a rejection to a stream may be cut in the middle of a secret. The error contains no piece of it.
func TestARefusalInAStreamIsCutWithinASecret(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		begun := `{"code":400,"description":"no","columns":[{"name":"a"}],"rows":[["x"],["` + username + ":" + password[:len(password)-2]
		f.fail(testserver.Fault{Path: eventsData, Status: http.StatusOK, Body: begun + `"]]}`, CutAfter: len(begun), Stall: time.Hour})
		_, err := ways["Rows"](f.Context(), f.client)
		var e *webdelivery.Error
		require.ErrorAs(f, err, &e)
		assert.Equal(f, http.StatusBadRequest, e.Code)
		assert.Empty(f, e.Body)
		assert.NotContains(f, everyPrint(err), password[:len(password)-2])
	})
}

// A defect behind the code of an envelope does not hide the rejection from a stream. The client retries as it would
// for a body that is read whole (open point 7).
func TestRefusalsWithADefectInAStream(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"{\"code\":503,\"description\":\"\xfcberlastet\"}", "\ufeff{\"code\":503}", `{"code":503,}`, `{"code":503} x`} {
		inFakeTime(t, setup{}, func(f *fixture) {
			f.answers(body)
			_, err := ways["Rows"](f.Context(), f.client)
			require.ErrorIs(f, err, webdelivery.ErrServer, "%q", body)
			var e *webdelivery.Error
			require.ErrorAs(f, err, &e)
			assert.Equal(f, http.StatusServiceUnavailable, e.Code)
			assert.Equal(f, 4, f.srv.Count(http.MethodGet, eventsData))
		})
	}
}

// If the body of a success was cut, its Retry-After does not apply to the retry.
func TestACutSuccessWithRetryAfter(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		f.srv.AddTask(testserver.TaskSpec{ID: "t"})
		f.fail(testserver.Fault{Path: "/tasks/t", Count: 1, Header: http.Header{"Retry-After": {"3600"}}, Cut: testserver.CutBody})
		task, err := f.client.Tasks.Get(f.Context(), "t")
		require.NoError(f, err)
		assert.Equal(f, "t", task.ID)
		assert.Equal(f, 2, f.srv.Count(http.MethodGet, "/tasks/t"))
	})
}

// The client does not wait for the body of a redirect.
func TestARedirectWhoseBodyStalls(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		f.fail(testserver.Fault{Path: "/tasks/t", Status: http.StatusFound, Header: http.Header{"Location": {"/elsewhere"}}, Body: "moved", Stall: time.Hour})
		began := time.Now()
		_, err := f.client.Tasks.Get(f.Context(), "t")
		require.ErrorIs(f, err, webdelivery.ErrBadReply)
		assert.Equal(f, 2*time.Second, time.Since(began))
	})
}

// The client refuses a query that no request line can contain before sending.
func TestDoRefusesAQueryWithABlank(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		for _, path := range []string{"/x?a=b c", "/x?a=b\tc"} {
			err := f.client.Do(f.Context(), http.MethodGet, path, nil, nil)
			require.ErrorIs(f, err, webdelivery.ErrInvalid)
			invalid, ok := errors.AsType[*webdelivery.ValidationError](err)
			require.True(f, ok)
			assert.Equal(f, "path", invalid.Field)
		}
		assert.Empty(f, f.srv.Requests())
	})
}
