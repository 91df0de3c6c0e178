package operations

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// EventsAsked is the number of raw events that operations query. With a testserver.Config.EventsPerSecond of EventRate,
// there are more than that, and Items of every operation is right.
const (
	EventsAsked = 20
	EventRate   = 0.01

	groups    = 3 // limit of aggregated queries
	span      = 3 * time.Hour
	allEvents = 108 // events in the time range with that rate
	countries = 9   // countries of these events
)

// Events returns a query for the raw events of three hours.
func Events(end time.Time, limit int) webdelivery.EventsQuery {
	return webdelivery.EventsQuery{
		Dimensions: []string{webdelivery.DimClientIP, webdelivery.DimClientCountryCode}, Start: end.Add(-span), End: end,
		SortBy: []string{webdelivery.DimClientIP}, Limit: limit,
	}
}

// now returns the time at which statistics end.
func (u *Use) now() time.Time {
	if u.Now.IsZero() {
		return time.Now()
	}
	return u.Now
}

// family is one family of statistics, with its number of rows on the fake.
type family[Q webdelivery.StatsQuery] struct {
	name, path string
	query      func(end time.Time, limit int) Q
	limited    int  // rows with this limit
	all        int  // rows without it
	whole      bool // it has no limit, so All needs no request to find out the number of rows
}

func statistics() []Operation {
	type client = webdelivery.Client
	country := []string{webdelivery.DimClientCountryCode}
	most := []string{webdelivery.Desc(webdelivery.MetricHits), webdelivery.DimClientCountryCode}
	trends := func(granularity webdelivery.Granularity) func(time.Time, int) webdelivery.TrendsQuery {
		return func(end time.Time, limit int) webdelivery.TrendsQuery {
			return webdelivery.TrendsQuery{
				Dimensions: country, Start: end.Add(-span), End: end, SortBy: most, Limit: limit, Granularity: granularity,
			}
		}
	}
	waf := func(end time.Time, _ int) webdelivery.TopKQuery {
		return webdelivery.TopKQuery{Dimensions: country, Start: end.Add(-span), End: end}
	}
	shaping := func(end time.Time, limit int) webdelivery.TopKQuery {
		return webdelivery.TopKQuery{Dimensions: country, Start: end.Add(-span), End: end, SortBy: most, Limit: limit}
	}
	type ofTrends = webdelivery.StatsFamily[webdelivery.TrendsQuery]
	const base = "/stats/security/"
	return slices.Concat(
		exports(base+"events"),
		plainOf(
			family[webdelivery.EventsQuery]{"Stats.Events", base + "events", Events, EventsAsked, allEvents, false},
			func(c *client) *webdelivery.StatsFamily[webdelivery.EventsQuery] { return c.Stats.Events }),
		aggregatedOf(
			family[webdelivery.TrendsQuery]{"Stats.WAFTrends", base + "waf/trends", trends(webdelivery.GranularityHour), groups, countries, false},
			func(c *client) *ofTrends { return c.Stats.WAFTrends }),
		aggregatedOf(
			family[webdelivery.TrendsQuery]{"Stats.RequestTrends", base + "request/trends", trends(""), groups, countries, false},
			func(c *client) *ofTrends { return c.Stats.RequestTrends }),
		aggregatedOf(
			family[webdelivery.TrendsQuery]{"Stats.TrafficShapingTrends", base + "trafficshaping/trends", trends(webdelivery.GranularityHour), groups, countries, false},
			func(c *client) *ofTrends { return c.Stats.TrafficShapingTrends }),
		aggregatedOf(
			family[webdelivery.TopKQuery]{"Stats.WAFTopK", base + "waf/topk/" + string(webdelivery.WAFByCountry), waf, countries, countries, true},
			func(c *client) *webdelivery.StatsFamily[webdelivery.TopKQuery] {
				return c.Stats.WAFTopK(webdelivery.WAFByCountry)
			}),
		aggregatedOf(
			family[webdelivery.TopKQuery]{"Stats.TrafficShapingTopK", base + "trafficshaping/topk/" + string(webdelivery.TrafficShapingByCountry), shaping, groups, countries, false},
			func(c *client) *webdelivery.StatsFamily[webdelivery.TopKQuery] {
				return c.Stats.TrafficShapingTopK(webdelivery.TrafficShapingByCountry)
			}),
	)
}

