package webdelivery

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/resume"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Export reads every raw event of a time range exactly once, even if responses break. Create it with
// [StatsService.NewExport]. Only one goroutine at a time may range over [Export.All]; Cursor is safe for concurrent
// use.
//
// Export requests the events in ascending order of event_timestamp_ms. After a break, it resumes two seconds before the
// second of the last event and skips the events that it has already yielded, so it does not matter whether the service
// includes events at the very start or end of a time range. (Service document, [section 4.3].)
//
// [section 4.3]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#43-security-statistics-endpoints
type Export struct {
	family *StatsFamily[EventsQuery]
	params statsParams
	query  string // identifies the query of a cursor
	from   Cursor
	err    error // of the arguments
	busy   atomic.Bool
	warned sync.Once

	warnings []string

	position *resume.Position

	mu      sync.Mutex
	columns []string // of the first response
}

// Cursor is the position of an [Export]. Store it as JSON, so that another process can continue. The JSON has a
// checksum of about 22 bytes for each event of the last two seconds, and no content of any event. The zero value is the
// start of the time range.
type Cursor struct{ state *cursorState }

// cursorState is the JSON of a cursor. It never changes.
type cursorState struct {
	Version  int              `json:"version"`
	Query    string           `json:"query"`
	Columns  []string         `json:"columns"`
	Position *resume.Position `json:"position"`
	Check    string           `json:"check"` // checksum of the rest, because a damaged cursor would yield events twice
}

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

// Count returns the number of events up to the cursor.
func (c Cursor) Count() int64 {
	if c.state == nil {
		return 0
	}
	return c.state.Position.Rows()
}

// Time returns the latest time of an event up to the cursor, or the zero time at the start.
func (c Cursor) Time() time.Time {
	if c.state == nil {
		return time.Time{}
	}
	return c.state.Position.Last()
}

// MarshalJSON returns the cursor as JSON; the zero value is null.
func (c Cursor) MarshalJSON() ([]byte, error) { return json.Marshal(c.state) }

// UnmarshalJSON reads a stored cursor. If b is not a cursor, or is one of another version, it returns a
// [*ValidationError].
func (c *Cursor) UnmarshalJSON(b []byte) error {
	var state *cursorState
	err := json.Unmarshal(b, &state)
	switch {
	case err != nil:
		return invalid("cursor", "is not the JSON of a cursor")
	case state == nil:
	case state.Version != cursorVersion:
		return invalid("cursor", "has version %d, and this SDK reads version %d; start without a cursor", state.Version, cursorVersion)
	case state.Position == nil || state.Query == "" || state.Check != state.sum():
		return invalid("cursor", "is damaged, or is not the JSON of a cursor")
	}
	c.state = state
	return nil
}

// NewExport creates an export of the raw events of a time range. It sends nothing. Pass the zero [Cursor] to start at
// the beginning of the time range. A cursor belongs to its query, of which only the end of the time range may change.
// NewExport ignores the Limit of the query, and SortBy must be empty. If an argument is invalid, [Export.All] yields a
// [*ValidationError].
func (s *StatsService) NewExport(query EventsQuery, from Cursor) *Export {
	e := &Export{family: s.Events, params: query.params(), from: from, position: &resume.Position{}}
	e.params.unshare()
	e.params.Limit = 0
	if len(e.params.SortBy) > 0 {
		e.err = invalid("sortby", "an export sorts by %s; leave SortBy empty", DimEventTimestamp)
		return e
	}
	e.params.SortBy = sortKeys{{Name: DimEventTimestamp}}
	if _, e.err = e.family.parameters(&e.params); e.err != nil {
		return e
	}
	if e.query, e.err = e.params.id(s.conn.service); e.err != nil {
		return e
	}
	rest := e.params
	if from.Time().After(rest.Start) {
		rest.Start = from.Time()
	}
	e.warnings = e.family.rules.warnings(&rest, time.Now())
	if from.state == nil {
		return e
	}
	e.columns, e.position = from.state.Columns, from.state.Position.Clone()
	switch {
	case from.state.Query != e.query:
		e.err = invalid("cursor", "belongs to another export: its service, customer, start, dimensions or filter differ")
	case from.Count() > 0 && from.Time().After(e.params.End):
		e.err = invalid("cursor", "is at %s, after the end of the time range", from.Time().Format(time.RFC3339Nano))
	}
	return e
}

// Cursor returns the position after the last event that [Export.All] has yielded. In the loop body, that is the current
// event, so store the results of an event before you store the cursor.
//
// [Scan] may end with an error at an event that All has yielded but the loop body never sees: after such an error,
// store the cursor that you took before. Cursor copies the checksums of up to two seconds, so call it every few
// thousand events rather than for each.
func (e *Export) Cursor() Cursor {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || e.columns == nil {
		return e.from
	}
	state := &cursorState{Version: cursorVersion, Query: e.query, Columns: slices.Clone(e.columns), Position: e.position.Clone()}
	state.Check = state.sum()
	return Cursor{state}
}

// Warnings says, in plain words, which part of the time range is before [EventsRetention], so that the service no
// longer had its events when the export was created. Time before the cursor does not count. It returns nil if there is
// nothing to report. The first range over All also logs the warnings, see [WithLogger].
func (e *Export) Warnings() []string {
	return slices.Clone(e.warnings)
}

