package webdelivery

import (
	"time"

	"github.com/webdelivery/webdelivery-go/filters"
)

// Names of dimensions, with the type that [Scan] reads each into. The service may have others, so a query may use any
// string. The words in a column differ between services, even in letter case (open point 43), so read some events
// before you filter by a word. A column may contain null, which only a pointer to the type can hold. (Service document,
// [section 2.5].)
//
// [section 2.5]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#25-dimensions-and-metrics
const (
	DimEventTimestamp           = "event_timestamp_ms"          // when the request was received: a time.Time; in aggregated rows see open point 35
	DimEventSeverity            = "event_severity"              // how severe the event is, a word: a string
	DimEventType                = "event_type"                  // type of the event, a word such as CUSTOM: a string
	DimEventAction              = "event_action"                // action on the event, a word such as WARN: a string
	DimClientConnectionRemoteIP = "client_connection_remote_ip" // source address of the client's connection: a netip.Addr
	DimClientIP                 = "client_ip"                   // address of the client: a netip.Addr
	DimClientBrowser            = "client_browser"              // browser of the client: a string, which the client chose
	DimClientCountryCode        = "client_country_code"         // country of the client, two letters: a string
	DimClientASN                = "client_asn"                  // number of the client's network (autonomous system): an int64
	DimRuleID                   = "rule_id"                     // id of the rule that applied: a string
	DimDomain                   = "domain"                      // domain that was requested: a string
	DimProperty                 = "property"                    // property of the customer that the request was for: a string
	DimWAFAction                = "waf_action"                  // action of the WAF, a word: a string
)

// MetricHits is the only metric: how many requests a row counts, an int64.
const MetricHits = "hits"

// Granularity is the width of the time buckets of a trend. [GranularityFor] returns one that suits the time range. If
// the service no longer has data that fine for the whole time range, the hits are only partial sums, and
// [StatsFamily.Warnings] says so. (Service document, [section 4.2]; open point 13.)
//
// [section 4.2]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#42-common-rules-for-security-statistics-queries
type Granularity string

// The granularities of the service, with how long it keeps the data of each.
const (
	Granularity5Minute Granularity = "5minute" // kept for a week
	GranularityHour    Granularity = "hour"    // kept for a month
	GranularityDay     Granularity = "day"     // kept forever
)

// GranularityFor returns the finest granularity that the service has for the whole time range: 5minute if it starts
// within the last week, hour within the last month, otherwise day. Pass time.Now() as now; tests pass a fixed time.
// (Service document, [section 8]; open point 13.)
//
// [section 8]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#8-limits
func GranularityFor(start, end, now time.Time) Granularity {
	if end.Before(start) {
		start = end
	}
	now = now.UTC() // in other zones a day may have 25 hours
	switch {
	case !start.Before(now.AddDate(0, 0, -7)):
		return Granularity5Minute
	case !start.Before(monthBefore(now)):
		return GranularityHour
	default:
		return GranularityDay
	}
}

// monthBefore returns the same time of the month before, or of its last day if that month is shorter. Without that,
// AddDate returns a day in March for the month before 31 March.
func monthBefore(now time.Time) time.Time {
	before := now.AddDate(0, -1, 0)
	if before.Day() != now.Day() {
		before = before.AddDate(0, 0, -before.Day())
	}
	return before
}

// EventsRetention returns the earliest time of raw events: the start of the UTC day three days before now. Pass
// time.Now(); tests pass a fixed time. (Service document, [section 6].)
//
// [section 6]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#6-events
func EventsRetention(now time.Time) time.Time {
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
}

// Sort is one sort key of a query, for sortby. Create it with [Asc] or [Desc].
type Sort struct {
	name       string // dimension or metric
	descending bool   // largest first
}

// Asc sorts by a dimension or metric, smallest first.
func Asc(name string) Sort { return Sort{name: name} }

