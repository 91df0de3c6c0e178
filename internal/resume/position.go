package resume

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Sum is a checksum of a row. Rows with the same content have the same sum.
type Sum [16]byte

// Position is how far an export has come. The zero value is its beginning.
type Position struct {
	rows   int64
	last   time.Time // the latest time of a row
	recent recent    // the rows of that second and of the one before
	days   map[int64]int64
	full   int64 // rows of the last second that are at its very beginning
	missed int64 // rows that are known to have arrived late
}

// keptDays is for how many days the rows of each day are counted: longer than a service keeps events.
const keptDays = 8

func dayOf(at time.Time) int64 { return at.Truncate(24*time.Hour).Unix() / (24 * 60 * 60) }

// sums counts rows by their sums. Rows with the same content are possible.
type sums map[Sum]int

func (s sums) count() (n int64) {
	for _, times := range s {
		n += int64(times)
	}
	return n
}

// recent has the rows of one second, and of the second before.
type recent [2]sums

func (r recent) clone() recent { return recent{maps.Clone(r[0]), maps.Clone(r[1])} }
func (r recent) count() int64  { return r[0].count() + r[1].count() }

// Rows returns the number of rows that have been handed out.
func (p *Position) Rows() int64 { return p.rows }

// Last returns the latest time of a row that has been handed out; zero without one.
func (p *Position) Last() time.Time { return p.last }

// From returns the start of the next request: one second before the last row, in whole seconds. It returns the zero
// time at the beginning.
func (p *Position) From() time.Time {
	if p.rows == 0 {
		return time.Time{}
	}
	return p.last.Truncate(time.Second).Add(-time.Second)
}

// Clone returns an independent copy.
func (p *Position) Clone() *Position {
	return &Position{p.rows, p.last, p.recent.clone(), maps.Clone(p.days), p.full, p.missed}
}

// since returns the number of rows from the beginning of a day on, which is not more than keptDays before the last row.
func (p *Position) since(day time.Time) (rows int64) {
	for d, n := range p.days {
		if d >= dayOf(day) {
			rows += n
		}
	}
	return rows
}

// secondsAgo returns how many whole seconds before that of the last row a time lies; below 0 for a later one.
func (p *Position) secondsAgo(at time.Time) int64 { return p.last.Unix() - at.Unix() }

// add counts a row as handed out. The row is at most one whole second earlier than the last.
func (p *Position) add(at time.Time, sum Sum) {
	switch ago := p.secondsAgo(at); {
	case p.rows == 0 || ago < -1:
		p.recent, p.full = recent{{}, {}}, 0
	case ago == -1:
		p.recent, p.full = recent{{}, p.recent[0]}, 0
	}
	if p.rows == 0 || at.After(p.last) {
		p.last = at
	}
	if p.rows++; at.Equal(p.last.Truncate(time.Second)) {
		p.full++
	}
	p.recent[p.secondsAgo(at)][sum]++
	if p.days == nil {
		p.days = map[int64]int64{}
	}
	day := dayOf(at)
	if p.days[day]++; p.days[day] == 1 {
		maps.DeleteFunc(p.days, func(d, _ int64) bool { return d <= day-keptDays })
	}
}

// stored is a Position as JSON.
type stored struct {
	Rows   int64     `json:"rows"`
	Last   time.Time `json:"last,omitzero"`
	Recent [2][]byte `json:"recent,omitzero"` // concatenated sums; n copies for a row that came n times

	Days   map[int64]int64 `json:"days,omitempty"` // rows of each day, by its number from 1970
	Full   int64           `json:"full,omitempty"`
	Missed int64           `json:"missed,omitempty"`
}

// MarshalJSON stores the position.
func (p *Position) MarshalJSON() ([]byte, error) {
	s := stored{Rows: p.rows, Last: p.last, Days: p.days, Full: p.full, Missed: p.missed}
	for i, counts := range p.recent {
		for _, sum := range slices.SortedFunc(maps.Keys(counts), func(a, b Sum) int { return slices.Compare(a[:], b[:]) }) {
			for range counts[sum] {
				s.Recent[i] = append(s.Recent[i], sum[:]...)
			}
		}
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads a stored position. It returns an error for one that MarshalJSON cannot have written.
func (p *Position) UnmarshalJSON(b []byte) error {
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	read := Position{rows: s.Rows, last: s.Last.UTC(), recent: recent{{}, {}}, days: s.Days, full: s.Full, missed: s.Missed}
	if s.Rows < 0 || (s.Rows == 0) != s.Last.IsZero() {
		return fmt.Errorf("%d rows until %v", s.Rows, s.Last)
	}
	known := int64(0)
	for i, sums := range s.Recent {
		if len(sums)%len(Sum{}) != 0 {
			return errors.New("a sum of a row is cut")
		}
		for sum := range slices.Chunk(sums, len(Sum{})) {
			read.recent[i][Sum(sum)]++
			known++
		}
	}
	counted := int64(0)
	for _, n := range s.Days {
		counted += n
	}
	if known > s.Rows || counted > s.Rows || s.Missed < 0 || s.Full < 0 || s.Full > s.Rows || s.Rows > 0 && len(s.Recent[0]) == 0 {
		return fmt.Errorf("%d rows, %d of them of known days, and %d sums of rows", s.Rows, counted, known)
	}
	*p = read
	return nil
}
