package resume

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	maxRecent  = 5_500_000 // rows that a position recognizes: some 60 MB of JSON
	maxSeconds = 4 * day   // for which it does
	day        = 24 * 60 * 60
)

// Sum is a keyed checksum of a row. Rows with the same content have the same Sum. It only needs to differ from those of
// the same second: among n rows of a second, a new one is taken for another once in 2^64/n.
type Sum uint64

// second holds the delivered rows of one second.
type second struct {
	sums []Sum // one for each row, in the order of delivery; append only, because clones share it
	full int64 // rows exactly at its start
}

func (s second) rows() int64 { return int64(len(s.sums)) }

// border says which rows at the end of a span a source counts.
type border int

const (
	exclusive   border = iota // none, as far as is known
	atEnd                     // those exactly at the end
	wholeSecond               // all of the second of the end
)

// Position is how far an export has come. The zero value, with a Start, is its beginning.
type Position struct {
	counted

	Shortened bool // late rows are recognized for a shorter time than the run asked for, because there are too many

	recent []second // from First on, up to the second of the last row
	kept   int64    // rows in recent
	keep   int64    // how many seconds before the last two stay in recent
}

// counted is the stored form of a position. The order of its fields affects the checksum of a cursor.
type counted struct {
	Start     time.Time `json:"start"`               // of the export
	Until     time.Time `json:"until,omitzero"`      // end of the last run that read everything
	Asked     time.Time `json:"asked,omitzero"`      // end of the last run that read everything that the source sent
	Handed    int64     `json:"rows"`                // number of rows delivered
	Latest    time.Time `json:"last,omitzero"`       // latest time of a delivered row
	First     int64     `json:"first,omitempty"`     // the second since which rows are recognized
	Days      perDay    `json:"days,omitempty"`      // delivered rows of each day before First
	Midnights perDay    `json:"midnights,omitempty"` // those exactly at the start of the day
	Firsts    perDay    `json:"firsts,omitempty"`    // those of the first second of the day
	Late      perDay    `json:"late,omitempty"`      // missing rows of each day that have been reported
	Border    border    `json:"border,omitempty"`    // of the source
	Recent    []byte    `json:"recent,omitempty"`    // only when stored: of each second the numbers of rows and of full ones, and the sums
}

// perDay counts rows by day, numbered from 1970.
type perDay map[int64]int64

func dayOf(second int64) int64 { return (second - ((second%day)+day)%day) / day }

// since returns the number of rows of a day and of later days.
func (d perDay) since(first int64) (rows int64) {
	for day, n := range d {
		if day >= first {
			rows += n
		}
	}
	return rows
}

// plus counts more rows of a day, and drops days older than a week, for which the service no longer has events.
func (d perDay) plus(day, n int64) perDay {
	if d == nil {
		d = perDay{}
	}
	if d[day] += n; d[day] == n {
		maps.DeleteFunc(d, func(old, _ int64) bool { return old < day-7 })
	}
	return d
}

// Clone returns an independent copy. Its cost depends on the number of seconds, not on that of rows.
func (p *Position) Clone() *Position {
	c := &Position{counted: p.counted, recent: slices.Clone(p.recent), kept: p.kept, keep: p.keep, Shortened: p.Shortened}
	for i, s := range c.recent {
		c.recent[i].sums = slices.Clip(s.sums) // the clone's next row needs another array
	}
	c.Days, c.Midnights, c.Firsts, c.Late = maps.Clone(p.Days), maps.Clone(p.Midnights), maps.Clone(p.Firsts), maps.Clone(p.Late)
	return c
}

// at returns the delivered rows of a second, if they are recognized.
func (p *Position) at(unix int64) second {
	if i := unix - p.First; i >= 0 && i < int64(len(p.recent)) {
		return p.recent[i]
	}
	return second{}
}

// Copies returns how many rows of a second with this sum were delivered.
func (p *Position) Copies(at time.Time, sum Sum) (n int) {
	for _, s := range p.at(at.Unix()).sums {
		if s == sum {
			n++
		}
	}
	return n
}

