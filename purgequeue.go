package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/webdelivery/webdelivery-go/internal/batch"
	"github.com/webdelivery/webdelivery-go/internal/outcomes"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// ErrQueueClosed means that the queue is closed, or that Close ended before this purge did. [OutcomeOf] says whether
// the purge may have been sent.
var ErrQueueClosed = batch.ErrClosed

// Errors of a URI that the service refused together with others, and that the queue did not send alone. Neither matches
// [ErrBadRequest].
var (
	// ErrRefusedTogether means that the service refused so many URIs or hosts of the request that the queue stopped
	// searching. The service may accept these: purge them again.
	ErrRefusedTogether = errors.New("webdelivery: refused together with others and not sent alone; purge it again")
	// ErrHostRefused means that the service refused several URIs of the same host alone and accepted none meanwhile.
	// Purging them again helps only when rights or configuration change.
	ErrHostRefused = errors.New("webdelivery: host refused")
)

// QueueOptions are the options of a queue. A zero field means its default.
type QueueOptions struct {
	Action       PurgeAction // action of all purges; default ActionPurge
	Wait         bool        // if true, Purge returns when the transaction has ended, not when the service has accepted the purge
	MaxURIs      int         // maximum number of URIs per request, and per call; default 10,000
	MaxBodyBytes int         // maximum size of a request, and of a call; default 4 MiB. A single URI may be longer
	MaxPending   int         // maximum number of URIs waiting to be sent; beyond it, callers wait for room; default 1,000,000
}

// QueueStats is the state of a queue at one moment, see [PurgeQueue.Stats].
type QueueStats struct {
	Pending   int           // URIs that are not yet part of a request
	InFlight  int           // URIs in requests that the service has neither accepted nor refused yet
	Accepted  int           // URIs that the service accepted so far; identical ones in one request count once
	Refused   int           // URIs that failed so far because they were refused
	Requests  int           // requests so far, repeated ones included
	OldestAge time.Duration // time that the oldest pending URI has waited; 0 if none is pending
	// Failures counts failed requests, logins and permits in a row, also those that are repeated. It returns to 0 when the
	// service accepts a purge or refuses one with ErrBadRequest.
	Failures int
	Err      error     // error of the last failure; nil if Failures is 0
	Since    time.Time // when the first of them failed; zero if Failures is 0
	Waiting  error     // why there is no permit, if a SharedLimiter tells; nil otherwise
	// Transactions are those that the queue waits for, with Wait, as last polled. Status is "" before the first poll.
	Transactions []Progress
}

// QueueError is a failed call of [PurgeQueue.Purge]. The URIs of the call that are not among Failures were purged.
//
// If the service refuses URIs of a request, the queue halves it, by host first, until the refused ones stand alone:
// about 15 requests more for one URI of 1,000. After 1 + 15*log2(n) failed requests for n URIs, the rest fails
// together. A request that is too large for a gateway (413), or that fails despite retries while the service accepts
// others, is halved, too.
type QueueError struct {
	// Failures are the URIs that the service refused or may not have received, or whose transaction ended badly or has not
	// ended, in the order of the call, identical ones once.
	Failures []URIFailure
	Outcome  Outcome // of the whole call: unknown if only some URIs were purged
}

// URIFailure is a URI of a call that failed.
type URIFailure struct {
	URI           PurgeURI // equal to the one that was passed
	TransactionID int64    // of the transaction that failed or has not ended; 0 if the service has not accepted the URI
	// Err matches [ErrBadRequest] if the service refused this URI alone, and [ErrHostRefused] or [ErrRefusedTogether] if
	// it refused the URI together with others. Otherwise it is as in [PurgeService.Submit] and [PurgeService.Wait].
	Err error
	// Outcome is not applied if the URI was refused or certainly not sent. It is unknown after a lost connection, a fault of
	// the service (500, 503), also if that was repeated, or a transaction that failed or has not ended.
	Outcome Outcome
}

