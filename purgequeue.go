package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/webdelivery/webdelivery-go/internal/batch"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// ErrQueueClosed means that the queue is closed, or that Close ended before this purge did. [OutcomeOf] says whether
// the purge may have been sent.
var ErrQueueClosed = batch.ErrClosed

// ErrRefusedTogether means that the service refused these URIs together with others, and so many URIs of the request
// were refused that the queue did not send these alone. The service may accept them: purge them again. It does not
// match [ErrBadRequest].
var ErrRefusedTogether = batch.ErrRefusedTogether

// QueueOptions are the options of a queue. A zero field means its default.
//
// With Wait, a goroutine makes its next call only after its transaction has ended. Fewer URIs are then waiting for each
// permit, so the queue purges fewer URIs per second.
type QueueOptions struct {
	Action       PurgeAction // action of all purges; default ActionPurge
	Wait         bool        // if true, Purge returns when the transaction has ended, not when the service has accepted the purge
	MaxURIs      int         // maximum number of URIs per request, and per call; default 10,000
	MaxBodyBytes int         // maximum size of a request, and of a call; default 4 MiB. A single URI may be longer
	MaxPending   int         // maximum number of URIs waiting to be sent; beyond it, callers wait for room; default 1,000,000
	// OnStats, if not nil, is called after each request, even if its login or permit failed. Calls come one at a time from
	// a goroutine of their own, each with newer statistics. If several requests end during a call, the next call reports
	// them together. Only Close waits for OnStats, until its context ends.
	OnStats func(QueueStats)
}

// QueueStats is the state of a queue. [QueueOptions].OnStats gets it.
type QueueStats struct {
	Pending   int           // URIs that are not yet part of a request
	Accepted  int           // URIs that the service accepted so far; identical ones in one request count once
	Requests  int           // requests so far
	OldestAge time.Duration // time that the oldest pending URI has waited; 0 if none is pending
	// Failures counts failed requests in a row: the service did not answer despite retries, or the login or permit failed.
	// A request that all its callers gave up on counts as failed, too. Failures returns to 0 when the service accepts a
	// purge or refuses one with ErrBadRequest, unless a request that began later has failed.
	Failures int
	Err      error // error of the last failure; nil if Failures is 0
}

// QueueError is a failed call of [PurgeQueue.Purge]. Its URIs are those of the call that the service refused or may not
// have received, or whose transaction ended badly or has not ended. The other URIs of the call were purged. [OutcomeOf]
// also returns [OutcomeUnknown] if only some URIs were purged, or if a transaction has not ended.
//
// If the service refuses URIs of a request, the queue splits it until they stand alone. Finding k refused URIs of n
// takes about k*log2(n/k) + 2k more requests. The queue stops after 1 + 16*log2(n) requests (log2 rounded up), which is
// enough for 20 refused URIs of 200. The errors of the URIs that are left match [ErrRefusedTogether].
type QueueError struct {
	URIs []PurgeURI // failed URIs, identical ones once; a copy
	Err  error      // the cause; joined errors if URIs failed in several ways; Unwrap returns it
	// Outcome is that of the whole call, see [OutcomeOf]. If Err matches [ErrBadRequest], the service refused at least one
	// of the URIs. If it matches another sentinel or a context error as well, others failed for that reason: submit each
	// URI alone to learn which are refused.
	Outcome Outcome
}

// Error returns the first five URIs and the cause.
func (e *QueueError) Error() string {
	const shown = 5
	patterns := make([]string, 0, shown)
	for _, u := range e.URIs[:min(len(e.URIs), shown)] {
		patterns = append(patterns, redact.Line(u.URIPattern))
	}
	more := ""
	if len(e.URIs) > shown {
		more = fmt.Sprintf(" and %d more", len(e.URIs)-shown)
	}
	return prefix + "purge of " + strings.Join(patterns, ", ") + more + ": " + within(fmt.Sprint(e.Err))
}

// Unwrap returns Err.
func (e *QueueError) Unwrap() error { return e.Err }

func (e *QueueError) outcomeOfWrite() Outcome { return e.Outcome }

// PurgeQueue combines the purges of any number of goroutines into few requests. [PurgeService.NewQueue] creates it.
// Close it at the end. It is safe for concurrent use, and has no goroutine while it has nothing to do.
//
// A queue's throughput depends on how many URIs are waiting when each request goes out. 20,000 URIs from 200 goroutines
// take 52 s with one URI per call and 1.2 s with 100 URIs per call. Pass all URIs that you have to one Purge, or call
// it from more goroutines. (Service document, [section 8].)
//
// [section 8]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#8-limits
type PurgeQueue struct {
	service *PurgeService
	options QueueOptions
	polls   *semaphore.Weighted // of transactions, in progress
	batch   *batch.Queue
}

const (
	// purgesUnderWay limits the requests without a response yet, and separately the polls of transactions.
	purgesUnderWay = 4
	// purgeFrame is the size of a request without its URIs, in bytes, rounded up.
	purgeFrame = 100
)

