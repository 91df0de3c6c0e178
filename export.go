package webdelivery

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
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
		return invalid("cursor", "%s", decodeReason(err))
	case state == nil:
	case state.Version != cursorVersion:
		return invalid("cursor", "has version %d, and this SDK reads version %d; begin without a cursor", state.Version, cursorVersion)
	case state.Position == nil || state.Query == "":
		return invalid("cursor", "is no cursor of an export")
	}
	c.state = state
	return nil
}

// NewExport creates an export of the raw events of a span, from a cursor on. It sends nothing. Pass the zero [Cursor] to
// begin at the start of the span. A cursor belongs to its query, but the end of the span may be another one. The Limit of
// the query is ignored, and SortBy must be empty. If an argument is invalid, [Export.Rows] yields a [*ValidationError].
func (s *StatsService) NewExport(query EventsQuery, from Cursor) *Export {
	e := &Export{family: s.Events, params: query.params().Clone(), from: from, position: &resume.Position{}}
	e.params.Limit = 0
	if len(e.params.SortBy) > 0 {
		e.err = invalid("sortby", "an export sorts by %s; leave SortBy empty", DimEventTimestamp)
		return e
	}
	e.params.SortBy = []statsquery.Sort{{Name: DimEventTimestamp}}
	if _, e.err = s.Events.parameters(&e.params); e.err != nil {
		return e
	}
	e.query = e.params.ID()
	if from.state == nil {
		return e
	}
	e.columns, e.position = from.state.Columns, from.state.Position.Clone()
	switch {
	case from.state.Query != e.query:
		e.err = invalid("cursor", "belongs to an export with another start, other dimensions or another filter")
	case from.Rows() > 0 && !from.Time().Before(e.params.End):
		e.err = invalid("cursor", "is at %s, and the span ends before that", from.Time().Format(time.RFC3339Nano))
	}
	return e
}

// Cursor returns the position after the last event that [Export.Rows] has yielded. An event counts when it is yielded, so
// within the loop body the cursor is behind the event of that step: store what came of the event before you store the
// cursor. Cursor copies the sums of up to two seconds; call it after some thousand events rather than after each.
func (e *Export) Cursor() Cursor {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || e.columns == nil {
		return e.from
	}
	return Cursor{&cursorState{cursorVersion, e.query, slices.Clone(e.columns), e.position.Clone()}}
}

// Rows yields the events behind the cursor, in ascending order of their times. A row is valid until the next step. Memory
// does not grow with the number of events, only with that of two seconds.
//
// If a response breaks, Rows asks again, also if the service is down meanwhile. It yields the error and ends if no new
// event came for 5 minutes, if the service refuses the request with a status of 400 to 499, or if 4 responses in a row
// are unusable and bring no new event. A range whose requests fail before a row has arrived ends like any other call.
//
// At the end Rows compares the number of events with total_results of the span. If there are more in the span, they
// arrived late, with times that had been read already: Rows yields an [*IncompleteError] with both numbers. If the
// service does not sort the events, Rows yields [ErrBadReply].
//
// A later range goes on behind the last event, for example with the events that have arrived since. A second range at the
// same time yields a [*ValidationError].
func (e *Export) Rows(ctx context.Context) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if e.err != nil {
			yield(Row{}, e.err)
			return
		}
		if !e.busy.CompareAndSwap(false, true) {
			yield(Row{}, invalid("Rows", "another loop ranges over this export"))
			return
		}
		defer e.busy.Store(false)
		r := exportRun{Export: e, ctx: ctx, yield: yield, newest: time.Now()}
		if err := r.run(); err != nil && !r.stopped {
			yield(Row{}, err)
		}
	}
}

// exportRun is one range over an export.
type exportRun struct {
	*Export

	ctx     context.Context //nolint:containedctx // that of the range
	yield   func(Row, error) bool
	stopped bool   // by the loop body
	content []byte // of the last row

	arrived   bool      // a row, in this range
	newest    time.Time // when the last new row came
	fruitless int       // requests since then
}

// run reads to the end. One response that held the whole span proves by its own total that it is complete. After several,
// the total of the span is asked for. If rows are missing, the rest is read once more, as some may have arrived between.
func (r *exportRun) run() error {
	expected := int64(-1)
	for {
		alone, err := r.rest()
		switch {
		case err != nil || r.stopped || alone:
			return err
		case expected >= 0:
			if got := r.position.Rows(); got < expected {
				return &IncompleteError{Got: got, Total: expected}
			}
			return nil
		}
		if expected, err = r.total(time.Time{}); err != nil || r.position.Rows() >= expected {
			return err
		}
	}
}

