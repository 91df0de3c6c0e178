package resume

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Fault says what the error of a request means for an export.
type Fault int

const (
	// Outage means that the same request may work later.
	Outage Fault = iota
	// Unusable means that the response was invalid. The next one may be valid.
	Unusable
	// Final ends the export.
	Final
)

// Source is what a [Run] reads.
type Source interface {
	// Total returns the number of rows from a time on, up to another one.
	Total(from, to time.Time) (int64, error)
	// Read reads up to limit rows from a time on, and passes each to the replay. It returns how many rows match, if the
	// response says so.
	Read(from time.Time, limit int64, replay *Replay) (total int64, err error)
	// Stopped reports whether the user wants no more rows. Then Read returns no error.
	Stopped() bool
	// Limit returns the limit for a request that must return total rows.
	Limit(total int64) int64
	// Judge says what an error of Total and Read means.
	Judge(err error) Fault
	// Sleep waits. Its error ends the export.
	Sleep(d time.Duration) error
	// KeptFrom returns the time from which on the source still has all rows.
	KeptFrom() time.Time
}

// How long a run retries without a new row.
const (
	patience = 5 * time.Minute // after outages
	tries    = 4               // after unusable responses

	firstPause   = 500 * time.Millisecond
	longestPause = 5 * time.Second
)

// MissingError means that rows arrived late, with times that had been read already.
type MissingError struct{ Missing int64 }

// Error says how many.
func (e *MissingError) Error() string { return fmt.Sprintf("%d rows arrived late", e.Missing) }

// Run reads all rows behind a position, up to the end of a span.
type Run struct {
	Source     Source
	Position   *Position
	Start, End time.Time // of the span

	arrived   bool      // a row has arrived in this run
	alone     bool      // one response held the whole span
	announced int64     // smallest possible number of rows in the span
	newest    time.Time // when the last new row arrived
	fruitless int       // requests since then
	unusable  int       // unusable responses since then
}

// Arrived records that a response had a row, new or known. Before the first row, a run ends with the first error.
func (r *Run) Arrived() { r.arrived = true }

// All reads to the end and checks that no row is missing. It returns a [*MissingError] if rows arrived late. These
// count as reported, and the next run does not report them again.
func (r *Run) All() error {
	r.newest = time.Now()
	for again := false; ; again = true {
		if err := r.rest(); err != nil || r.Source.Stopped() || r.alone {
			return err
		}
		missing, err := r.check()
		if err != nil || missing == 0 {
			return err
		}
		if again { // in the first round, rows may have been added between the rows and the total
			r.Position.missed += missing
			return &MissingError{missing}
		}
	}
}

// rest reads all rows behind the position.
func (r *Run) rest() error {
	p := r.Position
	r.alone = p.rows == 0
	total, err := r.total(r.from(), r.End)
	if err != nil || p.rows == 0 && total == 0 {
		return err
	}
	r.announced = max(r.announced, p.rows-p.recent.count()+total)
	for limit := r.Source.Limit(total); ; {
		rows := p.rows
		total, err := r.Source.Read(r.from(), limit, p.Replay())
		progress := p.rows > rows
		if progress {
			r.newest, r.fruitless, r.unusable = time.Now(), 0, 0
		}
		if err == nil || r.Source.Stopped() {
			return nil
		}
		r.alone = false
		limit = max(limit, r.Source.Limit(total))
		if err := r.pause(err, progress); err != nil {
			return err
		}
	}
}

// check returns how many rows are missing. The last response has shown by its own total that none is missing behind the
// second of the last row. So the rows before that second are counted, and rows that are still added do not matter.
func (r *Run) check() (missing int64, err error) {
	p := r.Position
	if missing := r.announced - p.rows; missing > 0 {
		return missing, nil
	}
	from, before := r.Start, p.rows
	if kept := r.Source.KeptFrom(); from.Before(kept) {
		from, before = kept, p.since(kept)
	}
	to := p.last.Truncate(time.Second)
	if !to.After(from) {
		return 0, nil
	}
	before -= p.recent[0].count()
	total, err := r.total(from, to)
	missing = total - before - p.missed
	if err != nil || missing <= 0 || p.full == 0 {
		return max(0, missing), err
	}
	// The source may count rows at the very end of a span (open point 33). The second before was read just now.
	if from.Before(to.Add(-time.Second)) {
		from = to.Add(-time.Second)
	}
	second, err := r.total(from, to)
	if second > p.recent[1].count() {
		missing -= p.full
	}
	return max(0, missing), err
}

// from returns the start of the next request.
func (r *Run) from() time.Time {
	if from := r.Position.From(); from.After(r.Start) {
		return from
	}
	return r.Start
}

// total requests a total and retries.
func (r *Run) total(from, to time.Time) (int64, error) {
	for {
		total, err := r.Source.Total(from, to)
		if err == nil {
			return total, nil
		}
		if err := r.pause(err, false); err != nil {
			return 0, err
		}
	}
}

// pause waits before a retry. It returns the error if the run must end.
func (r *Run) pause(err error, progress bool) error {
	fault := r.Source.Judge(err)
	if fault == Final || !r.arrived {
		return err
	}
	if !progress {
		r.fruitless++
		if fault == Unusable {
			r.unusable++
		}
		if r.unusable == tries || time.Since(r.newest) > patience {
			return err
		}
	}
	longest := min(firstPause<<min(r.fruitless, 8), longestPause)
	return r.Source.Sleep(longest/2 + rand.N(longest/2)) //nolint:gosec // jitter is no secret
}
