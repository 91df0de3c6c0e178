package testserver

import (
	"net/http"
	"strings"
	"time"
)

// parseStatsTime reads yyyy-MM-ddTHH:mm:ss in UTC, without a zone designator. 24:00:00 is 00:00:00 of the next day
// (service document, section 4.2, open point 11). It formats the result again and compares it with the text, because
// time.Parse accepts more than the layout.
func parseStatsTime(name, value string) (time.Time, error) {
	const layout = "2006-01-02T15:04:05"
	var more time.Duration
	text := value
	if day, ok := strings.CutSuffix(value, "T24:00:00"); ok {
		text, more = day+"T00:00:00", 24*time.Hour
	}
	t, err := time.Parse(layout, text)
	if err != nil || t.Format(layout) != text {
		return time.Time{}, refuse(http.StatusBadRequest, "%s must have the form yyyy-MM-ddTHH:mm:ss, without time zone designator", name)
	}
	return t.Add(more), nil
}

// granularity is the bucket size of trends, with the time for which its data are stored (section 8). A bucket is stored
// as long as part of it is recent enough. After that, its events are in no row.
type granularity struct {
	name string
	size time.Duration
	kept func(now time.Time) (since time.Time)
}

var granularities = []granularity{
	{"day", 24 * time.Hour, always},
	{"hour", time.Hour, aMonthAgo},
	{"5minute", 5 * time.Minute, func(now time.Time) time.Time { return now.AddDate(0, 0, -7) }},
}

// aMonthAgo returns the same day and time of the previous month, or its last day if it has no such day.
func aMonthAgo(now time.Time) time.Time {
	year, month, day := now.Date()
	if last := time.Date(year, month, 0, 0, 0, 0, 0, time.UTC).Day(); day > last {
		now = now.AddDate(0, 0, last-day)
	}
	return now.AddDate(0, -1, 0)
}

func always(time.Time) time.Time { return time.Time{} }

// since returns the start of the earliest bucket that exists.
func (g granularity) since(now time.Time) time.Time {
	return g.kept(now.UTC()).Truncate(g.size)
}

// bucket returns the start of the bucket of an event.
func (g granularity) bucket(e *record) value {
	return timeValue(e.Time.Truncate(g.size).UnixMilli())
}

// rawSince returns the time from which raw events are stored: the previous three days plus the elapsed part of the
// current day (section 6).
func rawSince(now time.Time) time.Time {
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
}
