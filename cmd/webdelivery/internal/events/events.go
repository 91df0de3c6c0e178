// Package events has the commands that export and follow events.
package events

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

const where = `
Without one of these flags, events go to standard output:

  --dir DIR   files such as events-000000000001-20261120T120000Z.csv; a file
              appears when it is complete, and never changes again. After a
              stop or kill -9 the same command continues, and each event is in
              one file. --since and --until count from the first run.
  --hec URL   a Splunk HTTP Event Collector, its token in SPLUNK_HEC_TOKEN
  --otlp URL  OTLP logs in JSON, for a collector of OpenTelemetry, with headers
              such as api-key=SECRET in OTEL_EXPORTER_OTLP_HEADERS

A collector needs --cursor FILE, which says how far it is; the same command
continues there. While the collector fails, the command waits. What arrives
twice has the same event.key, by which a search can drop it. An event that is
refused alone, while the collector takes others, is appended to FILE.rejected.
A URL without a path gets /services/collector/event or /v1/logs.

Do not open csv in a spreadsheet, which may execute a cell that begins with =.
ecs is the Elastic Common Schema, in lines, with the rest below webdelivery.`

// Command returns the command.
func Command(app *cli.App) *cobra.Command {
	return cli.Group("events", "Export security events, or follow them",
		"The service keeps security events for three days and the current day of UTC.", export(app), follow(app))
}

func export(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "export", Short: "Export the events of a time range", Args: cobra.NoArgs,
		Long: `Export the events of a time range, in order of their time, each once. If events
are missing at the end, the exit code is 3.
` + where,
		Example: `  webdelivery events export --since 1h --filter event_action==BLOCK -o ndjson |
    jq -r .client_ip
  webdelivery events export --since yesterday --until today --dir november-20`,
	}
	var times cli.Range
	times.Flags(c.Flags(), "24h")
	f := newFlags(c, "100MB", 0)
	c.Flags().Uint32Var(&f.limit, "limit", 0, "at most this `number` of events; 0 is all")
	c.RunE = func(c *cobra.Command, _ []string) error {
		start, end, err := times.Times(time.Now())
		if err != nil {
			return err
		}
		return f.run(c, app, start, end)
	}
	return c
}

func follow(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "follow", Short: "Write events as they come, until ^C", Args: cobra.NoArgs,
		Long: `Follow events until ^C. They are written --delay after they happened, because
some are recorded late. Those recorded up to --lookback after they happened
follow out of order; later ones are missing, and counted. When the service or
the collector fails, the command says so and tries again. After a stop of days,
events are gone; only with --accept-gap does it go on without them.

--metrics serves http://ADDRESS/metrics: how far the command is behind, and how
many events were delivered, recorded too late, and rejected.
` + where,
		Example: `  webdelivery events follow -o ndjson | jq -c '[.client_ip, .rule_id]'
  webdelivery events follow -o ecs --dir /var/log/webdelivery --rotate 10m
  webdelivery events follow --otlp https://otel.example.com:4318 \
    --cursor otel.cursor --metrics localhost:9755`,
	}
	var since string
	cli.SinceFlag(c.Flags(), &since, "1h")
	f := newFlags(c, "1h", 20*time.Minute)
	f.delay = cli.Duration(5 * time.Minute)
	c.Flags().Var(&f.delay, "delay", "write events this `duration` after they happened")
	c.Flags().StringVar(&f.metrics, "metrics", "", "`address` on which to serve metrics, such as localhost:9755")
	c.RunE = func(c *cobra.Command, _ []string) error {
		start, err := cli.ParseTime("--since", since, time.Now())
		if err != nil {
			return err
		}
		if f.delay < cli.Duration(time.Second) {
			return cli.Misused("--delay must be 1s or more")
		}
		return f.run(c, app, start, time.Time{})
	}
	return c
}

// flags are those of both commands.
type flags struct {
	filter                                   *cli.Filter
	format                                   *string
	columns, dir, hec, otlp, cursor, metrics string
	rotate                                   rotation
	lookback, delay                          cli.Duration
	limit                                    uint32
	acceptGap                                bool
}

func newFlags(c *cobra.Command, rotate string, lookback time.Duration) *flags {
	set := c.Flags()
	f := &flags{lookback: cli.Duration(lookback), filter: cli.FilterFlag(set)}
	f.format = cli.Format(c, "csv", "ndjson", "ecs")
	_ = f.rotate.set(rotate)
	set.StringVar(&f.columns, "columns", allColumns,
		"comma-separated `names` of dimensions, in the order of the columns; default 13")
	set.Lookup("columns").DefValue = "" // too long for the help
	set.StringVar(&f.dir, "dir", "", "write files into this `folder`")
	set.Func("rotate", "complete a file of --dir at this age or `size`, such as 10m or 100MB; default "+rotate,
		f.rotate.set)
	set.StringVar(&f.hec, "hec", "", "send to the Splunk HTTP Event Collector at this `URL`")
	set.StringVar(&f.otlp, "otlp", "", "send OTLP logs to this `URL`")
	set.StringVar(&f.cursor, "cursor", "", "`file` that holds how far --hec or --otlp is")
	set.Var(&f.lookback, "lookback", "read events that are recorded up to this `duration` after they happened")
	set.BoolVar(&f.acceptGap, "accept-gap", false, "continue although the service has deleted events since")
	return f
}

