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

type trends = webdelivery.StatsFamily[webdelivery.TrendsQuery]

var trendsOf = map[string]func(*webdelivery.StatsService) *trends{
	"requests": func(s *webdelivery.StatsService) *trends { return s.RequestTrends },
	"waf":      func(s *webdelivery.StatsService) *trends { return s.WAFTrends },
	"shaping":  func(s *webdelivery.StatsService) *trends { return s.TrafficShapingTrends },
}

const trendHelp = `.

With --per total, each row counts the whole time range, largest first.
Otherwise, each counts 5 minutes, an hour or a day of UTC; the first and the
last of them only the part that is in the range.`

const trendExample = `  webdelivery stats NAME --since 7d --per day
  webdelivery stats NAME --by domain --per total --limit 10
  webdelivery stats NAME --filter client_country_code==DE -o csv`

func trend(app *cli.App, name, short, by string) *cobra.Command {
	c := &cobra.Command{
		Use: name, Short: short, Long: short + trendHelp, Args: cobra.NoArgs, Example: strings.ReplaceAll(trendExample, "NAME", name),
	}
	per := cli.Choice(c.Flags(), "per", "hour", "what a row counts", "5minute", "hour", "day", "total")
	return reads(app, c, by, 0, func(q *query, stats *webdelivery.StatsService) error {
		granularity, order := webdelivery.Granularity(*per), []string{webdelivery.Desc(webdelivery.MetricHits)}
		if *per == "total" {
			granularity = webdelivery.GranularityFor(q.start, q.end, time.Now())
		} else {
			q.columns = slices.DeleteFunc(q.columns, func(name string) bool { return name == webdelivery.DimEventTimestamp })
			q.columns = slices.Insert(q.columns, 0, webdelivery.DimEventTimestamp)
			order = slices.Insert(order, 0, webdelivery.DimEventTimestamp)
		}
		family, rows := trendsOf[name](stats), webdelivery.TrendsQuery{
			Dimensions: q.columns, Start: q.start, End: q.end, Granularity: granularity, Filter: q.filter.Expr,
			SortBy: order, Limit: int(q.limit),
		}
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
  webdelivery stats top clientip --filter event_action==BLOCK
  webdelivery stats top ratelimitclientip --shaping --limit 100`

// categories have the dimension of each. The service document does not name that of paths and of what is rate limited,
// so --by may have to.
var categories = map[string]string{
	"browser": webdelivery.DimClientBrowser, "clientip": webdelivery.DimClientIP, "country": webdelivery.DimClientCountryCode,
	"requestpath": "request_path", "ruleid": webdelivery.DimRuleID, "severity": webdelivery.DimEventSeverity,
	"ratelimitclientip": webdelivery.DimClientIP, "ratelimitcountry": webdelivery.DimClientCountryCode,
}

func top(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "top CATEGORY", Short: "Show the countries, clients, rules and so on with the most hits", Long: topHelp,
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: slices.Sorted(maps.Keys(categories)), Example: topExample,
	}
	shaping := c.Flags().Bool("shaping", false, "what was blocked by address or country, or rate limited")
	return reads(app, c, "", 10, func(q *query, stats *webdelivery.StatsService) error {
		category, limit := c.Flags().Arg(0), cmp.Or(int(q.limit), 1_000)
		if q.by == "" {
			q.columns = []string{categories[category]}
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
		Use: "dimensions events|requests|waf|shaping", Short: "Show what --by and --filter of a command can have", Example: dimensionsExample,
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: []string{"events", "requests", "waf", "shaping"},
		Long: "Show the dimensions that a command can have in --by and --filter, and the\ngroupings: dimensions that --by can have together.",
	}
	format := cli.Format(c, cli.Formats...)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := app.Connect()
		if err != nil {
			return err
		}
		list, family := client.Stats.Events.Dimensions, trendsOf[args[0]]
		if family != nil {
			list = family(client.Stats).Dimensions
		}
		names, err := list(c.Context())
		var sets [][]string
		if family != nil && err == nil {
			sets, err = family(client.Stats).Groupings(c.Context())
		}
		return app.Print(*format, []string{"kind", "names"}, func(yield func(cli.Record, error) bool) {
			for i, set := range slices.Concat(slices.Collect(slices.Chunk(names, 1)), sets) {
				kind := map[bool]string{true: "dimension", false: "grouping"}[i < len(names)]
				if !yield(cli.Record{Value: map[string]any{"kind": kind, "names": set}, Cells: []string{kind, strings.Join(set, ",")}}, nil) {
					return
				}
			}
			if err != nil {
				yield(cli.Record{}, err)
			}
		})
	}
	return c
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
		now := time.Now()
		if q.start, q.end, err = q.times.Times(now); err != nil {
			return err
		}
		q.end = cmp.Or(q.end, now)
		q.columns = strings.FieldsFunc(q.by, func(r rune) bool { return r == ',' || r == ' ' })
		client, err := app.Connect()
		if err != nil {
			return err
		}
		switch err = run(q, client.Stats); {
		case errors.Is(err, webdelivery.ErrInvalid):
			return cli.Misused("%w; see %s --help", err, c.CommandPath())
		case errors.Is(err, webdelivery.ErrBadRequest):
			return cli.Advise(err, "check --by and --filter; webdelivery stats dimensions lists the names")
		default:
			return err
		}
	}
	return c
}

// print prints the columns and metrics of rows, and warns on standard error.
func (q *query) print(warnings []string, rows iter.Seq2[webdelivery.Row, error], metrics ...string) error {
	for _, warning := range warnings {
		q.app.Tell("%s", warning)
	}
	q.columns = append(q.columns, metrics...)
	return q.app.Print(*q.format, q.columns, func(yield func(cli.Record, error) bool) {
		for row, err := range rows {
			record, failed := q.record(row)
			if !yield(record, cmp.Or(err, failed)) {
				return
			}
		}
	})
}

// record keeps the order of the columns in JSON, too.
func (q *query) record(row webdelivery.Row) (cli.Record, error) {
	layout := "2006-01-02T15:04:05.000Z07:00"
	if *q.format == "table" {
		layout = time.RFC3339
	}
	members, cells := make([]string, len(q.columns)), make([]string, len(q.columns))
	for i, name := range q.columns {
		value, ok := row.Get(name)
		if !ok {
			return cli.Record{}, fmt.Errorf("the response has no column %q, only %q", name, row.Columns())
		}
		text, _ := value.MarshalJSON() // never fails
		cells[i] = value.String()
		if at, err := value.Time(); err == nil && name == webdelivery.DimEventTimestamp {
			cells[i] = at.Format(layout)
			text = fmt.Appendf(nil, "%q", cells[i])
		}
		members[i] = fmt.Sprintf("%q:%s", name, text)
	}
	return cli.Record{Value: json.RawMessage("{" + strings.Join(members, ",") + "}"), Cells: cells}, nil
}