// Error returns the first URIs for each of the first causes.
func (e *QueueError) Error() string {
	var texts []string
	patterns := map[string][]string{}
	for _, f := range e.Failures {
		text := within(fmt.Sprint(f.Err))
		if patterns[text] == nil {
			texts = append(texts, text)
		}
		patterns[text] = append(patterns[text], redact.Line(f.URI.URIPattern))
	}
	if len(texts) == 0 {
		return prefix + "purge failed"
	}
	for i, text := range texts {
		texts[i] = firstOf(patterns[text], ", ") + ": " + text
	}
	return prefix + "purge of " + firstOf(texts, "; ")
}

// Unwrap returns the causes, each one once.
func (e *QueueError) Unwrap() (causes []error) {
	seen := map[string]bool{}
	for _, f := range e.Failures {
		if text := fmt.Sprint(f.Err); !seen[text] && f.Err != nil {
			seen[text] = true
			causes = append(causes, f.Err)
		}
	}
	return causes
}

func (e *QueueError) outcomeOfWrite() Outcome { return e.Outcome }

// undecided returns the error of a URI that was refused together with others. alone is how many URIs of its host were
// refused alone, or 0 if the search has ended.
func undecided(host string, alone int) error {
	if alone == 0 {
		return &outcomeError{ErrRefusedTogether, OutcomeNotApplied}
	}
	return &outcomeError{fmt.Errorf("%w: the service refused %d URIs of %s alone and accepted none meanwhile, so this one was not sent alone; "+
		"repeating helps only when rights or configuration change", ErrHostRefused, alone, redact.Line(cmp.Or(host, `""`))), OutcomeNotApplied}
}

// PurgeQueue combines the purges of any number of goroutines into few requests. [PurgeService.NewQueue] creates it.
// Close it at the end. It has no goroutine while it has nothing to do.
//
// A queue's throughput depends on how many URIs are waiting when each request goes out, so pass all URIs that you have
// to one Purge, or call it from more goroutines. (Section 8.)
type PurgeQueue struct {
	service *PurgeService
	options QueueOptions
	turns   *semaphore.Weighted // of polls of transactions
	polls   *semaphore.Weighted // that are under way
	batch   *batch.Queue

	mu   sync.Mutex
	open map[int64]Progress // of the transactions that the queue waits for
}

const (
	purgesUnderWay = 4           // requests without a response yet, and separately turns of polls
	pollsUnderWay  = 256         // polls without a response yet
	pollTurn       = time.Second // a poll that takes longer holds up no others
)

// NewQueue creates a queue. It sends nothing.
func (s *PurgeService) NewQueue(options QueueOptions) (*PurgeQueue, error) {
	q := &PurgeQueue{service: s, options: options, turns: semaphore.NewWeighted(purgesUnderWay), polls: semaphore.NewWeighted(pollsUnderWay), open: map[int64]Progress{}}
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
	work := batch.Work{Acquire: q.acquire, Send: q.send, Left: q.whyLeft, Undecided: undecided}
	if o.Wait {
		work.Wait = q.wait
	}
	q.batch = batch.New(work, batch.Options{
		MaxURIs: o.MaxURIs, MaxBytes: o.MaxBodyBytes - purgeFrame, MaxPending: o.MaxPending, UnderWay: purgesUnderWay,
	})
	return q, nil
}

