package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
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

// query is a time range until now, and a filter.
type query struct {
	buckets

	Since      string // as it was written
	Start, End time.Time
	filter     filters.Expr
}

// newQuery creates a query. If it returns an error, the query has only the default of Since.
func newQuery(since string, filter filters.Expr, now time.Time) (query, error) {
	now = now.UTC().Truncate(time.Second)
	start, err := cli.ParseTime("since", since, now)
	length := now.Sub(start)
	if err == nil && (length < 5*time.Minute || length > 366*day) {
		err = fmt.Errorf("since %q: want a time from 5 minutes to 366 days ago", since)
	}
	if err != nil {
		return query{Since: defaultSince}, err
	}
	b := allBuckets[slices.IndexFunc(allBuckets, func(b buckets) bool { return length <= b.upTo })]
	return query{b, since, start.Truncate(b.width), now.Add(time.Second), filter}, nil
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

// bucket returns the index of the bucket of a row. A time outside the time range counts in the nearest bucket.
func (q query) bucket(at time.Time, buckets int) int {
	return max(0, min(buckets-1, int(at.Sub(q.Start)/q.width)))
}

// statistics are what the page shows.
type statistics struct {
	query

	Requests *panel
	Sections []*section
	Latest   *panel
	Options  map[string]*panel // for each dimension of the form its values in the time range, without the filter
	Parts    int               // panels, without the options
	Missing  int               // parts that could not be read
	Faults   []fault           // why

	parts []part
}

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

// Empty reports whether the service has no events at all.
func (s *statistics) Empty() bool {
	return s.Requests.Empty() && s.Latest.Empty() && !slices.ContainsFunc(s.Sections, func(s *section) bool { return !s.Empty() })
}

// part is a panel, and how to read it.
type part struct {
	name  string // "" for options, which do not count: the form works without them
	panel *panel
	read  func(*panel, query, rows) error
	rows  func(context.Context) rows
}

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

// blank returns statistics that were not read: each panel is missing.
func blank(stats *webdelivery.StatsService, q query) *statistics {
	s := &statistics{query: q}
	trend := func(section, title, dimension string, family *webdelivery.StatsFamily[webdelivery.TrendsQuery]) *panel {
		return s.add(section, title, dimension, (*panel).lines, from(family, webdelivery.TrendsQuery{
			Dimensions: []string{webdelivery.DimEventTimestamp, dimension}, Start: q.Start, End: q.End, Granularity: q.By, Filter: q.filter,
		}))
	}
	waf, shaping := &section{Title: "Web application firewall"}, &section{Title: "Traffic shaping"}
	s.Sections = []*section{waf, shaping}
	s.Requests = trend("", "Requests", webdelivery.DimEventAction, stats.RequestTrends)
	waf.Trend = trend(waf.Title, "Events by severity", webdelivery.DimEventSeverity, stats.WAFTrends)
	shaping.Trend = trend(shaping.Title, "Events by type", webdelivery.DimEventType, stats.TrafficShapingTrends)
	for _, top := range tops {
		query := webdelivery.TopKQuery{Dimensions: []string{top.dimension}, Start: q.Start, End: q.End, Filter: q.filter}
		if top.waf != "" {
			rows := from(stats.WAFTopK(top.waf), query)
			waf.Tops = append(waf.Tops, s.add(waf.Title, top.title, top.dimension, (*panel).groups, rows))
		}
		if top.shaping != "" {
			query.SortBy, query.Limit = []string{webdelivery.Desc(webdelivery.MetricHits)}, shown
			rows := from(stats.TrafficShapingTopK(top.shaping), query)
			shaping.Tops = append(shaping.Tops, s.add(shaping.Title, top.title, top.dimension, (*panel).groups, rows))
		}
	}
	events := webdelivery.EventsQuery{
		Dimensions: []string{webdelivery.DimEventTimestamp}, Start: q.Start, End: q.End, Filter: q.filter,
		SortBy: []string{webdelivery.Desc(webdelivery.DimEventTimestamp)}, Limit: latest,
	}
	for _, column := range columns {
		events.Dimensions = append(events.Dimensions, column.Dimension)
	}
	s.Latest = s.add("", "Latest events", "", (*panel).latest, from(stats.Events, events))
	s.Parts, s.Missing = len(s.parts), len(s.parts)
	s.Options = map[string]*panel{
		webdelivery.DimClientCountryCode: s.add("", "", "", (*panel).groups, from(stats.WAFTopK(webdelivery.WAFByCountry), webdelivery.TopKQuery{
			Dimensions: []string{webdelivery.DimClientCountryCode}, Start: q.Start, End: q.End,
		})),
		webdelivery.DimEventAction: s.add("", "", "", (*panel).groups, from(stats.RequestTrends, webdelivery.TrendsQuery{
			Dimensions: []string{webdelivery.DimEventAction}, Start: q.Start, End: q.End, Granularity: q.By,
		})),
	}
	return s
}

func from[Q webdelivery.StatsQuery](family *webdelivery.StatsFamily[Q], query Q) func(context.Context) rows {
	return func(ctx context.Context) rows { return family.All(ctx, query) }
}

func (s *statistics) add(section, title, dimension string, read func(*panel, query, rows) error, rows func(context.Context) rows) *panel {
	p := &panel{Title: title, Dimension: dimension, Missing: true}
	if section != "" {
		title = section + ": " + title
	}
	s.parts = append(s.parts, part{title, p, read, rows})
	return p
}

const (
	parallel = 6                // queries at a time
	patience = 15 * time.Second // for all queries
	// headStart is how long the first query runs alone. If the password is wrong, its 401 is then the only one.
	headStart = time.Second
)

var errPatience = errors.New("stopped waiting")

// read reads all panels. A panel that fails is missing, and Faults says why. After the first response that says that
// the password is wrong, read sends no more queries.
func (s *statistics) read(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	failed := make([]error, len(s.parts))
	var queries errgroup.Group
	queries.SetLimit(parallel)
	first := make(chan struct{})
	for i, part := range s.parts {
		queries.Go(func() error {
			failed[i] = part.load(ctx, s.query)
			if errors.Is(failed[i], webdelivery.ErrUnauthorized) {
				stop(failed[i])
			}
			if i == 0 {
				close(first)
			}
			return nil
		})
		if i == 0 {
			select {
			case <-first:
			case <-time.After(headStart):
			}
		}
	}
	_ = queries.Wait() // failed has the errors
	s.Missing = 0
	for i, err := range failed {
		if err != nil && s.parts[i].name != "" {
			s.Missing++
			s.Faults = addFault(s.Faults, s.parts[i].name, err)
		}
	}
}

func (p part) load(ctx context.Context, q query) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	read := panel{Title: p.panel.Title, Dimension: p.panel.Dimension}
	err := p.read(&read, q, p.rows(ctx))
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
