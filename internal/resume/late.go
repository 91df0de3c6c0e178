package resume

import "cmp"

// search reads the parts of a span that have more rows than were delivered, except those of its first second, which the
// source may omit. more is the number of new rows, and total that of all rows. It reads the whole span if that costs
// less than asking on, because it has few rows, or many new ones.
func (r *Run) search(from, to, more, total int64) error {
	middle := from + (to-from)/2
	begin := middle - 1 // of the right half, which overlaps the left one, so that the borders do not matter
	switch {
	case more <= 0:
		return nil
	case total <= r.Few, more >= 8*total/r.Few, begin <= from:
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
	right, rest := more-left, total-rows+r.Position.at(begin).rows()
	if r.Position.Handed-handed != max(left, 0) { // the borders are not where they seemed to be
		if right, rest, err = r.surplus(begin, to); err != nil {
			return err
		}
	}
	return r.search(begin, to, right, rest)
}

// surplus returns how many more rows a span has than were delivered, and how many it has. It begins at a recognized
// second, or at the start of a day or of the export, and then ends after the first recognized second. If the first row
// of the source is after the start of the span, the source omits those at the start.
func (r *Run) surplus(from, to int64) (more, total int64, err error) {
	p, day := r.Position, dayOf(from)
	total, first, err := r.total(from, to)
	delivered, rows, full := int64(0), p.at(from).rows(), p.at(from).full
	if from < p.First {
		delivered, rows, full = p.Days.since(day), p.Firsts[day], p.Midnights[day]
	}
	switch p.Border { // the source may count delivered rows of the second of the end
	case exclusive:
	case atEnd:
		delivered += p.at(to).full
	case wholeSecond:
		delivered += p.at(to).rows()
	}
	for at := max(from, p.First); at < min(to, p.First+int64(len(p.recent))); at++ {
		delivered += p.at(at).rows()
	}
	switch {
	case total == 0, first.Unix() > from:
		delivered -= rows
	case first.Nanosecond() > 0:
		delivered -= full
	}
	return total - delivered, total, err
}

// check counts the late rows that no run has reported, and returns the number of late rows of each day. It asks only for
// rows before those that the position recognizes: rows that are still being added then do not matter, nor do days that
// the source no longer keeps. All days are counted anew, because a replica may have made a late row one of another day.
func (r *Run) check(missing *Missing) (late perDay, err error) {
	p, within := r.Position, int64(0)
	from := max(p.Start.Unix(), r.Source.KeptFrom())
	missing.Late, missing.From = 0, 0
	if p.First <= from {
		return p.Late, nil
	}
	told := p.Late.since(dayOf(from))
	rest, _, err := r.surplus(from, p.First+1)
	if err == nil && rest > told { // some may be of the first recognized second, or the source counts those at its end
		within, _, err = r.surplus(p.First, p.First+1)
		rest -= within
	}
	if err != nil || rest <= told {
		return p.Late, err
	}
	for missing.Late, late = rest-told, (perDay{}); rest > 0; {
		today, others := dayOf(from), int64(0)
		next := (today + 1) * day
		if next < p.First {
			if others, _, err = r.surplus(next, p.First+1); err != nil {
				return nil, err
			}
			others = min(rest, max(0, others-within)) // so that the sum of all days is what was counted at first
		}
		if late[today] = rest - others; late[today] > p.Late[today] {
			missing.From = cmp.Or(missing.From, from)
			missing.To = min(next, p.First)
		}
		from, rest = next, others
	}
	return late, nil
}
