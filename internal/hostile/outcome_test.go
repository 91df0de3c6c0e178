package hostile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// checkPace fails the test if more than two purges arrived in any second.
func (o outcome) checkPace(t *testing.T) {
	t.Helper()
	assert.Empty(t, tooFast(o.arrivals), "at these indexes begin three arrivals within less than a second: %v", o.arrivals)
}

// checkNothingAdded fails the test if net/http retried a purge by itself.
func (o outcome) checkNothingAdded(t *testing.T) {
	t.Helper()
	assert.LessOrEqual(t, len(o.arrivals)+o.lost, o.attempts, "an attempt of the SDK leaves at most once")
}

// tooFast returns the first of each three arrivals within less than a second.
func tooFast(arrivals []time.Duration) []int {
	var found []int
	for i := range len(arrivals) - 2 {
		if arrivals[i+2]-arrivals[i] < time.Second {
			found = append(found, i)
		}
	}
	return found
}

func TestTooFast(t *testing.T) {
	t.Parallel()
	s := time.Second
	assert.Empty(t, tooFast(nil))
	assert.Empty(t, tooFast([]time.Duration{0, 0, s, s, 2 * s}))
	assert.Equal(t, []int{1, 2}, tooFast([]time.Duration{0, 1, s, s, s + 1}))
}
