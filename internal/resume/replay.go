package resume

import (
	"errors"
	"time"
)

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
	return &Replay{position: p, begin: Position{rows: p.rows, last: p.last}, left: p.recent.clone()}
}

// Take judges the next row of the response. If the row is new, Take counts it as handed out and returns true. Of rows
// with the same content, as many are known as have been handed out. It returns [ErrNotAscending] for a row that is
// earlier than the one before it.
func (r *Replay) Take(at time.Time, sum Sum) (isNew bool, err error) {
	if at.Before(r.previous) {
		return false, ErrNotAscending
	}
	r.previous = at
	if r.begin.rows > 0 {
		ago := r.begin.secondsAgo(at)
		if ago >= int64(len(r.left)) {
			return false, nil // earlier than requested
		}
		if ago >= 0 && r.left[ago][sum] > 0 {
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
	if r.begin.last.Equal(end) {
		return r.left[1].count()
	}
	return r.left.count()
}