// Desc sorts by a dimension or metric, largest first.
func Desc(name string) Sort { return Sort{name: name, descending: true} }

// EventsQuery requests raw events. Whether an event at exactly Start or End belongs to the range depends on the service
// (open point 33).
type EventsQuery struct {
	Dimensions []string     // requested columns, at least one, none twice; the service always adds event_timestamp_ms as the first
	Start, End time.Time    // time range, in the years 1 to 9999; sent in whole seconds of UTC without a fraction
	Filter     filters.Expr // nil: no filter
	SortBy     []Sort       // by dimensions, including those not requested; none: the service's order
	Limit      int          // maximum number of rows; 0: all rows for All, otherwise the service's default of 10
}

// TrendsQuery requests hits over time, or their totals. With [DimEventTimestamp] among the dimensions, there is a row
// for each bucket of the Granularity, with the time at which the bucket begins. Without it, a row counts the hits of
// the whole time range: a total. (Open point 35.)
type TrendsQuery struct {
	Dimensions  []string     // at least one; must form a valid grouping set, see Groupings
	Metrics     []string     // default MetricHits
	Start, End  time.Time    // as in EventsQuery
	Granularity Granularity  // must suit the time range; required on WAF and traffic shaping trends, optional on request trends
	Filter      filters.Expr // nil: no filter
	SortBy      []Sort       // by dimensions and metrics, including those not requested; none: the service's order
	Limit       int          // maximum number of rows; 0: all rows for All, otherwise the service's default of 10
}

// WAFTopKQuery requests the 20 largest groups of a WAF top-K. It has no limit and no order: sort the rows yourself.
type WAFTopKQuery struct {
	Dimensions []string     // must form a valid grouping set, see Groupings; none: that of the category, if it is known (open point 47)
	Metrics    []string     // default MetricHits
	Start, End time.Time    // as in EventsQuery
	Filter     filters.Expr // nil: no filter
}

// TrafficShapingTopKQuery requests the largest groups of a traffic shaping top-K, up to 1,000.
type TrafficShapingTopKQuery struct {
	Dimensions []string     // must form a valid grouping set, see Groupings; none: that of the category, if it is known (open point 47)
	Metrics    []string     // default MetricHits
	Start, End time.Time    // as in EventsQuery
	Filter     filters.Expr // nil: no filter
	SortBy     []Sort       // by dimensions and metrics, including those not requested; none: the service's order
	Limit      int          // maximum number of rows; 0: all rows for All, otherwise the service's default of 10
}

// StatsQuery is the query of one family. Calls only read it. If it is invalid, they return a [*ValidationError].
// (Service document, [section 4.2]; open point 34.)
//
// [section 4.2]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#42-common-rules-for-security-statistics-queries
type StatsQuery interface {
	EventsQuery | TrendsQuery | WAFTopKQuery | TrafficShapingTopKQuery

	params() statsParams
}

func (q EventsQuery) params() statsParams {
	return statsParams{Dimensions: q.Dimensions, Start: q.Start, End: q.End, Filter: q.Filter, SortBy: q.SortBy, Limit: int64(q.Limit)}
}

func (q TrendsQuery) params() statsParams {
	return statsParams{
		Dimensions: q.Dimensions, Metrics: q.Metrics, Start: q.Start, End: q.End, Granularity: q.Granularity, Filter: q.Filter,
		SortBy: q.SortBy, Limit: int64(q.Limit),
	}
}

func (q WAFTopKQuery) params() statsParams {
	return statsParams{Dimensions: q.Dimensions, Metrics: q.Metrics, Start: q.Start, End: q.End, Filter: q.Filter}
}

func (q TrafficShapingTopKQuery) params() statsParams {
	return statsParams{
		Dimensions: q.Dimensions, Metrics: q.Metrics, Start: q.Start, End: q.End, Filter: q.Filter, SortBy: q.SortBy, Limit: int64(q.Limit),
	}
}
