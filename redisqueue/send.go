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
	idleLease = 2 * time.Second  // of a sender without calls of its own, which may end without Close
	standBack = 10 * time.Minute // how long a process that often could not purge leaves the lease to others
	unwanted  = 2 * idleTick     // after which it takes the lease even then, if there are calls that nobody sends
	patience  = 5 * time.Second  // without a decision of the service, after which a failed attempt ends a term
	mostTries = 3                // how many senders in a row may fail to purge a call
	waitFor   = time.Hour        // for a transaction; the process of the caller may have died
	checked   = 100              // maximum calls of which the sender learns in an exchange whether they are gone
	mostRead  = 16 << 20         // bytes of entries that the sender has read and that have no result, or four requests
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
	open    map[string]*entry // that have no result, by call
	bytes   int               // that these take
	waits   map[int64]*wait   // for transactions, by ID
	from    time.Time         // nothing is sent before
	decided time.Time         // when the service last decided about a purge; zero if it has not
	failed  int               // attempts in a row that had failed before
	failure error             // why this process cannot purge
}

// entry is a call that this process sends.
type entry struct {
	id, call string
	uris     []webdelivery.PurgeURI // nil if they are unreadable
	size     int                    // in bytes, or less if it only waits for its transactions
	added    time.Time
	accepted result // what the service has accepted
	stop     context.CancelFunc
}

// wait is a wait for a transaction, which several entries share.
type wait struct {
	entries int
	stop    context.CancelFunc
	ended   chan struct{}
	err     error
}

// worksLocked reports whether this process has calls, or may get some, so that it works for others, too.
func (q *Queue) worksLocked() bool { return len(q.calls) > 0 || q.closing.IsZero() }

// orderLocked returns what this process tells Redis, with its next beat if it is the sender or wants to become it.
func (q *Queue) orderLocked(why string) order {
	t, hasCalls := q.term, len(q.calls) > 0
	if t != nil && t.Err() != nil && t.failure == nil && q.ctx.Err() == nil {
		q.endTermLocked() // its lease has ended
		t = nil
	}
	if t != nil {
		q.checkLocked(t)
	}
	o := order{Known: q.lastBeat, Name: q.process, Last: "0-0", Room: atOnceBytes}
	next, writes := beat{q.beat.Number + 1, q.process, q.options.Lease, cmp.Or(why, q.beat.Why), q.beat.Fails}, true
	if !hasCalls {
		next.Lease = min(next.Lease, idleLease)
	}
	switch {
	case t == nil:
		free := time.Since(q.seen) // for so long
		if q.beat.Sender != q.process {
			free -= q.beat.Lease
		}
		if writes = free > 0 && (hasCalls || q.worksLocked() && q.length > 0); !writes {
			q.unsent = time.Now()
		}
		writes = writes && (time.Now().After(q.rest) || time.Since(q.unsent) > unwanted)
	case t.failure != nil:
		next.Sender, next.Why, q.unsent = "", oneLine(t.failure), time.Now()
		q.rest = q.unsent.Add(min(unwanted<<min(3*q.fails, 9), standBack)) // the next one may have had less trouble
		q.fails++
		next.Fails = append(next.Fails[max(0, len(next.Fails)-mostTries+1):], t.last)
		q.condemnLocked(t, next.Fails)
	case q.leavesLocked(t):
		next.Sender = ""
	default:
		if !t.decided.IsZero() {
			next.Why, next.Fails, q.fails = why, nil, 0
		}
		if next.Lease < q.beat.Lease {
			t.expiry.Reset(next.Lease) // others may see this beat although its reply is lost
		}
		q.readLocked(t, &o)
	}
	if next.Sender == "" {
		next.Lease, o.Room = 0, 0
		q.endTermLocked()
	}
	if writes {
		text, _ := json.Marshal(next) //nolint:errchkjson,musttag // no value of this type fails
		o.Beat = string(text)
	}
	o.Store = q.stores[:min(len(q.stores), atOnce)]
	return o
}

// checkLocked ends a term in which attempts fail. Their retries may take minutes.
func (q *Queue) checkLocked(t *term) {
	now := q.local.Stats()
	fails := now.Failures > t.failed || now.Since.After(t.from)
	quiet := min(time.Since(t.from), time.Since(t.decided)) > patience
	if fails && quiet && isFault(now.Err) && !errors.Is(now.Err, context.Canceled) {
		q.cannotPurgeLocked(t, now.Err)
	}
}

// leavesLocked reports whether the sender makes room for others: there is nothing to send, or it closes. Then it waits
// for its requests for a moment, so that they need not be sent again.
func (q *Queue) leavesLocked(t *term) bool {
	over := q.local.Stats().InFlight == 0 || time.Since(q.closing) > time.Second
	return len(t.open)+len(q.calls)+len(q.stores) == 0 || !q.worksLocked() && over || q.ctx.Err() != nil
}

// readLocked adds to an order what the sender wants to know.
func (q *Queue) readLocked(t *term, o *order) {
	if o.Last = t.last; !q.worksLocked() || t.bytes >= max(mostRead, 4*q.options.MaxBodyBytes) {
		o.Room = 0
	}
	for call := range t.open { // in random order
		if o.Open = append(o.Open, call); len(o.Open) == checked {
			break
		}
	}
}

