package webdelivery

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/filters"
)

// Names of dimensions, with the type that [Scan] reads each into, if not a string. The service may have others. The words
// in a column differ between services, even in letter case, so read some events before you filter by a word. A column
// may contain null, which only a pointer to the type can hold. (Section 2.5.)
const (
	DimEventTimestamp           = "event_timestamp_ms"          // when the request was received: a time.Time; in aggregated rows the start of the bucket
	DimEventSeverity            = "event_severity"              // how severe the event is, a word
	DimEventType                = "event_type"                  // type of the event, a word such as CUSTOM
	DimEventAction              = "event_action"                // action on the event, a word such as WARN
	DimClientConnectionRemoteIP = "client_connection_remote_ip" // source address of the client's connection: a netip.Addr
	DimClientIP                 = "client_ip"                   // address of the client: a netip.Addr
	DimClientBrowser            = "client_browser"              // browser of the client, which it chose
	DimClientCountryCode        = "client_country_code"         // country of the client, two letters
	DimClientASN                = "client_asn"                  // number of the client's network (autonomous system): an int64
	DimRuleID                   = "rule_id"                     // id of the rule that applied
	DimDomain                   = "domain"                      // domain that was requested
	DimProperty                 = "property"                    // property of the customer that the request was for
	DimWAFAction                = "waf_action"                  // action of the WAF, a word
)

// MetricHits is the only metric: how many requests a row counts, an int64.
const MetricHits = "hits"

// WAFCategory selects the dimension that a WAF top-K groups by.
type WAFCategory string

// The categories of the WAF top-K.
const (
	WAFByBrowser     WAFCategory = "browser"
	WAFByClientIP    WAFCategory = "clientip"
	WAFByCountry     WAFCategory = "country"
	WAFByRequestPath WAFCategory = "requestpath"
	WAFByRuleID      WAFCategory = "ruleid"
	WAFBySeverity    WAFCategory = "severity"
)

// TrafficShapingCategory selects the dimension that a traffic shaping top-K groups by.
type TrafficShapingCategory string

// The categories of the traffic shaping top-K.
const (
	TrafficShapingByBrowser           TrafficShapingCategory = "browser"
	TrafficShapingByClientIP          TrafficShapingCategory = "clientip"
	TrafficShapingByCountry           TrafficShapingCategory = "country"
	TrafficShapingByRateLimitClientIP TrafficShapingCategory = "ratelimitclientip"
	TrafficShapingByRateLimitCountry  TrafficShapingCategory = "ratelimitcountry"
	TrafficShapingByRequestPath       TrafficShapingCategory = "requestpath"
)

// Granularity is the width of the time buckets of a trend; a day is one of UTC. [GranularityFor] returns one that suits
// the time range, and [StatsFamily.Warnings] says which hits are only partial sums. (Section 4.2.)
type Granularity string

// The granularities of the service, with how long it keeps the data of each.
const (
	Granularity5Minute Granularity = "5minute" // kept for a week
	GranularityHour    Granularity = "hour"    // kept for a month
	GranularityDay     Granularity = "day"     // kept forever
)

// GranularityFor returns the finest granularity that the service has for the whole time range: 5minute if it starts
// within the last week, hour within the last month, otherwise day. (Section 8.)
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

// EventsRetention returns the earliest time of raw events: the start of the UTC day three days before now. (Section
// 6.)
func EventsRetention(now time.Time) time.Time {
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
}

// Desc sorts by a dimension or metric, largest first, in the SortBy of a query. The name alone sorts smallest first.
func Desc(name string) string { return "-" + name }

// EventsQuery requests raw events. Whether an event at exactly Start or End belongs to the range depends on the
// service.
type EventsQuery struct {
	Dimensions []string     // requested columns, at least one, none twice; the service always adds event_timestamp_ms as the first
	Start, End time.Time    // time range, in the years 1 to 9999; sent in whole seconds of UTC without a fraction
	Filter     filters.Expr // nil: no filter
	SortBy     []string     // dimensions, including those not requested, see Desc; none: the service's order
	Limit      int          // maximum number of rows; 0: all rows for All, otherwise the service's default of 10
}

// TrendsQuery requests hits over time, or their totals. With [DimEventTimestamp] among the dimensions, there is a row
// for each bucket of the Granularity, with the time at which the bucket begins. Without it, a row counts the hits of
// the whole time range: a total.
type TrendsQuery struct {
	Dimensions  []string     // at least one; must form a valid grouping set, see Groupings
	Start, End  time.Time    // as in EventsQuery
	Granularity Granularity  // must suit the time range; required on WAF and traffic shaping trends, optional on request trends
	Filter      filters.Expr // nil: no filter
	SortBy      []string     // dimensions and metrics, including those not requested, see Desc; none: the service's order
	Limit       int          // maximum number of rows; 0: all rows for All, otherwise the service's default of 10
}

