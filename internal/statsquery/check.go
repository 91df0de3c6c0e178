package statsquery

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report gets the parameter that is invalid, and the reason as a format with arguments.
type Report func(field, format string, args ...any)

// hits is the only metric. Raw events contain eventTimestamp even if it is not among the dimensions.
const (
	hits           = "hits"
	eventTimestamp = "event_timestamp_ms"
)

// check applies the rules of section 4.2 and those of the family.
func (f Family) check(q *Query, bad Report) {
	checkNames(bad, "dimensions", q.Dimensions)
	if f.top > 0 && len(q.Dimensions) == 0 {
		bad("dimensions", "must be set: only the categories browser, clientip, country, ruleid and severity have a default")
	}
	if f.aggregated {
		checkNames(bad, "metrics", q.Metrics)
		for i, m := range q.Metrics {
			if m != hits {
				bad(place("metrics", i), "%q is not a metric; the only one is hits", m)
			}
		}
	}
	checkSpan(bad, q)
	f.checkGranularity(bad, q.Granularity)
	if q.Filter != nil {
		if err := q.Filter.Validate(); err != nil {
			bad("filters", "%v", err)
		}
	}
	for i, s := range q.SortBy {
		asked := slices.Contains(q.Dimensions, s.Name) || slices.Contains(q.Metrics, s.Name) ||
			!f.aggregated && s.Name == eventTimestamp
		if !asked {
			bad(place("sortby", i), "%q is not among the requested dimensions and metrics", s.Name)
		}
	}
	if q.Limit < 0 {
		bad("limit", "%d is below 0", q.Limit)
	}
}

func place(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// checkNames refuses lists of names that the comma-separated parameter cannot carry.
func checkNames(bad Report, field string, names []string) {
	if len(names) == 0 {
		bad(field, "is empty")
	}
	for i, name := range names {
		switch {
		case name == "" || strings.ContainsAny(name, ", "):
			bad(place(field, i), "%q is not a valid name", name)
		case slices.Contains(names[:i], name):
			bad(place(field, i), "%q comes twice", name)
		}
	}
}

// checkSpan truncates the times to whole seconds of UTC, as they are sent, and compares them.
func checkSpan(bad Report, q *Query) {
	if q.Start.IsZero() {
		bad("starttime", "is not set")
	}
	if q.End.IsZero() {
		bad("endtime", "is not set")
	}
	q.Start, q.End = q.Start.UTC().Truncate(time.Second), q.End.UTC().Truncate(time.Second)
	checkYear(bad, "starttime", q.Start)
	checkYear(bad, "endtime", q.End)
	if !q.Start.IsZero() && !q.End.IsZero() && !q.End.After(q.Start) {
		bad("endtime", "%s is not after starttime %s, in whole seconds", q.End.Format(timeLayout), q.Start.Format(timeLayout))
	}
}

// checkYear refuses times whose year does not have the four digits of the pattern.
func checkYear(bad Report, field string, at time.Time) {
	if year := at.Year(); year < 1 || year > 9999 {
		bad(field, "is in the year %d, which the service's format cannot express", year)
	}
}

func (f Family) checkGranularity(bad Report, granularity string) {
	switch granularity {
	case fiveMinutes, hour, day:
	case "":
		if f.granularity {
			bad("granularity", "must be set to 5minute, hour or day")
		}
	default:
		bad("granularity", "%q is not 5minute, hour or day", granularity)
	}
}
