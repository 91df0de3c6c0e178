package redisqueue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

const (
	linger    = 2 * tick         // time for calls of other processes that react to the same change
	quietFor  = time.Second      // after which a sender with nothing to send makes room for others
	idleLease = 2 * time.Second  // of a sender without calls of its own, which may end without Close
	standBack = 10 * time.Minute // how long a process that could not purge leaves the lease to others
	unwanted  = 2 * idleTick     // after which a free lease may be taken even then
	mostTries = 3                // how many senders in a row may fail to purge a call
	waitFor   = time.Hour        // for a transaction; the process of the caller may have died
	checked   = 100              // maximum calls of which the sender learns in an exchange whether they are gone
)

// beat is a sign of life of the sender, the process that purges for the fleet. It is stored as the key "lease". No
// clock of Redis decides who sends: others take over if, by their own clocks, the key has not changed for a lease.
type beat struct {
	Number int
	Sender string        // name of the process; "" if none sends
	Lease  time.Duration // 0: others take over at once
	Why    string        // what the purges wait for, or why the last sender could not purge; "" if unknown
	Fails  []string      // the last entry read by each of the last senders in a row that could not purge, up to mostTries
}

// term is the time during which this process sends. Its context ends with the lease.
type term struct {
	context.Context

	end     context.CancelFunc
	expiry  *time.Timer       // ends it
	last    string            // the entry that was read last
	open    map[string]*entry // that have no stored result, by call
	bytes   int               // that these take
	waits   map[int64]*wait   // for transactions, by ID
	from    time.Time         // nothing is sent before
	until   time.Time         // then it ends, unless there is more to send
	decided time.Time         // when the service last decided about a purge; zero if it has not
	failure error             // why this process cannot purge
}

// entry is a call that this process sends.
type entry struct {
	id, call string
	uris     []webdelivery.PurgeURI
	size     int // in bytes, but less if it only waits for its transactions
	added    time.Time
	known    result // its error if it is unreadable, or what the service has accepted
	stop     context.CancelFunc
	decided  bool // it has a result
}

// wait is a wait for a transaction, which several entries share.
type wait struct {
	entries int
	stop    context.CancelFunc
	ended   chan struct{}
	err     error
}

// orderLocked returns what this process tells Redis, and its next beat if it is the sender or wants to become it.
func (q *Queue) orderLocked(why string) (o order, next beat) {
	now, own := time.Now(), len(q.calls) > 0
	next = beat{q.beat.Number + 1, q.process, q.options.Lease, why, q.beat.Fails}
	if !own {
		next.Lease = min(next.Lease, idleLease)
	}
	if t := q.term; t != nil && t.Err() != nil && t.failure == nil && q.ctx.Err() == nil {
		q.endTermLocked() // its lease has ended
	}
	writes, leaves := true, false
	switch t := q.term; {
	case t == nil:
		free, since := q.beat.Sender == q.process, now.Sub(q.seen)
		free = (free || since > q.beat.Lease) && (now.After(q.rest) || since > q.beat.Lease+unwanted)
		writes = free && (own || !q.closed && q.length > 0)
	case t.failure != nil:
		q.condemnLocked(t)
		next.Fails = append(next.Fails[max(0, len(next.Fails)-mostTries+1):], t.last)
		next.Why, leaves, q.rest = oneLine(t.failure), true, now.Add(standBack)
	default:
		if next.Why = cmp.Or(why, q.beat.Why); !t.decided.IsZero() {
			next.Why, next.Fails, q.rest = why, nil, time.Time{}
		}
		o, leaves = q.readLocked(t, own || !q.closed)
		if next.Lease < q.beat.Lease {
			t.expiry.Reset(next.Lease) // others may see this beat although its reply is lost
		}
	}
	if leaves {
		next.Sender, next.Lease = "", 0
		q.endTermLocked()
	}
	if writes {
		text, _ := json.Marshal(next) //nolint:errchkjson,musttag // no value of this type fails
		o.Beat = string(text)
	}
	o.Last = cmp.Or(o.Last, "0-0")
	o.Known, o.Name, o.Life = q.known, q.process, lifetime.Milliseconds()
	o.Left, o.Store = q.left[:min(len(q.left), atOnce)], q.stores[:min(len(q.stores), atOnce)]
	return o, next
}

