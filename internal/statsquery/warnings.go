package statsquery

import (
	"fmt"
	"time"
)

// clockSlack is how much the clocks of the service and of this machine may differ. It also covers the time between the
// building of a query and its call.
const clockSlack = 5 * time.Minute

// EventsKept returns the earliest time for which raw events exist: the begin of the UTC day three days before now (section
// 6).
func EventsKept(now time.Time) time.Time {
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
}

// Warnings says which part of the time range of a query the service may no longer have (sections 6 and 8). Nothing in the
// response shows that: rows are missing, or their sums are too small. A query without a granularity has no warning, nor
// has a top-K, because the document does not say how long their data is kept. q is one that [Family.Encode] has accepted.
func (f Family) Warnings(q *Query, now time.Time) []string {
	start := q.Start.Add(clockSlack) // and not now without it: a month before may be another day then
	if !f.aggregated {
		kept := EventsKept(now)
		if !start.Before(kept) {
			return nil
		}
		return []string{fmt.Sprintf("the time range begins at %s, but raw events are kept for three days and today, since %s; earlier ones are missing",
			q.Start.Format(timeLayout), kept.Format(timeLayout))}
	}
	finest := Finest(start, q.End, now)
	if width[q.Granularity] >= width[finest] || q.Granularity == "" {
		return nil
	}
	return []string{fmt.Sprintf("the time range begins at %s, but data of granularity %s is kept for %s; hits before that may be missing, so use granularity %s",
		q.Start.Format(timeLayout), q.Granularity, keptFor[q.Granularity], finest)}
}

// width orders the granularities.
var width = map[string]int{fiveMinutes: 1, hour: 2, day: 3}

// keptFor is how long data of a granularity is kept. Daily data is kept forever.
var keptFor = map[string]string{fiveMinutes: "a week", hour: "a month"}
