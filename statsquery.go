package webdelivery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-querystring/query"

	"github.com/webdelivery/webdelivery-go/filters"
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
	if end.Before(start) {
		start = end
	}
	now = now.UTC() // the days of another zone may have 25 hours
	switch {
	case !start.Before(now.AddDate(0, 0, -7)):
		return Granularity5Minute
	case !start.Before(now.AddDate(0, -1, 0)):
		return GranularityHour
	default:
		return GranularityDay
	}
}

// EventsRetention is the earliest time for which raw events exist: the beginning of the UTC day three days before now
// (service-interface section 6). now is time.Now(), but for tests.
func EventsRetention(now time.Time) time.Time {
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
}

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

// TrendsQuery asks for hits over time (service-interface section 4.3).
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

	params() statsParams
}

// statsParams are the parameters of all families (service-interface section 4.2).
type statsParams struct {
	Dimensions  []string     `url:"dimensions,comma"`
	Metrics     []string     `url:"metrics,comma,omitempty"`
	Start       time.Time    `url:"-"` // its name is a matter of the dialect
	End         time.Time    `url:"-"`
	Granularity Granularity  `url:"granularity,omitempty"`
	Filter      filters.Expr `url:"-"`
	SortBy      []string     `url:"sortby,comma,omitempty"`
	Limit       int64        `url:"limit,omitempty"`

	sort []Sort
}

func (q EventsQuery) params() statsParams {
	return statsParams{Dimensions: q.Dimensions, Start: q.Start, End: q.End, Filter: q.Filter, sort: q.SortBy, Limit: int64(q.Limit)}
}

func (q TrendsQuery) params() statsParams {
	return statsParams{
		Dimensions: q.Dimensions, Metrics: q.Metrics, Start: q.Start, End: q.End, Granularity: q.Granularity, Filter: q.Filter,
		sort: q.SortBy, Limit: int64(q.Limit),
	}
}

func (q WAFTopKQuery) params() statsParams {
	return statsParams{Dimensions: q.Dimensions, Metrics: q.Metrics, Start: q.Start, End: q.End, Filter: q.Filter}
}

func (q ShapingTopKQuery) params() statsParams {
	return statsParams{
		Dimensions: q.Dimensions, Metrics: q.Metrics, Start: q.Start, End: q.End, Filter: q.Filter,
		sort: q.SortBy, Limit: int64(q.Limit),
	}
}

// detach copies what the caller may change before a request is sent later.
func (p *statsParams) detach() {
	p.Dimensions, p.Metrics, p.sort = slices.Clone(p.Dimensions), slices.Clone(p.Metrics), slices.Clone(p.sort)
}

// setDefaults fills in what a top-K needs: the only metric, and the dimension of its category.
func (p *statsParams) setDefaults(rules familyRules) {
	if rules.top > 0 && len(p.Metrics) == 0 {
		p.Metrics = []string{MetricHits}
	}
	if rules.dimension != "" && len(p.Dimensions) == 0 {
		p.Dimensions = []string{rules.dimension}
	}
}

// validate states section 4.2 of the service document, with what the family adds to it.
func (p *statsParams) validate(rules familyRules) error {
	var bad problems
	checkNames(&bad, "dimensions", p.Dimensions)
	if rules.top > 0 && len(p.Dimensions) == 0 {
		bad.add("dimensions", "of a top-K have a default only by browser, clientip, country, ruleid and severity")
	}
	if rules.aggregated {
		checkNames(&bad, "metrics", p.Metrics)
		for i, m := range p.Metrics {
			if m != MetricHits {
				bad.add(fmt.Sprintf("metrics[%d]", i), "%q is not hits, the only metric", m)
			}
		}
	}
	p.checkSpan(&bad)
	switch p.Granularity {
	case Granularity5Minute, GranularityHour, GranularityDay:
	case "":
		if rules.granularity {
			bad.add("granularity", "is required here")
		}
	default:
		bad.add("granularity", "%q is none of 5minute, hour and day", string(p.Granularity))
	}
	if p.Filter != nil {
		if err := p.Filter.Validate(); err != nil {
			bad.add("filters", "%v", err)
		}
	}
	for i, s := range p.sort {
		asked := slices.Contains(p.Dimensions, s.Name) || slices.Contains(p.Metrics, s.Name) ||
			!rules.aggregated && s.Name == DimEventTimestamp
		if !asked {
			bad.add(fmt.Sprintf("sortby[%d]", i), "%q is not among the dimensions and metrics asked for", s.Name)
		}
	}
	if p.Limit < 0 {
		bad.add("limit", "%d is below 0", p.Limit)
	}
	return bad.err()
}

// checkNames refuses lists of names that the comma-separated parameter cannot carry.
func checkNames(bad *problems, field string, names []string) {
	if len(names) == 0 {
		bad.add(field, "is empty")
	}
	for i, name := range names {
		switch {
		case name == "" || strings.ContainsAny(name, ", "):
			bad.add(fmt.Sprintf("%s[%d]", field, i), "%q is no name", name)
		case slices.Contains(names[:i], name):
			bad.add(fmt.Sprintf("%s[%d]", field, i), "%q comes twice", name)
		}
	}
}

// checkSpan compares the times as they are sent, in whole seconds of UTC.
func (p *statsParams) checkSpan(bad *problems) {
	if p.Start.IsZero() {
		bad.add("starttime", "is not set")
	}
	if p.End.IsZero() {
		bad.add("endtime", "is not set")
	}
	p.Start, p.End = p.Start.UTC().Truncate(time.Second), p.End.UTC().Truncate(time.Second)
	checkYear(bad, "starttime", p.Start)
	checkYear(bad, "endtime", p.End)
	if !p.Start.IsZero() && !p.End.IsZero() && !p.End.After(p.Start) {
		bad.add("endtime", "%s is not after starttime %s, in whole seconds", p.End.Format(statsTime), p.Start.Format(statsTime))
	}
}

// statsTime is the pattern of service-interface section 4.2; a zone designator would be refused.
const statsTime = "2006-01-02T15:04:05"

// encode makes the query string.
func (p *statsParams) encode(d Dialect) (string, error) {
	p.SortBy = nil
	for _, s := range p.sort {
		if s.Descending {
			s.Name = "-" + s.Name
		}
		p.SortBy = append(p.SortBy, s.Name)
	}
	values, err := query.Values(p)
	if err != nil {
		return "", invalid("query", "%v", err)
	}
	values.Set(d.StartTimeParam, p.Start.Format(statsTime))
	values.Set("endtime", p.End.Format(statsTime))
	if p.Filter != nil {
		values.Set("filters", p.Filter.String())
	}
	return values.Encode(), nil
}

// familyRules is what the families differ in.
type familyRules struct {
	path        string // base path
	refused     error  // of a category that the service does not have
	aggregated  bool   // takes metrics
	granularity bool   // requires one
	unlimited   bool   // takes no limit
	top         int64  // rows at most; 0: no bound
	dimension   string // default of a top-K; "": not known
}
