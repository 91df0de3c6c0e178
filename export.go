package webdelivery

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/resume"
	"github.com/webdelivery/webdelivery-go/internal/statsquery"
	"github.com/webdelivery/webdelivery-go/internal/waiting"
)

// Export reads every raw event of a span, each exactly once, also if responses break (service-interface section 4.3). It
// asks for the events in ascending order of event_timestamp_ms. After a break it asks again from one second before the
// last event, and skips what it has handed out. [StatsService.NewExport] creates one. One goroutine at a time may range
// over [Export.Rows]; Cursor may be called by others meanwhile.
type Export struct {
	family *StatsFamily[EventsQuery]
	params statsquery.Query
	query  string // by which a cursor knows it again
	from   Cursor
	err    error // of the arguments
	busy   atomic.Bool
	warned sync.Once

	warnings []string

	mu       sync.Mutex
	position *resume.Position
	columns  []string // of the first response
}

// Cursor is how far an [Export] has come: the number of events, the time of the last one, and sums of the events of its
// last two seconds. Stored as JSON, it lets another process go on. Its JSON has about 22 bytes for each of these events,
// and no content of them. The zero value is the beginning of the span.
type Cursor struct{ state *cursorState }

// cursorState is the JSON of a cursor. It does not change.
type cursorState struct {
	Version  int              `json:"version"`
	Query    string           `json:"query"`
	Columns  []string         `json:"columns"`
	Position *resume.Position `json:"position"`
	Check    string           `json:"check"` // sum of the rest, as a cursor that was damaged would repeat events
}

