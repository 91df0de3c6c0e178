package resume

import (
	"errors"
	"time"
)

// Replay separates the new rows of one response from those that were delivered before.
type Replay struct {
	Lacking int64 // delivered rows that should have come again but did not

	position *Position
	from, to int64       // rows of the seconds between these must come again
	previous time.Time   // of the previous row
	left     map[Sum]int // delivered rows of its second that have not come again
}

// Replay returns a Replay for the response to a request for the rows between two seconds.
func (p *Position) Replay(from, to int64) *Replay {
	r := &Replay{position: p, from: from, to: to}
	for i, s := range p.recent {
		if r.again(p.First + int64(i)) {
			r.Lacking += s.rows()
		}
	}
	return r
}

// again reports whether the delivered rows of a second must come again. A source may omit those of the first second, and
// of the one of the end.
func (r *Replay) again(second int64) bool { return second > r.from && second < r.to }

// Take reports whether the next row of the response is new, and if so records it as delivered. Among rows with the same
// content, as many are known as have been delivered. A row that is earlier than the one before it is an error.
func (r *Replay) Take(at time.Time, sum Sum) (isNew bool, err error) {
	if at.Before(r.previous) {
		return false, errors.New("its rows are not in ascending order of their times")
	}
	unix := at.Unix()
	if unix != r.previous.Unix() {
		r.left = nil
		if sums := r.position.at(unix).sums; len(sums) > 0 {
			r.left = make(map[Sum]int, len(sums))
			for _, sum := range sums {
				r.left[sum]++
			}
		}
	}
	r.previous = at
	switch { // what the source counts at the end of a span
	case unix >= r.to && at.Nanosecond() > 0:
		r.position.Border = wholeSecond
	case unix >= r.to:
		r.position.Border = max(r.position.Border, atEnd)
	}
	if r.position.Handed > 0 && unix < r.position.First {
		return false, nil // delivered, or later than a row may be
	}
	if n := r.left[sum]; n > 0 {
		if r.left[sum] = n - 1; r.again(unix) {
			r.Lacking--
		}
		return false, nil
	}
	r.position.add(at, sum)
	return true, nil
}