// readLocked returns what the sender wants to read, and whether it leaves: it has nothing to send, or no longer works for
// others and has no request under way.
func (q *Queue) readLocked(t *term, works bool) (o order, leaves bool) {
	if works && len(t.open)+len(q.calls) > 0 {
		t.until = time.Now().Add(quietFor)
	}
	if o.Last = t.last; works && t.bytes < 4*max(q.options.MaxBodyBytes, 4<<20) {
		o.Room = atOnceBytes
	}
	for call := range t.open { // in random order
		if o.Open = append(o.Open, call); len(o.Open) == checked {
			break
		}
	}
	idle := len(q.stores) == 0 && q.local.Stats().InFlight == 0
	return o, time.Now().After(t.until) || !works && idle || q.ctx.Err() != nil
}

// condemnLocked ends the calls that this sender and enough others before it could not purge.
func (q *Queue) condemnLocked(t *term) {
	before := q.beat.Fails[max(0, len(q.beat.Fails)-mostTries+1):]
	for _, e := range t.open {
		untried := len(before) < mostTries-1 || slices.ContainsFunc(before, func(last string) bool { return later(e.id, last) })
		if !untried && time.Since(e.added) > q.options.Lease { // a new password may take seconds to arrive
			err := failed(e.uris, t.failure, webdelivery.OutcomeUnknown, failures(e.known.err)...)
			q.storeLocked(e, result{e.known.receipts, err}, q.options.Keep)
		}
	}
}

// later reports whether an entry comes after another one.
func later(id, other string) bool {
	var a, b [2]uint64
	_, _ = fmt.Sscanf(id, "%d-%d", &a[0], &a[1])
	_, _ = fmt.Sscanf(other, "%d-%d", &b[0], &b[1])
	return slices.Compare(a[:], b[:]) > 0
}

// sentLocked notes the reply to an order that was sent at a certain time.
func (q *Queue) sentLocked(o order, next beat, r reply, sent time.Time) {
	q.left, q.stores = q.left[len(o.Left):], q.stores[len(o.Store):]
	q.observeLocked(r.Beat)
	if o.Beat == "" || next.Sender == "" || r.Beat != o.Beat {
		q.endTermLocked()
		return
	}
	if q.term == nil {
		q.term = &term{open: map[string]*entry{}, waits: map[int64]*wait{}, until: time.Now().Add(quietFor)}
		q.term.Context, q.term.end = context.WithCancel(q.ctx)
		q.term.expiry = time.AfterFunc(time.Hour, q.term.end)
		q.wakeUp()
	}
	t := q.term
	t.last = r.Last
	t.expiry.Reset(time.Until(sent.Add(next.Lease)))
	for _, s := range o.Store {
		if s.Life > 0 {
			r.Gone = append(r.Gone, s.Call)
		}
	}
	for _, call := range r.Gone {
		if e := t.open[call]; e != nil {
			e.stop()
			delete(t.open, call)
			t.bytes -= e.size
		}
	}
	for _, found := range r.Entries {
		if len(t.open) == 0 {
			t.from = time.Now().Add(linger)
		}
		if e := t.open[found.Call]; e != nil { // it was added again after a loss of data
			e.id = found.ID
			continue
		}
		e := &entry{id: found.ID, call: found.Call, size: len(found.URIs) + 1000}
		e.added = time.Now().Add(-time.Duration(found.Age * float64(time.Millisecond)))
		err := json.Unmarshal([]byte(found.URIs), &e.uris)
		if cmp.Or(err, webdelivery.PurgeRequest{URIs: e.uris}.Validate()) != nil {
			e.uris, e.known.err = nil, errors.New("redisqueue: unreadable call in Redis")
		} else if _, accepted, _ := strings.Cut(found.Known, " "); accepted != "" {
			e.known = decode(accepted)
		}
		t.open[e.call], t.bytes = e, t.bytes+e.size
		ctx, stop := context.WithCancel(t)
		e.stop = stop
		q.all.Go(func() { q.purge(ctx, t, e) })
	}
}

// storeLocked has the result of an entry stored, or with a life of 0 what the service has accepted of it so far.
func (q *Queue) storeLocked(e *entry, r result, life time.Duration) {
	if life > 0 && strings.HasPrefix(e.call, awaited) {
		life = time.Minute + 3*q.options.Lease // its caller reads it soon
	}
	if !e.decided {
		e.decided = life > 0
		q.stores = append(q.stores, stored{e.id, e.call, r.encode(), life.Milliseconds()})
		q.wakeUp()
	}
}

