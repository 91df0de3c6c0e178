package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/filters"
)

// Span is a time range of the form, which ends now.
type Span struct{ Name, Label string }

// Spans are the choices of the form. [NewQuery] accepts other lengths, too.
var Spans = []Span{
	{"1h", "1 hour"}, {"6h", "6 hours"}, {"1d", "1 day"}, {"3d", "3 days"}, {"7d", "7 days"}, {"30d", "30 days"},
}

// day is a day of UTC, so it always has 24 hours.
const day = 24 * time.Hour

// The shortest and the longest time range.
const shortest, longest = 5 * time.Minute, 366 * day

// Buckets are the buckets of a time range. A chart has at most 366 of them, and the service still has their data.
type Buckets struct {
	By     webdelivery.Granularity
	Unit   string // a bucket in words
	upTo   time.Duration
	width  time.Duration
	layout string // of a bucket's time on the axis
}

var allBuckets = []Buckets{
	{webdelivery.Granularity5Minute, "5 minutes", 6 * time.Hour, 5 * time.Minute, "15:04"},
	{webdelivery.GranularityHour, "hour", day, time.Hour, "15:04"},
	{webdelivery.GranularityHour, "hour", 7 * day, time.Hour, "2 Jan 15:04"},
	{webdelivery.GranularityDay, "day", longest, day, "2 Jan"},
}

// Query is a time range and a filter.
type Query struct {
	Buckets
	Span       Span
	Start, End time.Time // Start is the beginning of a bucket
	filter     filters.Expr
}

// NewQuery creates a query for a span until now, such as 30m, 12h or 7d; "" is 1d. A nil filter is none. It returns
// an error, and a query with the default span alone, if the span cannot be read, is shorter than 5 minutes or longer
// than 366 days.
func NewQuery(span string, filter filters.Expr, now time.Time) (Query, error) {
	length, err := program.ParseDuration(cmp.Or(span, "1d"))
	if err != nil {
		return Query{Span: Spans[2]}, fmt.Errorf("%q: %w", span, err)
	}
	if length < shortest || length > longest {
		return Query{Span: Spans[2]}, fmt.Errorf("%q: %w", span, errors.New("want a duration from 5m to 366d"))
	}
	name := (*program.Duration)(&length).String()
	q := Query{Span: Span{name, name}, filter: filter}
	if i := slices.IndexFunc(Spans, func(s Span) bool { return s.Name == name }); i >= 0 {
		q.Span = Spans[i]
	}
	q.Buckets = allBuckets[slices.IndexFunc(allBuckets, func(b Buckets) bool { return length <= b.upTo })]
	q.End = now.UTC().Truncate(time.Second).Add(time.Second)
	q.Start = q.End.Add(-length).Truncate(q.width)
	return q, nil
}

// Over returns the end of the last bucket that is over.
func (q Query) Over() time.Time { return q.End.Truncate(q.width) }

// times returns the labels of the buckets that are over.
func (q Query) times() (labels []string) {
	for at := q.Start; at.Before(q.Over()); at = at.Add(q.width) {
		labels = append(labels, at.Format(q.layout))
	}
	return labels
}

// bucket returns the index of the bucket of a row. A time outside the time range counts in the nearest bucket.
func (q Query) bucket(at time.Time, buckets int) int {
	return max(0, min(buckets-1, int(at.Sub(q.Start)/q.width)))
}
