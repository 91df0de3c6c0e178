package webdelivery

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dchest/siphash"

	"github.com/webdelivery/webdelivery-go/internal/resume"
	"github.com/webdelivery/webdelivery-go/internal/rowjson"
	"github.com/webdelivery/webdelivery-go/internal/transport"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Export reads every raw event exactly once, even if responses break, events are recorded late (within Lookback), or
// the process ends and another one continues from a [Cursor]. Create it with [StatsService.NewExport]. Only one
// goroutine at a time may use it, in one loop at a time. (Section 4.3.)
type Export struct {
	family  *StatsFamily[EventsQuery]
	params  statsParams
	options ExportOptions
	query   exportQuery // of a cursor
	from    Cursor
	err     error // of the arguments
	late    atomic.Int64
	few     int64 // of each [resume.Run]

	warnings []string // logged by the first range
	position *resume.Position
	key      []byte     // of the checksums
	at       time.Time  // of the last new row
	content  []byte     // of it
	sum      resume.Sum // of it
	columns  []string   // of the first response
}

// ExportOptions says how an [Export] reads events that the service records late. The zero value is valid.
type ExportOptions struct {
	// Lookback is how late an event may be recorded and still be yielded, out of order, when it appears; later
	// ones are only counted, see [LateError]. Memory needs 8 bytes, and a stored cursor 11, for each event of that
	// time; above 5,500,000 events, the time is shorter, which is logged. Default 0, which means 1 to 2 s; at most
	// three days.
	Lookback time.Duration
	// Delay ends each range over All this long before now, if the query has no End. Default 5 minutes.
	Delay time.Duration
	// AcceptGap lets the export go on after an [ErrExportGap], which it logs, and after any further one as long as it is set.
	AcceptGap bool
	// MaxOutage is how long nothing may be readable before Follow ends. 0 means 10 minutes.
	MaxOutage time.Duration
}

// LateError means that the service recorded events more than [ExportOptions.Lookback] after their time. All does not
// yield them, and reports each once. Events that the service deletes can hide as many others.
type LateError struct {
	Late int64 // number of these events

	span string // in which they happened
}

// Error says how many, when, and what to do.
func (e *LateError) Error() string {
	return prefix + counted(e.Late, "event", "events") + e.span + " recorded too late to be exported; a longer Lookback finds such events"
}