// purge purges an entry and has its result stored, unless the term has ended, the caller has left, or this process
// cannot purge, so that another one is to try. Of what the service has accepted, it only waits for the transactions.
func (q *Queue) purge(ctx context.Context, t *term, e *entry) {
	r, stands := e.known, true
	if e.uris != nil && r.receipts == nil {
		r, stands = q.submit(ctx, t, e)
	}
	for _, receipt := range r.receipts {
		if !q.options.Wait {
			break
		}
		if err := q.transaction(ctx, t, receipt.TransactionID); err != nil {
			r.err = failed(e.uris, err, webdelivery.OutcomeUnknown, failures(r.err)...)
		}
		stands = ctx.Err() == nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if stands {
		q.storeLocked(e, r, q.options.Keep)
	}
}

// submit sends the URIs of an entry, and reports whether the result stands. If this process cannot purge, the term ends.
func (q *Queue) submit(ctx context.Context, t *term, e *entry) (r result, stands bool) {
	sleep(ctx, time.Until(t.from))
	within, cancel := context.WithDeadline(ctx, e.added.Add(q.options.Keep))
	defer cancel()
	began := time.Now()
	r.receipts, r.err = q.local.Purge(within, e.uris...)
	fault := faultOf(r)
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case fault == nil:
		if t.decided = time.Now(); q.options.Wait && r.receipts != nil {
			q.storeLocked(e, r, 0)
			t.bytes, e.size = t.bytes-e.size+e.size/8, e.size/8
		}
	case ctx.Err() != nil:
		return r, false
	case within.Err() != nil:
		fault = fmt.Errorf("redisqueue: not sent any more after waiting for longer than Options.Keep, %v; purge again", q.options.Keep)
		r.err = failed(e.uris, fault, webdelivery.OutcomeUnknown)
	case errors.Is(fault, webdelivery.ErrUnauthorized), !t.decided.After(began): // otherwise only these URIs break connections
		q.cannotPurgeLocked(t, fault)
		return r, false
	}
	return r, true
}

// cannotPurgeLocked ends a term. If the Redis of the limiter refuses a command, waiting does not help the calls of this
// process.
func (q *Queue) cannotPurgeLocked(t *term, why error) {
	for _, c := range q.calls {
		if refused(why) {
			q.endLocked(c, result{err: redisError(why)})
		}
	}
	t.failure = cmp.Or(t.failure, why)
	t.end()
	q.wakeUp()
}

// faultOf returns why a process could not purge, if another process might: the service has not decided about the URIs,
// and has accepted none. Of what the service has not refused alone, the outcome becomes unknown: an earlier sender may
// have sent it.
func faultOf(r result) (cause error) {
	all, _ := errors.AsType[*webdelivery.QueueError](r.err)
	for i := range failures(r.err) {
		f := &all.Failures[i]
		if f.Outcome == webdelivery.OutcomeNotApplied && !errors.Is(f.Err, webdelivery.ErrBadRequest) {
			f.Outcome, all.Outcome = webdelivery.OutcomeUnknown, webdelivery.OutcomeUnknown
		}
		if isFault(f.Err) && r.receipts == nil {
			cause = f.Err
		}
	}
	return cause
}

// isFault reports whether an error may be that of this process alone: no response, or refused credentials.
func isFault(err error) bool {
	e, answered := errors.AsType[*webdelivery.Error](err)
	return !errors.As(err, new(*webdelivery.UndecidedError)) && (!answered || e.StatusCode == 0 || errors.Is(e, webdelivery.ErrUnauthorized))
}

// transaction waits for a transaction of an entry. The more transactions are open, the slower each is polled. A process
// that has not purged yet, and cannot read it, ends its term.
func (q *Queue) transaction(ctx context.Context, t *term, id int64) error {
	q.mu.Lock()
	w := t.waits[id]
	if w == nil {
		waiting, stop := context.WithTimeout(t, waitFor)
		w = &wait{stop: stop, ended: make(chan struct{})}
		t.waits[id] = w
		every := webdelivery.WaitInterval(time.Second + time.Duration(len(t.waits))*tick)
		polled := webdelivery.WaitProgress(func(p webdelivery.Progress) {
			q.mu.Lock()
			defer q.mu.Unlock()
			if p.Err != nil && isFault(p.Err) && t.decided.IsZero() {
				q.cannotPurgeLocked(t, p.Err)
			}
		})
		q.all.Go(func() {
			defer close(w.ended)
			_, w.err = q.client.Purge.Wait(waiting, id, every, polled)
		})
	}
	w.entries++
	q.mu.Unlock()
	var err error
	select {
	case <-w.ended:
		err = w.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.entries--; w.entries == 0 {
		w.stop()
		delete(t.waits, id)
	}
	return err
}

func (q *Queue) endTermLocked() {
	if q.term != nil {
		q.term.expiry.Stop()
		q.term.end()
		q.term = nil
	}
}
