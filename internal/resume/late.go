package resume

import "time"

// search reads the parts of a span that have more rows than were delivered, except those of its first second, which the
// source may omit. more is the number of new rows, and total that of all rows. It reads the whole span if that costs
// less than asking on, because it has few rows, or many new ones.
func (r *Run) search(from, to time.Time, more, total int64) error {
	middle := from.Add(to.Sub(from) / 2).Truncate(time.Second)
	begin := middle.Add(-time.Second) // of the right half, which overlaps the left one, so that the borders do not matter
	switch {
	case more <= 0:
		return nil
	case total <= r.Few, more >= 8*total/r.Few, !begin.After(from):
		return r.read(from, to, total)
	}
	handed := r.Position.Handed
	left, rows, err := r.surplus(from, middle)
	if err == nil {
		err = r.search(from, middle, left, rows)
	}
	if err != nil {
		return err
	}
	right, rest := more-left, total-rows+r.Position.at(begin.Unix()).rows()
	if r.Position.Handed-handed != max(left, 0) { // the borders are not where they seemed to be
		if right, rest, err = r.surplus(begin, to); err != nil {
			return err
		}
	}
	return r.search(begin, to, right, rest)
}

// surplus returns how many more rows a span of recognized seconds has than were delivered, and how many it has. If the
// first row of the source is after the start of the span, the source omits those at the start.
func (r *Run) surplus(from, to time.Time) (more, total int64, err error) {
	p := r.Position
	total, first, err := r.total(from, to)
	known := r.atBorder(to)
	for at := from.Unix(); at < min(to.Unix(), p.First+int64(len(p.recent))); at++ {
		known += p.at(at).rows()
	}
	switch start := p.at(from.Unix()); {
	case total == 0, first.Unix() > from.Unix():
		known -= start.rows()
	case first.After(from):
		known -= start.full
	}
	return total - known, total, err
}

// atBorder returns how many delivered rows of the second of the end of a span the source counts.
func (r *Run) atBorder(end time.Time) int64 {
	switch s := r.Position.at(end.Unix()); r.Position.Border {
	case atEnd:
		return s.full
	case wholeSecond:
		return s.rows()
	default:
		return 0
	}
}

// check counts the late rows that no run has reported, and returns the number of late rows of each day. It asks only for
// rows before those that the position recognizes: rows that are still being added then do not matter, nor do days that
// the source no longer keeps. All days are counted anew, because a replica may have made a late row one of another day.
func (r *Run) check(missing *Missing) (late perDay, err error) {
	p := r.Position
	from := later(p.Start, r.Source.KeptFrom())
	known := p.Late.since(dayOf(from.Unix()))
	missing.Late, missing.From, r.within = 0, time.Time{}, 0
	rest, err := r.unknown(from)
	if err == nil && rest > known { // some may be of the first recognized second, or the source counts those at its end
		if r.within, _, err = r.surplus(p.first(), p.first().Add(time.Second)); err == nil {
			rest -= r.within
		}
	}
	if err != nil || rest <= known {
		return p.Late, err
	}
	for missing.Late, late = rest-known, (perDay{}); rest > 0; {
		day, next := dayOf(from.Unix()), from.Truncate(24*time.Hour).Add(24*time.Hour)
		others, err := r.unknown(next)
		if err != nil {
			return nil, err
		}
		others = min(rest, max(0, others)) // so that the sum of all days is what was counted at first
		if late[day] = rest - others; late[day] > p.Late[day] {
			if missing.From.IsZero() {
				missing.From = from
			}
			missing.To = earlier(next, p.first())
		}
		from, rest = next, others
	}
	return late, nil
}

// unknown returns how many rows from a time on, up to the first second that the position recognizes, were not delivered.
// from is the start of a day or of the export. The span includes that second, whose rows can be counted again.
func (r *Run) unknown(from time.Time) (int64, error) {
	p, day := r.Position, dayOf(from.Unix())
	if p.First <= from.Unix() {
		return 0, nil
	}
	to := p.first().Add(time.Second)
	total, first, err := r.total(from, to)
	rest := total - p.Days.since(day) - p.at(p.First).rows() - r.atBorder(to) - r.within
	switch {
	case total == 0, first.Unix() > from.Unix():
		rest += p.Firsts[day]
	case first.After(from):
		rest += p.Midnights[day]
	}
	return rest, err
}

// earlier returns the earlier time.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
