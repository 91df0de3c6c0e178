package redisqueue_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
)

// The calls of several processes go in a few requests, and each gets the receipt of the request with its URI.
func TestCallsOfManyProcesses(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		var wg sync.WaitGroup
		for p := range 10 {
			q := w.process()
			for i := range 10 {
				wg.Go(func() {
					receipt, err := q.Purge(w.Context(), object(10*p+i))
					if assert.NoError(w, err) {
						assert.Positive(w, receipt.TransactionID)
					}
				})
			}
		}
		wg.Wait()
		assert.Len(w, w.purgedURIs(), 100)
		assert.LessOrEqual(w, len(w.service.Requests()), 6)
		_ = webdelivery.OutcomeApplied
	})
}
