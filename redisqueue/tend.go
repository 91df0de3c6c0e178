package redisqueue

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

const (
	// readFor is how long one read waits for messages.
	readFor = time.Second
	// holdFor is the default of Queue.holdFor. It is longer than one attempt may take.
	holdFor = 45 * time.Second
)

// tend renews the leases of this process, and looks for work that no other process does, until Close ends it.
func (q *Queue) tend() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	beat := time.Now()
	for {
		select {
		case <-q.ctx.Done():
			return
		case <-q.stir:
		case <-timer.C:
		}
		q.mu.Lock()
		held, keepTurn := q.heldLocked()
		look := !time.Now().Before(q.lookAt)
		q.mu.Unlock()
		if (len(held) > 0 || keepTurn) && !time.Now().Before(beat) {
			began := time.Now()
			if err := q.store.renew(q.ctx, keepTurn, held); err != nil { // others take over
				q.giveUpOnRedis(began, err)
			} else {
				q.confirmed(nil, began)
			}
			beat = time.Now().Add(q.options.Lease / 6)
		}
		if look {
			q.look()
		}
		q.mu.Lock()
		next := q.lookAt
		if held, keepTurn = q.heldLocked(); (len(held) > 0 || keepTurn) && beat.Before(next) {
			next = beat
		}
		q.mu.Unlock()
		timer.Reset(time.Until(next))
	}
}

// heldLocked returns the batches whose leases this process renews, and whether it renews its turn. A process that makes no
// progress must not stop the fleet: it loses its turn, and others send its URIs as well. The lock is held.
func (q *Queue) heldLocked() (batches []string, keepTurn bool) {
	for batch, since := range q.batches {
		if !q.heldTooLong(since) {
			batches = append(batches, batch)
		}
	}
	return batches, q.sending && q.progressLocked()
}

// heldTooLong returns whether others should send a batch as well. A batch that is split takes long, but the service
// answers meanwhile. The lock is held.
func (q *Queue) heldTooLong(since time.Time) bool {
	if q.answered.After(since) {
		since = q.answered
	}
	return !q.options.Wait && time.Since(since) >= max(q.holdFor, 3*q.options.Lease)
}

// seldom is how long a process without callers waits until it looks for work. Many processes look at different times.
func (q *Queue) seldom() time.Duration { return q.options.Lease + upTo(q.options.Lease/2) }

// look looks for work that no process does, and for calls of this process that Redis has lost.
func (q *Queue) look() {
	q.mu.Lock()
	accept := q.acceptsLocked()
	q.lookAt = time.Now().Add(q.options.Keep) // unless something happens meanwhile, or below
	q.mu.Unlock()
	for {
		checked, ids := q.unchecked()
		began := time.Now()
		turn, again, err := q.store.look(q.ctx, accept, ids)
		if err != nil {
			q.giveUpOnRedis(began, err)
			q.nextLook(min(time.Second, q.options.turn()))
			return
		}
		q.confirmed(checked, began)
		if turn {
			q.send()
		}
		if len(ids) == perScript {
			continue
		}
		q.mu.Lock()
		waits := len(q.waiting) > 0
		q.mu.Unlock()
		switch {
		case again > 0:
			q.nextLook(min(again, q.options.Lease) + upTo(q.options.Lease/20))
		case waits:
			q.nextLook(jittered(q.options.turn()))
		default:
			q.nextLook(q.seldom())
		}
		return
	}
}

// acceptsLocked returns whether this process takes the turn if it is free. The lock is held.
func (q *Queue) acceptsLocked() bool {
	for _, since := range q.batches {
		if q.heldTooLong(since) { // it would only take the same calls again
			return false
		}
	}
	closed := q.closed && len(q.waiting) == 0
	return !closed && !q.restsLocked() && (!q.sending || q.progressLocked())
}

// progressLocked returns whether this process has got the turn, or taken calls, within the time of a lease. The lock is
// held.
func (q *Queue) progressLocked() bool { return time.Since(q.turnFrom) < q.options.Lease }

