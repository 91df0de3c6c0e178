package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

// request sends the URIs of some callers in one request. If that is refused, it sends them in parts. It is canceled when
// all callers have their results or have left.
type request struct {
	load
	queue    *Queue
	permit   Permit // for the first part; each further one acquires its own
	canceled signal
	open     []*caller // callers without a result, and some of those that have left
	callers  int       // number of callers without a result that have not left
	refusal  error     // of the last part that was refused
	over     *bool     // whether nothing more is sent
}

// sendLocked starts a request with the URIs of some callers, the shortest first, so that these need not wait until the
// refused URIs among many others are found. The caller holds the lock.
func (q *Queue) sendLocked(callers []*caller, permit Permit) {
	r := &request{load: newLoad(), queue: q, permit: permit, canceled: newSignal(q.gaveUp), open: callers, callers: len(callers), over: new(bool)}
	slices.SortStableFunc(r.open, shorter)
	for _, c := range r.open {
		c.request = r
		r.add(c.uris)
	}
	q.unfinished += len(callers)
	q.stats.InFlight += len(r.uris)
	together, sure, refused := q.pending.hosts.divide(r.uris)
	q.workers.Go(func() {
		s := searcher{r, maxRequests(len(r.uris))}
		if len(together) > 0 {
			s.hosts(together, sure)
		}
		for _, uris := range refused {
			s.host(uris, false)
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		*r.over = true
		q.collectLocked()
	})
}

// send sends some URIs in one request and records their results, unless several URIs were refused together. It counts
// the request. A failure is not counted if a Close gave up, or if all callers had left before the request.
func (r *request) send(uris []URI) Response {
	q, permit := r.queue, r.permit
	forNobody := r.canceled.Err() != nil // part of a refused request, after all callers have left
	response := Response{Outcome: outcomes.NotApplied}
	if r.permit = nil; permit == nil {
		permit, response.Err = q.acquirePart(r.canceled)
	}
	sent := response.Err == nil
	if sent {
		response = q.work.Send(r.canceled, permit, uris)
		q.underWay.Release(1)
	}
	response.Err = q.endedByClose(response.Err)
	q.mu.Lock()
	defer q.mu.Unlock()
	if sent {
		q.stats.Requests++
	}
	switch {
	case response.Err == nil, response.Refused:
		q.stats.Failures, q.stats.Err = 0, nil
	case q.gaveUp.Err() != nil, forNobody, !sent:
	default:
		q.stats.Failures++
		q.stats.Err = cmp.Or(context.Cause(r.canceled), response.Err)
	}
	r.setLocked(uris, response)
	return response
}

// setLocked sets the results of some URIs. If several were refused together, it only records whether that request may
// have applied them. The queue's lock is held.
func (r *request) setLocked(uris []URI, response Response) {
	for _, uri := range uris {
		u := r.results[uri]
		if response.Refused && response.Outcome != outcomes.NotApplied {
			u.doubtful = true
		}
		if !response.Refused || len(uris) == 1 {
			r.decideLocked(u, response)
		}
	}
	r.rememberLocked(uris, response)
	if response.Err == nil && r.queue.work.Wait != nil {
		r.queue.workers.Go(func() { r.wait(uris, response.Receipt) })
	}
	r.endCallersLocked()
}

// decideLocked sets the result of a URI. The queue's lock is held.
func (r *request) decideLocked(u *uriResult, response Response) {
	u.receipt, u.err, u.outcome = response.Receipt, response.Err, response.Outcome
	u.ended = response.Err != nil || r.queue.work.Wait == nil
	s := &r.queue.stats
	switch s.InFlight--; {
	case response.Err == nil:
		s.Accepted++
	case response.Refused:
		s.Refused++
	}
}

// rememberLocked records what a response says about hosts. The queue's lock is held.
func (r *request) rememberLocked(uris []URI, response Response) {
	if response.Refused {
		r.refusal = response.Err
	}
	hosts := &r.queue.pending.hosts
	for _, name := range hostsOf(uris) {
		switch h := hosts.of(name); {
		case response.Err == nil:
			if !h.accepted { // otherwise the refusals were about paths
				h.until = time.Time{}
			}
			hosts.set(name, host{accepted: true, until: h.until})
			hosts.accepted = true
		case response.Refused && len(uris) == 1:
			if len(h.refused) < several && !slices.Contains(h.refused, uris[0]) {
				h.refused = append(h.refused, uris[0])
			}
			h.search, h.until = nil, time.Now().Add(refusedFor)
			h.undecided = r.queue.work.Undecided(name, len(h.refused), response.Err)
			if hosts.set(name, h); !h.accepted {
				hosts.wary = h.until
			}
		case response.Refused && !h.accepted && h.refused == nil && h.search == nil:
			hosts.set(name, host{search: r.over})
		case !response.Refused && h.search == r.over:
			hosts.set(name, host{})
		}
	}
	r.queue.collectLocked()
}

func (r *request) whole(host string) bool {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	return r.queue.pending.hosts.of(host).whole()
}

func (r *request) undecided(uris []URI, whole bool) {
	q := r.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.work.Undecided("", 0, r.refusal)
	if h := q.pending.hosts.of(uris[0].Host); whole && h.undecided != nil {
		err = h.undecided
	}
	response := Response{Err: err, Refused: true, Outcome: outcomes.NotApplied}
	for _, uri := range uris {
		r.decideLocked(r.results[uri], response)
	}
	r.endCallersLocked()
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
	r.endCallersLocked()
}

// endCallersLocked ends the callers whose URIs have all ended, which need not wait for a search among those of others. The
// queue's lock is held.
func (r *request) endCallersLocked() {
	r.open = slices.DeleteFunc(r.open, func(c *caller) bool {
		if !c.ended && slices.ContainsFunc(c.uris, func(uri URI) bool { return !r.results[uri].ended }) {
			return false
		}
		if !c.ended {
			c.end(resultOf(c.uris, r.results, nil, r.queue.work.Wait != nil))
			r.leaveLocked(context.Canceled)
		}
		return true
	})
}

// leaveLocked cancels the request if no other caller waits for it. The queue's lock is held.
func (r *request) leaveLocked(reason error) {
	r.queue.unfinished--
	if r.callers--; r.callers == 0 {
		r.canceled.set(reason)
	}
}

// endedByClose replaces the error of a request or wait that a Close canceled, because no caller's context has ended.
func (q *Queue) endedByClose(err error) error {
	if q.gaveUp.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %s", ErrClosed, strings.TrimPrefix(err.Error(), "webdelivery: "))
}
