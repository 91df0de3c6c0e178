package statsquery

import (
	"cmp"
	"math"
	"time"
)

// Family has the properties in which the families of statistics differ.
type Family struct {
	Path    string // base path
	NoLimit bool   // it has no parameter limit

	aggregated  bool   // it has metrics
	granularity bool   // it requires a granularity
	top         int64  // largest number of rows; 0: no bound
	dimension   string // default dimension of a top-K; "": unknown
}

// The families that have no categories.
var (
	Events        = Family{Path: "/stats/security/events"}
	WAFTrends     = Family{Path: "/stats/security/waf/trends", aggregated: true, granularity: true}
	RequestTrends = Family{Path: "/stats/security/request/trends", aggregated: true}
	ShapingTrends = Family{Path: "/stats/security/trafficshaping/trends", aggregated: true, granularity: true}
)

// The dimension of each category; "" where the service document does not name it (open point 47).
var (
	wafCategories = map[string]string{
		"browser": "client_browser", "clientip": "client_ip", "country": "client_country_code", "requestpath": "",
		"ruleid": "rule_id", "severity": "event_severity",
	}
	shapingCategories = map[string]string{
		"browser": "client_browser", "clientip": "client_ip", "country": "client_country_code",
		"ratelimitclientip": "", "ratelimitcountry": "", "requestpath": "",
	}
)

// WAFTopK returns the family of a category. It returns false if the service does not have the category.
func WAFTopK(category string) (Family, bool) {
	dimension, known := wafCategories[category]
	return Family{Path: "/stats/security/waf/topk/" + category, NoLimit: true, aggregated: true, top: 20, dimension: dimension}, known
}

// ShapingTopK is [WAFTopK] for traffic shaping.
func ShapingTopK(category string) (Family, bool) {
	dimension, known := shapingCategories[category]
	return Family{Path: "/stats/security/trafficshaping/topk/" + category, aggregated: true, top: 1000, dimension: dimension}, known
}

// Encode sets the defaults of a top-K, truncates the times to whole seconds of UTC, and returns the query string. If
// parameters are invalid, Encode calls bad for each of them, with its name on the wire, and returns "". startTime is
// the name of the parameter for the start.
func (f Family) Encode(q *Query, startTime string, bad Report) string {
	valid := true
	f.setDefaults(q)
	f.check(q, func(field, format string, args ...any) {
		valid = false
		bad(field, format, args...)
	})
	if !valid {
		return "" // without encode, because an invalid filter has no text
	}
	return q.encode(startTime)
}

// setDefaults sets the metric and the dimension of a top-K.
func (f Family) setDefaults(q *Query) {
	if f.top > 0 && len(q.Metrics) == 0 {
		q.Metrics = []string{hits}
	}
	if f.dimension != "" && len(q.Dimensions) == 0 {
		q.Dimensions = []string{f.dimension}
	}
}

// WithHeadroom returns the limit for a request that must return total rows, with a reserve for rows that are added
// meanwhile. It is never more than a top-K has.
func (f Family) WithHeadroom(total int64) int64 {
	room := max(1000, total/100)
	return min(total+min(room, math.MaxInt64-total), f.most())
}

// most is how many rows a response can have.
func (f Family) most() int64 { return cmp.Or(f.top, math.MaxInt64) }

// defaultLimit is the limit of the service if a request has none.
const defaultLimit = 10

// Complete reports whether no row is missing: got must reach total, or less if the limit or the size of a top-K is
// lower. With all, got must also stay below the limit: if the response is full, more rows may match than total says.
func (f Family) Complete(got, total, limit int64, all bool) bool {
	want := total
	if !all && !f.NoLimit {
		want = min(want, cmp.Or(limit, defaultLimit))
	}
	full := all && limit < f.most() && got == limit
	return !full && got >= min(want, f.most())
}

// The granularities.
const (
	fiveMinutes = "5minute"
	hour        = "hour"
	day         = "day"
)

// Finest returns the finest granularity for which the service has data of the whole span. It satisfies both statements
// of section 8 (open point 13).
func Finest(start, end, now time.Time) string {
	if end.Before(start) {
		start = end
	}
	now = now.UTC() // in other zones a day may have 25 hours
	switch {
	case !start.Before(now.AddDate(0, 0, -7)):
		return fiveMinutes
	case !start.Before(monthBefore(now)):
		return hour
	default:
		return day
	}
}

// monthBefore returns the same time of the month before. If that month is too short, it is the last day: a month before
// 31 March is 28 or 29 February. [time.Time.AddDate] would return a day in March.
func monthBefore(now time.Time) time.Time {
	before := now.AddDate(0, -1, 0)
	if before.Day() != now.Day() {
		before = before.AddDate(0, 0, -before.Day())
	}
	return before
}