func (q *Queue) nextLook(after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lookByLocked(time.Now().Add(after))
}

// lookByLocked makes the process look at a time at the latest. The lock is held.
func (q *Queue) lookByLocked(at time.Time) {
	if at.Before(q.lookAt) {
		q.lookAt = at
		q.stirLocked()
	}
}

func (q *Queue) stirLocked() {
	select {
	case q.stir <- struct{}{}:
	default:
	}
}

// unchecked returns calls that Redis has not confirmed for the time of a lease.
func (q *Queue) unchecked() (calls []*call, ids []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for _, c := range q.waiting {
		if len(ids) < perScript && c.entry.id != "" && now.Sub(c.checked) >= q.options.Lease {
			calls, ids = append(calls, c), append(ids, c.entry.id)
		}
	}
	return calls, ids
}

// confirmed records that a script has not failed, and which calls Redis knew then.
func (q *Queue) confirmed(calls []*call, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trouble = time.Time{}
	for _, c := range calls {
		c.checked = at
	}
}

// giveUpOnRedis ends the calls that Redis has, if its scripts have failed for the time of a lease. began is when the
// last one began.
func (q *Queue) giveUpOnRedis(began time.Time, err error) {
	q.mu.Lock()
	if q.trouble.IsZero() {
		q.trouble = began
	}
	var stored map[string]*call
	if q.ctx.Err() == nil && time.Since(q.trouble) >= q.options.Lease {
		stored = q.storedLocked()
	}
	q.mu.Unlock()
	for _, c := range stored {
		q.deliver(c.entry.number, result{err: failed(c.uris, err, webdelivery.OutcomeUnknown)})
	}
}

// read reads the messages to this process as long as a call waits. It removes them after it has read them, and always
// reads from the beginning: so it misses none, whatever happens to the clock of Redis.
func (q *Queue) read() {
	wait := 50 * time.Millisecond
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 || q.ctx.Err() != nil {
			q.reading = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		messages, err := q.store.receive(q.ctx, readFor)
		if err == nil && len(messages) > 0 {
			for _, m := range messages {
				q.receive(m.Values)
			}
			err = q.store.forget(q.ctx, messages[len(messages)-1].ID)
		}
		if err != nil {
			q.mu.Lock()
			q.lookByLocked(time.Now()) // it finds out whether Redis is down
			q.mu.Unlock()
			pause(q.ctx, jittered(wait))
			wait = min(2*wait, time.Second)
			continue
		}
		wait = 50 * time.Millisecond
	}
}

// receive handles one message.
func (q *Queue) receive(fields map[string]any) {
	if text, ok := fields["m"].(string); ok {
		q.deliver(decode(text))
	}
	if lost, ok := fields["lost"].(string); ok {
		q.putAgain(strings.Fields(lost))
	}
	if _, ok := fields["look"]; ok {
		q.mu.Lock()
		q.lookByLocked(time.Now())
		q.mu.Unlock()
	}
}

// putAgain stores calls again, because Redis has lost them. They may have been sent, which does no harm.
func (q *Queue) putAgain(ids []string) {
	lost := map[string]bool{}
	for _, id := range ids {
		lost[id] = true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.waiting {
		if !lost[c.entry.id] {
			continue
		}
		c.entry.id, c.doubt = "", true
		q.goLocked(func() {
			if _, err := q.put(q.ctx, c); err != nil {
				q.deliver(c.entry.number, result{err: failed(c.uris, err, webdelivery.OutcomeUnknown)})
			}
		})
	}
}

// pause waits for d, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// jittered returns d with up to 20 % more or less.
func jittered(d time.Duration) time.Duration { return d*4/5 + upTo(d*2/5) }

// upTo returns a random duration below d. It spreads what many processes do, so it need not be secret.
func upTo(d time.Duration) time.Duration { return rand.N(d) } //nolint:gosec // see above