// exports are the exports of raw events. Each range over the sequence starts a new export.
func exports(path string) []Operation {
	return []Operation{{
		Name: "Export.All", Also: []string{"Stats.NewExport", "Export.Cursor", "Export.Follow", "Export.Key", "Export.Late"}, Kind: Streams, Resumes: true,
		Method: http.MethodGet, Path: path + "/data", Requests: 2, Ahead: 1, Items: allEvents,
		sequence: plain(func(ctx context.Context, c *webdelivery.Client, use *Use) iter.Seq2[webdelivery.Row, error] {
			return func(yield func(webdelivery.Row, error) bool) {
				query := Events(use.now(), 0)
				query.SortBy = nil
				export := c.Stats.NewExport(query, webdelivery.Cursor{}, webdelivery.ExportOptions{})
				defer func() { use.Show(export, export.Cursor()) }()
				export.All(ctx)(yield)
			}
		}),
	}}
}

// plainOf returns the operations that every family has.
func plainOf[Q webdelivery.StatsQuery](f family[Q], of func(*webdelivery.Client) *webdelivery.StatsFamily[Q]) []Operation {
	all := Operation{
		Name: f.name + ".All", Kind: Streams, Method: http.MethodGet, Path: f.path + "/data", Requests: 2, Ahead: 1, Items: f.all,
		sequence: plain(func(ctx context.Context, c *webdelivery.Client, use *Use) iter.Seq2[webdelivery.Row, error] {
			return of(c).All(ctx, f.query(use.now(), 0))
		}),
	}
	if f.whole {
		all.Requests, all.Ahead = 1, 0
	}
	return []Operation{
		{
			Name: f.name + ".Query", Also: []string{f.name + ".Warnings"}, Kind: Reads, Method: http.MethodGet, Path: f.path + "/data", Requests: 1,
			call: func(ctx context.Context, c *webdelivery.Client, use *Use) error {
				query := f.query(use.now(), f.limited)
				result, err := of(c).Query(ctx, query)
				use.Show(query, result, of(c).Warnings(query))
				if result != nil && len(result.Rows) > 0 {
					use.Show(result.Rows[0], result.Rows[0].At(0))
				}
				return err
			},
		},
		{
			Name: f.name + ".All", Variant: "with a limit", Kind: Streams, Method: http.MethodGet, Path: f.path + "/data", Requests: 1, Items: f.limited,
			sequence: plain(func(ctx context.Context, c *webdelivery.Client, use *Use) iter.Seq2[webdelivery.Row, error] {
				return of(c).All(ctx, f.query(use.now(), f.limited))
			}),
		},
		all,
		reads(f.name+".Dimensions", f.path+"/dimensions", shown(func(ctx context.Context, c *webdelivery.Client, _ *Use) ([]string, error) {
			return of(c).Dimensions(ctx)
		})),
		{
			Name: f.name + ".Head", Kind: Reads, Method: http.MethodHead, Path: f.path, Requests: 1, Bodiless: true,
			call: func(ctx context.Context, c *webdelivery.Client, use *Use) error {
				header, err := of(c).Head(ctx, f.query(use.now(), f.limited))
				use.Show(of(c), header)
				return err
			},
		},
	}
}

// aggregatedOf returns the operations of a family with groupings and metrics.
func aggregatedOf[Q webdelivery.StatsQuery](f family[Q], of func(*webdelivery.Client) *webdelivery.StatsFamily[Q]) []Operation {
	return append(plainOf(f, of),
		reads(f.name+".Metrics", f.path+"/metrics", shown(func(ctx context.Context, c *webdelivery.Client, _ *Use) ([]string, error) {
			return of(c).Metrics(ctx)
		})),
		reads(f.name+".Groupings", f.path+"/groupings", func(ctx context.Context, c *webdelivery.Client, use *Use) error {
			groupings, err := of(c).Groupings(ctx)
			use.Show(of(c), groupings)
			return err
		}))
}
