package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

// request holds the URIs of some callers. It first sends them all in one attempt. The response to a refused attempt does
// not say which URIs are refused, so the request then sends them in parts, the shortest first: each part that is refused
// is split in two, by host and then by URI. It is canceled when all callers have their results or have left. The queue's
// lock guards its fields.
type request struct {
	load
	queue    *Queue
	canceled signal
	open     map[*caller]bool // callers without a result that have not left
	parts    []*part          // that wait for a permit
	left     int              // attempts that may still fail
	merged   bool             // its parts, after the first URI was refused alone
	failed   Response         // the last one that did
	halved   time.Time        // when the last attempt began that failed and was halved; zero if there is none
}

// part is what one attempt sends.
type part struct {
	uris  []URI
	rest  []URI         // of a refused attempt: if the service accepts uris, it must be the rest that it refuses
	began time.Time     // of the attempt
	over  chan struct{} // closed when the attempt is over
}

// newRequestLocked returns a request with the URIs of some callers, the shortest first, so that these need not wait until
// the refused URIs among many others are found.
func (q *Queue) newRequestLocked(callers []*caller) *request {
	r := &request{load: newLoad(), queue: q, canceled: newSignal(q.gaveUp), open: map[*caller]bool{}}
	slices.SortStableFunc(callers, shorter)
	for _, c := range callers {
		c.request, r.open[c] = r, true
		r.add(c.uris)
		for _, uri := range c.uris {
			r.results[uri].wanted++
		}
	}
	q.unfinished += len(callers)
	q.stats.InFlight += len(r.uris)
	// Each attempt takes a permit from other callers. So many find 20 refused URIs of one host; those that are left fail.
	r.left = 1 + 15*bits.Len(uint(len(r.uris)-1))
	r.addParts(slices.Clone(r.uris))
	return r
}

func (r *request) addParts(parts ...[]URI) {
	for _, uris := range parts {
		if len(uris) > 0 {
			r.parts = append(r.parts, &part{uris: uris, over: make(chan struct{})})
		}
	}
}

// waiting returns the URIs of all parts.
func (r *request) waiting() (uris []URI) {
	for _, p := range r.parts {
		uris = slices.Concat(uris, p.uris, p.rest)
	}
	return uris
}

// nextPart removes and returns the next part with something to send, or returns nil. It divides parts by what the queue
// has learned since it added them.
func (r *request) nextPart() *part {
	for len(r.parts) > 0 {
		p := slices.MinFunc(r.parts, func(a, b *part) int { return len(a.uris) - len(b.uris) })
		r.parts = slices.DeleteFunc(r.parts, func(other *part) bool { return other == p })
		p.uris = slices.DeleteFunc(p.uris, r.settle)
		groups := r.queue.hosts.divide(p.uris, r.failed.Err == nil)
		if limit := r.queue.limits.MaxBytes; len(groups) == 1 && len(p.uris) > 1 && sizeOf(p.uris) > limit+limit/16 {
			groups = halves(p.uris)
		}
		if len(groups) == 1 {
			p.began = time.Now()
			for _, uri := range p.uris {
				r.results[uri].sending = p
			}
			return p
		}
		r.addParts(append(groups, p.rest)...)
	}
	r.endCallers()
	return nil
}

// settle decides a URI that need not be sent: nobody wants it any more, its host is refused, or there were too many
// attempts.
func (r *request) settle(uri URI) bool {
	u, h := r.results[uri], r.queue.hosts.known[uri.Host]
	refused := Response{Refused: true, Outcome: outcomes.NotApplied}
	switch {
	case u.wanted == 0:
		r.queue.stats.InFlight--
		return true
	case h.whole():
		refused.Err = h.undecided
	case r.left <= 0 && r.failed.Refused:
		refused.Err = r.queue.work.Undecided("", 0)
	case r.left <= 0:
		refused = r.failed
	default:
		return false
	}
	r.decide(refused, uri)
	return true
}

// send makes one attempt. The caller does not hold the lock.
func (r *request) send(p *part, permit Permit) {
	q, failures := r.queue, 0
	response := q.work.Send(r.canceled, permit, p.uris, func(err error) {
		q.mu.Lock()
		defer q.mu.Unlock()
		failures++
		q.stats.Requests++
		q.noteFailureLocked(err)
	})
	q.underWay.Release(1)
	response.Err = q.endedByClose(response.Err)
	q.mu.Lock()
	defer q.mu.Unlock()
	defer close(p.over)
	q.stats.Requests++
	switch {
	case response.Err == nil, response.Refused:
		q.stats.Failures, q.stats.Err, q.stats.Since = 0, nil, time.Time{}
	case q.gaveUp.Err() == nil && (failures == 0 || len(r.open) > 0): // that all callers have left says less than the failures before
		q.noteFailureLocked(cmp.Or(context.Cause(r.canceled), response.Err))
	}
	q.hosts.learn(p.uris, response, q.work.Undecided)
	q.learnSizeLocked(sizeOf(p.uris), response)
	r.handle(p, response)
	r.endCallers()
	q.searchLocked(r)
}

