package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/stats"
	"github.com/webdelivery/webdelivery-go/filters"
)

// day is a day of UTC, so it always has 24 hours.
const day = 24 * time.Hour

// buckets are the buckets of a time range. A chart has at most 366 of them, and the service still has their data.
type buckets struct {
	By     webdelivery.Granularity
	Unit   string // a bucket in words
	upTo   time.Duration
	width  time.Duration
	layout string // of a bucket's time on the axis
}

var allBuckets = []buckets{
	{webdelivery.Granularity5Minute, "5 minutes", 6 * time.Hour, 5 * time.Minute, "15:04"},
	{webdelivery.GranularityHour, "hour", day, time.Hour, "15:04"},
	{webdelivery.GranularityHour, "hour", 7 * day, time.Hour, "2 Jan 15:04"},
	{webdelivery.GranularityDay, "day", 366 * day, day, "2 Jan"},
}

const defaultSince = "24h"

// query is what was picked: a time range until now, and a filter.
type query struct {
	buckets

	Since, Typed string // as they were written
	Start, End   time.Time
	Filter       filters.Expr // nil is all
	Served       bool
}

// newQuery creates a query. If it returns an error, the query has only what was typed.
func newQuery(since, filter string, served bool) (query, error) {
	q := query{Since: defaultSince, Typed: filter, Served: served}
	now := time.Now().UTC().Truncate(time.Second)
	start, err := cli.ParseTime("since", since, now)
	if err != nil {
		return q, err
	}
	length := now.Sub(start)
	if length < 5*time.Minute || length > 366*day {
		return q, fmt.Errorf("since %q: want a time from 5 minutes to 366 days ago", since)
	}
	q.Since = since
	if filter != "" {
		if q.Filter, err = filters.Parse(filter); err != nil {
			return q, err
		}
	}
	q.buckets = allBuckets[slices.IndexFunc(allBuckets, func(b buckets) bool { return length <= b.upTo })]
	q.Start, q.End = start.Truncate(q.width), now.Add(time.Second)
	return q, nil
}

// Over returns the end of the last bucket that is over.
func (q query) Over() time.Time { return q.End.Truncate(q.width) }

// times returns the labels of the buckets that are over.
func (q query) times() (labels []string) {
	for at := q.Start; at.Before(q.Over()); at = at.Add(q.width) {
		labels = append(labels, at.Format(q.layout))
	}
	return labels
}

// bucket returns the index of the bucket of a row. A time before the time range counts in the first one.
func (q query) bucket(at time.Time) int { return max(0, int(at.Sub(q.Start)/q.width)) }

// section has the trend and the largest values of a group of statistics.
type section struct {
	Title string
	Trend *panel
	Tops  []*panel
}

// Empty reports whether the service has no events for any panel of the section.
func (s *section) Empty() bool {
	return s.Trend.Empty() && !slices.ContainsFunc(s.Tops, func(p *panel) bool { return !p.Empty() })
}

// tops are the categories of both sections.
var tops = []struct {
	title   string
	waf     webdelivery.WAFCategory
	shaping webdelivery.TrafficShapingCategory
}{
	{"Rules", webdelivery.WAFByRuleID, ""},
	{"Clients", webdelivery.WAFByClientIP, webdelivery.TrafficShapingByClientIP},
	{"Rate-limited clients", "", webdelivery.TrafficShapingByRateLimitClientIP},
	{"Countries", webdelivery.WAFByCountry, webdelivery.TrafficShapingByCountry},
	{"Rate-limited countries", "", webdelivery.TrafficShapingByRateLimitCountry},
	{"Paths", webdelivery.WAFByRequestPath, webdelivery.TrafficShapingByRequestPath},
	{"Severities", webdelivery.WAFBySeverity, ""},
	{"Browsers", webdelivery.WAFByBrowser, webdelivery.TrafficShapingByBrowser},
}