// sum returns what Check must be.
func (s cursorState) sum() string {
	s.Check = ""
	text, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

const cursorVersion = 1

// Rows returns the number of events that have been handed out up to the cursor.
func (c Cursor) Rows() int64 {
	if c.state == nil {
		return 0
	}
	return c.state.Position.Rows()
}

// Time returns the latest time of an event up to the cursor; zero at the beginning.
func (c Cursor) Time() time.Time {
	if c.state == nil {
		return time.Time{}
	}
	return c.state.Position.Last()
}

// MarshalJSON stores the cursor; the zero value is null.
func (c Cursor) MarshalJSON() ([]byte, error) { return json.Marshal(c.state) }

// UnmarshalJSON reads a stored cursor. It returns a [*ValidationError] for what is no cursor, and for one of another
// version.
func (c *Cursor) UnmarshalJSON(b []byte) error {
	var state *cursorState
	err := json.Unmarshal(b, &state)
	switch {
	case err != nil:
		return invalid("cursor", "is not the JSON of a cursor")
	case state == nil:
	case state.Version != cursorVersion:
		return invalid("cursor", "has version %d, and this SDK reads version %d; begin without a cursor", state.Version, cursorVersion)
	case state.Position == nil || state.Query == "" || state.Check != state.sum():
		return invalid("cursor", "is damaged, or is not the JSON of a cursor")
	}
	c.state = state
	return nil
}

// NewExport creates an export of the raw events of a span, from a cursor on. It sends nothing. Pass the zero [Cursor] to
// begin at the start of the span. A cursor belongs to its query, but the end of the span may be another one. The Limit of
// the query is ignored, and SortBy must be empty. If an argument is invalid, [Export.Rows] yields a [*ValidationError].
func (s *StatsService) NewExport(query EventsQuery, from Cursor) *Export {
	s = cmp.Or(s, &StatsService{})
	e := &Export{family: s.Events, params: query.params().Clone(), from: from, position: &resume.Position{}}
	e.params.Limit = 0
	if len(e.params.SortBy) > 0 {
		e.err = invalid("sortby", "an export sorts by %s; leave SortBy empty", DimEventTimestamp)
		return e
	}
	e.params.SortBy = []statsquery.Sort{{Name: DimEventTimestamp}}
	if e.family == nil || e.family.funnel == nil {
		e.err = noClient()
		return e
	}
	if _, e.err = e.family.encode(&e.params); e.err != nil {
		return e
	}
	e.query = e.params.ID(s.funnel.service)
	rest := e.params
	if from.Time().After(rest.Start) {
		rest.Start = from.Time()
	}
	e.warnings = e.family.rules.Warnings(&rest, time.Now())
	if from.state == nil {
		return e
	}
	e.columns, e.position = from.state.Columns, from.state.Position.Clone()
	switch {
	case from.state.Query != e.query:
		e.err = invalid("cursor", "belongs to an export of another service or customer, with another start, other dimensions or another filter")
	case from.Rows() > 0 && from.Time().After(e.params.End):
		e.err = invalid("cursor", "is at %s, and the span ends before that", from.Time().Format(time.RFC3339Nano))
	}
	return e
}

// Cursor returns the position after the last event that [Export.Rows] has yielded. An event counts when it is yielded, so
// within the loop body the cursor is behind the event of that step: store what came of the event before you store the
// cursor. [Scan] may end with an error for an event that was yielded and that the loop body never sees: after an error of
// Scan, store the cursor that you took before. Cursor copies the sums of up to two seconds; call it after some thousand
// events rather than after each.
func (e *Export) Cursor() Cursor {
	if e == nil {
		return Cursor{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || e.columns == nil {
		return e.from
	}
	state := &cursorState{Version: cursorVersion, Query: e.query, Columns: slices.Clone(e.columns), Position: e.position.Clone()}
	state.Check = state.sum()
	return Cursor{state}
}

// Warnings says, in words for people, which part of the span the service no longer had when the export was created: raw
// events from before [EventsRetention]. What comes before the cursor does not count. It is nil if there is nothing to say.
// The first range over Rows logs them, see [WithLogger].
func (e *Export) Warnings() []string {
	if e == nil {
		return nil
	}
	return slices.Clone(e.warnings)
}

// usable refuses an export that NewExport has not created, one with invalid arguments, and no context.
func (e *Export) usable(ctx context.Context) error {
	if e == nil || e.err == nil && e.family == nil {
		return invalid("Export", "this is a zero value or nil; create an export with StatsService.NewExport")
	}
	return cmp.Or(e.err, e.family.usable(ctx))
}

// Rows yields the events behind the cursor, in ascending order of their times. Only an event that arrives late may come
// up to two seconds out of order. A row is valid until the next step. Memory does not grow with the number of events,
// only with that of two seconds.
//
// If a response breaks, Rows asks again, also if the service is down meanwhile. It yields the error and ends if no new
// event came for 5 minutes, if the service refuses the request with a status of 400 to 499, or if 4 responses in a row
// are unusable and bring no new event. A range whose requests fail before a row has arrived ends like any other call.
//
// At the end Rows compares the number of events with total_results, up to the second of the last event. If there are more
// in the span, they arrived late, with times that had been read already: Rows yields an [*IncompleteError], whose Total is
// the number of events that were read and of those that are missing. Each missing event is reported once. Events of days
// that are no longer kept do not count. If the service does not sort the events, gives events of another span, or no
// longer has events that it gave before, Rows yields [ErrBadReply].
//
// A later range goes on behind the last event, for example with the events that have arrived since. A second range at the
// same time yields a [*ValidationError].
func (e *Export) Rows(ctx context.Context) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := e.usable(ctx); err != nil {
			yield(Row{}, err)
			return
		}
		if !e.busy.CompareAndSwap(false, true) {
			yield(Row{}, invalid("Rows", "another loop ranges over this export"))
			return
		}
		defer e.busy.Store(false)
		e.warned.Do(func() { e.family.warn(ctx, e.warnings) })
		r := exportRun{Export: e, ctx: ctx, yield: yield}
		r.run = resume.Run{Source: &r, Position: e.position, Start: e.params.Start, End: e.params.End}
		err := r.run.All()
		if late, ok := errors.AsType[*resume.MissingError](err); ok {
			err = &IncompleteError{Got: e.position.Rows(), Total: e.position.Rows() + late.Missing}
		}
		if err != nil && !r.stopped {
			yield(Row{}, err)
		}
	}
}

// exportRun is one range over an export: what [resume.Run] reads.
type exportRun struct {
	*Export

	run     resume.Run
	ctx     context.Context //nolint:containedctx // that of the range
	yield   func(Row, error) bool
	stopped bool   // by the loop body
	content []byte // of the last row
}

// Total asks for one row, and returns how many match.
func (r *exportRun) Total(from, to time.Time) (int64, error) {
	parameters, err := r.parameters(from, to, 1)
	if err != nil {
		return 0, err
	}
	one, err := r.family.whole(r.ctx, parameters, nil)
	if err != nil {
		return 0, err
	}
	return one.Total(), nil
}

// Read reads one response and yields what is new of it.
func (r *exportRun) Read(from time.Time, limit int64, replay *resume.Replay) (total int64, err error) {
	parameters, err := r.parameters(from, r.params.End, limit)
	if err != nil {
		return 0, err
	}
	first, unusable := true, error(nil)
	err = r.family.stream(r.ctx, parameters, limit, streaming{all: true}, func(row Row, _ error) bool {
		if first {
			first, unusable = false, r.checkColumns(row)
			r.run.Arrived()
		}
		isNew := false
		if unusable == nil {
			isNew, unusable = r.take(replay, row)
		}
		r.stopped = isNew && !r.yield(row, nil)
		return unusable == nil && !r.stopped
	})
	incomplete, short := errors.AsType[*IncompleteError](err)
	switch {
	case unusable != nil:
		return 0, &exportError{fmt.Errorf("%w: %w", ErrBadReply, unusable), true}
	case short:
		got := r.position.Rows()
		return incomplete.Total, &IncompleteError{Got: got, Total: got + max(0, incomplete.Total-incomplete.Got)}
	case err == nil && !r.stopped && replay.Left() > 0 && !from.Before(r.KeptFrom()):
		return 0, &exportError{fmt.Errorf("%w: %d events that were read before are no longer there", ErrBadReply, replay.Left()), false}
	default:
		return 0, err
	}
}

// Stopped: the loop body wants no more rows.
func (r *exportRun) Stopped() bool { return r.stopped }

// Limit leaves room for rows that arrive in the meantime, as All does.
func (r *exportRun) Limit(total int64) int64 { return r.family.rules.WithHeadroom(total) }

// Sleep waits as long as the context of the range.
func (r *exportRun) Sleep(d time.Duration) error { return waiting.Sleep(r.ctx, d) }

// KeptFrom is an hour late, as the clocks of the service and of this machine may differ.
func (r *exportRun) KeptFrom() time.Time { return EventsRetention(time.Now().Add(time.Hour)) }

// Judge says what an error means for an export.
func (r *exportRun) Judge(err error) resume.Fault {
	own, isOwn := errors.AsType[*exportError](err)
	e, isError := errors.AsType[*Error](err)
	status := 0
	if isError {
		status = max(e.StatusCode, e.Code)
	}
	switch {
	case r.ctx.Err() != nil, errors.Is(err, ErrInvalid), isOwn && own.final:
		return resume.Final
	case !isError, errors.Is(err, ErrBadReply), errors.Is(err, ErrResponseTooLarge):
		return resume.Unusable
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return resume.Outage
	case status >= http.StatusMultipleChoices && status < http.StatusInternalServerError:
		return resume.Final
	default:
		return resume.Outage
	}
}

// parameters returns those of a request for rows from a time on, up to another one.
func (r *exportRun) parameters(from, to time.Time, limit int64) (string, error) {
	p := r.params
	p.Start, p.End, p.Limit = from, to, limit
	return r.family.parameters(r.ctx, &p)
}

// exportError is a response that an export cannot use.
type exportError struct {
	err   error
	final bool // also the next one would be of no use
}

func (e *exportError) Error() string           { return e.err.Error() }
func (e *exportError) Unwrap() error           { return e.err }
func (e *exportError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

// checkColumns refuses a response whose rows are not like those that have been handed out.
func (r *exportRun) checkColumns(row Row) error {
	columns := row.Columns()
	if r.columns != nil && !slices.Equal(columns, r.columns) {
		return fmt.Errorf("the columns are %q now, and were %q", columns, r.columns)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.columns = columns
	return nil
}

// take judges a row. If it is new, it counts as handed out. The sum of a row has its time, not how that is written.
func (r *exportRun) take(replay *resume.Replay, row Row) (isNew bool, err error) {
	column := slices.Index(r.columns, DimEventTimestamp)
	if column < 0 {
		return false, errors.New("the rows have no " + DimEventTimestamp)
	}
	at, err := row.At(column).Time()
	switch {
	case err != nil:
		return false, fmt.Errorf("%s: %w", DimEventTimestamp, err)
	case at.Before(r.params.Start), at.After(r.params.End): // an event at the end may belong to it, see open point 33
		return false, fmt.Errorf("an event of %s is not in the span", at.Format(time.RFC3339Nano))
	}
	r.content = binary.BigEndian.AppendUint64(r.content[:0], uint64(at.UnixNano()))
	r.content = row.row.AppendContent(r.content, column)
	sum := sha256.Sum256(r.content)
	r.mu.Lock()
	defer r.mu.Unlock()
	return replay.Take(at, resume.Sum(sum[:]))
}
