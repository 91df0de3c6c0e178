package hostile

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const ms = time.Millisecond

func newConnections(t *http.Transport) { t.DisableKeepAlives = true }

// delays holds durations to wait for in turn, over and over.
type delays chan time.Duration

func newDelays(all ...time.Duration) delays {
	d := make(delays, len(all))
	for _, one := range all {
		d <- one
	}
	return d
}

func (d delays) wait() {
	one := <-d
	d <- one
	time.Sleep(one) // simulates a slow network
}

// writeSlowly delays the writes of a transport. If an attempt ends meanwhile, its data are still written as long as its
// connection stays open.
func writeSlowly(t *http.Transport) {
	d := newDelays(0, 0, 0, 0, 0, 2500*ms, 0, 0, 3500*ms)
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return slowConn{conn, d}, err
	}
}

type slowConn struct {
	net.Conn
	delays
}

func (c slowConn) Write(b []byte) (int, error) {
	c.wait()
	return c.Conn.Write(b)
}

// The service accepts two purges per second (service document, section 8), and counts them when they arrive. So of any
// three arrivals, the first and the third must be at least a second apart, whatever is between the SDK and the service.
func TestPace(t *testing.T) {
	t.Parallel()
	setUp := Network{Seed: 1, SetUp: Range{0, 900 * ms}}
	oneSlow := []Step{{After: 2 * time.Second}, {After: 300 * ms}, {After: 300 * ms}, {After: 300 * ms}}
	scenarios := []scenario{
		{name: "undisturbed", plan: Plan{Protocol: HTTP1}},
		{name: "set-up", plan: Plan{Protocol: HTTP1}, network: &setUp, transport: newConnections},
		{name: "set-up of TLS", plan: Plan{Protocol: HTTP1TLS}, network: &setUp, transport: newConnections},
		{
			name: "stalls", plan: Plan{Protocol: HTTP1},
			network: &Network{Seed: 2, Flow: Range{100 * ms, time.Second}, Stall: Range{time.Second, 4 * time.Second}},
		},
		{
			// The purges behind a slow one wait inside net/http.
			name: "one connection", plan: Plan{Protocol: HTTP1, Steps: oneSlow},
			transport: func(t *http.Transport) { t.MaxConnsPerHost = 1 },
		},
		{
			name: "GOAWAY", plan: Plan{Protocol: HTTP2, Steps: []Step{{}, {Action: GoAway}, {After: 200 * ms}, {}, {Action: GoAway}}},
		},
		{
			name: "REFUSED_STREAM", plan: Plan{Protocol: HTTP2, Steps: []Step{{Action: Refuse}, {}, {Action: Refuse}, {}, {}, {}}},
		},
		{name: "PROTOCOL_ERROR", plan: Plan{Protocol: HTTP2, Steps: []Step{{Action: Reset}, {}, {}, {Action: Reset}, {}, {}}}},
		{
			name: "idle connections closed by the service", plan: Plan{Protocol: HTTP1, Steps: []Step{{Action: CloseReused}}}, purges: 6,
		},
		{
			name: "idle connections closed on the way", plan: Plan{Protocol: HTTP1}, network: &Network{Seed: 6, CutReused: 1}, purges: 6,
		},
		{
			name: "callers who leave", plan: Plan{Protocol: HTTP1}, giveUp: true,
			network: &Network{Seed: 3, Flow: Range{50 * ms, 300 * ms}, Stall: Range{500 * ms, 2 * time.Second}},
		},
		{
			name: "callers who leave streams", plan: Plan{Protocol: HTTP2}, giveUp: true,
			network: &Network{Seed: 7, Flow: Range{50 * ms, 300 * ms}, Stall: Range{500 * ms, 2 * time.Second}},
		},
		{
			name: "callers who leave while HEADERS are written", plan: Plan{Protocol: HTTP2}, giveUp: true, transport: writeSlowly,
		},
		{
			name: "callers who leave slow connections", plan: Plan{Protocol: HTTP1}, giveUp: true,
			network: &setUp, transport: newConnections, purges: 12,
		},
		{
			name: "503", plan: Plan{Protocol: HTTP1, Steps: []Step{{}, {}, {Action: Unavailable}, {}, {}, {}, {}, {}, {}, {}, {}, {}}},
			network: &setUp, transport: newConnections, purges: 8,
		},
		{
			name: "lost responses", plan: Plan{Protocol: HTTP1},
			network: &Network{Seed: 4, CutResponse: 3, SetUp: Range{0, 900 * ms}},
		},
		{
			name: "requests that arrive after their connection has ended", plan: Plan{Protocol: HTTP1},
			network: &Network{Seed: 5, CutEarly: 3, Late: Range{time.Second, 4 * time.Second}},
		},
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			o := run(t, s)
			o.checkPace(t)
			o.checkNothingAdded(t)
		})
	}
}

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
