package hostile

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// The clock of the service, or of this machine, is years off. A date in Retry-After counts from the Date of the same
// response, so the wait is the one that the service means. A wait of 0 s lets the call succeed. A wait of an hour
// exceeds MaxWait and ThrottleTimeout, so the call fails at once.
func TestClocksThatAreYearsOff(t *testing.T) {
	t.Parallel()
	for _, years := range []int{-126, -56, -1, 0, 1, 12, 7973} {
		for _, wait := range []time.Duration{-time.Hour, 0, time.Hour} {
			for _, layout := range []string{http.TimeFormat, time.ANSIC, "Monday, 02-Jan-06 15:04:05 GMT"} {
				if layout[0] == 'M' && layout[:6] == "Monday" && (years < -50 || years > 12) {
					continue // a year of two digits
				}
				t.Run(fmt.Sprintf("%d years, %v, %s", years, wait, layout), func(t *testing.T) {
					t.Parallel()
					clock := time.Now().UTC().Truncate(time.Second).AddDate(years, 0, 0)
					var refuse atomic.Bool
					service := startRaw(t, answers(func(req *http.Request, nth int) string {
						switch {
						case refuse.Swap(false):
							return response("503 Service Unavailable", "{}", "Date: "+clock.Format(http.TimeFormat), "Retry-After: "+clock.Add(wait).Format(layout))
						case strings.HasSuffix(req.URL.Path, "/cache/purge"):
							return receipt(nth + 1)
						default:
							return task("t-1")
						}
					}))
					transport := &http.Transport{}
					defer transport.CloseIdleConnections()
					c := client(t, "http://"+service.addr, quick(transport)...)
					for _, k := range kinds[:2] {
						if k.name == "purge" && wait > 0 {
							continue // the limiter pauses for 5 minutes after a long Retry-After
						}
						refuse.Store(true)
						err := k.call(bounded(t), c)
						if wait <= 0 {
							assert.NoError(t, err, k.name)
							continue
						}
						require.ErrorIs(t, err, webdelivery.ErrServer, k.name)
						assert.Equal(t, 1, attemptsOf(err), k.name)
					}
				})
			}
		}
	}
}

// A deadline may have no monotonic reading, for example if it comes from a file or a message. The context then ends by
// its own timer, and no call waits longer.
func TestDeadlinesOfTheWallClock(t *testing.T) {
	t.Parallel()
	service := startRaw(t, answers(func(*http.Request, int) string {
		return response("503 Service Unavailable", "{}", "Retry-After: 1")
	}))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := client(t, "http://"+service.addr, quick(transport)...)
	for _, k := range kinds {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(500*time.Millisecond).Round(0))
		err := k.call(ctx, c)
		cancel()
		require.Error(t, err, k.name)
		assert.LessOrEqual(t, attemptsOf(err), 1, "%s: the next attempt would be too late: %v", k.name, err)
	}
}
