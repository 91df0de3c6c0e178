package suite_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
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

func measure(t *testing.T, c crowd, policy webdelivery.RetryPolicy) map[string]float64 {
	t.Helper()
	result := map[string]float64{}
	c.simulate(func(simulate func()) {
		synctest.Test(t, func(*testing.T) { simulate() })
	}, func(s *limited, _ uint64) func() error {
		service := fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return nil, err
			}
			if !s.purge() {
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
			}
			body := io.NopCloser(strings.NewReader(someReceipt))
			return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: body, Request: r}, nil
		})
		client, err := webdelivery.NewClient(fmt.Sprintf("https://%d.example.com", simulated.Add(1)), fixture.Customer,
			webdelivery.BasicAuth(fixture.Username, fixture.Password), webdelivery.WithHTTPClient(&http.Client{Transport: service}),
			webdelivery.WithRetry(policy))
		require.NoError(t, err)
		return func() error { return fixture.Submit.Call(context.Background(), client) }
	}, func(value float64, unit string) { result[unit] = math.Round(10*value) / 10 })
	return result
}

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
			result := measure(t, c, policy)
			if all {
				t.Logf("%s %v", c.name, result)
			}
			for unit, most := range bound {
				assert.LessOrEqual(t, result[unit], most, unit)
			}
		})
	}
}
