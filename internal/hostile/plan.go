package hostile

import (
	"sync"
	"time"
)

// Plan is the behavior of a server.
type Plan struct {
	Protocol Protocol `json:"protocol"`
	// Steps are used in turn, one per arriving purge, over and over. If empty, the server accepts each purge at once.
	Steps []Step `json:"steps"`
	// Limit rejects more than two purges per second (service document, section 8). If empty, there is no limit.
	Limit Limit `json:"limit"`
}

// Limit says which purges count against the limit. The service document leaves open whether rejected ones do.
type Limit string

// The limits of a Plan. A purge above the limit is rejected with 503 without Retry-After.
const (
	CountAccepted Limit = "accepted"
	CountAll      Limit = "all"
)

// Protocol is the protocol of a server.
type Protocol string

// The protocols of a Plan.
const (
	HTTP1    Protocol = "HTTP/1.1"
	HTTP1TLS Protocol = "HTTP/1.1 over TLS"
	HTTP2    Protocol = "HTTP/2 over TLS"
)

// Step is the behavior for one purge.
type Step struct {
	After  time.Duration `json:"after"` // from the arrival to the action
	Action Action        `json:"action"`
}

// Action is how a server ends a request.
type Action string

// The actions of a Step. An empty one accepts the purge with 201.
const (
	Unavailable Action = "unavailable" // 503 without Retry-After

	// CloseReused accepts the first request of a connection. Instead of answering the second one, it closes the
	// connection, like a server whose idle timeout ends at that moment. HTTP/1.1 only.
	CloseReused Action = "close reused"

	// Refuse resets the stream with REFUSED_STREAM, and Reset with PROTOCOL_ERROR. HTTP/2 only.
	Refuse Action = "refuse"
	Reset  Action = "reset"
	// GoAway announces that this stream and later ones were not processed. HTTP/2 only.
	GoAway Action = "go away"
)

// record holds the arrivals at one server.
type record struct {
	steps []Step
	limit Limit
	began time.Time

	mu       sync.Mutex
	arrivals []time.Duration
	counted  []time.Duration // against the limit
}

// arrive records an arrival. It returns the transaction id and the step of this purge.
func (r *record) arrive() (id int, step Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, now := len(r.arrivals), time.Since(r.began)
	r.arrivals = append(r.arrivals, now)
	if len(r.steps) > 0 {
		step = r.steps[n%len(r.steps)]
	}
	if r.limit == "" {
		return n + 1, step
	}
	last := len(r.counted) - 2
	tooFast := last >= 0 && now-r.counted[last] < time.Second
	if !tooFast || r.limit == CountAll {
		r.counted = append(r.counted, now)
	}
	if tooFast {
		step.Action = Unavailable
	}
	return n + 1, step
}

// take returns the arrivals in order.
func (r *record) take() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arrivals
}
