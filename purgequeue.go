package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/webdelivery/webdelivery-go/internal/batch"
	"github.com/webdelivery/webdelivery-go/internal/pace"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// The service takes 2 purge requests a second and any number of URIs in one (service-interface section 8), so callers
// who each wait for a request of their own wait for hours, and callers who share requests do not. Package batch gathers
// them; here stands what a purge is, as a [batch.Work].

// ErrQueueClosed means that the queue takes no more purges, or that a Close gave up before this one had ended.
// [OutcomeOf] tells whether the purge may have been sent.
var ErrQueueClosed = errors.New("webdelivery: purge queue closed")

// ErrRefusedTogether means that the service refused URIs together with others, and that the queue did not send them
// alone, because too many of one request were refused. Nobody knows whether the service would take them: purge them
// again. It does not match [ErrBadRequest].
var ErrRefusedTogether = errors.New("webdelivery: refused together with others and not sent alone; purge it again")

// QueueOptions say how a queue works. A zero field takes its default; a number below 0 is a [*ValidationError] of every
// Purge.
type QueueOptions struct {
	Action       PurgeAction // of all its purges; default ActionPurge
	Wait         bool        // Purge returns when the transaction has ended, not when the service has accepted the purge
	MaxURIs      int         // URIs in one request, and in one call; default 10,000
	MaxBodyBytes int         // bytes in one request, and in one call; default 4 MiB. A single URI may be longer
	MaxPending   int         // URIs that wait to be sent; further callers wait for room; default 1,000,000
	// OnStats is called after each request, also after one whose login or permit failed, in a goroutine of its own, one call at a time and with ever newer statistics.
	// Of requests that end while it runs it learns together, with the newest. It holds up nothing but Close, which waits
	// for it until its context ends. If nil, nothing is reported.
	OnStats func(QueueStats)
}

// QueueStats is the state of a queue, as [QueueOptions] OnStats is told of it.
type QueueStats struct {
	Pending   int           // URIs that wait to be put into a request; not those of one that is under way or being split
	Accepted  int           // URIs that were sent and accepted so far; identical ones of one request count once
	Requests  int           // requests so far
	OldestAge time.Duration // how long the oldest of the pending has waited; 0 when there is none
	// Failures counts the requests in a row that failed: after their retries the service did not answer them, or their login
	// or permit failed. A purge that the service accepts or refuses with ErrBadRequest sets it back to 0.
	Failures int
	Err      error // of the last of these; nil if Failures is 0
}

// QueueError is a purge of a queue that failed, with the URIs of the caller that are concerned: those that the service
// refused, that may not have reached it, or whose transaction ended badly or has not ended. The caller's others were
// purged. [OutcomeOf] tells what became of the call: [OutcomeUnknown] also when some of its URIs were purged and others
// not, and with Wait when a transaction has not ended.
//
// A request in which the service refuses URIs is split until they stand alone: k of n take about k*log2(n/k) + 2k more
// requests. A request of n URIs is split into 1 + 16*log2(n) requests at most (log2 rounded up), which is enough for 20
// refused ones of 200. What is left then matches [ErrRefusedTogether].
type QueueError struct {
	URIs []PurgeURI // those that failed, identical ones once; a copy
	Err  error      // what went wrong, all of it joined where URIs failed in several ways; Unwrap gives it

	outcome Outcome
}

// Error names the first five URIs, and what went wrong.
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
	return prefix + "purge of " + strings.Join(patterns, ", ") + more + ": " + redact.Within(prefix, fmt.Sprint(e.Err))
}

// Unwrap gives what went wrong.
func (e *QueueError) Unwrap() error { return e.Err }

// LogValue gives the number of URIs, the outcome and what went wrong.
func (e *QueueError) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("uris", len(e.URIs)), slog.String("outcome", e.outcome.String()), slog.Any("error", e.Err))
}

func (e *QueueError) outcomeOfWrite() Outcome { return e.outcome }

// PurgeQueue gathers the purges of any number of goroutines into few requests. [PurgeService.NewQueue] creates it; Close
// it. The methods of the zero value and of a nil pointer return a [*ValidationError]. It is safe for concurrent use, and
// has no goroutine while it has nothing to do. (Service document, section 8: 2 requests a second, any number of URIs in
// one.)
//
// A request carries what waits when its permit comes, so the number of waiting URIs decides the throughput. 20,000 URIs
// from 200 goroutines take 52 s with one URI per call and 1.2 s with 100 URIs per call (docs/performance.md in the
// repository). Pass all URIs that you have to one Purge, or call it from more goroutines.
type PurgeQueue struct {
	service *PurgeService
	options QueueOptions
	invalid error               // what is wrong with the options
	polls   *semaphore.Weighted // of transactions, under way
	batch   *batch.Queue[PurgeURI, *PurgeReceipt]
}

const (
	// purgesUnderWay bounds the requests whose response has not come yet, and separately the polls of transactions.
	purgesUnderWay = 4
	// purgeFrame is what a request has beside its URIs, in bytes, with some to spare.
	purgeFrame = 100
)