// Purge adds URIs to the queue, and returns when the service has accepted the request that carries them or, with Wait,
// when its transaction has ended. All URIs of a call go in one request, together with those of other calls. Purge
// returns the receipt of the request, or those of all its parts if the queue had to split it.
//
// If URIs are invalid, or too many for one request, Purge sends nothing and returns a [*ValidationError]. Any other
// error is a [*QueueError] with the outcome of each URI. Once it is known, a refused host holds up no others: its URIs
// travel apart for 10 minutes, and fail at once for 10 seconds if the service never accepted one ([ErrHostRefused]).
//
// Purge waits until the context ends, even if the next permit comes later. URIs that were not sent by then leave the
// queue, and the outcome is [OutcomeNotApplied]. (Section 4.4.)
func (q *PurgeQueue) Purge(ctx context.Context, uris ...PurgeURI) ([]*PurgeReceipt, error) {
	distinct, bytes, err := q.check(uris)
	if err != nil {
		return nil, err
	}
	switch limit := min(q.options.MaxURIs, q.options.MaxPending); {
	case len(distinct) > limit:
		return nil, invalid("uris", "%d are more than the %d of one call; call Purge with fewer", len(distinct), limit)
	case len(distinct) > 1 && bytes > q.options.MaxBodyBytes-purgeFrame:
		return nil, invalid("uris", "they take %d bytes, more than the %d of one request; call Purge with fewer", bytes, q.options.MaxBodyBytes)
	}
	return resultOf(q.batch.Put(ctx, distinct))
}

// check validates the URIs of a call. It returns the distinct ones, and the bytes that they take in a request.
func (q *PurgeQueue) check(uris []PurgeURI) (distinct []batch.URI, bytes int, err error) {
	if err := (PurgeRequest{q.options.Action, uris}).Validate(); err != nil {
		return nil, 0, err
	}
	distinct = make([]batch.URI, 0, len(uris))
	seen := make(map[PurgeURI]bool, len(uris))
	for _, u := range uris {
		if !seen[u] {
			seen[u] = true
			size := len(u.appendJSON(nil)) + len(",")
			distinct = append(distinct, batch.URI{MatchMode: u.MatchMode, Pattern: u.URIPattern, Modifier: u.CacheKeyModifierRegex, Host: u.host(), Size: size})
			bytes += size
		}
	}
	return distinct, bytes, nil
}

// unqueued returns a URI as the caller gave it.
func unqueued(u batch.URI) PurgeURI {
	return PurgeURI{MatchMode: u.MatchMode, URIPattern: u.Pattern, CacheKeyModifierRegex: u.Modifier}
}

func resultOf(r batch.Result) (receipts []*PurgeReceipt, err error) {
	for _, receipt := range r.Receipts {
		receipts = append(receipts, receipt.(*PurgeReceipt)) // send returns no others
	}
	if len(r.Failures) == 0 {
		return receipts, nil
	}
	e := &QueueError{Failures: make([]URIFailure, len(r.Failures)), Outcome: Outcome(r.Outcome)}
	for i, f := range r.Failures {
		err := f.Err
		receipt, accepted := f.Receipt.(*PurgeReceipt)
		if accepted {
			e.Failures[i].TransactionID = receipt.TransactionID
		}
		if accepted && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrQueueClosed)) {
			err = fmt.Errorf("%w; the service has accepted transaction %d", err, receipt.TransactionID)
		}
		e.Failures[i].URI, e.Failures[i].Err, e.Failures[i].Outcome = unqueued(f.URI), err, Outcome(f.Outcome)
	}
	return receipts, e
}

// whyLeft returns the error of a caller whose context has ended, with the reason why its purge was not sent, if known.
func (q *PurgeQueue) whyLeft(ctx context.Context, sent bool) error {
	if q.service.conn.permits.Pace.Refusing() {
		return fmt.Errorf("%w while the service refused purges as too fast", ctx.Err())
	}
	if failed := q.batch.Stats().Err; sent && failed != nil {
		return fmt.Errorf("%w while the purge was under way; the last failure was: %v", ctx.Err(), failed) //nolint:errorlint // perhaps of another call
	}
	if sent {
		return fmt.Errorf("%w while the purge was under way", ctx.Err())
	}
	err := fmt.Errorf("%w before the purge was sent", ctx.Err())
	if why := q.waiting(); why != nil {
		err = fmt.Errorf("%w: %v", err, why) //nolint:errorlint // only ctx has ended this call
	}
	return err
}

// waiting returns why the limiter gives no permit, if it tells.
func (q *PurgeQueue) waiting() error {
	if l := q.service.conn.permits.Limiter; l != nil && l.Waiting != nil {
		if why := l.Waiting(); why != nil {
			return q.service.conn.foreign(why)
		}
	}
	return nil
}

