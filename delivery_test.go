package webdelivery_test

import (
	"io"
	"net/http"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// A queue that waits for transactions polls 4 of them at a time, however many there are and however long a poll
// takes.
func TestLooksOfAQueueAreBounded(t *testing.T) {
	t.Parallel()
	inQueue(t, fixture.Setup{}, webdelivery.QueueOptions{Wait: true, MaxURIs: 1}, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
		var polling, most atomic.Int32
		f.AddFault(testserver.Fault{Path: "/transactions/*", Handler: func(w http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), polling.Add(1)))
			defer polling.Add(-1)
			time.Sleep(10 * time.Second)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"code":200,"transaction_id":`+path.Base(r.URL.Path)+`,"transaction_response":{"transaction_status":"DONE"}}`)
		}})
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				_, err := q.Purge(f.Context(), webdelivery.Exact(object(i)))
				assert.NoError(f, err)
			})
		}
		wg.Wait()
		assert.EqualValues(f, 4, most.Load())
	})
}