// NewQueue creates a queue. It sends nothing. If a number in the options is below 0 or the action is none of the
// constants, it returns a [*ValidationError].
func (s *PurgeService) NewQueue(options QueueOptions) (*PurgeQueue, error) {
	q := &PurgeQueue{service: s, options: options, polls: semaphore.NewWeighted(purgesUnderWay)}
	o := &q.options
	var bad problems
	o.Action = cmp.Or(o.Action, ActionPurge)
	if o.Action != ActionPurge && o.Action != ActionExpire {
		bad.add("QueueOptions.Action", "%q is neither PURGE nor EXPIRE", string(o.Action))
	}
	bad.addBelow0("QueueOptions.MaxURIs", int64(o.MaxURIs))
	bad.addBelow0("QueueOptions.MaxBodyBytes", int64(o.MaxBodyBytes))
	bad.addBelow0("QueueOptions.MaxPending", int64(o.MaxPending))
	if err := bad.err(); err != nil {
		return nil, err
	}
	o.MaxURIs = cmp.Or(o.MaxURIs, 10_000)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 4<<20)
	o.MaxPending = cmp.Or(o.MaxPending, 1_000_000)
	work := batch.Work{Acquire: q.acquire, Send: q.send, Left: q.whyLeft}
	if o.Wait {
		work.Wait = q.wait
	}
	if o.OnStats != nil {
		work.Report = func(now batch.Stats) { o.OnStats(QueueStats(now)) }
	}
	q.batch = batch.New(work, batch.Options{
		MaxURIs: o.MaxURIs, MaxBytes: o.MaxBodyBytes - purgeFrame, MaxPending: o.MaxPending, UnderWay: purgesUnderWay,
	})
	return q, nil
}

// Purge adds one or more URIs to the queue, and returns when the service has accepted the request that carries them or,
// with Wait, when its transaction has ended. All URIs of a call go in one request, together with those of other calls;
// identical ones are sent once. The receipt is that of the request. If the queue had to split the request, the receipt
// is that of the last part, and Wait waits for all parts.
//
// If the URIs are invalid, or do not fit into one request, Purge returns a [*ValidationError]. Any other error is a
// [*QueueError] with the failed URIs. If the service accepted some of the call's URIs, Purge also returns the
// receipt. The error matches:
//
//   - [ErrBadRequest] for URIs that the service refused. Other URIs do not fail with them, as long as few are refused,
//     and calls without refused URIs do not wait until these are found.
//   - [ErrRefusedTogether], not applied, for other URIs of a request in which the service refused too many.
//   - [*TransactionError] if a transaction ended badly.
//   - [ErrQueueClosed] after Close.
//
// Purge waits until the context ends, even if the next permit comes later. If the context ends before the URIs are
// sent, they leave the queue, and the outcome is [OutcomeNotApplied]. If all callers of a request have left, the
// request ends as in Submit. (Service document, [section 4.4].)
//
// [section 4.4]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#44-cache-purge-and-transactions
func (q *PurgeQueue) Purge(ctx context.Context, uris ...PurgeURI) (*PurgeReceipt, error) {
	distinct, bytes, err := q.check(uris)
	if err != nil {
		return nil, err
	}
	switch most := min(q.options.MaxURIs, q.options.MaxPending); {
	case len(distinct) > most:
		return nil, invalid("uris", "%d are more than the %d of one request; call Purge with fewer", len(distinct), most)
	case len(distinct) > 1 && bytes > q.options.MaxBodyBytes-purgeFrame:
		return nil, invalid("uris", "they take %d bytes, more than the %d of one request; call Purge with fewer", bytes, q.options.MaxBodyBytes)
	}
	result := resultOf(q.batch.Put(ctx, distinct))
	return result.Receipt, result.Err
}

// check validates the URIs of a call. It returns the distinct ones, and the bytes that they take in a request.
func (q *PurgeQueue) check(uris []PurgeURI) (distinct []batch.URI, bytes int, err error) {
	if err := (PurgeRequest{q.options.Action, uris}).Validate(); err != nil {
		return nil, 0, err
	}
	distinct = make([]batch.URI, 0, len(uris))
	known := make(map[PurgeURI]bool, len(uris))
	for _, u := range uris {
		if !known[u] {
			known[u] = true
			size := len(u.appendJSON(nil)) + len(",")
			distinct = append(distinct, batch.URI{MatchMode: string(u.MatchMode), Pattern: u.URIPattern, Modifier: u.CacheKeyModifierRegex, Size: size})
			bytes += size
		}
	}
	return distinct, bytes, nil
}

// unqueued returns the URIs as the caller gave them.
func unqueued(queued []batch.URI) []PurgeURI {
	uris := make([]PurgeURI, len(queued))
	for i, u := range queued {
		uris[i] = PurgeURI{MatchMode: MatchMode(u.MatchMode), URIPattern: u.Pattern, CacheKeyModifierRegex: u.Modifier}
	}
	return uris
}

// PurgeResult is the result of one call of [PurgeQueue.PurgeFrom], as [PurgeQueue.Purge] returns it.
type PurgeResult struct {
	Receipt *PurgeReceipt // nil if the service accepted none of the URIs
	Err     error         // nil, or a [*QueueError]
}