// acquire logs in and waits for a permit, as every purge does.
func (q *PurgeQueue) acquire(ctx context.Context) (batch.Permit, error) {
	if err := q.service.conn.transport.LogIn(ctx); err != nil {
		return nil, err
	}
	p, err := q.service.conn.permits.Acquire(ctx)
	if err != nil {
		return nil, q.service.conn.foreign(err)
	}
	return p, nil
}

// send sends one request.
func (q *PurgeQueue) send(ctx context.Context, permit batch.Permit, uris []batch.URI, failed func(error)) batch.Response {
	request := PurgeRequest{q.options.Action, make([]PurgeURI, len(uris))}
	for i, u := range uris {
		request.URIs[i] = unqueued(u)
	}
	cl := describe("Purge.Submit", http.MethodPost, purgePath, "")
	cl.Body = request.body()
	cl.Permit, _ = permit.(*transport.Permit)
	cl.Retrying = func(r *transport.Response) { failed(q.service.conn.newError(r, r.Err)) }
	var receipt *PurgeReceipt
	r, err := q.service.conn.send(ctx, cl)
	if err == nil {
		receipt, err = r.receipt()
	}
	if err != nil {
		r := batch.Response{Err: err, Refused: errors.Is(err, ErrBadRequest), Outcome: outcomes.Outcome(OutcomeOf(err))}
		if e, ok := errors.AsType[*Error](err); ok && !e.login {
			r.TooLarge = e.status() == http.StatusRequestEntityTooLarge
			transient := e.status() >= http.StatusBadRequest && !transport.Final(e.status())
			r.Failed = transient || e.StatusCode == 0 && e.outcome == OutcomeUnknown
		}
		return r
	}
	return batch.Response{Receipt: receipt}
}

// wait polls a transaction until it has ended. Each poll waits for its turn, and is not repeated before the next.
func (q *PurgeQueue) wait(ctx context.Context, receipt any) error {
	id := receipt.(*PurgeReceipt).TransactionID // see send
	note := func(p Progress) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.open[id] = p
	}
	note(Progress{ID: strconv.FormatInt(id, 10)})
	_, err := q.service.wait(ctx, id, true, q.poll, []WaitOption{WaitProgress(note)})
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, id)
	return err
}

func (q *PurgeQueue) poll(ctx context.Context, cl call) (*Transaction, error) {
	if err := q.polls.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer q.polls.Release(1)
	if err := q.turns.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	over := sync.OnceFunc(func() { q.turns.Release(1) })
	defer over()
	defer time.AfterFunc(pollTurn, over).Stop()
	cl.Single = true
	return q.service.conn.fetchTransaction(ctx, cl)
}

// Stats returns the present state of the queue, for a progress line or for metrics. It may be called after Close, too.
func (q *PurgeQueue) Stats() QueueStats {
	now := q.batch.Stats()
	s := QueueStats{
		Pending: now.Pending, InFlight: now.InFlight, Accepted: now.Accepted, Refused: now.Refused, Requests: now.Requests,
		OldestAge: now.OldestAge, Failures: now.Failures, Err: now.Err, Since: now.Since, Waiting: q.waiting(),
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(q.open)) {
		s.Transactions = append(s.Transactions, q.open[id])
	}
	return s
}

// Close refuses new purges and sends the rest. Give it its own context: that of a job may have ended when the job
// closes its queue. If ctx ends before everything was sent (with Wait: before the transactions have ended for which
// callers wait), Close cancels the requests under way and returns the context's error. Callers whose URIs were not sent
// get [ErrQueueClosed] and [OutcomeNotApplied].
//
// When Close returns, no goroutine of the queue is running, unless your transport, limiter or log handler ignores the
// end of its context: Close and every Purge then return 100 ms later. You may call Close again; if one call drops
// URIs, the others return an error that matches ErrQueueClosed.
func (q *PurgeQueue) Close(ctx context.Context) error { return q.batch.Close(ctx) }