// NewQueue creates a queue. Nothing is sent before its first Purge, which returns a [*ValidationError] for invalid
// options.
func (s *PurgeService) NewQueue(options QueueOptions) *PurgeQueue {
	q := &PurgeQueue{service: s, options: options, polls: semaphore.NewWeighted(purgesUnderWay)}
	o := &q.options
	if q.invalid = o.validate(); q.invalid != nil {
		*o = QueueOptions{} // the queue refuses every Purge
	}
	o.Action = cmp.Or(o.Action, ActionPurge)
	o.MaxURIs = cmp.Or(o.MaxURIs, 10_000)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 4<<20)
	o.MaxPending = cmp.Or(o.MaxPending, 1_000_000)
	q.batch = batch.New(q.work(), batch.Options{
		MaxItems: o.MaxURIs, MaxBytes: o.MaxBodyBytes - purgeFrame, MaxPending: o.MaxPending, UnderWay: purgesUnderWay,
	})
	return q
}

func (o *QueueOptions) validate() error {
	var bad problems
	bad.addBelow0("QueueOptions.MaxURIs", int64(o.MaxURIs))
	bad.addBelow0("QueueOptions.MaxBodyBytes", int64(o.MaxBodyBytes))
	bad.addBelow0("QueueOptions.MaxPending", int64(o.MaxPending))
	return bad.err()
}

// work says what a purge is.
func (q *PurgeQueue) work() batch.Work[PurgeURI, *PurgeReceipt] {
	work := batch.Work[PurgeURI, *PurgeReceipt]{
		Size:        func(uri PurgeURI) int { return uri.wire().Size() + len(",") },
		Acquire:     q.acquire,
		Send:        q.send,
		Refused:     func(err error) bool { return errors.Is(err, ErrBadRequest) },
		Transaction: func(receipt *PurgeReceipt) int64 { return receipt.TransactionID },
		Judge:       func(err error) *batch.Failure { return judge(err).ofBatch() },
		Catch: func(f func() error, done func(*batch.Failure)) {
			q.service.funnel.caught(f, func(failed *failure) { done(failed.ofBatch()) })
		},
		Left:     q.whyLeft,
		Closed:   ErrQueueClosed,
		ClosedBy: func(err error) error { return &closedError{err} },
		Together: ErrRefusedTogether,
	}
	if q.options.Wait {
		work.Wait = q.wait
	}
	if report := q.options.OnStats; report != nil {
		work.Report = func(now batch.Stats) {
			report(QueueStats{now.Pending, now.Accepted, now.Requests, now.Oldest, now.Failures, now.Err})
		}
	}
	return work
}

// Purge hands URIs, at least one, to the queue and waits for the request that carries them (service-interface section
// 4.4). All of one call go in one request, together with those of others; identical ones are sent once. It returns the
// receipt of that request when the service has accepted it, or with Wait when its transaction has ended; one that ended
// badly is a [*TransactionError] in the QueueError. Where a request had to be split, the receipt is that of the last of
// them, and Wait waits for all.
//
// What the service document calls invalid, and more URIs than fit into one request, are a [*ValidationError]. All other
// errors are a [*QueueError] that names the URIs: those that the service refuses ([ErrBadRequest]) do not touch others,
// as long as they are few. Where too many of one request are refused, others fail with [ErrRefusedTogether] and the
// outcome [OutcomeNotApplied]. A caller whose context ends takes his URIs out when they have not been sent; then the
// outcome is [OutcomeNotApplied]. A request that all its callers have left ends, as a Submit does when its context
// ends. Purge does not return before the end of the context, even if the next permit comes later. When the service has
// accepted some of the call's URIs, the receipt is returned with the error. After Close it is [ErrQueueClosed].
//
// If a transport, limiter or log handler of yours panics or ends its goroutine, Purge returns an error that says so.
func (q *PurgeQueue) Purge(ctx context.Context, uris ...PurgeURI) (*PurgeReceipt, error) {
	if err := q.usable(ctx); err != nil {
		return nil, err
	}
	if err := cmp.Or(q.invalid, (PurgeRequest{q.options.Action, uris}).validate()); err != nil {
		return nil, err
	}
	receipt, err := q.batch.Put(ctx, uris)
	return receipt, q.errorOf(err)
}

// usable refuses a queue that NewQueue has not created, and no context.
func (q *PurgeQueue) usable(ctx context.Context) error {
	if q == nil || q.batch == nil {
		return invalid("PurgeQueue", "this is a zero value or nil; create a queue with PurgeService.NewQueue")
	}
	return q.service.via().usable(ctx)
}