// TopKQuery requests the largest groups: up to 20 of a WAF top-K, and up to 1,000 of a traffic shaping top-K. A WAF
// top-K has neither SortBy nor Limit: sort the rows yourself. Its size, too, may cut the others off.
type TopKQuery struct {
	Dimensions []string     // must form a valid grouping set, see Groupings; none: that of the category, if it is known
	Start, End time.Time    // as in EventsQuery
	Filter     filters.Expr // nil: no filter
	SortBy     []string     // dimensions and metrics, including those not requested, see Desc; none: the service's order
	Limit      int          // maximum number of rows; 0: all rows for All, otherwise the service's default of 10
}

// StatsQuery is the query of one family. (Section 4.2.)
type StatsQuery interface {
	EventsQuery | TrendsQuery | TopKQuery

	params() statsParams // with slices of its own, so that the caller may change those of the query
}

func (q EventsQuery) params() statsParams {
	return statsParams{
		Dimensions: slices.Clone(q.Dimensions), Start: q.Start, End: q.End, Filter: q.Filter,
		SortBy: slices.Clone(q.SortBy), Limit: int64(q.Limit),
	}
}

func (q TrendsQuery) params() statsParams {
	return statsParams{
		Dimensions: slices.Clone(q.Dimensions), Start: q.Start, End: q.End, Granularity: q.Granularity, Filter: q.Filter,
		SortBy: slices.Clone(q.SortBy), Limit: int64(q.Limit),
	}
}

func (q TopKQuery) params() statsParams { return EventsQuery(q).params() }

// statsParams has the parameters of the queries of all families (service document, section 4.2).
type statsParams struct {
	Dimensions  []string     `url:"dimensions,comma,omitempty"`
	Metrics     string       `url:"metrics,omitempty"`
	Start       time.Time    `url:"-"` // a tag cannot have the name of its parameter, which depends on the Dialect
	End         time.Time    `url:"endtime" layout:"2006-01-02T15:04:05"`
	Granularity Granularity  `url:"granularity,omitempty"`
	Filter      filters.Expr `url:"filters,omitempty"` // encoded as its String
	SortBy      []string     `url:"sortby,comma,omitempty"`
	Limit       int64        `url:"limit,omitempty"` // 0: the default of the service
}

// timeLayout is the pattern of section 4.2. The service rejects a zone designator.
const timeLayout = "2006-01-02T15:04:05"

// prepare sets the family's defaults, truncates the times to whole seconds of UTC, as they are sent, and returns what the
// rules of section 4.2 and of the family forbid.
func (p *statsParams) prepare(family *statsRules) error {
	var bad problems
	switch {
	case len(p.Dimensions) > 0 || family.top == 0:
		checkNames(&bad, p.Dimensions)
	case family.dimension != "":
		p.Dimensions = []string{family.dimension}
	default:
		bad.add("dimensions", "must be set, because the dimension of this category is not documented; ask Dimensions for the names")
	}
	if family.aggregated {
		p.Metrics = MetricHits
	}
	p.checkTime(family, &bad)
	if p.Filter != nil {
		if err := p.Filter.Validate(); err != nil {
			bad.add("filters", "%v", err)
		}
	}
	for i, key := range p.SortBy {
		if name := strings.TrimPrefix(key, "-"); !isName(name) || strings.HasPrefix(name, "-") {
			bad.add(fmt.Sprintf("sortby[%d]", i), "%q is not a valid name, or Desc of one", key)
		}
	}
	if p.Limit < 0 {
		bad.add("limit", "%d is below 0", p.Limit)
	}
	if family.noLimit && len(p.SortBy) > 0 {
		bad.add("sortby", "a WAF top-K has no order; sort its rows yourself")
	}
	if family.noLimit && p.Limit > 0 {
		bad.add("limit", "a WAF top-K has none; it has at most %d rows", family.top)
	}
	return bad.err()
}

// isName reports whether a comma-separated parameter can carry a name.
func isName(name string) bool { return name != "" && !strings.ContainsAny(name, ", ") }

// checkNames refuses dimensions that the comma-separated parameter cannot carry.
func checkNames(bad *problems, names []string) {
	if len(names) == 0 {
		bad.add("dimensions", "is empty")
	}
	for i, name := range names {
		switch {
		case !isName(name):
			bad.add(fmt.Sprintf("dimensions[%d]", i), "%q is not a valid name", name)
		case slices.Contains(names[:i], name):
			bad.add(fmt.Sprintf("dimensions[%d]", i), "%q is given twice", name)
		}
	}
}

func (p *statsParams) checkTime(family *statsRules, bad *problems) {
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
		bad.add("endtime", "%s is not after starttime %s, in whole seconds", p.End.Format(timeLayout), p.Start.Format(timeLayout))
	}
	switch p.Granularity {
	case Granularity5Minute, GranularityHour, GranularityDay:
	case "":
		if family.granularity {
			bad.add("granularity", "must be set to 5minute, hour or day")
		}
	default:
		bad.add("granularity", "%q is not 5minute, hour or day", string(p.Granularity))
	}
}

// Numbers of rows (section 8 of the service document).
const (
	defaultRows     = 10    // of a result whose query has no limit
	wafTopKRows     = 20    // of a WAF top-K
	shapingTopKRows = 1_000 // of a traffic shaping top-K
)

