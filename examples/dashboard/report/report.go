// Package report asks the service for everything that a page of its security statistics shows.
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
)

// Span is how far back a report goes, in buckets that make a readable line of it and that the service still has.
type Span struct {
	Name, Label   string
	length, width time.Duration
	By            webdelivery.Granularity
	layout        string
}

// Spans are those that can be asked for.
var Spans = []Span{
	{"1h", "1 hour", time.Hour, 5 * time.Minute, webdelivery.Granularity5Minute, "15:04"},
	{"6h", "6 hours", 6 * time.Hour, 5 * time.Minute, webdelivery.Granularity5Minute, "15:04"},
	{"1d", "1 day", 24 * time.Hour, time.Hour, webdelivery.GranularityHour, "15:04"},
	{"3d", "3 days", 72 * time.Hour, time.Hour, webdelivery.GranularityHour, "2 Jan 15:04"},
	{"7d", "7 days", 168 * time.Hour, time.Hour, webdelivery.GranularityHour, "2 Jan 15:04"},
	{"30d", "30 days", 720 * time.Hour, 24 * time.Hour, webdelivery.GranularityDay, "2 Jan"},
}

// Query is what a report is about.
type Query struct {
	Span
	Start, End time.Time
	filter     filters.Expr
}

// NewQuery takes the name of a span until now, "" being 1d, and a filter in the service's syntax, "" being none.
func NewQuery(span, filter string, now time.Time) (q Query, err error) {
	i := slices.IndexFunc(Spans, func(s Span) bool { return s.Name == cmp.Or(span, "1d") })
	if i < 0 {
		return q, fmt.Errorf("the span %q is none of 1h, 6h, 1d, 3d, 7d, 30d", span)
	}
	end := now.UTC().Truncate(time.Second).Add(time.Second)
	q = Query{Span: Spans[i], Start: end.Add(-Spans[i].length).Truncate(Spans[i].width), End: end}
	if filter != "" {
		q.filter, err = filters.Parse(filter)
	}
	return q, err
}

// Report is what the service tells. A panel that could not be read says why; the others are there.
type Report struct {
	Query
	Trends, WAF, Shaping, Events []*Panel
	Asked, Failed                atomic.Int32
}

// tops are the categories, with the dimension of each. The service document has no name for that of paths.
var tops = []struct {
	title, dimension string
	waf              webdelivery.WAFCategory
	shaping          webdelivery.ShapingCategory
}{
	{"Rules", webdelivery.DimRuleID, webdelivery.WAFByRuleID, ""},
	{"Clients", webdelivery.DimClientIP, webdelivery.WAFByClientIP, webdelivery.ShapingByClientIP},
	{"Rate-limited clients", webdelivery.DimClientIP, "", webdelivery.ShapingByRateLimitClientIP},
	{"Countries", webdelivery.DimClientCountryCode, webdelivery.WAFByCountry, webdelivery.ShapingByCountry},
	{"Rate-limited countries", webdelivery.DimClientCountryCode, "", webdelivery.ShapingByRateLimitCountry},
	{"Paths", "request_path", webdelivery.WAFByRequestPath, webdelivery.ShapingByRequestPath},
	{"Severities", webdelivery.DimEventSeverity, webdelivery.WAFBySeverity, ""},
	{"Browsers", webdelivery.DimClientBrowser, webdelivery.WAFByBrowser, webdelivery.ShapingByBrowser},
}

// Make asks for all panels, six at a time, and gives up on those that take long.
func Make(ctx context.Context, stats *webdelivery.StatsService, q Query) *Report {
	ctx, cancel := context.WithTimeoutCause(ctx, 15*time.Second, errors.New("no answer within 15 seconds"))
	defer cancel()
	r := &Report{Query: q}
	var asked errgroup.Group
	asked.SetLimit(6)
	ask := func(panels *[]*Panel, title string, read func(*Panel, Query, rows) error, rows rows) {
		p := &Panel{Title: title}
		*panels = append(*panels, p)
		r.Asked.Add(1)
		asked.Go(func() error {
			if err := read(p, q, rows); err != nil {
				*p = Panel{Title: title, Error: cmp.Or(context.Cause(ctx), err).Error()}
				r.Failed.Add(1)
			}
			return nil
		})
	}
	hits := []string{webdelivery.MetricHits}
	trend := func(title, dimension string, family *webdelivery.AggregatedFamily[webdelivery.TrendsQuery]) {
		ask(&r.Trends, title, (*Panel).lines, family.All(ctx, webdelivery.TrendsQuery{
			Dimensions: []string{webdelivery.DimEventTimestamp, dimension}, Metrics: hits,
			Start: q.Start, End: q.End, Granularity: q.By, Filter: q.filter,
		}))
	}
	trend("Requests", webdelivery.DimEventAction, stats.RequestTrends)
	trend("Web application firewall", webdelivery.DimEventSeverity, stats.WAFTrends)
	trend("Traffic shaping", webdelivery.DimEventType, stats.TrafficShapingTrends)
	ask(&r.Events, "Latest events", (*Panel).latest, stats.Events.Rows(ctx, webdelivery.EventsQuery{
		Dimensions: webdelivery.DimensionsOf[event](), Start: q.Start, End: q.End, Filter: q.filter,
		SortBy: []webdelivery.Sort{webdelivery.Desc(webdelivery.DimEventTimestamp)}, Limit: 25,
	}))
	for _, top := range tops {
		if top.waf != "" {
			ask(&r.WAF, top.title, (*Panel).bars, stats.WAFTopK(top.waf).Rows(ctx, webdelivery.WAFTopKQuery{
				Dimensions: []string{top.dimension}, Metrics: hits, Start: q.Start, End: q.End, Filter: q.filter,
			}))
		}
		if top.shaping != "" {
			ask(&r.Shaping, top.title, (*Panel).bars, stats.TrafficShapingTopK(top.shaping).Rows(ctx, webdelivery.ShapingTopKQuery{
				Dimensions: []string{top.dimension}, Metrics: hits, Start: q.Start, End: q.End, Filter: q.filter,
				SortBy: []webdelivery.Sort{webdelivery.Desc(webdelivery.MetricHits)}, Limit: 8,
			}))
		}
	}
	_ = asked.Wait() // the errors are in the panels
	return r
}
