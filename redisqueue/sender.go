package redisqueue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
)

const (
	// linger is how long the process with the turn waits for further callers before it acquires a permit.
	linger = 10 * time.Millisecond
	// A call of another process fails after mostProcesses have tried to send it. With fewer processes, it fails after
	// mostTries.
	mostProcesses, mostTries = 3, 6
	// perScript is how many calls one script takes or ends, so that it does not block Redis for long.
	perScript = 500
	// finishFor is how long a process tries to store results while Redis is down. Others may then send the URIs again.
	finishFor = time.Minute
)

// send starts the goroutine that acquires permits, because this process has the turn.
func (q *Queue) send() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sendMore = true
	if !q.sending {
		q.sending, q.turnFrom = true, time.Now()
		q.goLocked(q.sendAll)
		q.stirLocked()
	}
}

// sendAll sends requests as long as there is more. Each has a goroutine of its own: the next permit is acquired as soon
// as one has taken its calls.
func (q *Queue) sendAll() {
	pause(q.ctx, linger)
	for {
		q.mu.Lock()
		if !q.sendMore || q.ctx.Err() != nil {
			q.sending = false
			q.mu.Unlock()
			return
		}
		q.sendMore = false
		r := &request{queue: q, batch: rand.Text(), more: make(chan bool, 1), taken: make(chan struct{})}
		q.goLocked(r.run)
		q.mu.Unlock()
		if <-r.more {
			q.mu.Lock()
			q.sendMore = true
			q.mu.Unlock()
		}
	}
}

// request is one request, for the calls of one batch.
type request struct {
	queue *Queue
	batch string
	more  chan bool // whether to acquire the next permit; has room for it

	mu    sync.Mutex
	began bool          // take was called
	taken chan struct{} // closed when take has returned

	// These are valid when taken is closed.
	entries []entry // of the batch
	mayHold bool    // take failed, and the batch may have calls
}

func (r *request) run() {
	q := r.queue
	results, err := q.local.PurgeFrom(q.ctx, r.take)
	r.mu.Lock()
	began := r.began
	r.mu.Unlock()
	if began {
		<-r.taken // PurgeFrom returns at once when the context ends
	}
	switch {
	case err != nil:
		q.notSent(r.batch, len(r.entries) > 0 || r.mayHold, err)
	case len(r.entries) > 0:
		q.settle(r.batch, r.entries, results)
	}
	if began {
		q.release(r.batch)
	}
	select {
	case r.more <- false:
	default:
	}
}

// take is called when the permit has come.
func (r *request) take(ctx context.Context) ([][]webdelivery.PurgeURI, error) {
	r.mu.Lock()
	if err := ctx.Err(); err != nil {
		r.mu.Unlock()
		return nil, err
	}
	r.began = true
	r.mu.Unlock()
	defer close(r.taken)
	q := r.queue
	q.hold(r.batch)
	entries, more, err := q.store.take(ctx, r.batch)
	if err != nil {
		r.mayHold = true
		return nil, err
	}
	r.more <- more
	q.mu.Lock()
	q.noPermit, q.turnFrom = time.Time{}, time.Now()
	q.mu.Unlock()
	var calls [][]webdelivery.PurgeURI
	var ended []string
	for _, e := range entries {
		uris, err := q.open(e)
		if err != nil {
			ended = append(ended, e.id, result{err: err}.encode(e.number))
			continue
		}
		r.entries = append(r.entries, e)
		calls = append(calls, uris)
	}
	q.finish(r.batch, ended) //nolint:contextcheck // the results count also if the request ends
	return calls, nil
}

// open returns the URIs of an entry. The process that wrote it has validated them; another program may have changed it.
func (q *Queue) open(e entry) (uris []webdelivery.PurgeURI, err error) {
	if err := json.Unmarshal([]byte(e.payload), &uris); err != nil {
		return nil, failed(nil, fmt.Errorf("redisqueue: unreadable call in Redis: %w", err), webdelivery.OutcomeNotApplied)
	}
	if err := (webdelivery.PurgeRequest{Action: q.options.Action, URIs: uris}).Validate(); err != nil {
		return nil, failed(uris, fmt.Errorf("redisqueue: invalid call in Redis: %w", err), webdelivery.OutcomeNotApplied)
	}
	return uris, nil
}

// hold is called before a batch is taken. It will have all calls for which this process has got the turn so far, so they
// need no further permit.
func (q *Queue) hold(batch string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sendMore = false
	q.batches[batch] = time.Now()
	q.stirLocked()
}

func (q *Queue) release(batch string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.batches, batch)
	q.restLocked()
}

// notSent handles an error before anything was sent. If this process cannot purge, only its own callers fail.
func (q *Queue) notSent(batch string, holds bool, err error) {
	if holds {
		q.giveBack(batch, true)
	}
	var limiter *redislimit.UnavailableError
	switch {
	case q.ctx.Err() != nil, errors.Is(err, webdelivery.ErrQueueClosed):
	case isUnavailable(err), errors.As(err, &limiter):
		q.mu.Lock()
		if now := time.Now(); q.noPermit.IsZero() || now.Sub(q.noPermitAt) > q.options.Lease {
			q.noPermit = now
		}
		q.noPermitAt = time.Now()
		patience := q.options.Lease - time.Since(q.noPermit)
		q.lookByLocked(time.Now().Add(jittered(500 * time.Millisecond)))
		q.mu.Unlock()
		if patience <= 0 {
			q.failOwn(err)
		}
	default:
		q.failOwn(err)
	}
}

