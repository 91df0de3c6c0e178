package resume

import (
	"bytes"
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
	mu sync.Mutex // held by all that changes the position, and by Clone
	counted
	recent recent // the rows of the last second and of the one before
}

// counted is the part of a position that is stored as it is. The order of its fields belongs to the checksum of a cursor.
type counted struct {
	Handed    int64     `json:"rows"`                // rows that have been handed out
	Latest    time.Time `json:"last,omitzero"`       // the latest time of a row
	Recent    [2][]byte `json:"recent,omitzero"`     // only stored: concatenated sums; n copies for a row that came n times
	Days      perDay    `json:"days,omitempty"`      // rows of each day
	Full      int64     `json:"full,omitempty"`      // rows at the very beginning of the last second
	Earlier   int64     `json:"earlier,omitempty"`   // rows at the very beginning of the second before the last
	Midnights perDay    `json:"midnights,omitempty"` // rows at the very beginning of each day
	Late      perDay    `json:"late,omitempty"`      // rows of each day that are missing, and reported
}

// perDay counts rows by their days, numbered from 1970.
type perDay map[int64]int64

func dayOf(at time.Time) int64 { return at.Truncate(24*time.Hour).Unix() / (24 * 60 * 60) }

// since returns the number of rows of the day of a time and of later days.
func (d perDay) since(at time.Time) (rows int64) {
	for day, n := range d {
		if day >= dayOf(at) {
			rows += n
		}
	}
	return rows
}

// plus counts one more row, and forgets what is older than a week. A service keeps events for less.
func (d perDay) plus(at time.Time) perDay {
	if d == nil {
		d = perDay{}
	}
	day := dayOf(at)
	if d[day]++; d[day] == 1 {
		maps.DeleteFunc(d, func(old, _ int64) bool { return old < day-7 })
	}
	return d
}

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
func (p *Position) Rows() int64 { return p.Handed }

// Last returns the latest time of a row that has been handed out; zero without one.
func (p *Position) Last() time.Time { return p.Latest }

// From returns the start of the next request, in whole seconds: one second before the rows that Take recognizes, because
// a source may leave out rows at the very start. It is before every row at the beginning.
func (p *Position) From() time.Time { return p.Latest.Truncate(time.Second).Add(-2 * time.Second) }

// Clone returns an independent copy, without the number of missing rows that an earlier version stored. A run reports
// these again, because a number without days would hide others.
func (p *Position) Clone() *Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &Position{counted: p.counted, recent: p.recent.clone()}
	c.Days, c.Midnights, c.Late = maps.Clone(p.Days), maps.Clone(p.Midnights), maps.Clone(p.Late)
	return c
}

// secondsAgo returns how many whole seconds before that of the last row a time lies; below 0 for a later one.
func (p *Position) secondsAgo(at time.Time) int64 { return p.Latest.Unix() - at.Unix() }

// add counts a row as handed out. The row is at most one whole second earlier than the last.
func (p *Position) add(at time.Time, sum Sum) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ago := p.secondsAgo(at); {
	case p.Handed == 0 || ago < -1:
		p.recent, p.Full, p.Earlier = recent{{}, {}}, 0, 0
	case ago == -1:
		p.recent, p.Full, p.Earlier = recent{{}, p.recent[0]}, 0, p.Full
	}
	if p.Handed == 0 || at.After(p.Latest) {
		p.Latest = at
	}
	p.Handed, p.Days = p.Handed+1, p.Days.plus(at)
	ago := p.secondsAgo(at)
	p.recent[ago][sum]++
	if at.Equal(at.Truncate(time.Second)) {
		*[]*int64{&p.Full, &p.Earlier}[ago]++
	}
	if at.Equal(at.Truncate(24 * time.Hour)) {
		p.Midnights = p.Midnights.plus(at)
	}
}

// MarshalJSON stores the position.
func (p *Position) MarshalJSON() ([]byte, error) {
	s := p.counted
	for i, counts := range p.recent {
		for _, sum := range slices.SortedFunc(maps.Keys(counts), func(a, b Sum) int { return slices.Compare(a[:], b[:]) }) {
			s.Recent[i] = append(s.Recent[i], bytes.Repeat(sum[:], counts[sum])...)
		}
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads a stored position. It returns an error for one that MarshalJSON cannot have written.
func (p *Position) UnmarshalJSON(b []byte) error {
	var s counted
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	known := recent{{}, {}}
	for i, sums := range s.Recent {
		if len(sums)%len(Sum{}) != 0 {
			return errors.New("a sum of a row is cut")
		}
		for sum := range slices.Chunk(sums, len(Sum{})) {
			known[i][Sum(sum)]++
		}
	}
	days := s.Days.since(time.Time{})
	if max(known.count(), days, s.Full+s.Earlier) > s.Handed || min(s.Handed, s.Full, s.Earlier) < 0 ||
		s.Latest.IsZero() != (s.Handed == 0) || s.Handed > 0 && len(known[0]) == 0 {
		return fmt.Errorf("%d rows until %v, %d of them of known days, and %d sums of rows", s.Handed, s.Latest, days, known.count())
	}
	s.Latest, s.Recent = s.Latest.UTC(), [2][]byte{}
	p.counted, p.recent = s, known
	return nil
}

// ErrNotAscending means that a response does not have its rows in ascending order of their times.
var ErrNotAscending = errors.New("its rows are not in ascending order of their times")

// Replay separates the new rows of one response from those that were handed out before. Its rows must begin at
// [Position.From] of the position, or later.
type Replay struct {
	position *Position
	begin    Position // where the response begins
	left     recent   // rows that have been handed out and have not come again
	previous time.Time
}

// Replay begins a response.
func (p *Position) Replay() *Replay {
	return &Replay{position: p, begin: Position{counted: counted{Handed: p.Handed, Latest: p.Latest}}, left: p.recent.clone()}
}

// Take judges the next row of the response. If the row is new, Take counts it as handed out and returns true. Of rows
// with the same content, as many are known as have been handed out. It returns [ErrNotAscending] for a row that is
// earlier than the one before it.
func (r *Replay) Take(at time.Time, sum Sum) (isNew bool, err error) {
	if at.Before(r.previous) {
		return false, ErrNotAscending
	}
	r.previous = at
	if ago := r.begin.secondsAgo(at); r.begin.Handed > 0 && ago >= 0 {
		if ago >= int64(len(r.left)) {
			return false, nil // earlier than the rows that are known
		}
		if r.left[ago][sum] > 0 {
			r.left[ago][sum]--
			return false, nil
		}
	}
	r.position.add(at, sum)
	return true, nil
}

// Left returns how many rows that were handed out before should have come again, and did not. A source may leave out rows
// at the very end of the span, also if it had them as a part of a longer one.
func (r *Replay) Left(end time.Time) int64 {
	if r.begin.Latest.Equal(end) {
		return r.left[1].count()
	}
	return r.left.count()
}
