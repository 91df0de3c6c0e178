// Package stats has the commands for security statistics.
package stats

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

const about = `Show security events, and how many requests or events there were (hits): over
time, in total, and by country, client, rule and other dimensions.`

// Command returns the command. Its trends have the dimensions of those of the report.
func Command(app *cli.App) *cobra.Command {
	return cli.Group("stats", "Show security events, trends, and top countries, clients and rules", about,
		events(app),
		trend(app, "requests", "Show the hits of all requests over time", webdelivery.DimEventAction),
		trend(app, "waf", "Show the hits of the web application firewall over time", webdelivery.DimEventSeverity),
		trend(app, "shaping", "Show the hits of blocking and rate limiting over time", webdelivery.DimEventType),
		top(app), dimensions(app))
}

const eventsHelp = `Show the latest security events, newest first. To store many of them, or to
follow new ones, use webdelivery events.`

const eventsExample = `  webdelivery stats events --filter client_ip==192.0.2.1 --by rule_id,domain
  webdelivery stats events --since 1h --limit 0 -o ndjson | jq -r .client_ip`

func events(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "events", Short: "Show the latest security events", Long: eventsHelp, Args: cobra.NoArgs, Example: eventsExample,
	}
	const by = "event_timestamp_ms,client_ip,event_action,rule_id"
	return reads(app, c, by, 20, func(q *query, stats *webdelivery.StatsService) error {
		rows := webdelivery.EventsQuery{
			Dimensions: q.columns, Start: q.start, End: q.end, Filter: q.filter.Expr, Limit: int(q.limit),
			SortBy: []string{webdelivery.Desc(webdelivery.DimEventTimestamp)},
		}
		return q.print(stats.Events.Warnings(rows), stats.Events.All(c.Context(), rows))
	})
}

func trendsOf(s *webdelivery.StatsService) map[string]*webdelivery.StatsFamily[webdelivery.TrendsQuery] {
	return map[string]*webdelivery.StatsFamily[webdelivery.TrendsQuery]{
		"requests": s.RequestTrends, "waf": s.WAFTrends, "shaping": s.TrafficShapingTrends,
	}
}

const trendHelp = `.

With --per total, each row counts the whole time range, largest first.
Otherwise, each counts 5 minutes, an hour or a day of UTC; the first and the
last of them only the part that is in the range.`

const trendExample = `  webdelivery stats NAME --since 7d --per day
  webdelivery stats NAME --by domain --per total --limit 10 -o csv`

func trend(app *cli.App, name, short, by string) *cobra.Command {
	c := &cobra.Command{
		Use: name, Short: short, Long: short + trendHelp, Args: cobra.NoArgs,
		Example: strings.ReplaceAll(trendExample, "NAME", name),
	}
	per := cli.Choice(c, "per", "", "hour", "what a row counts", "5minute", "hour", "day", "total")
	return reads(app, c, by, 0, func(q *query, stats *webdelivery.StatsService) error {
		rows := webdelivery.TrendsQuery{
			Start: q.start, End: q.end, Granularity: webdelivery.Granularity(*per), Filter: q.filter.Expr, Limit: int(q.limit),
			SortBy: []string{webdelivery.DimEventTimestamp, webdelivery.Desc(webdelivery.MetricHits)},
		}
		if *per == "total" {
			rows.Granularity = webdelivery.GranularityFor(q.start, q.end, time.Now())
			rows.SortBy = rows.SortBy[1:]
		} else if !slices.Contains(q.columns, webdelivery.DimEventTimestamp) {
			q.columns = slices.Insert(q.columns, 0, webdelivery.DimEventTimestamp)
		}
		rows.Dimensions = q.columns
		family := trendsOf(stats)[name]
		return q.print(family.Warnings(rows), family.All(c.Context(), rows), webdelivery.MetricHits)
	})
}

const topHelp = `Show the countries, clients, rules and so on with the most hits in the firewall
or, with --shaping, in blocking and rate limiting. CATEGORY is one of:

  browser, clientip, country, requestpath
  ruleid, severity                        not with --shaping
  ratelimitclientip, ratelimitcountry     only with --shaping

The service has the 20 largest or, with --shaping, 1,000. For more, and by
other dimensions, use webdelivery stats waf or shaping with --per total.`

const topExample = `  webdelivery stats top country --since yesterday --until today -o csv
  webdelivery stats top clientip --filter event_action==BLOCK --limit 20`

// Categories have their dimensions. The service document does not name that of paths, so --by may have to.
var Categories = map[string]string{
	"browser": webdelivery.DimClientBrowser, "clientip": webdelivery.DimClientIP, "country": webdelivery.DimClientCountryCode,
	"requestpath": "request_path", "ruleid": webdelivery.DimRuleID, "severity": webdelivery.DimEventSeverity,
	"ratelimitclientip": webdelivery.DimClientIP, "ratelimitcountry": webdelivery.DimClientCountryCode,
}