// add records a row as delivered. Its second is not before First.
func (p *Position) add(at time.Time, sum Sum) {
	unix := at.Unix()
	if p.Handed == 0 {
		p.First = max(p.Start.Unix(), unix-1-p.keep)
	}
	if p.Handed == 0 || at.After(p.Latest) {
		p.Latest = at
	}
	if p.Handed++; unix-p.First >= int64(len(p.recent)) {
		room := 0 // as many as in the second before
		if n := len(p.recent); n > 0 {
			last := &p.recent[n-1]
			if room = len(last.sums); cap(last.sums) > room*9/8 {
				last.sums = slices.Clone(last.sums) // little more room than needed
			}
		}
		p.forget(unix - 1 - p.keep)
		p.recent = append(p.recent, make([]second, unix-p.First-int64(len(p.recent))+1)...)
		p.recent[unix-p.First].sums = make([]Sum, 0, room)
	}
	s := &p.recent[unix-p.First]
	if s.sums = append(s.sums, sum); at.Nanosecond() == 0 {
		s.full++
	}
	for p.kept++; p.kept > maxRecent && len(p.recent) > 2; {
		p.Shortened = true
		p.forget(p.First + 1)
	}
}

// forget drops the rows before a second, except their number.
func (p *Position) forget(before int64) {
	for ; p.First < before && len(p.recent) > 0; p.First++ {
		s, day := p.recent[0], dayOf(p.First)
		if p.recent = p.recent[1:]; s.rows() == 0 {
			continue
		}
		p.kept -= s.rows()
		if p.Days = p.Days.plus(day, s.rows()); dayOf(p.First-1) < day {
			p.Midnights, p.Firsts = p.Midnights.plus(day, s.full), p.Firsts.plus(day, s.rows())
		}
	}
	p.First = max(p.First, before)
}

// MarshalJSON encodes the position.
func (p *Position) MarshalJSON() ([]byte, error) {
	s := p.counted
	s.Recent = make([]byte, 0, 8*p.kept+4*int64(len(p.recent)))
	for _, r := range p.recent {
		s.Recent = binary.AppendUvarint(binary.AppendUvarint(s.Recent, uint64(len(r.sums))), uint64(r.full)) //nolint:gosec // not negative
		for _, sum := range r.sums {
			s.Recent = binary.LittleEndian.AppendUint64(s.Recent, uint64(sum))
		}
	}
	return json.Marshal(s)
}

// UnmarshalJSON decodes a position. It returns an error for one that MarshalJSON cannot have written.
func (p *Position) UnmarshalJSON(b []byte) error {
	var s counted
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	recent, rows := []second(nil), int64(0)
	for in := s.Recent; len(in) > 0; {
		n, a := binary.Uvarint(in)
		full, b := binary.Uvarint(in[max(a, 0):])
		if a <= 0 || b <= 0 || n > uint64(len(in)-a-b)/8 || full > n || len(recent) == maxSeconds { //nolint:gosec // not negative
			return errors.New("the sums of rows are cut or damaged")
		}
		in = in[a+b:]
		r := second{full: int64(full)} //nolint:gosec // at most n
		if n > 0 {
			r.sums = make([]Sum, n)
		}
		for i := range r.sums {
			r.sums[i] = Sum(binary.LittleEndian.Uint64(in[8*i:]))
		}
		recent, rows, in = append(recent, r), rows+r.rows(), in[8*n:]
	}
	if rows+s.Days.since(0) > s.Handed || s.Latest.IsZero() != (s.Handed == 0) || s.Border < exclusive || s.Border > wholeSecond ||
		s.Handed > 0 && (len(recent) == 0 || s.First+int64(len(recent))-1 != s.Latest.Unix()) {
		return fmt.Errorf("%d rows until %v, and %d sums of rows", s.Handed, s.Latest, rows)
	}
	s.Start, s.Until, s.Asked, s.Latest, s.Recent = s.Start.UTC(), s.Until.UTC(), s.Asked.UTC(), s.Latest.UTC(), nil
	p.counted, p.recent, p.kept = s, recent, rows
	return nil
}