// condemnLocked ends the calls that this sender and enough others before it could not purge. fails are the entries that
// these read last.
func (q *Queue) condemnLocked(t *term, fails []string) {
	for _, e := range t.open {
		untried := len(fails) < mostTries || slices.ContainsFunc(fails, func(last string) bool { return later(e.id, last) })
		if !untried && time.Since(e.added) > q.options.Lease { // a new password may take seconds to arrive
			q.storeLocked(t, e, result{e.accepted.receipts, t.failure}, q.options.Keep)
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
func (q *Queue) sentLocked(o order, r reply, sent time.Time) {
	q.stores = q.stores[len(o.Store):]
	if o.Beat == "" || o.Beat != q.lastBeat || q.beat.Sender == "" {
		q.endTermLocked()
		return
	}
	if q.term == nil {
		q.term = &term{open: map[string]*entry{}, waits: map[int64]*wait{}, from: time.Now().Add(linger)}
		q.term.failed = q.local.Stats().Failures
		q.term.Context, q.term.end = context.WithCancel(q.ctx)
		q.term.expiry = time.AfterFunc(time.Hour, q.term.end)
		q.wakeUp()
	}
	t := q.term
	t.last = r.Last
	t.expiry.Reset(time.Until(sent.Add(q.beat.Lease)))
	for _, call := range r.Gone {
		if e := t.open[call]; e != nil {
			t.drop(e)
		}
	}
	for _, found := range r.Entries {
		if e := t.open[found.Call]; e != nil { // it was added again after a loss of data
			e.id = found.ID
			continue
		}
		e := &entry{id: found.ID, call: found.Call, size: len(found.URIs) + 1000}
		e.added = time.Now().Add(-time.Duration(found.Age * float64(time.Millisecond)))
		_ = json.Unmarshal([]byte(found.URIs), &e.uris) // without URIs, it is refused
		_, accepted, _ := strings.Cut(found.Known, " ")
		e.accepted = decode(accepted)
		t.open[e.call], t.bytes = e, t.bytes+e.size
		ctx, stop := context.WithCancel(t)
		e.stop = stop
		q.all.Go(func() { q.purge(ctx, t, e) })
	}
}

// drop ends the purge of an entry that has a result, or whose caller has left.
func (t *term) drop(e *entry) {
	e.stop()
	delete(t.open, e.call)
	t.bytes -= e.size
}

// storeLocked has the result of an entry stored, or with a life of 0 what the service has accepted of it so far.
func (q *Queue) storeLocked(t *term, e *entry, r result, life time.Duration) {
	if t.open[e.call] != e { // it has a result, or its caller has left
		return
	}
	r.err = failed(e.uris, r.err, webdelivery.OutcomeUnknown)
	if life == 0 {
		t.bytes, e.size = t.bytes-e.size+e.size/8, e.size/8
	} else if t.drop(e); strings.HasPrefix(e.call, awaited) {
		life = time.Minute + 3*q.options.Lease // its caller reads it soon
	}
	q.stores = append(q.stores, stored{e.id, e.call, r.encode(), life.Milliseconds()})
	q.wakeUp()
}

// purge purges an entry and has its result stored, unless the term has ended, the caller has left, or this process
// cannot purge, so that another one is to try. Of what the service has accepted, it only waits for the transactions.
func (q *Queue) purge(ctx context.Context, t *term, e *entry) {
	r, stands := e.accepted, true
	if r.receipts == nil {
		r, stands = q.submit(ctx, t, e)
	}
	for i := 0; q.options.Wait && i < len(r.receipts); i++ {
		if err := q.transaction(ctx, t, r.receipts[i].TransactionID); err != nil {
			var before webdelivery.QueueError
			if refused, ok := errors.AsType[*webdelivery.QueueError](r.err); ok {
				before = *refused
			}
			r.err = failed(e.uris, err, webdelivery.OutcomeUnknown, before.Failures...)
		}
		stands = ctx.Err() == nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if stands {
		q.storeLocked(t, e, r, q.options.Keep)
	}
}

// submit sends the URIs of an entry, and reports whether the result stands. If this process cannot purge, its term ends.
func (q *Queue) submit(ctx context.Context, t *term, e *entry) (r result, stands bool) {
	time.Sleep(time.Until(t.from))
	within, cancel := context.WithDeadline(ctx, e.added.Add(q.options.Keep))
	defer cancel()
	r.receipts, r.err = q.local.Purge(within, e.uris...)
	fault := faultOf(r)
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case fault == nil:
		if t.decided = time.Now(); q.options.Wait && r.receipts != nil {
			q.storeLocked(t, e, r, 0)
		}
	case ctx.Err() != nil:
		return r, false
	case within.Err() != nil:
		r.err = fmt.Errorf("redisqueue: not sent any more after waiting for longer than Options.Keep, %v; purge again", q.options.Keep)
	case errors.As(fault, new(*webdelivery.Error)) && !errors.Is(fault, webdelivery.ErrUnauthorized) && time.Since(t.decided) < time.Second:
		// Others are accepted, so it is these URIs that break connections.
	default:
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
	all, ok := errors.AsType[*webdelivery.QueueError](r.err)
	for i := 0; ok && i < len(all.Failures); i++ {
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
	return !errors.Is(err, webdelivery.ErrHostRefused) && !errors.Is(err, webdelivery.ErrRefusedTogether) &&
		(!answered || e.StatusCode == 0 || errors.Is(e, webdelivery.ErrUnauthorized))
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
