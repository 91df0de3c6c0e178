package resume

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is what the error of a request means for an export.
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
	// Total returns the number of rows between two times, and the time of the first row, or the zero time if unknown.
	Total(from, to time.Time) (total int64, first time.Time, err error)
	// Read reads up to limit rows from a time on, and passes each to replay. It returns the total of the response, if
	// known.
	Read(from time.Time, limit int64, replay *Replay) (total int64, err error)
	// Stopped reports whether the user wants no more rows. Read then returns no error.
	Stopped() bool
	// Limit returns the limit for a request that must return total rows.
	Limit(total int64) int64
	// Judge returns what an error of Total or Read means.
	Judge(err error) Fault
	// Sleep waits for d. An error ends the export.
	Sleep(d time.Duration) error
	// KeptFrom returns the time since which the source still has all rows.
	KeptFrom() time.Time
}

// Limits for retries without a new row.
const (
	patience     = 5 * time.Minute // after outages
	tries        = 4               // after unusable responses
	firstPause   = 500 * time.Millisecond
	longestPause = 5 * time.Second
)

// MissingError means that rows appeared late, with times that had already been read.
type MissingError struct{ Missing int64 }

// Error returns the number of rows.
func (e *MissingError) Error() string { return fmt.Sprintf("%d rows arrived late", e.Missing) }

// Run reads all rows after a position, up to the end of a span.
type Run struct {
	Source     Source
	Position   *Position
	Start, End time.Time // of the span

	arrived   bool      // a row has arrived in this run
	alone     bool      // one response contained the whole span
	atEnd     int64     // rows that the source counts although they are exactly at the end of a span
	announced int64     // smallest possible number of rows in the span
	newest    time.Time // when the last new row arrived
	fruitless int       // requests since then
	unusable  int       // unusable responses since then
}

// Arrived records that a response had a row, new or known. Until then, a run ends at the first error.
func (r *Run) Arrived() { r.arrived = true }

// All reads to the end and checks that no row is missing. It returns a [*MissingError] if rows appeared late. The next
// run does not report these again.
func (r *Run) All() error {
	missing, late := int64(0), perDay(nil)
	r.newest = time.Now()
	for range 2 { // rows may have been added before the total of the first round was read
		err := r.rest()
		if err != nil || r.Source.Stopped() || r.alone {
			return err
		}
		if missing, late, err = r.check(); err != nil {
			return err
		} else if missing == 0 {
			break
		}
	}
	r.Position.mu.Lock()
	defer r.Position.mu.Unlock()
	if r.Position.Late = late; missing > 0 {
		return &MissingError{missing}
	}
	return nil
}

// rest reads all rows after the position.
func (r *Run) rest() error {
	p := r.Position
	r.alone = p.Handed == 0
	total, _, err := r.total(r.notBefore(p.From().Add(time.Second)), r.End) // rows that Take recognizes or that are new
	if err != nil || p.Handed == 0 && total == 0 {
		return err
	}
	r.announced = max(r.announced, p.Handed-p.recent.count()+total)
	for limit := r.Source.Limit(total); ; {
		rows := p.Handed
		total, err := r.Source.Read(r.notBefore(p.From()), limit, p.Replay())
		progress := p.Handed > rows
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

// check returns the number of missing rows that no run has reported, and the number of all missing rows of each day.
// The total of the last response has shown that none is missing from the second of the last row on, so only rows before
// that second are counted. Rows that are still being added then do not matter, nor do days that the source no longer
// keeps.
func (r *Run) check() (missing int64, late perDay, err error) {
	p := r.Position
	from, to := r.notBefore(r.Source.KeptFrom()), p.Latest.Truncate(time.Second)
	late, r.atEnd = perDay{}, 0
	rest, err := r.unknown(from, to)
	if rest > 0 && p.Full > 0 {
		// The source may count rows exactly at the end of a span (open point 33). The second before was read just now.
		var more int64
		if more, err = r.surplus(to.Add(-time.Second), to, p.recent[1].count(), p.Earlier); more > 0 {
			r.atEnd = p.Full
		}
	}
	for rest -= r.atEnd; err == nil && rest > 0; {
		day, next, later := dayOf(from), from.Truncate(24*time.Hour).Add(24*time.Hour), int64(0)
		later, err = r.unknown(next, to)
		late[day] = max(0, rest-max(0, later))
		missing += max(0, late[day]-p.Late[day])
		from, rest = next, later
	}
	return max(missing, r.announced-p.Handed), late, err
}

// unknown returns how many rows between from and to, the last second, have not been delivered. from is the start of a
// day or of the run.
func (r *Run) unknown(from, to time.Time) (int64, error) {
	if !to.After(from) {
		return 0, nil
	}
	p := r.Position
	return r.surplus(from, to, p.Days.since(from)-p.recent[0].count()+r.atEnd, p.Midnights[dayOf(from)])
}

// surplus returns how many more rows a span has than were delivered. If the first row of the source is after the start
// of the span, the source omits those exactly at the start.
func (r *Run) surplus(from, to time.Time, handed, atStart int64) (int64, error) {
	total, first, err := r.total(from, to)
	if first.After(from) {
		handed -= atStart
	}
	return total - handed, err
}

// notBefore returns the later of at and the start of the span.
func (r *Run) notBefore(at time.Time) time.Time {
	return slices.MaxFunc([]time.Time{r.Start, at}, time.Time.Compare)
}

// total requests a total, with retries.
func (r *Run) total(from, to time.Time) (total int64, first time.Time, err error) {
	for {
		if total, first, err = r.Source.Total(from, to); err == nil {
			return total, first, nil
		}
		if err = r.pause(err, false); err != nil {
			return 0, time.Time{}, err
		}
	}
}

// pause waits before a retry. It returns an error if the run must end.
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
	return r.Source.Sleep(longest/2 + rand.N(longest/2)) //nolint:gosec // jitter need not be secure
}
