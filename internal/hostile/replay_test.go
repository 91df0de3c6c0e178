package hostile

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// net/http sends some requests again by itself, where neither the SDK nor its limiter sees it. Never a purge: each
// attempt of the SDK arrives at most once.
func TestNoReplay(t *testing.T) {
	t.Parallel()
	for _, s := range []scenario{
		{name: "GOAWAY", plan: Plan{Protocol: HTTP2, Steps: []Step{{Action: GoAway}, {}}}},
		{name: "REFUSED_STREAM", plan: Plan{Protocol: HTTP2, Steps: []Step{{Action: Refuse}, {}}}},
		{name: "PROTOCOL_ERROR", plan: Plan{Protocol: HTTP2, Steps: []Step{{Action: Reset}, {}}}},
		{name: "idle connections closed by the server", plan: Plan{Protocol: HTTP1, Steps: []Step{{Action: CloseReused}}}},
		{name: "idle connections closed on the way", plan: Plan{Protocol: HTTP1}, network: &Network{CutReused: 1}},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.purges = 6
			o := run(t, s)
			assert.Equal(t, o.attempts, len(o.arrivals)+o.lost, "each attempt of the SDK leaves exactly once")
			assert.Greater(t, o.attempts, s.wanted(), "the SDK repeats what fails")
			o.checkPace(t)
		})
	}
}
