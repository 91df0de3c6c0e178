package webdelivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The service counts arrivals: of three purges the first and the last must not lie within one second (service-interface
// section 8). So the interval runs from when a permit was taken, however late that was.
func TestALatePermitDoesNotBringTheNextCloser(t *testing.T) {
	t.Parallel()
	l := newPurgeLimiter()
	start := time.Now()
	for _, step := range []struct {
		after, wait time.Duration
	}{
		{0, 0},
		{0, 550 * time.Millisecond},
		{200 * time.Millisecond, 350 * time.Millisecond},
		{1050 * time.Millisecond, 0}, // due at 550 ms, and half a second late
		{1100 * time.Millisecond, 500 * time.Millisecond},
		{1600 * time.Millisecond, 0},
		{time.Hour, 0}, // what was not taken does not pile up
		{time.Hour, 550 * time.Millisecond},
	} {
		assert.InDelta(t, step.wait, l.take(start.Add(step.after)), float64(time.Microsecond), "after %v", step.after)
	}
}