func top(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "top CATEGORY", Short: "Show the countries, clients, rules and so on with the most hits", Long: topHelp,
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: slices.Sorted(maps.Keys(Categories)),
		Example: topExample,
	}
	shaping := c.Flags().Bool("shaping", false, "what was blocked by address or country, or rate limited")
	return reads(app, c, "", 10, func(q *query, stats *webdelivery.StatsService) error {
		category, limit := c.Flags().Arg(0), cmp.Or(int(q.limit), 1_000)
		if q.by == "" {
			q.columns = []string{Categories[category]}
		}
		rows := webdelivery.TopKQuery{Dimensions: q.columns, Start: q.start, End: q.end, Filter: q.filter.Expr}
		family := stats.WAFTopK(webdelivery.WAFCategory(category))
		if *shaping {
			family = stats.TrafficShapingTopK(webdelivery.TrafficShapingCategory(category))
			rows.SortBy, rows.Limit = []string{webdelivery.Desc(webdelivery.MetricHits)}, limit
		}
		result, err := family.Query(c.Context(), rows)
		if err != nil {
			return err
		}
		slices.SortStableFunc(result.Rows, func(a, b webdelivery.Row) int { return cmp.Compare(hits(b), hits(a)) })
		result.Rows = result.Rows[:min(limit, len(result.Rows))]
		return q.print(family.Warnings(rows), result.All(), webdelivery.MetricHits)
	})
}

// hits returns those of a row, only for its place: the row is printed as it is.
func hits(row webdelivery.Row) int64 {
	value, _ := row.Get(webdelivery.MetricHits)
	hits, _ := value.Int64()
	return hits
}

const dimensionsExample = `  webdelivery stats dimensions waf
  webdelivery stats dimensions events -o json | jq -r '.[].names[]'`

func dimensions(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "dimensions events|requests|waf|shaping", Short: "Show what --by and --filter of a command can have",
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), Example: dimensionsExample,
		ValidArgs: []string{"events", "requests", "waf", "shaping"},
		Long:      "Show the dimensions that a command can have in --by and --filter, and the\ngroupings: dimensions that --by can have together.",
	}
	format := cli.Format(c, cli.Formats...)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := app.Connect()
		if err != nil {
			return err
		}
		family := trendsOf(client.Stats)[args[0]] // nil for events, which have no groupings
		list := client.Stats.Events.Dimensions
		if family != nil {
			list = family.Dimensions
		}
		names, err := list(c.Context())
		var groupings [][]string
		if family != nil && err == nil {
			groupings, err = family.Groupings(c.Context())
		}
		if err != nil {
			return err
		}
		var all []dimension
		for _, name := range names {
			all = append(all, dimension{"dimension", []string{name}})
		}
		for _, names := range groupings {
			all = append(all, dimension{"grouping", names})
		}
		return cli.Print(app, *format, []string{"kind", "names"}, cli.All(all), func(d dimension) []string {
			return []string{d.Kind, strings.Join(d.Names, ",")}
		})
	}
	return c
}

type dimension struct {
	Kind  string   `json:"kind"`
	Names []string `json:"names"`
}

// query has the flags of a command that prints rows.
type query struct {
	app    *cli.App
	by     string
	filter *cli.Filter
	times  cli.Range
	limit  uint32
	format *string

	start, end time.Time
	columns    []string // at first those of --by
}

// reads makes a command one that runs a query with these defaults.
func reads(app *cli.App, c *cobra.Command, by string, limit uint32, run func(*query, *webdelivery.StatsService) error) *cobra.Command {
	q := &query{app: app}
	q.times.Flags(c.Flags(), "24h")
	q.filter = cli.FilterFlag(c.Flags())
	c.Flags().StringVar(&q.by, "by", by, "`dimensions` with commas between them; stats dimensions lists them")
	c.Flags().Uint32Var(&q.limit, "limit", limit, "largest `number` of rows; 0 is all")
	q.format = cli.Format(c, cli.Formats...)
	c.RunE = func(*cobra.Command, []string) (err error) {
		if q.start, q.end, err = q.times.Times(time.Now()); err != nil {
			return err
		}
		q.columns = strings.FieldsFunc(q.by, func(r rune) bool { return r == ',' || r == ' ' })
		client, err := app.Connect()
		if err != nil {
			return err
		}
		err = run(q, client.Stats)
		if errors.Is(err, webdelivery.ErrBadRequest) {
			err = cli.Advise(err, "check --by and --filter; webdelivery stats dimensions lists the names")
		}
		return err
	}
	return c
}

// print prints the columns and metrics of rows, and warns on standard error.
func (q *query) print(warnings []string, rows iter.Seq2[webdelivery.Row, error], metrics ...string) error {
	for _, warning := range warnings {
		q.app.Tell("%s", warning)
	}
	q.columns = append(q.columns, metrics...)
	records := func(yield func(record, error) bool) {
		for row, err := range rows {
			r, failed := q.record(row)
			if !yield(r, cmp.Or(err, failed)) {
				return
			}
		}
	}
	return cli.Print(q.app, *q.format, q.columns, records, func(r record) []string { return r.cells })
}

// record is a row. Its JSON keeps the order of the columns.
type record struct {
	json.RawMessage

	cells []string
}

func (q *query) record(row webdelivery.Row) (r record, err error) {
	var at time.Time // zero if there is none, or it cannot be read
	for _, name := range q.columns {
		value, ok := row.Get(name)
		if !ok {
			return r, fmt.Errorf("the response has no column %q, only %q", name, row.Columns())
		}
		cell := value.String()
		if parsed, err := value.Time(); err == nil && name == webdelivery.DimEventTimestamp {
			at, cell = parsed, cli.Timestamp(parsed)
			if *q.format == "table" {
				cell = cli.Time(parsed)
			}
		}
		r.cells = append(r.cells, cell)
	}
	r.RawMessage = cli.AppendRow(nil, row, q.columns, at)
	return r, nil
}
