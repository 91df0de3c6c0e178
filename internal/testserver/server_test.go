package testserver_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
	assert.NoError(t, testserver.New(testserver.Config{}).Err())
}

// Close ends delays, dribbles, handlers that wait for their context, and idle connections. A bubble fails if a
// goroutine remains.
func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t, testserver.Config{})
		f.Fail(testserver.Fault{Path: "/tasks", Delay: time.Hour})
		f.Fail(testserver.Fault{Path: "/cache/purge", Dribble: time.Hour})
		f.Fail(testserver.Fault{Path: "/sessions", Handler: func(_ http.ResponseWriter, r *http.Request) {
			assert.NotEmpty(t, f.URL(), "the server may be used meanwhile")
			<-r.Context().Done()
		}})
		var ended atomic.Int32
		for _, request := range []*http.Request{
			f.request(http.MethodGet, "/tasks", ""), f.request(http.MethodPost, "/cache/purge", onePurge),
			f.request(http.MethodPost, "/sessions", ""),
		} {
			go func() {
				resp, err := f.client.Do(request)
				if err == nil {
					_, err = resp.Body.Read(make([]byte, 1))
					err = errors.Join(err, resp.Body.Close())
				}
				assert.Error(t, err)
				ended.Add(1)
			}()
		}
		assert.Equal(t, 404, f.get("/nothing").status)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, f.Close())
		synctest.Wait()
		assert.Equal(t, int32(3), ended.Load())
		assert.Zero(t, time.Since(began))
	})
}

// Section 4.5: a session is created with Basic credentials, not with another session.
func TestSection45BasicCredentials(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{Dialect: testserver.Dialect{SessionReply: "text"}})
	r := f.request(http.MethodPost, "/sessions", "")
	r.Header.Set("Cookie", "authtoken="+f.do(http.MethodPost, "/sessions", "").body)
	r.Header.Del("Authorization")
	resp, err := f.client.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, 401, resp.StatusCode)
}

// Sections 4.1 and 4.6: an item of a collection must pass all filters.
func TestSection4FiltersOfCollections(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	for _, deprecated := range []bool{false, true} {
		for _, kind := range []string{"IP", "GEO"} {
			f.AddNetworkList(testserver.NetworkListSpec{Type: kind, Deprecated: deprecated})
			f.AddTask(testserver.TaskSpec{Status: kind, Operation: fmt.Sprint(deprecated)})
		}
	}
	for path, total := range map[string]int{
		"/config/networklists?type=IP": 1, "/config/networklists?deprecated=true": 4, "/config/networklists?type=IP&deprecated=true": 2,
		"/tasks?status=IP": 2, "/tasks?operation=true": 2, "/tasks?status=IP&operation=true": 1,
	} {
		assert.Contains(t, f.get(path).body, fmt.Sprintf(`"total":%d`, total), path)
	}
}
