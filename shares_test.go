package webdelivery_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Eight processes that share no state purge for one customer, 15 times each. The service answers with a bare 503 to
// more than two purges per second. None fails, and each gets its share. Each client has a host name of its own, so it
// shares no budget with the others. TestSharesOfEightProcesses of internal/pace limits 400 runs with known seeds to
// 38 % rejected purges, 120 s for a purge and 260 s in total. Here the jitter is random, so each limit is 25 %
// higher.
func TestClientsThatShareNothing(t *testing.T) {
	t.Parallel()
	const clients, purges = 8, 15
	for _, counted := range []bool{true, false} {
		t.Run(fmt.Sprintf("rejected purges count: %t", counted), func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, setup{server: testserver.Config{CountRefused: counted}}, func(f *fixture) {
				service := strings.NewReplacer("http://", "", ".", "-", ":", "-").Replace(f.srv.URL()) // no two servers are alike
				began := time.Now()
				var mu sync.Mutex
				var longest time.Duration
				var wg sync.WaitGroup
				for i := range clients {
					client := f.newClient(fmt.Sprintf("http://client%d.%s.example.com", i, service), setup{options: []webdelivery.Option{
						webdelivery.WithPlainHTTP(), webdelivery.WithHTTPClient(&http.Client{Transport: elsewhere(f)}),
					}})
					wg.Go(func() {
						for range purges {
							asked := time.Now()
							assert.NoError(f, submit.call(f.Context(), client))
							mu.Lock()
							longest = max(longest, time.Since(asked))
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				arrived := len(f.arrivals())
				refused := 1 - float64(len(f.srv.Purged()))/float64(arrived)
				f.Logf("%.0f %% rejected, the longest purge took %v, all of them %v", 100*refused, longest, time.Since(began))
				require.Len(f, f.srv.Purged(), clients*purges)
				assert.LessOrEqual(f, refused, 1.25*0.38)
				assert.LessOrEqual(f, longest, 150*time.Second)
				assert.LessOrEqual(f, time.Since(began), 325*time.Second)
			})
		})
	}
}

// elsewhere sends every host's requests to the fake.
func elsewhere(f *fixture) http.RoundTripper {
	url := f.srv.URL()
	next := f.http.Transport
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Host = url[len("http://"):]
		return next.RoundTrip(r)
	})
}
