package hostile

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// net/http retries some requests by itself, unseen by the SDK and its limiter. It never does so with a purge: each
// attempt of the SDK arrives at most once.
func TestNoReplay(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		scenario
		// With a dying server, an attempt may get a connection that accepts no more streams, and then does not arrive.
		dying bool
	}{
		{scenario{name: "GOAWAY", plan: Plan{Protocol: HTTP2, Steps: []Step{{Action: GoAway}, {}}}}, true},
		{scenario{name: "PROTOCOL_ERROR", plan: Plan{Protocol: HTTP2, Steps: []Step{{Action: Reset}, {}}}}, true},
		{scenario{name: "REFUSED_STREAM", plan: Plan{Protocol: HTTP2, Steps: []Step{{Action: Refuse}, {}}}}, false},
		{scenario{name: "idle connections closed by the server", plan: Plan{Protocol: HTTP1, Steps: []Step{{Action: CloseReused}}}}, false},
		{scenario{name: "idle connections closed on the way", plan: Plan{Protocol: HTTP1}, network: &Network{CutReused: 1}}, false},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.purges = 6
			o := run(t, s.scenario)
			o.checkNothingAdded(t)
			if !s.dying {
				assert.Equal(t, o.attempts, len(o.arrivals)+o.lost, "each attempt of the SDK leaves")
			}
			assert.Greater(t, o.attempts, s.wanted(), "the SDK repeats what fails")
			o.checkPace(t)
		})
	}
}