// errorOf is an error of the batch as its caller sees it.
func (q *PurgeQueue) errorOf(err error) error {
	var large *batch.TooLargeError
	var failed *batch.Error[PurgeURI]
	switch {
	case errors.As(err, &failed):
		return &QueueError{URIs: failed.Items, Err: failed.Err, outcome: outcomesOfBatch[failed.Outcome]}
	case !errors.As(err, &large):
		return err
	case large.Bytes == 0:
		return invalid("uris", "%d are more than the %d of one request; hand them over in parts", large.Items, large.Most)
	default:
		return invalid("uris", "they take %d bytes, more than the %d of one request; hand them over in parts", large.Bytes, q.options.MaxBodyBytes)
	}
}

// whyLeft is why a caller does not wait any longer.
func (q *PurgeQueue) whyLeft(ctx context.Context) error {
	reason := pace.Ended(ctx)
	if q.service.funnel.gate.Refusing() {
		reason = fmt.Errorf("%w while the service refused purges as too fast", reason)
	}
	return reason
}

// queuePermit is a permit that the queue holds.
type queuePermit struct{ *transport.Permit }

// Return ends a permit that nobody needs any more.
func (p queuePermit) Return(ctx context.Context) { p.End(ctx, time.Time{}) }

// acquire waits for a permit. The session comes before it, as in every purge.
func (q *PurgeQueue) acquire(ctx context.Context) (batch.Permit, error) {
	if err := q.service.funnel.transport.LogIn(ctx, describe(http.MethodPost, purgePath, "").Request); err != nil {
		return nil, asError(err)
	}
	p, err := q.service.funnel.gate.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return queuePermit{p}, nil
}

// send sends one request.
func (q *PurgeQueue) send(ctx context.Context, held batch.Permit, uris []PurgeURI) (*PurgeReceipt, error) {
	p, _ := held.(queuePermit)
	cl := describe(http.MethodPost, purgePath, "")
	cl.Encoder, cl.Permit = PurgeRequest{q.options.Action, uris}.body(), p.Permit
	r, err := q.service.funnel.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	return r.receipt()
}

// wait polls a transaction until it has ended. Of all transactions a few are polled at once.
func (q *PurgeQueue) wait(ctx context.Context, transaction int64) error {
	_, err := q.service.wait(ctx, transaction, true, func(ctx context.Context, cl call) (*Transaction, error) {
		if err := q.polls.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer q.polls.Release(1)
		return q.service.funnel.fetchTransaction(ctx, cl)
	}, nil)
	return err
}

// Close refuses new purges and sends the rest. When ctx ends before all of it is sent (with Wait: before its
// transactions have ended), every caller whose URIs were not sent gets [ErrQueueClosed] with the outcome
// [OutcomeNotApplied], what is under way is given up, and the context's error is returned. When Close returns, nothing
// of the queue runs, unless a transport, limiter, log handler or OnStats of yours ignores the end of its context: 100
// ms later Close returns, and so does every Purge. Give it a context of its own: that of a job may have ended when the
// job closes its queue.
//
// Close may be called again, and by several goroutines. If one of them gives up on URIs, all others return an error
// that matches ErrQueueClosed and says how many.
//
// If OnStats has panicked or ended its goroutine, or has not returned when ctx ends, Close returns an error that says
// so, although everything was sent.
func (q *PurgeQueue) Close(ctx context.Context) error {
	if err := q.usable(ctx); err != nil {
		return err
	}
	switch end := q.batch.Close(ctx); {
	case end.GaveUp && end.Reporting:
		return fmt.Errorf("webdelivery: everything was sent, and OnStats has not returned: %w", pace.Ended(ctx))
	case end.GaveUp:
		return pace.Ended(ctx)
	case end.Dropped > 0:
		return fmt.Errorf("%w: a Close gave up on %d URIs", ErrQueueClosed, end.Dropped)
	case end.Report != nil:
		return &changeError{fmt.Errorf("OnStats: %w", end.Report), OutcomeUnknown}
	default:
		return nil
	}
}

// The outcomes of both packages.
var (
	outcomesOfBatch = [...]Outcome{batch.Unknown: OutcomeUnknown, batch.NotApplied: OutcomeNotApplied, batch.Applied: OutcomeApplied}
	batchOutcomes   = [...]batch.Outcome{OutcomeUnknown: batch.Unknown, OutcomeNotApplied: batch.NotApplied, OutcomeApplied: batch.Applied}
)

// ofBatch is the same for the batch; nil of nil.
func (f *failure) ofBatch() *batch.Failure {
	if f == nil {
		return nil
	}
	return &batch.Failure{Err: f.err, Text: f.text, Outcome: batchOutcomes[f.outcome]}
}

// closedError is a request, or the wait for a transaction, that Close has ended. What it stands for matches
// context.Canceled, as the queue's own context ended; the caller's did not.
type closedError struct{ err error }

func (e *closedError) Error() string {
	return ErrQueueClosed.Error() + ": " + redact.Within(prefix, e.err.Error())
}
func (e *closedError) As(target any) bool      { return errors.As(e.err, target) }
func (e *closedError) outcomeOfWrite() Outcome { return OutcomeOf(e.err) }
func (e *closedError) Is(target error) bool {
	return target == ErrQueueClosed || target != context.Canceled && errors.Is(e.err, target)
}
