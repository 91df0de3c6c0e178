package suite_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// simulated counts the processes that were simulated. Each has a host of its own, as clients of one host share permits.
var simulated atomic.Int64

// Processes that share nothing divide the limit, and small ones find room beside greedy ones. The bounds are wide,
// because every run is different. WEBDELIVERY_SHARES=1 measures every load and prints the results.
func TestShares(t *testing.T) {
	t.Parallel()
	all := os.Getenv("WEBDELIVERY_SHARES") != ""
	bounds := map[string]map[string]float64{
		"once/8x15":   {"s": 120, "%refused": 60, "failed": 0},
		"random/20":   {"s/p50": 1, "s/p99": 20, "failed": 0},
		"endless/3+5": {"s/p50": 5, "s/p99": 60, "max/min": 2.5, "failed": 1},
	}
	for _, c := range crowds() {
		bound := bounds[c.name]
		if bound == nil && !all {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var policy webdelivery.RetryPolicy
			if c.ends() {
				policy.ThrottleTimeout = time.Hour // until all are accepted
			}
			result := map[string]float64{}
			c.simulate(func(simulate func()) {
				synctest.Test(t, func(*testing.T) { simulate() })
			}, func(s *limited, _ uint64) func() error {
				service := fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
					if !s.purge() {
						return fixture.Response(http.StatusServiceUnavailable, nil), nil
					}
					return fixture.Response(http.StatusCreated, []byte(someReceipt)), nil
				})
				client, err := webdelivery.NewClient(fmt.Sprintf("https://%d.example.com", simulated.Add(1)), fixture.Customer,
					webdelivery.BasicAuth(fixture.Username, fixture.Password), webdelivery.WithHTTPClient(&http.Client{Transport: service}),
					webdelivery.WithRetry(policy))
				require.NoError(t, err)
				return func() error { return fixture.Submit.Call(context.Background(), client) }
			}, func(value float64, unit string) { result[unit] = math.Round(10*value) / 10 })
			if all {
				t.Logf("%s %v", c.name, result)
			}
			for unit, most := range bound {
				assert.LessOrEqual(t, result[unit], most, unit)
			}
		})
	}
}
