// Events exports raw security events to CSV, NDJSON, Parquet or the Elastic Common Schema, as they arrive and in constant
// memory.
//
//	events > events.csv                                     # the last 24 hours
//	events -since 1h -filter 'event_action==BLOCK' -format ndjson | jq .client_ip
//	events -start 2026-11-20T00:00:00Z -end 2026-11-21T00:00:00Z -o events.parquet
//	events -resume events.parquet                           # continues an export that ended early
//	events -follow -format ecs -o events.ndjson             # continues with new events every 5 minutes, until ^C
//	events -follow -hec https://splunk.example.com:8088 -cursor splunk.cursor
//	events -follow -otlp https://otel.example.com:4318 -cursor otel.cursor -metrics localhost:9755
//
// Events come in ascending order of time, each once. If a response breaks, the program sends the request again. It
// gives up after 5 minutes without a new event.
//
// The file of -o appears when it is complete, and only its owner can read it. Until then an older file of that name
// stays. While the program works, it writes FILE.partial. Every 5 seconds or 100,000 events it stores its position in
// FILE.cursor. If it ends early, even by ^C or kill -9, both files stay, and -resume FILE continues. -resume takes no
// other flag but -accept-gap and -metrics, because FILE.cursor holds the query. -o FILE starts over, and removes the
// files of an earlier run. Only one program at a time may write to a file: if another one starts over, the first one
// fails.
//
// A Parquet file cannot be continued. An export of more than 1,000,000 events therefore has parts, and so has one that
// ended early: events-00001.parquet, events-00002.parquet and so on. A part gets its name when it is complete. At the
// end, a single part becomes FILE. Several parts stay, FILE is removed, and tools read events-*.parquet. After kill -9
// the program reads the events of the incomplete part again.
//
// An export to stdout cannot be resumed; it ends with a complete row.
//
// With -follow, events are written 5 minutes after they happened (-delay), because some are recorded late. Those that
// are recorded up to 20 minutes after they happened (-lookback) follow out of order. Later ones are missing; a line says
// how many. FILE then grows, FILE.cursor stays beside it, and -resume FILE continues after a stop. When the service
// fails, the program says so and tries again. After a stop of several days, the service has deleted events in between:
// the program then needs -accept-gap to continue.
//
// -hec sends events to a Splunk HTTP Event Collector, with the token in SPLUNK_HEC_TOKEN; -otlp sends OTLP logs in JSON,
// with headers such as api-key=SECRET in OTEL_EXPORTER_OTLP_HEADERS. A URL without a path gets /services/collector/event
// or /v1/logs. A request has at most 500 events. -cursor FILE is stored when the collector has acknowledged all events
// before it, so the same command continues after a stop or a kill. What is then sent twice has the same key. While the
// collector is down, the program waits for it, and for as long as Retry-After asks.
//
// If a collector refuses a request for its content (400 or 413, or a partial success of OTLP), the program sends each half
// of it, and so on. An event that is refused alone is appended to FILE.rejected and named on stderr. The others of that
// request may arrive several times, with the same key, because the answer does not say which ones were taken. 401, 403 and
// a redirect end the program.
//
// With -follow, a line on stderr says when the program is more than twice -delay behind. -metrics ADDRESS serves:
//
//	webdelivery_export_lag_seconds             now minus the time up to which everything was delivered
//	webdelivery_export_events_total            events that were delivered
//	webdelivery_export_late_events_total       events that were recorded too late, and are missing
//	webdelivery_export_rejected_events_total   events in FILE.rejected
//
// CSV and NDJSON write times in RFC 3339 with Z, and the header has the columns in the order of -columns. CSV writes
// null as nothing, and an empty text as "". Do not open the CSV in a spreadsheet, which may execute a cell that begins
// with =. Parquet has event_timestamp_ms as a timestamp in milliseconds, client_asn as a 64-bit number, and all others
// as text. The Elastic Common Schema (-format ecs) has one event per line; columns without a field in the schema are
// below webdelivery.
//
// If events are missing at the end, the program fails and says how many. Such events were recorded too late for
// this export, or the service no longer has them. The rows stay in FILE.partial or the parts.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/events/table"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

//go:embed main.go
var source string // begins with the help