// statsRules has the properties in which the families of statistics differ.
type statsRules struct {
	name        string // of the family
	path        string // base path
	aggregated  bool   // it has metrics
	granularity bool   // it requires a granularity
	noLimit     bool   // it has neither a limit nor an order
	top         int64  // largest number of rows; 0: no bound
	dimension   string // default dimension of a top-K; "": unknown
}

// The families that have no categories.
var (
	eventsRules        = statsRules{name: "Stats.Events", path: "/stats/security/events"}
	wafTrendsRules     = statsRules{name: "Stats.WAFTrends", path: "/stats/security/waf/trends", aggregated: true, granularity: true}
	requestTrendsRules = statsRules{name: "Stats.RequestTrends", path: "/stats/security/request/trends", aggregated: true}
	shapingTrendsRules = statsRules{name: "Stats.TrafficShapingTrends", path: "/stats/security/trafficshaping/trends", aggregated: true, granularity: true}
)

// The dimension of each category; "" where the service document does not name it.
var (
	wafCategories = map[WAFCategory]string{
		"browser": "client_browser", "clientip": "client_ip", "country": "client_country_code", "requestpath": "",
		"ruleid": "rule_id", "severity": "event_severity",
	}
	shapingCategories = map[TrafficShapingCategory]string{
		"browser": "client_browser", "clientip": "client_ip", "country": "client_country_code",
		"ratelimitclientip": "", "ratelimitcountry": "", "requestpath": "",
	}
)

// withHeadroom returns the limit for a request that must return total rows, with a reserve for rows that are added
// meanwhile. It is never more than a top-K has.
func (f *statsRules) withHeadroom(total int64) int64 {
	room := max(1000, total/100)
	return min(total+min(room, math.MaxInt64-total), f.maxRows())
}

// maxRows returns the largest number of rows that a response can have.
func (f *statsRules) maxRows() int64 { return cmp.Or(f.top, math.MaxInt64) }

// complete returns an [*IncompleteError] if rows are missing: got must reach total, or less if the limit or the size of a
// top-K is lower. With all, got must also stay below the limit: if the response is full, more rows may match than total
// says.
func (f *statsRules) complete(got, total, limit int64, all bool) error {
	want := total
	if !all && !f.noLimit {
		want = min(want, cmp.Or(limit, defaultRows))
	}
	full := all && limit < f.maxRows() && got == limit
	if full || got < min(want, f.maxRows()) {
		return &IncompleteError{Got: got, Total: total}
	}
	return nil
}

// clockSlack is how much the clocks of the service and of this machine may differ. It also covers the time between the
// building of a query and its call.
const clockSlack = 5 * time.Minute

// warnings returns what gone does, and says whether the first or last row of daily buckets counts less than a day. p must
// be valid.
func (f *statsRules) warnings(p *statsParams, now time.Time) []string {
	const day = 24 * time.Hour // Truncate leaves the start of a day in UTC
	cut := func(t time.Time) bool { return !t.Equal(t.Truncate(day)) }
	all := f.gone(p, now)
	if p.Granularity == GranularityDay && slices.Contains(p.Dimensions, DimEventTimestamp) && (cut(p.Start) || cut(p.End) && p.End.Before(now.Truncate(day))) {
		all = append(all, fmt.Sprintf("the time range from %s to %s does not begin and end with a day in UTC, so its first or last rows count less than a day",
			p.Start.Format(timeLayout), p.End.Format(timeLayout)))
	}
	return all
}

// gone says which part of the time range of a query the service may no longer have (sections 6 and 8). Nothing in the
// response shows that: rows are missing, or their sums are too small. A query without a granularity has no warning, nor
// has a top-K, because the document does not say how long their data is kept.
func (f *statsRules) gone(p *statsParams, now time.Time) []string {
	start := p.Start.Add(clockSlack) // shifting now instead could change the day a month before it
	if !f.aggregated {
		kept := EventsRetention(now)
		if !start.Before(kept) {
			return nil
		}
		return []string{fmt.Sprintf("the time range begins at %s, but raw events are kept for three days and today, since %s; earlier ones are missing",
			p.Start.Format(timeLayout), kept.Format(timeLayout))}
	}
	finest := GranularityFor(start, p.End, now)
	if granularityWidth[p.Granularity] >= granularityWidth[finest] || p.Granularity == "" {
		return nil
	}
	return []string{fmt.Sprintf("the time range begins at %s, but data of granularity %s is kept for %s; hits before that may be missing, so use granularity %s",
		p.Start.Format(timeLayout), p.Granularity, granularityKept[p.Granularity], finest)}
}

// granularityWidth orders the granularities.
var granularityWidth = map[Granularity]int{Granularity5Minute: 1, GranularityHour: 2, GranularityDay: 3}

// granularityKept is how long data of a granularity is kept. Daily data is kept forever.
var granularityKept = map[Granularity]string{Granularity5Minute: "a week", GranularityHour: "a month"}
