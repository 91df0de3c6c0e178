package hostile

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Plan is the behavior of a server.
type Plan struct {
	Protocol Protocol `json:"protocol"`
	// Steps are used in turn, one per arriving purge, over and over. If empty, the server accepts each purge at once.
	Steps []Step `json:"steps"`
}

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
	began time.Time

	mu       sync.Mutex
	arrivals []time.Duration
}

// arrive records an arrival. It returns the transaction id and the step of this purge.
func (r *record) arrive() (id int, step Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.arrivals)
	r.arrivals = append(r.arrivals, time.Since(r.began))
	if len(r.steps) > 0 {
		step = r.steps[n%len(r.steps)]
	}
	return n + 1, step
}

// take returns the arrivals in order.
func (r *record) take() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arrivals
}

// response returns the status and body for a purge (service document, section 2.3).
func (a Action) response(id int) (status int, body string) {
	if a == Unavailable {
		return http.StatusServiceUnavailable, `{"code":503,"description":"fault in the purge infrastructure"}`
	}
	return http.StatusCreated, fmt.Sprintf(`{"code":201,"description":"request submitted","transaction_id":%d,`+
		`"purge_response":{"transaction_status_uri":"/transactions/%d"}}`, id, id)
}