// handle records the results of an attempt, or splits it if its URIs may fare better in parts.
func (r *request) handle(p *part, response Response) {
	for _, uri := range p.uris {
		u := r.results[uri]
		u.sending = nil
		u.doubtful = u.doubtful || response.Err != nil && response.Outcome == outcomes.Unknown
	}
	if response.Err == nil {
		r.queue.accepted = time.Now()
		r.split(p.rest)
	} else {
		r.addParts(p.rest)
	}
	if response.Refused || response.TooLarge || response.Failed {
		r.failed = response
		r.left--
	}
	// If others are accepted, a fault of the service may come from some of these URIs.
	others := r.queue.accepted.After(p.began) || !r.halved.IsZero() && r.queue.accepted.After(r.halved)
	switch {
	case response.Err != nil && len(r.open) == 0: // canceled
		r.queue.stats.InFlight -= len(p.uris)
	case len(p.uris) > 1 && (response.TooLarge || response.Failed && others):
		r.addParts(halves(p.uris)...)
		if response.Failed {
			r.halved = p.began
		}
	case len(p.uris) > 1 && response.Refused:
		r.split(p.uris)
	default:
		r.decide(response, p.uris...)
		if response.Refused && !r.merged { // usually it is the only one
			uris := r.waiting()
			r.merged, r.parts = true, nil
			r.addParts(uris)
		}
	}
}

// split adds the first part of URIs that the service refuses together, with the rest: those of hosts that the service
// has accepted before, or half of the hosts, or half of the URIs of such a host. Of a host that it has not, single URIs
// come first, at random, to find out whether the host is refused as a whole.
func (r *request) split(uris []URI) {
	if len(uris) < 2 {
		r.addParts(uris)
		return
	}
	var known, others []URI
	for _, uri := range uris {
		if r.queue.hosts.known[uri.Host].accepted {
			known = append(known, uri)
		} else {
			others = append(others, uri)
		}
	}
	if len(known) == 0 || len(others) == 0 {
		hosts := byHost(uris)
		switch half := len(hosts) / 2; {
		case half > 0:
			slices.SortStableFunc(hosts, func(a, b []URI) int { return len(b) - len(a) }) // one with many URIs is probably good
			known, others = slices.Concat(hosts[:half]...), slices.Concat(hosts[half:]...)
		case len(others) > 0:
			known, others = oneOf(others)
		default:
			two := halves(uris)
			known, others = two[0], two[1]
		}
	}
	r.addParts(known)
	r.parts[len(r.parts)-1].rest = others
}

// decide sets the results of URIs, or waits for their transaction first.
func (r *request) decide(response Response, uris ...URI) {
	for _, uri := range uris {
		u := r.results[uri]
		u.receipt, u.err, u.outcome = response.Receipt, response.Err, response.Outcome
		u.ended = response.Err != nil || r.queue.work.Wait == nil
	}
	s := &r.queue.stats
	switch s.InFlight -= len(uris); {
	case response.Err == nil:
		s.Accepted += len(uris)
		if r.queue.work.Wait != nil {
			r.queue.workers.Go(func() { r.wait(uris, response.Receipt) })
		}
	case response.Refused, response.TooLarge:
		s.Refused += len(uris)
	}
}

// wait waits for the transaction of accepted URIs.
func (r *request) wait(uris []URI, receipt any) {
	q := r.queue
	err := q.endedByClose(q.work.Wait(r.canceled, receipt))
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, uri := range uris {
		u := r.results[uri]
		u.err, u.ended = err, true
	}
	r.endCallers()
}

// endCallers ends the callers whose URIs have all ended, which need not wait for a search among those of others.
func (r *request) endCallers() {
	for c := range r.open {
		if !slices.ContainsFunc(c.uris, func(uri URI) bool { return !r.results[uri].ended }) {
			c.end(resultOf(c.uris, r.results, nil, r.queue.work.Wait != nil))
			r.leave(c, context.Canceled)
		}
	}
}

// leave cancels the request if no other caller waits for it, and returns an attempt under way with URIs of the caller, or
// nil.
func (r *request) leave(c *caller, reason error) (underWay *part) {
	for _, uri := range c.uris {
		u := r.results[uri]
		u.wanted--
		underWay = cmp.Or(underWay, u.sending)
	}
	r.queue.unfinished--
	if delete(r.open, c); len(r.open) == 0 {
		r.canceled.set(reason)
	}
	return underWay
}

// endedByClose replaces the error of a request or wait that a Close canceled, because no caller's context has ended.
func (q *Queue) endedByClose(err error) error {
	if q.gaveUp.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %s", ErrClosed, strings.TrimPrefix(err.Error(), "webdelivery: "))
}
