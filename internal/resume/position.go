package resume

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Sum stands for the content of a row. Rows with the same content have the same sum.
type Sum [16]byte

// Position is how far an export has come. The zero value is its beginning.
type Position struct {
	rows   int64
	last   time.Time // the latest time of a row
	recent recent    // the rows of that second and of the one before
}

// recent counts rows by their sums: rows of one second, and of the second before. Rows with the same content are possible.
type recent [2]map[Sum]int

func (r recent) clone() recent { return recent{maps.Clone(r[0]), maps.Clone(r[1])} }

// Rows returns the number of rows that have been handed out.
func (p *Position) Rows() int64 { return p.rows }

// Last returns the latest time of a row that has been handed out; zero without one.
func (p *Position) Last() time.Time { return p.last }

// From returns the time from which on to ask for rows again: one second before that of the last row, in whole seconds. It
// returns the zero time at the beginning.
func (p *Position) From() time.Time {
	if p.rows == 0 {
		return time.Time{}
	}
	return p.last.Truncate(time.Second).Add(-time.Second)
}

// Clone returns a copy that stays as it is.
func (p *Position) Clone() *Position {
	return &Position{p.rows, p.last, p.recent.clone()}
}

// secondsAgo returns how many whole seconds before that of the last row a time lies; below 0 for a later one.
func (p *Position) secondsAgo(at time.Time) int64 { return p.last.Unix() - at.Unix() }

// add counts a row as handed out. It is at most one second, in whole ones, before the last.
func (p *Position) add(at time.Time, sum Sum) {
	switch ago := p.secondsAgo(at); {
	case p.rows == 0 || ago < -1:
		p.recent = recent{{}, {}}
	case ago == -1:
		p.recent = recent{{}, p.recent[0]}
	}
	if p.rows == 0 || at.After(p.last) {
		p.last = at
	}
	p.rows++
	p.recent[p.secondsAgo(at)][sum]++
}

// stored is a Position as JSON.
type stored struct {
	Rows   int64     `json:"rows"`
	Last   time.Time `json:"last,omitzero"`
	Recent [2][]byte `json:"recent,omitzero"` // sums one behind the other, of a row that came n times n of them
}

// MarshalJSON stores the position.
func (p *Position) MarshalJSON() ([]byte, error) {
	s := stored{Rows: p.rows, Last: p.last}
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
	read := Position{rows: s.Rows, last: s.Last.UTC(), recent: recent{{}, {}}}
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
	if known > s.Rows || s.Rows > 0 && len(s.Recent[0]) == 0 {
		return fmt.Errorf("%d rows, and %d sums of rows", s.Rows, known)
	}
	*p = read
	return nil
}