// run connects the service with where the events go, and copies them. Without an end, it follows them.
func (f *flags) run(c *cobra.Command, app *cli.App, start, end time.Time) error {
	to, err := f.collector(c)
	if err != nil {
		return err
	}
	j := &job{flags: f, app: app, told: map[string]time.Time{}}
	client, err := app.Connect(webdelivery.WithLogger(slog.New(warnings{slog.DiscardHandler, j})))
	if err != nil {
		return err
	}
	if f.dir != "" {
		f.cursor = filepath.Join(f.dir, "cursor")
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return cli.Misused("--dir: %w", err)
		}
	}
	position := new(webdelivery.CursorFile)
	if f.cursor != "" { // standard output has none
		if position, err = webdelivery.OpenCursorFile(f.cursor); err != nil {
			return err
		}
		defer position.Close()
	}
	columns := strings.Split(strings.ReplaceAll(f.columns, " ", ""), ",")
	lines := newFormat(*f.format, columns)
	j.position = position
	j.query = webdelivery.EventsQuery{Start: start, End: end, Dimensions: columns, Filter: f.filter.Expr}
	switch {
	case to != nil:
		to.job, to.encode = j, to.encoder(columns)
		j.said, j.to = "delivered", to
	case f.dir != "":
		j.said, j.to = "written to "+f.dir, &folder{job: j, format: lines}
		err = j.goOn(commandOf(c))
	default:
		out := bufio.NewWriter(app.Out)
		_, err = out.WriteString(lines.header)
		j.to = &stream{job: j, format: lines, out: out}
	}
	if err != nil {
		return err
	}
	j.export = client.Stats.NewExport(j.query, position.Cursor, webdelivery.ExportOptions{
		Lookback: time.Duration(f.lookback), Delay: time.Duration(f.delay), AcceptGap: f.acceptGap, MaxOutage: math.MaxInt64,
	})
	j.reached.Store(cmp.Or(position.Cursor.Reached(), position.Cursor.Time(), start).UnixMilli())
	if j.said != "" {
		if err := j.to.commit(c.Context(), false); err != nil { // a restart before the first event begins at the same time
			return err
		}
	}
	if end.IsZero() {
		return j.follow(c.Context())
	}
	j.bar = j.said != "" || !app.OutTerminal // not between the rows on a terminal
	return j.copy(c.Context())
}

// allColumns are the dimensions that the service document names.
const allColumns = "event_timestamp_ms,event_type,event_action,event_severity,rule_id,waf_action,client_ip," +
	"client_connection_remote_ip,client_country_code,client_asn,client_browser,domain,property"

// collector checks the flags that say where the events go, and returns the collector, if it is one.
func (f *flags) collector(c *cobra.Command) (*collector, error) {
	sends := f.hec != "" || f.otlp != ""
	switch {
	case f.hec != "" && f.otlp != "", sends && f.dir != "":
		return nil, cli.Misused("give one of --dir, --hec and --otlp; for more, start a process for each")
	case sends != (f.cursor != ""):
		return nil, cli.Misused("--hec and --otlp need --cursor, and nothing else takes it")
	case sends && c.Flags().Changed("output"):
		return nil, cli.Misused("a collector gets its own format: leave out --output")
	case (c.Flags().Changed("dir") || c.Flags().Changed("rotate")) && f.dir == "":
		return nil, cli.Misused("--dir is missing or empty")
	case f.hec != "":
		return newCollector(hec, f.hec)
	case f.otlp != "":
		return newCollector(otlp, f.otlp)
	}
	return nil, nil
}

// commandOf returns the command with the flags that all runs with a folder must share.
func commandOf(c *cobra.Command) string {
	text := c.CommandPath()
	c.Flags().Visit(func(flag *pflag.Flag) {
		if slices.Contains([]string{"since", "until", "filter", "columns", "limit", "output"}, flag.Name) {
			text += " --" + flag.Name + " '" + flag.Value.String() + "'"
		}
	})
	return text
}

// job copies events to a sink.
type job struct {
	*flags

	app      *cli.App
	query    webdelivery.EventsQuery
	export   *webdelivery.Export
	position *webdelivery.CursorFile
	to       sink
	rows     int64  // all, those of earlier runs included
	said     string // after the number of events; "" if there is no stored position
	bar      bool   // show progress
	ending   bool   // a collector gets one more try
	failing  bool   // the user was told that the service cannot be read
	shown    time.Time
	told     map[string]time.Time // when each kind of warning was told

	reached             atomic.Int64 // everything before was delivered; in milliseconds since 1970
	delivered, rejected atomic.Int64
}