// rest reads all that is behind the position. It returns whether one response held the whole span.
func (r *exportRun) rest() (alone bool, err error) {
	alone = r.position.Rows() == 0
	total, err := r.total(r.position.From())
	if err != nil || total == 0 {
		return alone, err
	}
	limit := r.family.rules.WithHeadroom(total)
	for {
		rows := r.position.Rows()
		err := r.response(limit)
		if r.stopped || err == nil {
			return alone, nil
		}
		alone = false
		if err := r.pause(err, r.position.Rows() > rows); err != nil {
			return false, err
		}
	}
}

// total asks for total_results from a time on; the zero time is the start of the span.
func (r *exportRun) total(from time.Time) (int64, error) {
	for {
		parameters, err := r.parameters(from, 1)
		if err != nil {
			return 0, err
		}
		one, err := r.family.whole(r.ctx, parameters, nil)
		if err == nil {
			return one.Total(), nil
		}
		if err := r.pause(err, false); err != nil {
			return 0, err
		}
	}
}

// parameters returns those of a request for rows from a time on.
func (r *exportRun) parameters(from time.Time, limit int64) (string, error) {
	p := r.params
	if from.After(p.Start) {
		p.Start = from
	}
	p.Limit = limit
	return r.family.parameters(&p)
}

// response reads one response and yields what is new of it.
func (r *exportRun) response(limit int64) error {
	parameters, err := r.parameters(r.position.From(), limit)
	if err != nil {
		return err
	}
	replay, first := r.position.Replay(), true
	var unusable error
	err = r.family.stream(r.ctx, parameters, limit, streaming{all: true}, func(row Row, _ error) bool {
		if first {
			first, r.arrived, unusable = false, true, r.checkColumns(row)
		}
		isNew := false
		if unusable == nil {
			isNew, unusable = r.take(replay, row)
		}
		r.stopped = isNew && !r.yield(row, nil)
		return unusable == nil && !r.stopped
	})
	if unusable != nil {
		return &exportError{fmt.Errorf("%w: %w", ErrBadReply, unusable)}
	}
	if incomplete := (*IncompleteError)(nil); errors.As(err, &incomplete) {
		got := r.position.Rows()
		err = &IncompleteError{Got: got, Total: got + max(0, incomplete.Total-incomplete.Got)}
	}
	return err
}

// exportError is a response of a kind that an export can never use.
type exportError struct{ err error }

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

// take judges a row. If it is new, it counts as handed out.
func (r *exportRun) take(replay *resume.Replay, row Row) (isNew bool, err error) {
	value, ok := row.Get(DimEventTimestamp)
	if !ok {
		return false, errors.New("the rows have no " + DimEventTimestamp)
	}
	at, err := value.Time()
	if err != nil {
		return false, fmt.Errorf("%s: %w", DimEventTimestamp, err)
	}
	r.content = row.row.AppendContent(r.content[:0])
	sum := sha256.Sum256(r.content)
	r.mu.Lock()
	defer r.mu.Unlock()
	return replay.Take(at, resume.Sum(sum[:]))
}

// How long an export asks again without a new row: after outages, and after responses that it cannot use.
const (
	exportPatience = 5 * time.Minute
	exportTries    = 3
)

// pause waits before an export asks again after an error. It returns the error if the export ends with it.
func (r *exportRun) pause(err error, progress bool) error {
	var unusable *exportError
	switch {
	case r.ctx.Err() != nil, !r.arrived, errors.As(err, &unusable):
		return err
	case progress:
		r.newest, r.fruitless = time.Now(), 0
	case isRefused(err), isOutage(err) && time.Since(r.newest) > exportPatience, !isOutage(err) && r.fruitless == exportTries:
		return err
	}
	longest := min(waiting.First<<min(r.fruitless, 8), waiting.Slowest)
	r.fruitless++
	return waiting.Sleep(r.ctx, longest/2+rand.N(longest/2)) //nolint:gosec // jitter is no secret
}

// isOutage reports whether the same request may work later: there was no response, or one of 500 and above.
func isOutage(err error) bool {
	var e *Error
	return errors.As(err, &e) && !isRefused(err) && !errors.Is(err, ErrBadReply) && !errors.Is(err, ErrResponseTooLarge)
}

// isRefused reports whether the service will always refuse the request: with a status of 400 to 499, other than 408 and
// 429.
func isRefused(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return errors.Is(err, ErrInvalid)
	}
	status := max(e.StatusCode, e.Code)
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError &&
		status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}