func main() { program.Main("events", term.IsTerminal, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	set, err := parse(args, s, time.Now().UTC().Truncate(time.Second))
	if err != nil {
		return err
	}
	var options []webdelivery.Option
	if set.follow > 0 {
		options = append(options, webdelivery.WithLogger(slog.New(warnings{s.Err})))
	}
	service, err := program.Connect(s.Err, options, []webdeliverytest.Option{webdeliverytest.WithEvents(1, 1, time.Time{})}, nil)
	if err != nil {
		return err
	}
	defer service.Close()
	return export(ctx, service.Client, set, s)
}

// export first asks for one event. Its response has the columns, for the header, and the number of events, for the
// progress bar. Then export reads all events. (Service document, section 4.3.)
func export(ctx context.Context, client *webdelivery.Client, set settings, s program.Streams) error {
	if set.saved != nil && set.saved.Done {
		return tell(set, *set.saved, s, set.saved.complete(set.file))
	}
	var from webdelivery.Cursor
	if set.saved != nil {
		from = set.saved.Cursor
	}
	if set.to != nil {
		return deliver(ctx, client, set, s)
	}
	c, columns, err := begin(ctx, client, set, from, s)
	if err != nil {
		return err
	}
	defer func() { _ = c.bar.Clear() }()
	if set.file == "" {
		w, err := table.Formats[set.format](s.Out, columns, false)
		if err != nil {
			return err
		}
		return c.write(ctx, set, &stream{Writer: w}, s)
	}
	out, err := newPartial(set, columns, c.events.Cursor)
	if err != nil {
		return err
	}
	defer out.Close()
	err = c.write(ctx, set, out, s)
	_ = c.bar.Clear()
	return tell(set, out.state, s, howToGoOn(set, true, err))
}

// begin asks for one event.
func begin(ctx context.Context, client *webdelivery.Client, set settings, from webdelivery.Cursor, s program.Streams) (*copying, []table.Column, error) {
	query := set.query
	query.Limit = 1
	if set.follow > 0 { // the service may have forgotten the first events
		query.Start = slices.MaxFunc([]time.Time{query.Start, from.Time()}, time.Time.Compare)
		query.End = time.Now()
	}
	first, err := client.Stats.Events.Query(ctx, query)
	if err != nil && set.saved == nil {
		return nil, nil, inFlags(err)
	}
	if err != nil {
		return nil, nil, howToGoOn(set, true, err)
	}
	columns, err := table.Pick(query.Dimensions, first.Columns)
	if err != nil {
		return nil, nil, howToGoOn(set, set.saved != nil, err)
	}
	c := &copying{received: first.Columns, total: first.TotalResults, rows: from.Count()}
	if set.query.Limit > 0 {
		c.total, c.limit = min(c.total, int64(set.query.Limit)), int64(set.query.Limit)
	}
	c.bar = progressbar.NewOptions64(c.total,
		progressbar.OptionSetWriter(s.Err),
		progressbar.OptionSetVisibility(s.ErrTerminal && set.follow == 0 && (set.file != "" || !s.OutTerminal)), // not between the rows on a terminal
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond))
	c.events = client.Stats.NewExport(set.query, from, webdelivery.ExportOptions{Lookback: set.lookback, Delay: set.follow, AcceptGap: set.acceptGap, MaxOutage: math.MaxInt64})
	c.meters.export = c.events
	c.meters.reach(cmp.Or(from.Time(), set.query.Start))
	return c, columns, nil
}

// howToGoOn adds what to do to an error, if there is a file to continue.
func howToGoOn(set settings, begun bool, err error) error {
	var incomplete *webdelivery.IncompleteError
	switch {
	case err == nil || !begun || set.file == "":
		return err
	case errors.As(err, new(*webdelivery.LateError)): // -resume would not read them
		return fmt.Errorf("%w; export again with -o %s", err, set.file)
	case errors.As(err, &incomplete):
		return fmt.Errorf("%w; the missing ones were recorded too late or are gone: export again with -o %s, or get what was recorded since with: events -resume %s",
			err, set.file, set.file)
	case errors.Is(err, webdelivery.ErrInvalid): // -resume would end in the same way
		return fmt.Errorf("%w; use the service and the customer that the export began with, or export again with -o %s", err, set.file)
	default:
		return fmt.Errorf("%w; continue with: events -resume %s", err, set.file)
	}
}

// inFlags replaces the service's names of parameters by the flags that set them.
func inFlags(err error) error {
	var invalid *webdelivery.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	parameter, _, _ := strings.Cut(invalid.Field, "[")
	flag := map[string]string{"starttime": "-start", "endtime": "-end", "dimensions": "-columns", "filter": "-filter", "limit": "-limit"}[parameter]
	if flag == "" {
		return err
	}
	return program.Misused("%s: %s", flag, invalid.Reason)
}

// tell prints how many events the file has, and the names of the parts, if there are several.
func tell(set settings, written state, s program.Streams, err error) error {
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d events in %s", written.Cursor.Count(), set.file)
	if written.Parts > 1 {
		text += fmt.Sprintf(", which has %d parts, %s to %s", written.Parts, partOf(set.file, 1), partOf(set.file, written.Parts))
	}
	if set.follow > 0 {
		text += "; continue with: events -resume " + set.file
	}
	fmt.Fprintln(s.Err, "events:", text)
	return nil
}
