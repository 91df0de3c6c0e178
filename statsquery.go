package webdelivery

import (
	"time"

	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/internal/statsquery"
)

// Names of dimensions (service-interface section 2.5). The service may have others: any string can be asked for. The
// document names them and says no more; the type that [Scan] reads each into is told here. The words in a column differ
// between services, also in letter case (open point 43): read some events before you filter by a word. A column may hold
// null: then only a pointer to the type can be scanned into.
const (
	DimEventTimestamp           = "event_timestamp_ms"          // when the request was received: a time.Time; of aggregated rows see open point 35
	DimEventSeverity            = "event_severity"              // how severe the event is, a word: a string
	DimEventType                = "event_type"                  // kind of event, a word such as CUSTOM: a string
	DimEventAction              = "event_action"                // what was done about the event, a word such as WARN: a string
	DimClientConnectionRemoteIP = "client_connection_remote_ip" // address from which the client's connection came: a netip.Addr
	DimClientIP                 = "client_ip"                   // address of the client: a netip.Addr
	DimClientBrowser            = "client_browser"              // browser of the client: a string, which the client chose
	DimClientCountryCode        = "client_country_code"         // country of the client, two letters: a string
	DimClientASN                = "client_asn"                  // number of the client's network (autonomous system): an int64
	DimRuleID                   = "rule_id"                     // id of the rule that applied: a string
	DimDomain                   = "domain"                      // domain that was requested: a string
	DimProperty                 = "property"                    // property of the customer that the request was for: a string
	DimWAFAction                = "waf_action"                  // what the WAF did, a word: a string
)

// MetricHits is the only metric (service-interface section 2.5): how many requests a row counts, an int64.
const MetricHits = "hits"

// Granularity is the width of the time buckets of a trend (service-interface section 4.2). A granularity must suit the
// span: of a span for which the service no longer has data so fine, the hits are only partial sums, and nothing in the
// result says so (open point 13). [GranularityFor] returns one that suits.
type Granularity string

// The granularities of the service. How long each is kept is in service-interface section 8; see [GranularityFor].
const (
	Granularity5Minute Granularity = "5minute" // kept for a week
	GranularityHour    Granularity = "hour"    // kept for a month
	GranularityDay     Granularity = "day"     // kept for ever
)

// GranularityFor gives the finest granularity for which the service has data of the whole span, by both of the accounts
// in service-interface section 8 (open point 13): 5minute when the span begins within the last week, hour within the last
// month, else day. Pass time.Now() as now; tests pass a fixed time.
func GranularityFor(start, end, now time.Time) Granularity {
	return Granularity(statsquery.Finest(start, end, now))
}

// EventsRetention is the earliest time for which raw events exist: the beginning of the UTC day three days before now
// (service-interface section 6). now is time.Now(), but for tests.
func EventsRetention(now time.Time) time.Time { return statsquery.EventsKept(now) }

// Sort is one key of an order (service-interface section 4.2, sortby). Make it with [Asc] or [Desc].
type Sort struct {
	Name       string // of a dimension or metric of the query
	Descending bool   // largest first; false: smallest first
}

// Asc sorts by a dimension or metric, smallest first.
func Asc(name string) Sort { return Sort{Name: name} }

// Desc sorts by a dimension or metric, largest first.
func Desc(name string) Sort { return Sort{Name: name, Descending: true} }

// EventsQuery asks for raw events (service-interface section 4.3).
type EventsQuery struct {
	Dimensions []string     // columns wanted, at least one, none twice; event_timestamp_ms comes first even when it is not among them
	Start, End time.Time    // of the request, in the years 1 to 9999; sent in whole seconds of UTC, a fraction is cut off (open point 33)
	Filter     filters.Expr // nil: no filter
	SortBy     []Sort       // by dimensions asked for, and event_timestamp_ms; none: the service's order
	Limit      int          // most rows; 0: the service's default of 10, even if more match
}

// TrendsQuery asks for hits over time, or for their totals. With [DimEventTimestamp] among the dimensions there is a row
// for each bucket of the Granularity, with the time at which the bucket begins. Without it a row counts the hits of the
// whole time range: a total. (Service document, section 4.3; open point 35.)
type TrendsQuery struct {
	Dimensions  []string     // at least one; must form a valid grouping set, see Groupings
	Metrics     []string     // MetricHits, required
	Start, End  time.Time    // as in EventsQuery
	Granularity Granularity  // must suit the span; required on WAF and traffic shaping trends, optional on request trends
	Filter      filters.Expr // nil: no filter
	SortBy      []Sort       // by dimensions and metrics asked for; none: the service's order
	Limit       int          // most rows; 0: the service's default of 10, even if more match
}

// WAFTopKQuery asks for the 20 largest groups of a WAF top-K (service-interface section 4.3), which takes neither an
// order nor a limit.
type WAFTopKQuery struct {
	Dimensions []string     // must form a valid grouping set, see Groupings; none: that of the category, if it is known (open point 47)
	Metrics    []string     // MetricHits; none: the same
	Start, End time.Time    // as in EventsQuery
	Filter     filters.Expr // nil: no filter
}

// ShapingTopKQuery asks for the largest groups of a traffic shaping top-K, 1,000 at most (service-interface section 4.3).
type ShapingTopKQuery struct {
	Dimensions []string     // must form a valid grouping set, see Groupings; none: that of the category, if it is known (open point 47)
	Metrics    []string     // MetricHits; none: the same
	Start, End time.Time    // as in EventsQuery
	Filter     filters.Expr // nil: no filter
	SortBy     []Sort       // by dimensions and metrics asked for; none: the service's order
	Limit      int          // most rows; 0: the service's default of 10, even if more match
}

// StatsQuery is the query of one family. A query is only read; what is invalid of it is a [*ValidationError]
// (service-interface sections 4.2 and 7, open point 34).
type StatsQuery interface {
	EventsQuery | TrendsQuery | WAFTopKQuery | ShapingTopKQuery

	params() statsquery.Query
}

func (q EventsQuery) params() statsquery.Query {
	return TrendsQuery{Dimensions: q.Dimensions, Start: q.Start, End: q.End, Filter: q.Filter, SortBy: q.SortBy, Limit: q.Limit}.params()
}

func (q TrendsQuery) params() statsquery.Query {
	p := statsquery.Query{
		Dimensions: q.Dimensions, Metrics: q.Metrics, Start: q.Start, End: q.End, Granularity: string(q.Granularity), Filter: q.Filter,
		Limit: int64(q.Limit),
	}
	for _, key := range q.SortBy {
		p.SortBy = append(p.SortBy, statsquery.Sort(key))
	}
	return p
}

func (q WAFTopKQuery) params() statsquery.Query {
	return TrendsQuery{Dimensions: q.Dimensions, Metrics: q.Metrics, Start: q.Start, End: q.End, Filter: q.Filter}.params()
}

func (q ShapingTopKQuery) params() statsquery.Query {
	return TrendsQuery{
		Dimensions: q.Dimensions, Metrics: q.Metrics, Start: q.Start, End: q.End, Filter: q.Filter, SortBy: q.SortBy, Limit: q.Limit,
	}.params()
}
