package statsquery

import (
	"cmp"
	"math"
	"time"
)

// Family is what the families differ in.
type Family struct {
	Path    string // base path
	NoLimit bool   // it takes no limit

	aggregated  bool   // takes metrics
	granularity bool   // requires one
	top         int64  // rows at most; 0: no bound
	dimension   string // default of a top-K; "": not known
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

// Encode fills in the defaults of a top-K, cuts the times to whole seconds of UTC, and returns the query string. If a
// parameter is invalid, Encode calls bad for each of them, with their names on the wire, and returns "". startTime is the
// name of the parameter with the start.
func (f Family) Encode(q *Query, startTime string, bad Report) string {
	valid := true
	f.setDefaults(q)
	f.check(q, func(field, format string, args ...any) {
		valid = false
		bad(field, format, args...)
	})
	if !valid {
		return "" // not even the filter can be written
	}
	return q.encode(startTime)
}

// setDefaults fills in what a top-K needs: the only metric, and the dimension of its category.
func (f Family) setDefaults(q *Query) {
	if f.top > 0 && len(q.Metrics) == 0 {
		q.Metrics = []string{hits}
	}
	if f.dimension != "" && len(q.Dimensions) == 0 {
		q.Dimensions = []string{f.dimension}
	}
}

// WithHeadroom returns the limit with which to ask for so many rows, and for those that are added in the meantime; but
// never for more than a top-K has.
func (f Family) WithHeadroom(total int64) int64 {
	room := max(1000, total/100)
	return min(total+min(room, math.MaxInt64-total), f.most())
}

// most is how many rows a response can have.
func (f Family) most() int64 { return cmp.Or(f.top, math.MaxInt64) }

// defaultLimit is how many rows a response has without a limit.
const defaultLimit = 10

// Complete reports whether no row is missing: there are as many as match, up to the limit, but never more than a top-K
// gives. All rows are as many as match, and not as many as were asked for: then more may match than total says.
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

// Finest returns the finest granularity for which the service has data of the whole span, by both accounts of section 8
// (open point 13).
func Finest(start, end, now time.Time) string {
	if end.Before(start) {
		start = end
	}
	now = now.UTC() // the days of another zone may have 25 hours
	switch {
	case !start.Before(now.AddDate(0, 0, -7)):
		return fiveMinutes
	case !start.Before(now.AddDate(0, -1, 0)):
		return hour
	default:
		return day
	}
}
