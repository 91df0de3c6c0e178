package webdelivery

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

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
	noLimit     bool   // it has no parameter limit
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

// The dimension of each category; "" where the service document does not name it (open point 47).
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
	return min(total+min(room, math.MaxInt64-total), f.most())
}

// most returns the largest number of rows that a response can have.
func (f *statsRules) most() int64 { return cmp.Or(f.top, math.MaxInt64) }

// complete returns an [*IncompleteError] if rows are missing: got must reach total, or less if the limit or the size of a
// top-K is lower. With all, got must also stay below the limit: if the response is full, more rows may match than total
// says.
func (f *statsRules) complete(got, total, limit int64, all bool) error {
	want := total
	if !all && !f.noLimit {
		want = min(want, cmp.Or(limit, defaultRows))
	}
	full := all && limit < f.most() && got == limit
	if full || got < min(want, f.most()) {
		return &IncompleteError{Got: got, Total: total}
	}
	return nil
}

// clockSlack is how much the clocks of the service and of this machine may differ. It also covers the time between the
// building of a query and its call.
const clockSlack = 5 * time.Minute

// warnings says which part of the time range of a query the service may no longer have (sections 6 and 8). Nothing in
// the response shows that: rows are missing, or their sums are too small. A query without a granularity has no warning,
// nor has a top-K, because the document does not say how long their data is kept. p must be valid.
func (f *statsRules) warnings(p *statsParams, now time.Time) []string {
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
