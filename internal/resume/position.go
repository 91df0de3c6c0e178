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

// Sum is a checksum of a row. Rows with the same content have the same Sum.
type Sum [16]byte

// Position is how far an export has come. The zero value is its beginning. It may be used by one [Run] at a time,
// during which only Clone may be called concurrently.
type Position struct {
	mu sync.Mutex // held while the position changes, and by Clone
	counted
	recent recent // the rows of the last second and of the one before
}

// counted is the stored form of a position. The order of its fields affects the checksum of a cursor.
type counted struct {
	Handed    int64     `json:"rows"`                // number of rows delivered
	Latest    time.Time `json:"last,omitzero"`       // latest time of a delivered row
	Recent    [2][]byte `json:"recent,omitzero"`     // only when stored: sums, n copies for a row that came n times
	Days      perDay    `json:"days,omitempty"`      // delivered rows of each day
	Full      int64     `json:"full,omitempty"`      // rows exactly at the start of the last second
	Earlier   int64     `json:"earlier,omitempty"`   // rows exactly at the start of the second before the last
	Midnights perDay    `json:"midnights,omitempty"` // rows exactly at the start of each day
	Late      perDay    `json:"late,omitempty"`      // missing rows of each day that have been reported
}

// perDay counts rows by day, numbered from 1970.
type perDay map[int64]int64

func dayOf(at time.Time) int64 { return at.Truncate(24*time.Hour).Unix() / (24 * 60 * 60) }

// since returns the number of rows of the day of at and of later days.
func (d perDay) since(at time.Time) (rows int64) {
	for day, n := range d {
		if day >= dayOf(at) {
			rows += n
		}
	}
	return rows
}

// plus counts one more row, and drops days older than a week, for which the service no longer has events.
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

// sums counts rows by their sums, since rows can have the same content.
type sums map[Sum]int

func (s sums) count() (n int64) {
	for _, times := range s {
		n += int64(times)
	}
	return n
}

// recent holds the rows of one second and of the second before.
type recent [2]sums

func (r recent) clone() recent { return recent{maps.Clone(r[0]), maps.Clone(r[1])} }
func (r recent) count() int64  { return r[0].count() + r[1].count() }

// Rows returns the number of rows delivered so far.
func (p *Position) Rows() int64 { return p.Handed }

// Last returns the latest time of a delivered row, or the zero time if there is none.
func (p *Position) Last() time.Time { return p.Latest }

// From returns the start of the next request, in whole seconds. It is one second before the rows that Take recognizes,
// because a source may omit rows exactly at the start. For the zero Position it is before every row.
func (p *Position) From() time.Time { return p.Latest.Truncate(time.Second).Add(-2 * time.Second) }

// Clone returns an independent copy.
func (p *Position) Clone() *Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &Position{counted: p.counted, recent: p.recent.clone()}
	c.Days, c.Midnights, c.Late = maps.Clone(p.Days), maps.Clone(p.Midnights), maps.Clone(p.Late)
	return c
}

// secondsAgo returns how many whole seconds at is before the second of the last row. It is negative if at is later.
func (p *Position) secondsAgo(at time.Time) int64 { return p.Latest.Unix() - at.Unix() }

// add records a row as delivered. Its second is at most one before that of the last row.
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

// MarshalJSON encodes the position.
func (p *Position) MarshalJSON() ([]byte, error) {
	s := p.counted
	for i, counts := range p.recent {
		for _, sum := range slices.SortedFunc(maps.Keys(counts), func(a, b Sum) int { return slices.Compare(a[:], b[:]) }) {
			s.Recent[i] = append(s.Recent[i], bytes.Repeat(sum[:], counts[sum])...)
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

// ErrNotAscending means that the rows of a response are not in ascending order of their times.
var ErrNotAscending = errors.New("its rows are not in ascending order of their times")

// Replay separates the new rows of one response from those that were delivered before. The rows of the response must
// begin at [Position.From] or later.
type Replay struct {
	position *Position
	begin    Position // the position at the start of the response
	left     recent   // delivered rows that have not come again
	previous time.Time
}

// Replay returns a Replay for the next response.
func (p *Position) Replay() *Replay {
	return &Replay{position: p, begin: Position{counted: counted{Handed: p.Handed, Latest: p.Latest}}, left: p.recent.clone()}
}

// Take reports whether the next row of the response is new, and if so records it as delivered. Among rows with the same
// content, as many are known as have been delivered. It returns [ErrNotAscending] if the row is earlier than the one
// before it.
func (r *Replay) Take(at time.Time, sum Sum) (isNew bool, err error) {
	if at.Before(r.previous) {
		return false, ErrNotAscending
	}
	r.previous = at
	if ago := r.begin.secondsAgo(at); r.begin.Handed > 0 && ago >= 0 {
		if ago >= int64(len(r.left)) {
			return false, nil // earlier than the recorded rows
		}
		if r.left[ago][sum] > 0 {
			r.left[ago][sum]--
			return false, nil
		}
	}
	r.position.add(at, sum)
	return true, nil
}

// Left returns how many delivered rows should have come again but did not. It does not count rows exactly at the end of
// the span, which a source may omit even if it returned them for a longer span.
func (r *Replay) Left(end time.Time) int64 {
	if r.begin.Latest.Equal(end) {
		return r.left[1].count()
	}
	return r.left.count()
}