// plan adds the panels.
func (p *page) plan(s *webdelivery.StatsService) {
	events := webdelivery.EventsQuery{
		Dimensions: []string{webdelivery.DimEventTimestamp}, Start: p.Start, End: p.End, Filter: p.Filter,
		SortBy: []string{webdelivery.Desc(webdelivery.DimEventTimestamp)}, Limit: latest,
	}
	for _, column := range columns {
		events.Dimensions = append(events.Dimensions, column.Dimension)
	}
	waf, shaping := &section{Title: "Web application firewall"}, &section{Title: "Traffic shaping"}
	p.Sections = []*section{waf, shaping}
	p.Latest = p.add("", "Latest events", "", from(s.Events, events))
	p.Requests = p.trend("", "Requests", webdelivery.DimEventAction, s.RequestTrends)
	waf.Trend = p.trend(waf.Title, "Events by severity", webdelivery.DimEventSeverity, s.WAFTrends)
	shaping.Trend = p.trend(shaping.Title, "Events by type", webdelivery.DimEventType, s.TrafficShapingTrends)
	for _, top := range tops {
		dimension := stats.Categories[cmp.Or(string(top.waf), string(top.shaping))]
		query := webdelivery.TopKQuery{Dimensions: []string{dimension}, Start: p.Start, End: p.End, Filter: p.Filter}
		if top.waf != "" {
			rows := from(s.WAFTopK(top.waf), query)
			waf.Tops = append(waf.Tops, p.add(waf.Title, top.title, dimension, rows))
		}
		if top.shaping != "" {
			query.SortBy, query.Limit = []string{webdelivery.Desc(webdelivery.MetricHits)}, shown
			rows := from(s.TrafficShapingTopK(top.shaping), query)
			shaping.Tops = append(shaping.Tops, p.add(shaping.Title, top.title, dimension, rows))
		}
	}
}

type trends = webdelivery.StatsFamily[webdelivery.TrendsQuery]

// trend adds a panel with a chart.
func (p *page) trend(section, title, dimension string, family *trends) *panel {
	added := p.add(section, title, dimension, from(family, webdelivery.TrendsQuery{
		Dimensions: []string{webdelivery.DimEventTimestamp, dimension}, Granularity: p.By,
		Start: p.Start, End: p.End, Filter: p.Filter,
	}))
	added.Chart.Times = p.times()
	return added
}

func (p *page) add(section, title, dimension string, rows rows) *panel {
	added := &panel{query: p.query, Title: title, Dimension: dimension, name: title, rows: rows}
	if section != "" {
		added.name = section + ": " + title
	}
	p.panels = append(p.panels, added)
	return added
}

// rows sends a query, and yields what the service responds.
type rows func(context.Context) iter.Seq2[webdelivery.Row, error]

func from[Q webdelivery.StatsQuery](family *webdelivery.StatsFamily[Q], query Q) rows {
	return func(ctx context.Context) iter.Seq2[webdelivery.Row, error] { return family.All(ctx, query) }
}

const (
	parallel = 6                // queries at a time
	patience = 15 * time.Second // for all queries
	// headStart is how long the first query runs alone. If the password is wrong, its 401 is then the only one: services
	// lock users who repeat it.
	headStart = time.Second
)

// read reads all panels. A panel that fails is missing, and Faults says why. After the first response that says that
// the password is wrong, read sends no more queries.
func (p *page) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	read := func(part *panel) {
		part.err = part.read(ctx)
		if errors.Is(part.err, webdelivery.ErrUnauthorized) {
			stop(part.err)
		}
	}
	var queries errgroup.Group
	queries.SetLimit(parallel)
	for i, part := range p.panels {
		done := make(chan struct{})
		queries.Go(func() error {
			defer close(done)
			read(part)
			return nil
		})
		if i == 0 {
			select {
			case <-done:
			case <-time.After(headStart):
			}
		}
	}
	_ = queries.Wait() // the panels have the errors
	for _, part := range p.panels {
		if part.err != nil {
			p.Missing++
			p.Faults = addFault(p.Faults, part.name, part.err)
		}
	}
}