func (e *LateError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

// ErrExportGap means that an export was not continued in time: the service no longer has the events of a time range,
// which the error names. Set [ExportOptions.AcceptGap] to go on without them.
var ErrExportGap = errors.New("webdelivery: the service no longer has the next events of an export")

// gap returns an error if the service has dropped events after a second. If somebody accepts that, it logs them instead.
func (e *Export) gap(ctx context.Context, reached int64) error {
	kept := EventsRetention(time.Now())
	if reached >= kept.Unix() {
		return nil
	}
	err := fmt.Errorf("%w: those from %s to %s are gone (EventsRetention)",
		ErrExportGap, time.Unix(reached, 0).UTC().Format(time.RFC3339), kept.Format(time.RFC3339))
	if e.options.AcceptGap {
		e.family.warn(ctx, strings.TrimPrefix(err.Error(), prefix))
		return nil
	}
	return &outcomeError{fmt.Errorf("%w; set AcceptGap to go on without them", err), OutcomeNotApplied}
}

// NewExport creates an export of raw events. It sends nothing. The zero [Cursor] starts at the query's Start; another
// one continues where it was stored. A cursor belongs to a customer, the path of the base URL, and the dimensions and
// filter of the query. Each range over [Export.All] reads up to the query's End, or without one up to
// [ExportOptions.Delay] before now. The Limit of the query does not count, and SortBy must be empty.
func (s *StatsService) NewExport(query EventsQuery, from Cursor, options ExportOptions) *Export {
	e := &Export{family: s.Events, params: query.params(), options: options, from: from, few: 10_000, position: &resume.Position{}}
	e.options.Delay = cmp.Or(options.Delay, 5*time.Minute)
	e.params.Limit = 0
	e.err = e.prepare()
	return e
}

// prepare checks the arguments, and continues at the cursor.
func (e *Export) prepare() error {
	p := &e.params
	switch {
	case len(p.SortBy) > 0:
		return invalid("sortby", "an export sorts by %s; leave SortBy empty", DimEventTimestamp)
	case e.options.Lookback < 0 || e.options.Lookback > 3*24*time.Hour:
		return invalid("ExportOptions.Lookback", "%v is not between 0 and three days", e.options.Lookback)
	case e.options.Delay < 0:
		return invalid("ExportOptions.Delay", "%v is below 0", e.options.Delay)
	case e.options.MaxOutage < 0:
		return invalid("ExportOptions.MaxOutage", "%v is below 0", e.options.MaxOutage)
	}
	p.SortBy = []string{DimEventTimestamp}
	start, endless := p.Start, p.End.IsZero()
	if state := e.from.state; state != nil {
		e.columns, e.position, e.key = state.Columns, state.Position.Clone(), state.Key
		p.Start = e.position.Start
	}
	checked := *p
	if endless {
		checked.End = p.Start.Add(time.Second)
	}
	if _, err := e.family.parameters(&checked); err != nil {
		return err
	}
	p.Start, p.Dimensions = checked.Start, checked.Dimensions
	e.query = p.exportQuery(e.family.conn)
	if e.from.state == nil {
		e.warnings = e.family.rules.warnings(&checked, time.Now())
		e.position.Start, e.key = p.Start, make([]byte, 16)
		if kept := EventsRetention(time.Now()); p.Start.Before(kept) {
			e.position.Asked = kept // the warning says so, and it is no gap of a later run
		}
		_, _ = rand.Read(e.key) // it never fails
	} else if differs := e.query.differs(e.from.state.Query); differs != "" {
		return invalid("cursor", "belongs to another export: %s differs", differs)
	} else if !start.IsZero() && start.UTC().Truncate(time.Second).Before(p.Start) {
		e.warnings = []string{"the cursor continues an export since " + p.Start.Format(timeLayout) + "; the earlier Start of the query has no effect"}
	}
	if !endless && e.position.Latest.After(p.End.Add(time.Second)) { // a service may include the second of the end
		return invalid("cursor", "is at %s, after the end of the time range", e.position.Latest.Format(time.RFC3339Nano))
	}
	return nil
}

// Cursor returns the position after the last event that [Export.All] has yielded. In the loop body, that is the current
// event, so store the results of an event before you store the cursor.
//
// An event that [Scan] cannot read ([ScanError]) counts as yielded, so store it elsewhere before the cursor. Store the
// cursor before the first event, too: it keeps the query's Start, which moves with each restart otherwise. Cursor takes
// longer with a longer Lookback, so call it every few thousand events rather than for each.
func (e *Export) Cursor() Cursor {
	if e.err != nil {
		return e.from
	}
	return Cursor{&cursorState{Query: e.query, Key: e.key, Columns: slices.Clone(e.columns), Position: e.position.Clone()}}
}

// Late returns how many events this export has reported as recorded too late, see [LateError]. Unlike the other methods,
// it may be called from any goroutine at any time.
func (e *Export) Late() int64 { return e.late.Load() }

// Key returns a text that identifies the current event, so that a receiver can drop what it gets twice. It is the same
// in every process and with every cursor, but depends on the dimensions and their order. Events with the same customer,
// time and values are numbered.
func (e *Export) Key() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d\n", e.query.Customer, max(1, e.position.Copies(e.at, e.sum)))
	h.Write(e.content)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// All returns the events after the cursor in order of their times, and before them those recorded since the last range
// over All, up to [ExportOptions.Lookback] late. A row is valid until the next step.
//
// If a response breaks or the service is down, All sends another request. It ends with an error if no new event has
// arrived for 5 minutes, if 4 responses in a row are unusable, if the service rejects the request, or if the first one
// fails despite its retries.
//
// At the end, announced events that were not sent are an [*IncompleteError], and later ranges within Lookback read
// them; those recorded too late are a [*LateError]. A cursor from before the retention is an [ErrExportGap], and events
// that are not sorted or outside the time range are [ErrBadResponse].
func (e *Export) All(ctx context.Context) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := e.read(ctx, yield); err != nil && !errors.Is(err, resume.ErrStopped) {
			yield(Row{}, err)
		}
	}
}

// read is a range over All.
func (e *Export) read(ctx context.Context, yield func(Row, error) bool) error {
	if e.err != nil {
		return e.err
	}
	e.family.warn(ctx, e.warnings...)
	e.warnings = nil
	end := time.Now().Add(-e.options.Delay).Unix()
	if !e.params.End.IsZero() {
		end = min(e.params.End.Unix(), time.Now().Unix())
	}
	start := e.params.Start.Unix()
	reached := max(start, e.position.Latest.Unix(), e.position.Asked.Unix())
	if reached < end {
		if err := e.gap(ctx, reached); err != nil {
			return err
		}
	}
	if end <= start || end < e.position.Latest.Unix() {
		return nil
	}
	run := resume.Run{
		Source: &exportRun{Export: e, ctx: ctx, yield: yield}, Position: e.position, End: end, Lookback: e.options.Lookback, Few: e.few,
	}
	missing, err := run.All()
	if err != nil {
		return err
	}
	if e.position.Shortened {
		e.family.warn(ctx, "there are too many events for a cursor; late ones are found for a shorter time than Lookback")
	}
	return e.missing(ctx, missing, reached)
}

