package resume

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Sum is a checksum of a row. Rows with the same content have the same sum.
type Sum [16]byte

// Position is how far an export has come. The zero value is its beginning. One [Run] at a time may use it, and Clone may
// be called meanwhile.
type Position struct {
	mu     sync.Mutex // held by all that changes the position, and by Clone
	rows   int64
	last   time.Time // the latest time of a row
	recent recent    // the rows of that second and of the one before
	full   [2]int64  // how many of these are at the very beginning of their second

	days      map[int64]int64 // rows of each day
	midnights map[int64]int64 // how many of these are at the very beginning of their day
	late      map[int64]int64 // rows of each day that are missing, and reported

	missed int64 // late of an earlier version, without days; only a part of the JSON
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

// From returns the start of the next request, in whole seconds. A source may leave out rows at the very start, so that is
// one second before the rows that are recognized. From returns the zero time at the beginning.
func (p *Position) From() time.Time {
	if p.rows == 0 {
		return time.Time{}
	}
	return p.last.Truncate(time.Second).Add(-2 * time.Second)
}

// Clone returns an independent copy. It lacks the number of missing rows that an earlier version stored without days: a
// run reports these rows again, because the number would hide others.
func (p *Position) Clone() *Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Position{
		rows: p.rows, last: p.last, recent: p.recent.clone(), full: p.full,
		days: maps.Clone(p.days), midnights: maps.Clone(p.midnights), late: maps.Clone(p.late),
	}
}

// setLate records how many rows of each day are missing.
func (p *Position) setLate(late map[int64]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = late
}

// since sums up the counts of the day of a time and of later days.
func since(at time.Time, counts map[int64]int64) (sum int64) {
	for day, n := range counts {
		if day >= dayOf(at) {
			sum += n
		}
	}
	return sum
}

// secondsAgo returns how many whole seconds before that of the last row a time lies; below 0 for a later one.
func (p *Position) secondsAgo(at time.Time) int64 { return p.last.Unix() - at.Unix() }

// add counts a row as handed out. The row is at most one whole second earlier than the last.
func (p *Position) add(at time.Time, sum Sum) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ago := p.secondsAgo(at); {
	case p.rows == 0 || ago < -1:
		p.recent, p.full = recent{{}, {}}, [2]int64{}
	case ago == -1:
		p.recent, p.full = recent{{}, p.recent[0]}, [2]int64{0, p.full[0]}
	}
	if p.rows == 0 || at.After(p.last) {
		p.last = at
	}
	p.rows++
	ago, day := p.secondsAgo(at), dayOf(at)
	p.recent[ago][sum]++
	if at.Equal(at.Truncate(time.Second)) {
		p.full[ago]++
	}
	if p.days == nil {
		p.days = map[int64]int64{}
	}
	if p.midnights == nil {
		p.midnights = map[int64]int64{}
	}
	if at.Equal(at.Truncate(24 * time.Hour)) {
		p.midnights[day]++
	}
	if p.days[day]++; p.days[day] == 1 {
		forgotten := func(d, _ int64) bool { return d <= day-keptDays }
		maps.DeleteFunc(p.days, forgotten)
		maps.DeleteFunc(p.midnights, forgotten)
	}
}

// stored is a Position as JSON.
type stored struct {
	Rows   int64     `json:"rows"`
	Last   time.Time `json:"last,omitzero"`
	Recent [2][]byte `json:"recent,omitzero"` // concatenated sums; n copies for a row that came n times

	Days   map[int64]int64 `json:"days,omitempty"` // by the number of the day from 1970
	Full   int64           `json:"full,omitempty"`
	Missed int64           `json:"missed,omitempty"` // no longer written

	Earlier   int64           `json:"earlier,omitempty"` // Full of the second before
	Midnights map[int64]int64 `json:"midnights,omitempty"`
	Late      map[int64]int64 `json:"late,omitempty"`
}

// MarshalJSON stores the position.
func (p *Position) MarshalJSON() ([]byte, error) {
	s := stored{
		Rows: p.rows, Last: p.last, Days: p.days, Full: p.full[0], Missed: p.missed,
		Earlier: p.full[1], Midnights: p.midnights, Late: p.late,
	}
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
	if s.Rows < 0 || (s.Rows == 0) != s.Last.IsZero() {
		return fmt.Errorf("%d rows until %v", s.Rows, s.Last)
	}
	known, read := int64(0), recent{{}, {}}
	for i, sums := range s.Recent {
		if len(sums)%len(Sum{}) != 0 {
			return errors.New("a sum of a row is cut")
		}
		for sum := range slices.Chunk(sums, len(Sum{})) {
			read[i][Sum(sum)]++
			known++
		}
	}
	counted := since(time.Time{}, s.Days)
	if known > s.Rows || counted > s.Rows || s.Missed < 0 || min(s.Full, s.Earlier) < 0 || s.Full+s.Earlier > s.Rows || s.Rows > 0 && len(s.Recent[0]) == 0 {
		return fmt.Errorf("%d rows, %d of them of known days, and %d sums of rows", s.Rows, counted, known)
	}
	p.rows, p.last, p.recent, p.full = s.Rows, s.Last.UTC(), read, [2]int64{s.Full, s.Earlier}
	p.days, p.midnights, p.late, p.missed = s.Days, s.Midnights, s.Late, s.Missed
	return nil
}