// failOwn ends the calls of this process that no process has taken, because this one cannot purge. Then another one
// gets the turn.
func (q *Queue) failOwn(cause error) {
	q.mu.Lock()
	q.resting, q.noPermit = time.Now().Add(q.options.Lease), time.Time{}
	stored := q.storedLocked()
	q.mu.Unlock()
	q.leaveAll(q.ctx, stored, cause)
	q.giveBack("", true)
}

// giveBack returns a batch and the turn to the other processes. If it fails, they wait for the end of the lease.
func (q *Queue) giveBack(batch string, unsent bool) {
	ctx, cancel := q.untilAnswered()
	defer cancel()
	_ = q.store.free(ctx, batch, unsent)
}

// settle gives each call its result. If this process could not send calls of other processes, others try.
func (q *Queue) settle(batch string, entries []entry, results []webdelivery.PurgeResult) {
	var ended []string
	var blamed []any
	again := map[string]string{} // results of calls that others should send, by their ids
	var unsent []settled
	for i, e := range entries {
		r := result{results[i].Receipt, results[i].Err}
		safe := webdelivery.OutcomeOf(r.err) == webdelivery.OutcomeNotApplied
		failure, ok := errors.AsType[*webdelivery.QueueError](r.err)
		if ok && safe && e.doubt { // this request has not applied it, but an earlier one may have
			failure.Outcome = webdelivery.OutcomeUnknown
		}
		switch {
		case e.process == q.store.process && e.kind == waits && safe:
			unsent = append(unsent, settled{e, r})
		case e.process == q.store.process && e.kind == waits:
			q.deliver(e.number, r)
			ended = append(ended, e.id, "")
		case othersMaySend(r.err):
			again[e.id] = r.encode(e.number)
			if !errors.Is(r.err, webdelivery.ErrQueueClosed) { // Close says nothing about the call
				blamed = append(blamed, e.id, flag(safe))
			}
		default:
			ended = append(ended, e.id, r.encode(e.number))
		}
	}
	q.settleUnsent(batch, unsent)
	q.finish(batch, append(ended, q.lastTries(batch, blamed, again)...))
	if len(again) > 0 {
		q.mu.Lock()
		q.resting = time.Now().Add(q.options.Lease)
		q.mu.Unlock()
		q.giveBack(batch, false)
	}
}

// settled is a call of a request that has ended.
type settled struct {
	entry

	result result
}

// settleUnsent ends calls of this process that its request has not applied. If the batch has lost them, or if Redis
// does not take the results, another process may send them, so the outcome is unknown.
func (q *Queue) settleUnsent(batch string, calls []settled) {
	for some := range slices.Chunk(calls, perScript) {
		var ended []string
		for _, c := range some {
			ended = append(ended, c.id, "")
		}
		held := q.finish(batch, ended)
		for _, c := range some {
			if failure, ok := errors.AsType[*webdelivery.QueueError](c.result.err); ok && !held {
				failure.Outcome = webdelivery.OutcomeUnknown
			}
			q.deliver(c.number, c.result)
		}
	}
}

// lastTries records that this process could not send calls. It moves the results of those that no other process should
// try to send from again to ended.
func (q *Queue) lastTries(batch string, blamed []any, again map[string]string) (ended []string) {
	for some := range slices.Chunk(blamed, 2*perScript) {
		counts, err := q.store.blame(q.ctx, batch, some)
		for i := 0; err == nil && i+1 < min(len(counts), len(some)); i += 2 {
			if id, ok := some[i].(string); ok && (counts[i] >= mostProcesses || counts[i+1] >= mostTries) {
				ended = append(ended, id, again[id])
				delete(again, id)
			}
		}
	}
	return ended
}

// othersMaySend returns whether another process may have more success with a call. It may have none if the service
// refuses the URIs, or has carried out the purge badly.
func othersMaySend(err error) bool {
	_, ended := errors.AsType[*webdelivery.TransactionError](err)
	return err != nil && !ended && !errors.Is(err, webdelivery.ErrBadRequest) && !errors.Is(err, webdelivery.ErrRefusedTogether)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// finish stores results in Redis: the ids of calls, each followed by its message. It returns whether the batch certainly
// held all of these calls.
func (q *Queue) finish(batch string, ended []string) (held bool) {
	began := time.Now()
	held = true
	for some := range slices.Chunk(ended, 2*perScript) {
		wait := 50 * time.Millisecond
		for {
			count, err := q.finishSome(batch, some)
			if err == nil {
				held = held && count == len(some)/2
				break
			}
			if q.ctx.Err() != nil || time.Since(began) > finishFor {
				return false
			}
			pause(q.ctx, jittered(wait))
			wait = min(2*wait, 2*time.Second)
		}
	}
	return held
}

func (q *Queue) finishSome(batch string, some []string) (held int, err error) {
	ctx, cancel := q.untilAnswered()
	defer cancel()
	return q.store.finish(ctx, batch, some)
}

// untilAnswered returns a context for what Redis must learn also if Close has ended the queue. Then Close waits for it.
func (q *Queue) untilAnswered() (context.Context, context.CancelFunc) {
	within := answerWithin
	if q.ctx.Err() != nil {
		within = leaveWithin
	}
	return context.WithTimeout(context.Background(), within)
}