// missing returns what is missing after a range, before which everything up to a second was read, as an error.
func (e *Export) missing(ctx context.Context, missing resume.Missing, reached int64) error {
	var errs []error
	switch {
	case missing.Announced == 0:
	case reached < EventsRetention(time.Now()).Unix(): // the service has dropped them meanwhile
		errs = append(errs, e.gap(ctx, reached))
	default:
		errs = append(errs, &IncompleteError{Got: e.position.Handed, Total: e.position.Handed + missing.Announced})
	}
	if missing.Late > 0 {
		e.late.Add(missing.Late)
		errs = append(errs, &LateError{missing.Late, fmt.Sprintf(" between %s and %s",
			time.Unix(missing.From, 0).UTC().Format(time.RFC3339), time.Unix(missing.To, 0).UTC().Format(time.RFC3339))})
	}
	return join(errs...)
}

// Follow yields the events as they come, in rounds: each is a range over [Export.All], and as a rule the next one begins
// this long (every) after it has ended. After a round, send what is left and store the cursor.
//
// Follow ends with the context, which is no error, or when the last round has yielded one: when nothing could be read
// for [ExportOptions.MaxOutage], or at an error that a repetition does not cure. It logs other errors ([WithLogger]),
// and so [LateError], which [Export.Late] counts; what an [IncompleteError] has announced may be read by a later round.
func (e *Export) Follow(ctx context.Context, every time.Duration) iter.Seq[iter.Seq2[Row, error]] {
	return func(yield func(iter.Seq2[Row, error]) bool) {
		if every <= 0 {
			yield(failing[Row](invalid("every", "%v is not above 0", every)))
			return
		}
		p := polling{waiter: waiterFor(e.options.MaxOutage), good: time.Now()}
		var failure, final error
		for ctx.Err() == nil {
			before, began, reading := failure, time.Now(), time.Duration(0)
			failure = nil
			goOn := yield(func(yield func(Row, error) bool) {
				from := time.Now()
				failure, final = e.round(ctx, &p, yield)
				reading += time.Since(from)
			})
			if !goOn || final != nil {
				return
			}
			p.good = p.good.Add(time.Since(began) - reading) // nothing could be read in the loop body
			if before == nil {
				p.good = time.Now() // an outage begins after the first round that fails
			}
			if err := p.pause(ctx, every, failure); err != nil && ctx.Err() == nil {
				yield(failing[Row](&waitError{"webdelivery: following events: " + within(err.Error()) + ": " + within(failure.Error()), []error{err, failure}}))
				return
			}
		}
	}
}

// round ranges over All once. It returns the failure that the next round may not meet, or the error that has ended it.
func (e *Export) round(ctx context.Context, p *polling, yield func(Row, error) bool) (failure, final error) {
	for row, err := range e.All(ctx) {
		switch {
		case err == nil:
			goOn := yield(row, nil)
			if p.good = time.Now(); !goOn {
				return nil, nil
			}
		case ctx.Err() != nil:
			return nil, nil
		case errors.Is(err, ErrExportGap), judgeExport(err) == resume.Final:
			yield(Row{}, err)
			return nil, err
		default:
			e.family.warn(ctx, err.Error())
			if !errors.As(err, new(*LateError)) && !errors.As(err, new(*IncompleteError)) {
				return err, nil
			}
		}
	}
	return nil, nil
}

// exportRun is what [resume.Run] reads in one range over an export.
type exportRun struct {
	*Export

	ctx     context.Context // context of the range
	yield   func(Row, error) bool
	final   bool      // another response would be no better
	column  int       // of the times
	ignored []bool    // columns that the query has not asked for; nil if there are none
	date    wire.Date // of the last row
}

func (r *exportRun) Total(from, to int64) (total int64, first time.Time, err error) {
	parameters, err := r.parameters(from, to, 1)
	if err != nil {
		return 0, first, err
	}
	var kept rowjson.Store
	one, err := r.family.whole(r.ctx, parameters, &kept)
	if err != nil {
		return 0, first, err
	}
	if one.Count() > one.Total() {
		return 0, first, fmt.Errorf("%w: total_results is %d, and the response has %d rows", ErrBadResponse, one.Total(), one.Count())
	}
	for row := range kept.All() {
		if at, ok := row.Get(DimEventTimestamp); ok {
			first, _ = at.Time() // Read reports a wrong time
		}
		break
	}
	return one.Total(), first, nil
}