// copy exports the time range.
func (j *job) copy(ctx context.Context) error {
	position, limit := j.export.Cursor(), int64(j.limit)
	j.rows = position.Count()
	switch {
	case limit > 0 && j.rows >= limit:
		j.app.Tell("--limit is reached: %d events", j.rows)
		return nil
	case j.dir != "" && !position.Reached().Before(j.query.End): // goOn has compared the flags
		j.app.Tell("the export is complete, with %d events up to %s; for newer ones, begin another one or follow",
			j.rows, j.query.End.Format(time.RFC3339))
		return nil
	}
	read, failed := j.each(ctx, j.export.All(ctx))
	return j.end(ctx, read, failed)
}

// follow copies events as they come, in rounds, until ctx ends.
func (j *job) follow(ctx context.Context) error {
	if err := j.serve(ctx); err != nil {
		return err
	}
	var read, failed error
	last := j.export.Cursor().Reached()
	for round := range j.export.Follow(ctx, time.Duration(j.delay)) {
		if read, failed = j.each(ctx, round); read == nil && failed == nil {
			failed = j.to.commit(ctx, false)
		}
		if read != nil || failed != nil {
			break
		}
		reached := j.export.Cursor().Reached()
		if j.failing && reached.After(last) {
			j.failing = false
			j.app.Tell("the service can be read again")
		}
		last = reached
		if j.delivered.Load()+j.rejected.Load() == j.rows {
			j.reached.Store(reached.UnixMilli())
		}
	}
	return j.end(ctx, read, failed)
}

// end commits, says how many events have a place, and returns what ended the command: an error of the service, or of
// the output.
func (j *job) end(ctx context.Context, read, failed error) error {
	stopped := ctx.Err() != nil && (failed == nil || errors.Is(failed, ctx.Err()))
	if stopped { // one more try, so that the next run does not begin far back
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer stop()
		j.ending, failed = true, nil
	}
	if failed == nil && !errors.Is(read, webdelivery.ErrInvalid) {
		failed = j.to.commit(ctx, true)
	}
	if stopped && (errors.Is(failed, context.Canceled) || errors.Is(failed, context.DeadlineExceeded)) {
		failed = nil // the next run sends the rest
	}
	stopped = stopped && failed == nil
	j.app.Show("")
	err := errors.Join(read, failed)
	missing := errors.As(read, new(*webdelivery.LateError)) || errors.As(read, new(*webdelivery.IncompleteError))
	next := "; the same command continues"
	switch {
	case stopped && j.query.End.IsZero():
		err = read
	case err == nil:
		next = ""
	case stopped:
		err = errors.New("interrupted")
	case failed == nil && missing:
		next = ""
		err = cli.Advise(&cli.Exit{Code: cli.Partly, Err: err},
			"to get what is recorded by now, export again, into another --dir if you gave one")
	}
	if j.said != "" && (err == nil || j.delivered.Load() > 0) {
		j.app.Tell("%d events %s%s", j.delivered.Load(), j.said, next)
	}
	return err
}

// each copies rows. It returns the error of the service, and that of the output.
func (j *job) each(ctx context.Context, rows iter.Seq2[webdelivery.Row, error]) (read, failed error) {
	columns := j.query.Dimensions
	for row, err := range rows {
		if err != nil {
			return err, nil
		}
		for _, column := range columns {
			if _, ok := row.Get(column); !ok {
				return nil, fmt.Errorf("the service sends no column %q", column)
			}
		}
		columns = nil // the export refuses a change of them
		value, _ := row.Get(webdelivery.DimEventTimestamp)
		at, err := value.Time()
		if err == nil {
			err = j.to.write(ctx, row, at)
		}
		if err != nil {
			return nil, err
		}
		if j.rows++; j.rows == int64(j.limit) {
			break
		}
		if j.bar && time.Since(j.shown) > 200*time.Millisecond {
			j.shown = time.Now()
			part := float64(at.Sub(j.query.Start)) / float64(j.query.End.Sub(j.query.Start))
			j.app.Show(fmt.Sprintf("%s %d events", cli.Bar(int(100*part)), j.rows))
		}
	}
	return nil, nil
}

// warnings prints what an export does not return but logs: late events, and rounds that have failed.
type warnings struct {
	slog.Handler

	job *job
}

// Enabled reports whether the level is that of a warning.
func (w warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

var digits = regexp.MustCompile(`\d+`)

// Handle prints the warnings of an export, each kind at most every 10 minutes. Those of single requests are not
// interesting.
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		text, isError := strings.CutPrefix(a.Value.String(), "webdelivery: ")
		kind := digits.ReplaceAllString(text, "#")
		if r.Message != "webdelivery: statistics" || a.Key != "warning" {
			return true
		}
		w.job.failing = w.job.failing || isError && !strings.Contains(text, "recorded too late")
		if last, known := w.job.told[kind]; !known || time.Since(last) >= 10*time.Minute {
			w.job.told[kind] = time.Now()
			w.job.app.Tell("%s", text)
		}
		return true
	})
	return nil
}
