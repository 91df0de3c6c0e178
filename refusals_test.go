package webdelivery_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// answering is a service that answers each request with the next of some responses, and the last one again.
type answering struct {
	responses []func(*http.Request) *http.Response
	requests  int
}

func (a *answering) RoundTrip(req *http.Request) (*http.Response, error) {
	next := a.responses[min(a.requests, len(a.responses)-1)]
	a.requests++
	resp := next(req)
	resp.Request, resp.ProtoMajor, resp.ContentLength, resp.TransferEncoding = req, 1, -1, []string{"chunked"}
	return resp, nil
}

// answer is a response of which nothing but the beginning of its body arrives: then the connection is cut.
func answer(status int, body string, header http.Header, cut bool) func(*http.Request) *http.Response {
	return func(*http.Request) *http.Response {
		var from io.Reader = strings.NewReader(body)
		if cut {
			from = io.MultiReader(from, errorReader{io.ErrUnexpectedEOF})
		}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(from)}
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

func (f *fixture) answeredBy(responses ...func(*http.Request) *http.Response) (*webdelivery.Client, *answering) {
	f.Helper()
	service := &answering{responses: responses}
	return f.newClient(f.srv.URL(), setup{options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{Transport: service})}}), service
}

// firstError ranges over the events of an hour.
func firstError(f *fixture, c *webdelivery.Client) error {
	f.Helper()
	now := time.Now()
	for _, err := range c.Stats.Events.Rows(f.Context(), webdelivery.EventsQuery{Start: now.Add(-time.Hour), End: now, Dimensions: []string{"a"}}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// The body of a refusal in a stream that is cut in the middle of a secret ends without a piece of it.
func TestARefusalInAStreamIsCutWithinASecret(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		begun := `{"code":400,"description":"no","columns":[{"name":"a"}],"rows":[["x"],["` + username + ":" + password[:len(password)-2]
		f.fail(testserver.Fault{Path: "/stats/security/events/data", Status: http.StatusOK, Body: begun + `"]]}`, CutAfter: len(begun), Stall: time.Hour})
		var e *webdelivery.Error
		require.ErrorAs(f, firstError(f, f.client), &e)
		assert.Equal(f, http.StatusBadRequest, e.Code)
		assert.NotContains(f, string(e.Body), password[:len(password)-2])
		assert.NotEmpty(f, e.Body)
	})
}

// A defect behind the code of an envelope does not take the refusal away from a stream: it is retried like that of a
// body that is read whole (open point 7).
func TestRefusalsWithADefectInAStream(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"{\"code\":503,\"description\":\"\xfcberlastet\"}", "\ufeff{\"code\":503}", `{"code":503,}`, `{"code":503} x`} {
		inFakeTime(t, setup{}, func(f *fixture) {
			c, service := f.answeredBy(answer(http.StatusOK, body, nil, false))
			err := firstError(f, c)
			require.ErrorIs(f, err, webdelivery.ErrServer, "%q", body)
			var e *webdelivery.Error
			require.ErrorAs(f, err, &e)
			assert.Equal(f, http.StatusServiceUnavailable, e.Code)
			assert.Equal(f, 4, service.requests)
		})
	}
}

// The Retry-After of a success whose body was cut says nothing about a retry.
func TestACutSuccessWithRetryAfter(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		header := http.Header{"Retry-After": {"3600"}}
		c, service := f.answeredBy(answer(http.StatusOK, `{"id":`, header, true), answer(http.StatusOK, `{"id":"t","status":"s"}`, header, false))
		task, err := c.Tasks.Get(f.Context(), "t")
		require.NoError(f, err)
		assert.Equal(f, "t", task.ID)
		assert.Equal(f, 2, service.requests)
	})
}

// The body of a redirect is not waited for.
func TestARedirectWhoseBodyStalls(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		f.fail(testserver.Fault{Path: "/tasks/t", Status: http.StatusFound, Header: http.Header{"Location": {"/elsewhere"}}, Body: "moved", Stall: time.Hour})
		began := time.Now()
		_, err := f.client.Tasks.Get(f.Context(), "t")
		require.ErrorIs(f, err, webdelivery.ErrRedirect)
		assert.Equal(f, 2*time.Second, time.Since(began))
	})
}

// A query that no request line can carry is refused before it is sent.
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
