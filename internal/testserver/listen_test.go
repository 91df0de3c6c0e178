package testserver_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

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