// All returns the events after the cursor in ascending order of their times; an event that arrived late may be out of
// order by up to two seconds. A row is valid until the next step. All keeps only the checksums of two seconds in
// memory.
//
// If a response breaks or the service is down, All sends another request. It yields an error and ends if no new event
// has arrived for 5 minutes, if 4 responses in a row are unusable, or if the service rejects the request with a status
// of 300 to 499 other than 408 and 429. Before the first row, a request that fails despite its retries ends All.
//
// At the end, All compares the number of events with total_results, up to the second of the last event. Missing events
// arrived late, with times that All had already passed. All then yields an [*IncompleteError], whose Total counts the
// yielded and the missing events. It reports each missing event once, even if another process continues from a stored
// cursor, and none of the days that the service drops within an hour. If the events are not sorted, are outside the
// time range, or are missing from a later response, All yields [ErrBadReply].
//
// To get events that have arrived since, range over All again: it continues after the last event. If another loop
// ranges over All at the same time, All yields a [*ValidationError].
func (e *Export) All(ctx context.Context) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if e.err != nil {
			yield(Row{}, e.err)
			return
		}
		if !e.busy.CompareAndSwap(false, true) {
			yield(Row{}, invalid("All", "another loop ranges over this export"))
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

// exportRun is one range over an export. [resume.Run] reads from it.
type exportRun struct {
	*Export

	run     resume.Run
	ctx     context.Context //nolint:containedctx // context of the range
	yield   func(Row, error) bool
	stopped bool   // by the loop body
	final   bool   // another response would be no better
	content []byte // of the last row
}

func (r *exportRun) Total(from, to time.Time) (total int64, first time.Time, err error) {
	parameters, err := r.parameters(from, to, 1)
	if err != nil {
		return 0, first, err
	}
	var kept keptResult
	one, err := r.family.whole(r.ctx, parameters, &kept)
	if err != nil {
		return 0, first, err
	}
	if one.Count() > one.Total() {
		return 0, first, fmt.Errorf("%w: total_results is %d, and the response has %d rows", ErrBadReply, one.Total(), one.Count())
	}
	for row := range kept.rows.All() {
		if at, ok := row.Get(DimEventTimestamp); ok {
			first, _ = at.Time() // Read reports a wrong time
		}
		break
	}
	return one.Total(), first, nil
}

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
		r.final = true
		return 0, &changeError{fmt.Errorf("%w: %w", ErrBadReply, unusable), OutcomeNotApplied}
	case short:
		got := r.position.Rows()
		return incomplete.Total, &IncompleteError{Got: got, Total: got + max(0, incomplete.Total-incomplete.Got)}
	case err == nil && !r.stopped && replay.Left(r.params.End) > 0 && !from.Before(r.KeptFrom()):
		return 0, &changeError{fmt.Errorf("%w: the response lacks %d events that an earlier one had", ErrBadReply, replay.Left(r.params.End)), OutcomeNotApplied}
	default:
		return 0, err
	}
}

// Limit adds room for rows that arrive in the meantime, as All does.
func (r *exportRun) Limit(total int64) int64 { return r.family.rules.withHeadroom(total) }

func (r *exportRun) Stopped() bool               { return r.stopped }
func (r *exportRun) Sleep(d time.Duration) error { return sleep(r.ctx, d) }

// KeptFrom adds an hour, because the clocks of the service and of this machine may differ.
func (r *exportRun) KeptFrom() time.Time { return EventsRetention(time.Now().Add(time.Hour)) }

func (r *exportRun) Judge(err error) resume.Fault {
	e, isError := errors.AsType[*Error](err)
	switch {
	case r.ctx.Err() != nil, errors.Is(err, ErrInvalid), r.final:
		return resume.Final
	case !isError, errors.Is(err, ErrBadReply), errors.Is(err, ErrResponseTooLarge):
		return resume.Unusable
	case e.redirected(), transport.Final(e.status()):
		return resume.Final
	default:
		return resume.Outage
	}
}

func (r *exportRun) parameters(from, to time.Time, limit int64) (string, error) {
	p := r.params
	p.Start, p.End, p.Limit = from, to, limit
	return r.family.parameters(&p)
}

// checkColumns refuses a response whose columns differ from those of the yielded rows.
func (r *exportRun) checkColumns(row Row) error {
	columns := row.Columns()
	if r.columns != nil && !slices.Equal(columns, r.columns) {
		return fmt.Errorf("the columns are %q, but were %q before", columns, r.columns)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.columns = columns
	return nil
}

// take reports whether a row is new. A new row counts as yielded. The checksum of a row covers its time, but not how
// the time is spelled.
func (r *exportRun) take(replay *resume.Replay, row Row) (isNew bool, err error) {
	column := slices.Index(r.columns, DimEventTimestamp)
	if column < 0 {
		return false, errors.New("the rows have no column " + DimEventTimestamp)
	}
	at, err := row.At(column).Time()
	switch {
	case err != nil:
		return false, fmt.Errorf("%s: %w", DimEventTimestamp, err)
	case at.Before(r.params.Start), at.After(r.params.End): // an event at the end may belong to the time range, see open point 33
		return false, fmt.Errorf("an event of %s is outside the time range", at.Format(time.RFC3339Nano))
	}
	r.content = binary.BigEndian.AppendUint64(r.content[:0], uint64(at.UnixNano()))
	r.content = row.row.AppendContent(r.content, column)
	sum := sha256.Sum256(r.content)
	return replay.Take(at, resume.Sum(sum[:]))
}