func resultOf(r batch.Result) PurgeResult {
	receipt, _ := r.Receipt.(*PurgeReceipt)
	err := r.Err
	switch ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrQueueClosed); {
	case err == nil:
		return PurgeResult{receipt, nil}
	case receipt != nil && ended:
		err = fmt.Errorf("%w; the service has accepted transaction %d", err, receipt.TransactionID)
	}
	return PurgeResult{receipt, &QueueError{URIs: unqueued(r.Failed), Err: err, Outcome: r.Outcome}}
}

// PurgeFrom purges calls that are stored elsewhere, for example in a database. It waits for a permit, calls take, and
// sends the URIs of all calls that take returns in one request. It calls ended once for each of them, with its index,
// as soon as the result of its own URIs is known: if the service refuses some URIs, the other calls need not wait until
// these are found. PurgeFrom returns when all calls have ended; ended never runs twice at the same time.
//
// An invalid call fails all of them, so take must return valid ones (see [PurgeRequest.Validate]), and it must return
// when its context ends. MaxURIs, MaxBodyBytes and MaxPending do not apply. Package redisqueue is built on PurgeFrom.
//
// If no permit can be had, PurgeFrom returns the same error as [PurgeService.Submit]; if take fails, one that wraps the
// error of take. In both cases nothing was sent, and ended is not called.
func (q *PurgeQueue) PurgeFrom(
	ctx context.Context, take func(context.Context) ([][]PurgeURI, error), ended func(call int, result PurgeResult),
) error {
	err := q.batch.PutFrom(ctx, func(ctx context.Context) ([][]batch.URI, error) {
		calls, err := take(ctx)
		checked := make([][]batch.URI, len(calls))
		for i := 0; err == nil && i < len(calls); i++ {
			checked[i], _, err = q.check(calls[i])
		}
		return checked, err
	}, func(call int, r batch.Result) { ended(call, resultOf(r)) })
	if err != nil {
		return &changeError{err, OutcomeNotApplied}
	}
	return nil
}

// whyLeft returns the error of a caller whose context has ended, with the reason why its purge was not sent, if known.
func (q *PurgeQueue) whyLeft(ctx context.Context, sent bool) error {
	if q.service.conn.gate.Pace.Refusing() {
		return fmt.Errorf("%w while the service refused purges as too fast", ctx.Err())
	}
	if sent {
		return ctx.Err()
	}
	err := fmt.Errorf("%w before the purge was sent", ctx.Err())
	if l := q.service.conn.gate.Limiter; l != nil && l.Waiting != nil {
		if why := l.Waiting(); why != nil {
			err = fmt.Errorf("%w: %v", err, why) //nolint:errorlint // only ctx has ended this call
		}
	}
	return err
}

// acquire logs in and waits for a permit, as every purge does.
func (q *PurgeQueue) acquire(ctx context.Context) (batch.Permit, error) {
	if err := q.service.conn.transport.LogIn(ctx); err != nil {
		return nil, err
	}
	p, err := q.service.conn.gate.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// send sends one request. If it has no permit, the transport acquires one.
func (q *PurgeQueue) send(ctx context.Context, permit batch.Permit, uris []batch.URI) batch.Response {
	cl := describe(http.MethodPost, purgePath, "")
	cl.Body = PurgeRequest{q.options.Action, unqueued(uris)}.body()
	cl.Permit, _ = permit.(*transport.Permit)
	var receipt *PurgeReceipt
	r, err := q.service.conn.send(ctx, cl)
	if err == nil {
		receipt, err = r.receipt()
	}
	if err != nil {
		return batch.Response{Err: err, Refused: errors.Is(err, ErrBadRequest), Outcome: OutcomeOf(err)}
	}
	return batch.Response{Receipt: receipt}
}

// wait polls a transaction until it has ended. polls limits how many transactions are polled at once.
func (q *PurgeQueue) wait(ctx context.Context, receipt any) error {
	accepted, _ := receipt.(*PurgeReceipt)
	_, err := q.service.wait(ctx, accepted.TransactionID, true, func(ctx context.Context, cl call) (*Transaction, error) {
		if err := q.polls.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer q.polls.Release(1)
		return q.service.conn.fetchTransaction(ctx, cl)
	}, nil)
	return err
}

// Close refuses new purges and sends the rest. Give it its own context: the context of a job may have ended when the
// job closes its queue.
//
// If ctx ends before everything was sent (with Wait: before the transactions have ended), Close cancels the requests
// under way and returns the context's error. Callers whose URIs were not sent get [ErrQueueClosed] and
// [OutcomeNotApplied]. When Close returns, no goroutine of the queue is running, unless your transport, limiter, log
// handler or OnStats ignores the end of its context: Close and every Purge then return 100 ms later.
//
// You may call Close again, even from several goroutines. If one of them drops URIs, all others return an error that
// matches ErrQueueClosed and says how many. If OnStats has not returned when ctx ends, Close returns an error that says
// so, even if everything was sent.
func (q *PurgeQueue) Close(ctx context.Context) error { return q.batch.Close(ctx) }