func (r *exportRun) Read(from, to, limit int64, replay *resume.Replay) (total int64, err error) {
	parameters, err := r.parameters(from, to, limit)
	if err != nil {
		return 0, err
	}
	first, stopped, unusable := true, false, error(nil)
	err = r.family.stream(r.ctx, parameters, limit, streaming{all: true}, func(row Row, _ error) bool {
		if first {
			first, unusable = false, r.checkColumns(row)
		}
		isNew := false
		if unusable == nil {
			isNew, unusable = r.take(replay, row, to)
		}
		stopped = isNew && !r.yield(row, nil)
		return unusable == nil && !stopped
	})
	incomplete, short := errors.AsType[*IncompleteError](err)
	switch {
	case stopped:
		return 0, resume.ErrStopped
	case unusable != nil:
		r.final = true
		return 0, &outcomeError{fmt.Errorf("%w: %w", ErrBadResponse, unusable), OutcomeNotApplied}
	case short:
		got := r.position.Handed
		return incomplete.Total, &IncompleteError{Got: got, Total: got + max(0, incomplete.Total-incomplete.Got)}
	case err == nil && replay.Lacking > 0 && from >= r.KeptFrom():
		return 0, &outcomeError{fmt.Errorf("%w: the response lacks %d events that an earlier one had", ErrBadResponse, replay.Lacking), OutcomeNotApplied}
	default:
		return 0, err
	}
}

// Limit adds room for rows that arrive in the meantime, as All does.
func (r *exportRun) Limit(total int64) int64 { return r.family.rules.withHeadroom(total) }

func (r *exportRun) Sleep(d time.Duration) error { return sleep(r.ctx, d) }

// KeptFrom adds an hour, because the clocks of the service and of this machine may differ.
func (r *exportRun) KeptFrom() int64 { return EventsRetention(time.Now().Add(time.Hour)).Unix() }

func (r *exportRun) Judge(err error) resume.Fault {
	if r.ctx.Err() != nil || r.final {
		return resume.Final
	}
	return judgeExport(err)
}

func judgeExport(err error) resume.Fault {
	e, isError := errors.AsType[*Error](err)
	switch {
	case errors.Is(err, ErrInvalid):
		return resume.Final
	case errors.As(err, new(*IncompleteError)):
		return resume.Incomplete
	case !isError, errors.Is(err, ErrBadResponse), errors.Is(err, ErrResponseTooLarge):
		return resume.Unusable
	case e.redirected(), transport.Final(e.status()):
		return resume.Final
	default:
		return resume.Outage
	}
}

func (r *exportRun) parameters(from, to, limit int64) (string, error) {
	p := r.params
	p.Start, p.End, p.Limit = time.Unix(from, 0), time.Unix(to, 0), limit
	return r.family.parameters(&p)
}

// checkColumns refuses a response whose columns differ from those of the yielded rows. A column that the query has not
// asked for does not count, so that a service may add some.
func (r *exportRun) checkColumns(row Row) error {
	all := row.Columns()
	columns, ignored := all[:0:0], make([]bool, len(all))
	for i, column := range all {
		if column == DimEventTimestamp || slices.Contains(r.params.Dimensions, column) {
			columns = append(columns, column)
		} else {
			ignored[i] = true
		}
	}
	r.ignored = nil
	if len(columns) < len(all) {
		r.ignored = ignored
	}
	if r.columns != nil && !slices.Equal(columns, r.columns) {
		return fmt.Errorf("the columns are %q, but were %q before", columns, r.columns)
	}
	if r.column = slices.Index(all, DimEventTimestamp); r.column < 0 {
		return errors.New("the rows have no column " + DimEventTimestamp)
	}
	r.columns = columns
	return nil
}

// take reports whether a row is new. A new row counts as yielded. The checksum of a row covers its time, but not how
// the time is spelled. It is keyed, because whoever sends the requests of the events could otherwise hide some of them.
func (r *exportRun) take(replay *resume.Replay, row Row, to int64) (isNew bool, err error) {
	content, value := row.row.Content(append(r.content[:0], make([]byte, 8)...), r.column, r.ignored)
	r.content = content
	at, err := value.TimeAfter(&r.date)
	switch {
	case err != nil:
		return false, fmt.Errorf("%s: %w", DimEventTimestamp, err)
	case at.Before(r.params.Start), at.Unix() > to: // the second of the end may belong to the time range, see open point 33
		return false, fmt.Errorf("an event of %s is outside the time range", at.Format(time.RFC3339Nano))
	}
	binary.BigEndian.PutUint64(content, uint64(at.UnixNano()))
	r.at, r.sum = at, resume.Sum(siphash.Hash(binary.LittleEndian.Uint64(r.key), binary.LittleEndian.Uint64(r.key[8:]), content))
	return replay.Take(at, r.sum)
}
