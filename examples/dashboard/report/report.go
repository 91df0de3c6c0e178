// Package report reads all statistics that the dashboard shows.
package report

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
)

// Report has the statistics of a query.
type Report struct {
	Query
	Requests *Panel
	Sections []*Section
	Latest   *Panel
	Options  map[string]*Panel // for each dimension of the form its values in the time range, without the filter
	Parts    int               // panels, without the options
	Missing  int               // parts that the report could not read
	Faults   []Fault           // why

	parts []part
}

// Section has the trend and the largest values of a group of statistics.
type Section struct {
	Title string
	Trend *Panel
	Tops  []*Panel
}

// Empty reports whether the service has no events for any panel of the section.
func (s *Section) Empty() bool {
	empty := s.Trend.Empty()
	for _, p := range s.Tops {
		empty = empty && p.Empty()
	}
	return empty
}

// Empty reports whether the service has no events at all.
func (r *Report) Empty() bool {
	empty := r.Requests.Empty() && r.Latest.Empty()
	for _, s := range r.Sections {
		empty = empty && s.Empty()
	}
	return empty
}

// part is a panel, and how to read it.
type part struct {
	name   string // "" for options, which do not count: the form works without them
	panel  *Panel
	read   func(*Panel, Query, rows) error
	source func(ctx context.Context, stats *webdelivery.StatsService) rows
}

const (
	parallel = 6                // queries at a time
	patience = 15 * time.Second // for all queries
	// headStart is how long the first query runs alone. If the password is wrong, its 401 is then the only one.
	headStart = time.Second
)

var errPatience = errors.New("no response within 15 seconds")

// tops are the categories with the dimension of each. The service document does not name the dimension of paths.
var tops = []struct {
	title, dimension string
	waf              webdelivery.WAFCategory
	shaping          webdelivery.TrafficShapingCategory
}{
	{"Rules", webdelivery.DimRuleID, webdelivery.WAFByRuleID, ""},
	{"Clients", webdelivery.DimClientIP, webdelivery.WAFByClientIP, webdelivery.TrafficShapingByClientIP},
	{"Rate-limited clients", webdelivery.DimClientIP, "", webdelivery.TrafficShapingByRateLimitClientIP},
	{"Countries", webdelivery.DimClientCountryCode, webdelivery.WAFByCountry, webdelivery.TrafficShapingByCountry},
	{"Rate-limited countries", webdelivery.DimClientCountryCode, "", webdelivery.TrafficShapingByRateLimitCountry},
	{"Paths", "request_path", webdelivery.WAFByRequestPath, webdelivery.TrafficShapingByRequestPath},
	{"Severities", webdelivery.DimEventSeverity, webdelivery.WAFBySeverity, ""},
	{"Browsers", webdelivery.DimClientBrowser, webdelivery.WAFByBrowser, webdelivery.TrafficShapingByBrowser},
}

// Blank returns a report without statistics: each of its panels is missing.
func Blank(q Query) *Report {
	r := &Report{Query: q, Options: map[string]*Panel{}}
	waf, shaping := &Section{Title: "Web application firewall"}, &Section{Title: "Traffic shaping"}
	r.Sections = []*Section{waf, shaping}
	r.Requests = r.trend("", "Requests", webdelivery.DimEventAction,
		func(s *webdelivery.StatsService) *webdelivery.StatsFamily[webdelivery.TrendsQuery] {
			return s.RequestTrends
		})
	waf.Trend = r.trend(waf.Title, "Events by severity", webdelivery.DimEventSeverity,
		func(s *webdelivery.StatsService) *webdelivery.StatsFamily[webdelivery.TrendsQuery] {
			return s.WAFTrends
		})
	shaping.Trend = r.trend(shaping.Title, "Events by type", webdelivery.DimEventType,
		func(s *webdelivery.StatsService) *webdelivery.StatsFamily[webdelivery.TrendsQuery] {
			return s.TrafficShapingTrends
		})
	for _, top := range tops {
		if top.waf != "" {
			waf.Tops = append(waf.Tops, r.add(waf.Title, top.title, top.dimension, (*Panel).groups, q.topOfWAF(top.waf, top.dimension, q.filter)))
		}
		if top.shaping != "" {
			shaping.Tops = append(shaping.Tops, r.add(shaping.Title, top.title, top.dimension, (*Panel).groups, q.topOfShaping(top.shaping, top.dimension)))
		}
	}
	dimensions := []string{webdelivery.DimEventTimestamp}
	for _, column := range Columns {
		dimensions = append(dimensions, column.Dimension)
	}
	r.Latest = r.add("", "Latest events", "", (*Panel).latest, func(ctx context.Context, stats *webdelivery.StatsService) rows {
		return stats.Events.All(ctx, webdelivery.EventsQuery{
			Dimensions: dimensions, Start: q.Start, End: q.End, Filter: q.filter,
			SortBy: []string{webdelivery.Desc(webdelivery.DimEventTimestamp)}, Limit: latest,
		})
	})
	r.Parts = len(r.parts)
	r.Missing = r.Parts
	r.option(webdelivery.DimClientCountryCode, q.topOfWAF(webdelivery.WAFByCountry, webdelivery.DimClientCountryCode, nil))
	r.option(webdelivery.DimEventAction, func(ctx context.Context, stats *webdelivery.StatsService) rows {
		return stats.RequestTrends.All(ctx, webdelivery.TrendsQuery{
			Dimensions: []string{webdelivery.DimEventAction}, Start: q.Start, End: q.End, Granularity: q.By,
		})
	})
	return r
}

