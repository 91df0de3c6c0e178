// Package resume delivers each row of an export exactly once, across broken responses and restarts, although rows may
// appear late. A request can only begin at a whole second, rows of the same time may come in another order, and nothing
// is known of a service's borders, so the package keeps checksums of the rows of the last seconds: two, and as many as a
// row may be late.
//
// The package must not depend on HTTP or the content of a row. Its entry points are [Run.All], [Source], [Position] and
// [Replay.Take].
package resume

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"
)

// Fault is what the error of a request means for an export.
type Fault int

// The faults.
const (
	Outage     Fault = iota // the same request may work later
	Unusable                // the response was invalid; the next one may be valid
	Incomplete              // the response had fewer rows than it announced; it counts as Unusable
	Final                   // ends the export
)

// ErrStopped means that the user wants no more rows. It ends a run.
var ErrStopped = errors.New("stopped")

// Source is what a [Run] reads. Times are whole seconds, counted from 1970.
type Source interface {
	// Total returns the number of rows between two times, and the time of the first row, or the zero time if unknown.
	Total(from, to int64) (total int64, first time.Time, err error)
	// Read reads up to limit rows between two times, and passes each to replay. It returns the total, if known.
	Read(from, to, limit int64, replay *Replay) (total int64, err error)
	// Limit returns the limit for a request that must return total rows.
	Limit(total int64) int64
	// Judge returns what an error of Total or Read means.
	Judge(err error) Fault
	// Sleep waits for d. An error ends the export.
	Sleep(d time.Duration) error
	// KeptFrom returns the time since which the source still has all rows.
	KeptFrom() int64
}

// Limits for retries without a new row.
const (
	patience     = 5 * time.Minute // after outages
	tries        = 4               // after unusable responses
	firstPause   = 500 * time.Millisecond
	longestPause = 5 * time.Second
)

// Missing says which rows that the source counts were not delivered.
type Missing struct {
	Announced int64 // rows that it has not sent; a later run may deliver them, unless it has dropped them meanwhile
	Late      int64 // rows that appeared later than Lookback, and are delivered by no run
	From, To  int64 // the seconds of the late ones
}

// Run reads all rows after a position, up to the end of a span, and those of the seconds before that appeared late.
type Run struct {
	Source   Source
	Position *Position
	End      int64         // the second at the end of the span
	Lookback time.Duration // how late a row may appear to be delivered
	Few      int64         // so many rows are read rather than asked which of them are new
	Arrived  bool          // a response had a row, new or known; until then, the run ends at the first error

	alone     bool      // one response contained the whole span
	announced int64     // smallest possible number of rows in the span
	newest    time.Time // when the last new row arrived
	fruitless int       // requests since then
	unusable  int       // unusable responses since then
}

// All reads what is new, and returns which rows are missing. The next run does not report late ones again.
func (r *Run) All() (missing Missing, err error) {
	p := r.Position
	late := p.Late
	if p.keep, p.Shortened = 0, false; r.Lookback > 0 {
		p.keep = 1 + int64((r.Lookback+time.Second-1)/time.Second) // a source may omit rows of the first second of a span
	}
	r.newest = time.Now()
	for range 3 { // rows may have been added before the last total was read, or a replica lags
		err := r.rest()
		if err == nil && !r.alone {
			late, err = r.check(&missing)
		}
		if err != nil {
			if r.Source.Judge(err) == Incomplete {
				p.Asked = time.Unix(r.End, 0).UTC()
			}
			return Missing{}, err
		}
		if missing.Announced = max(0, r.announced-p.Handed); missing.Late+missing.Announced == 0 {
			break
		}
	}
	p.Late, p.Asked = late, time.Unix(r.End, 0).UTC()
	if missing.Announced == 0 {
		p.Until = p.Asked
	}
	return missing, nil
}

// rest reads all rows after the position. Before that it reads late ones, so that a row which the position then forgets
// was asked for when Lookback had passed. One that is announced and does not come keeps none of the others back.
func (r *Run) rest() error {
	p, lacking := r.Position, error(nil)
	r.alone = p.Handed == 0
	last := p.Latest.Unix()
	before := last - 1
	kept := min(r.Source.KeptFrom(), last+1) // the rows that the position knows may be gone
	first := max(p.Start.Unix(), p.First, kept)
	more, total, err := r.surplus(first, r.End)
	if err != nil || more == 0 {
		return err
	}
	r.announced = max(r.announced, p.Handed+more-p.at(r.End).rows()) // the source may count those
	if first < before {
		late, rows, err := r.surplus(first, before)
		if err == nil && late < 0 && r.Source.Sleep(longestPause) == nil { // a replica may lag, and would hide late rows
			late, rows, err = r.surplus(first, before)
		}
		if err == nil {
			err = r.search(first, before, late, rows)
		}
		if err != nil {
			if r.Source.Judge(err) != Incomplete {
				return err
			}
			lacking = err
			r.newest, r.fruitless, r.unusable = time.Now(), 0, 0
		}
		total -= rows
	}
	from := last - 2 // one second before those that must come again, because the source may omit rows at the start
	return cmp.Or(r.read(from, r.End, total+p.at(from).rows()), lacking)
}

// read reads a span to its end, with retries from where a response broke.
func (r *Run) read(from, to, total int64) error {
	p := r.Position
	from = max(from, p.Start.Unix())
	for limit := r.Source.Limit(total); ; {
		rows, begin := p.Handed, from
		replay := p.Replay(from, to)
		total, err := r.Source.Read(from, to, limit, replay)
		r.Arrived = r.Arrived || !replay.previous.IsZero()
		from = max(from, replay.previous.Unix()-2)
		progress := p.Handed > rows || from > begin
		if progress {
			r.newest, r.fruitless, r.unusable = time.Now(), 0, 0
		}
		if err == nil || errors.Is(err, ErrStopped) {
			return err
		}
		r.alone = false
		limit = max(limit, r.Source.Limit(total))
		if err := r.pause(err, progress); err != nil {
			return err
		}
	}
}

// total requests a total, with retries.
func (r *Run) total(from, to int64) (total int64, first time.Time, err error) {
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
	if fault == Final || !r.Arrived {
		return err
	}
	if !progress {
		r.fruitless++
		if fault == Unusable || fault == Incomplete {
			r.unusable++
		}
		if r.unusable == tries || time.Since(r.newest) > patience {
			return err
		}
	}
	longest := min(firstPause<<min(r.fruitless, 8), longestPause)
	return r.Source.Sleep(longest/2 + rand.N(longest/2))
}
