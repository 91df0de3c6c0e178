// Package report asks the service for everything that a page of its security statistics shows.
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
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
	Options                      map[string]*Panel // of each dimension that can be picked: groups of the span without the filter
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
	r := &Report{Query: q, Options: map[string]*Panel{}}
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
	waf := func(category webdelivery.WAFCategory, dimension string, filter filters.Expr) rows {
		return stats.WAFTopK(category).Rows(ctx, webdelivery.WAFTopKQuery{
			Dimensions: []string{dimension}, Metrics: hits, Start: q.Start, End: q.End, Filter: filter,
		})
	}
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
			ask(&r.WAF, top.title, (*Panel).bars, waf(top.waf, top.dimension, q.filter))
		}
		if top.shaping != "" {
			ask(&r.Shaping, top.title, (*Panel).bars, stats.TrafficShapingTopK(top.shaping).Rows(ctx, webdelivery.ShapingTopKQuery{
				Dimensions: []string{top.dimension}, Metrics: hits, Start: q.Start, End: q.End, Filter: q.filter,
				SortBy: []webdelivery.Sort{webdelivery.Desc(webdelivery.MetricHits)}, Limit: 8,
			}))
		}
	}
	options := func(dimension string, rows rows) {
		p := &Panel{}
		r.Options[dimension] = p
		asked.Go(func() error { return p.count(q, 1, rows) })
	}
	options(webdelivery.DimClientCountryCode, waf(webdelivery.WAFByCountry, webdelivery.DimClientCountryCode, nil))
	options(webdelivery.DimEventAction, stats.RequestTrends.All(ctx, webdelivery.TrendsQuery{
		Dimensions: []string{webdelivery.DimEventAction}, Metrics: hits, Start: q.Start, End: q.End, Granularity: q.By,
	}))
	_ = asked.Wait() // the errors are in the panels; a form can do without options
	return r
}

// Panel is one part of a report: what there is of its family, or why it could not be read. Its chart is data that
// html/template escapes. The HTML of go-echarts is not used: it turns "__f__" in a value, which is anybody's, into code.
type Panel struct {
	Title, Error string
	Total        int64
	Groups       []*group // largest first
	Chart        map[string]any
	Events       []event
}

// group is a value of a dimension with its hits, in all and in each bucket of time.
type group struct {
	Name    string
	Hits    int64
	buckets []opts.LineData
}

type event struct { // nil is null
	Time     time.Time   `stats:"event_timestamp_ms"`
	Action   *string     `stats:"event_action"`
	Type     *string     `stats:"event_type"`
	Severity *string     `stats:"event_severity"`
	Rule     *string     `stats:"rule_id"`
	Client   *netip.Addr `stats:"client_ip"`
	Country  *string     `stats:"client_country_code"`
	Domain   *string     `stats:"domain"`
}

type rows = iter.Seq2[webdelivery.Row, error]

func (p *Panel) latest(_ Query, rows rows) error {
	for event, err := range webdelivery.Scan[event](rows) {
		if err != nil {
			return err
		}
		p.Events = append(p.Events, event)
	}
	return nil
}

// lines draws a line for each group, up to the last bucket that is full: the next would look like a fall.
func (p *Panel) lines(q Query, rows rows) error {
	var times []string
	for at := q.Start; !at.Add(q.width).After(q.End); at = at.Add(q.width) {
		times = append(times, at.Format(q.layout))
	}
	err := p.count(q, len(times), rows)
	chart := charts.NewLine().SetXAxis(times)
	var names []string
	for _, g := range p.Groups {
		chart.AddSeries(g.Name, g.buckets)
		names = append(names, g.Name)
	}
	chart.Validate()
	p.Chart = chart.JSON()
	p.Chart["colours"] = Colours(names) // of the series
	return err
}

// bars draws a bar for each of the largest groups, the first on top.
func (p *Panel) bars(q Query, rows rows) error {
	err := p.count(q, 1, rows)
	var names []string
	var hits []opts.BarData
	for _, g := range slices.Backward(p.Groups[:min(8, len(p.Groups))]) {
		names = append(names, g.Name)
		hits = append(hits, opts.BarData{Value: g.Hits})
	}
	chart := charts.NewBar().SetXAxis(names).XYReversal().AddSeries("hits", hits)
	chart.Validate()
	p.Chart = chart.JSON()
	return err
}

// count reads groups, and their buckets where rows have a time.
func (p *Panel) count(q Query, buckets int, rows rows) error {
	groups := map[string]*group{}
	for row, err := range rows {
		name, hits, at := "none", int64(0), q.Start
		for i, column := range row.Columns() {
			switch value := row.At(i); {
			case err != nil: // is told below
			case column == webdelivery.DimEventTimestamp:
				at, err = value.Time()
			case column == webdelivery.MetricHits:
				hits, err = value.Int64()
			default:
				name = cmp.Or(value.String(), name)
			}
		}
		if err != nil {
			return err
		}
		if groups[name] == nil {
			groups[name] = &group{Name: name, buckets: slices.Repeat([]opts.LineData{{Value: int64(0)}}, buckets)}
		}
		if i := int(at.Sub(q.Start) / q.width); i >= 0 && i < buckets {
			groups[name].buckets[i].Value = groups[name].buckets[i].Value.(int64) + hits
		}
		groups[name].Hits += hits
		p.Total += hits
	}
	p.Groups = slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), cmp.Compare(a.Name, b.Name))
	})
	return nil
}
