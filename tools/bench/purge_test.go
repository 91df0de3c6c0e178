package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// unlimited lets every purge go at once, because the SDK is measured, not the limit of the service.
type unlimited struct{}

// Wait implements [webdelivery.Limiter].
func (unlimited) Wait(context.Context) error { return nil }

// acceptingPurges is a service that reads the body of each purge and checks its Content-Length.
func acceptingPurges(r *http.Request) (*http.Response, error) {
	size, err := io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	if err == nil && size != r.ContentLength {
		err = fmt.Errorf("a body of %d bytes with a Content-Length of %d", size, r.ContentLength)
	}
	if err != nil {
		return nil, err
	}
	return response(http.StatusCreated, []byte(receiptBody))
}

// BenchmarkSubmit submits 100,000 URIs. The reference only encodes the body, in memory.
func BenchmarkSubmit(b *testing.B) {
	request := purgeOf(100_000)
	client := must(inMemoryClient(acceptingPurges))
	b.Run("by=json.Marshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(json.Marshal(map[string]webdelivery.PurgeRequest{"purge_request": request}))
		}
	})
	b.Run("by=webdelivery", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(client.Purge.Submit(context.Background(), request))
		}
	})
}

// BenchmarkQueue measures 10,000 callers with one URI each, under the service's limit of two requests per second. One by
// one they would need 83 minutes.
func BenchmarkQueue(b *testing.B) {
	var requests int
	for b.Loop() {
		srv := webdeliverytest.NewServer(b, webdeliverytest.WithPurgeDuration(0))
		queue := must(srv.Client(b).Purge.NewQueue(webdelivery.QueueOptions{}))
		var all sync.WaitGroup
		for i := range 10_000 {
			all.Go(func() {
				if _, err := queue.Purge(context.Background(), object(i)); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		if err := queue.Close(context.Background()); err != nil {
			b.Error(err)
		}
		requests += srv.Count(http.MethodPost, "/cache/purge")
		srv.Close()
	}
	b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
}