func (r *Report) add(section, title, dimension string, read func(*Panel, Query, rows) error,
	source func(context.Context, *webdelivery.StatsService) rows,
) *Panel {
	p := &Panel{Title: title, Dimension: dimension, Missing: true}
	if section != "" {
		title = section + ": " + title
	}
	r.parts = append(r.parts, part{title, p, read, source})
	return p
}

func (r *Report) trend(section, title, dimension string,
	family func(*webdelivery.StatsService) *webdelivery.StatsFamily[webdelivery.TrendsQuery],
) *Panel {
	return r.add(section, title, dimension, (*Panel).lines, func(ctx context.Context, stats *webdelivery.StatsService) rows {
		return family(stats).All(ctx, webdelivery.TrendsQuery{
			Dimensions: []string{webdelivery.DimEventTimestamp, dimension},
			Start:      r.Start, End: r.End, Granularity: r.By, Filter: r.filter,
		})
	})
}

func (r *Report) option(dimension string, source func(context.Context, *webdelivery.StatsService) rows) {
	r.Options[dimension] = &Panel{Missing: true}
	r.parts = append(r.parts, part{"", r.Options[dimension], (*Panel).groups, source})
}

func (q Query) topOfWAF(category webdelivery.WAFCategory, dimension string, filter filters.Expr) func(context.Context, *webdelivery.StatsService) rows {
	return func(ctx context.Context, stats *webdelivery.StatsService) rows {
		return stats.WAFTopK(category).All(ctx, webdelivery.TopKQuery{
			Dimensions: []string{dimension}, Start: q.Start, End: q.End, Filter: filter,
		})
	}
}

func (q Query) topOfShaping(category webdelivery.TrafficShapingCategory, dimension string) func(context.Context, *webdelivery.StatsService) rows {
	return func(ctx context.Context, stats *webdelivery.StatsService) rows {
		return stats.TrafficShapingTopK(category).All(ctx, webdelivery.TopKQuery{
			Dimensions: []string{dimension}, Start: q.Start, End: q.End, Filter: q.filter,
			SortBy: []string{webdelivery.Desc(webdelivery.MetricHits)}, Limit: shown,
		})
	}
}

// Read reads all panels, at most six at a time and for at most 15 seconds. A panel that fails is missing, and Faults
// says why. After the first response that says that the password is wrong, Read sends no more queries.
func Read(ctx context.Context, stats *webdelivery.StatsService, q Query) *Report {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := Blank(q)
	failed := make([]error, len(r.parts))
	var queries errgroup.Group
	queries.SetLimit(parallel)
	start := func(i int) (done chan struct{}) {
		done = make(chan struct{})
		queries.Go(func() error {
			defer close(done)
			failed[i] = r.parts[i].load(ctx, stats, q)
			if errors.Is(failed[i], webdelivery.ErrUnauthorized) {
				stop(failed[i])
			}
			return nil
		})
		return done
	}
	select {
	case <-start(0):
	case <-time.After(headStart):
	}
	for i := range r.parts[1:] {
		start(i + 1)
	}
	_ = queries.Wait() // failed has the errors
	r.judge(failed)
	return r
}

// load reads a panel.
func (p part) load(ctx context.Context, stats *webdelivery.StatsService, q Query) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	read := Panel{Title: p.panel.Title, Dimension: p.panel.Dimension}
	err := p.read(&read, q, p.source(ctx, stats))
	switch {
	case err == nil:
		*p.panel = read
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return err
	}
}

// judge counts the parts that are missing, and says why they are.
func (r *Report) judge(failed []error) {
	r.Missing = 0
	for i, err := range failed {
		if err != nil && r.parts[i].name != "" {
			r.Missing++
			r.Faults = addFault(r.Faults, r.parts[i].name, err)
		}
	}
	if r.Missing == r.Parts && errors.Is(r.Faults[0].Err, webdelivery.ErrServer) {
		r.Faults[0].Summary = "The service is down: it " + strings.TrimPrefix(r.Faults[0].Summary, "The service ")
	}
}
