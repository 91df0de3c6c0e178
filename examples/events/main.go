// Events exports raw security events to CSV, NDJSON or Parquet, as they arrive and in constant memory.
//
//	events > events.csv                                     # the last 24 hours
//	events -since 1h -filter 'event_action==BLOCK' -format ndjson | jq .client_ip
//	events -start 2026-11-20T00:00:00Z -end 2026-11-21T00:00:00Z -o events.parquet
//	events -resume events.parquet                           # goes on with an export that ended early
//
// Events come in ascending order of time, each once. If the service breaks off, the program asks again, for up to 5
// minutes without a new event.
//
// The file of -o, which its owner alone can read, is there when it is whole; until then what was there before stays. While
// the program works, it writes FILE.partial, and stores in FILE.cursor how far it has come: every 5 seconds or 100,000
// events. If it ends early, on ^C or kill -9 too, both files stay, and -resume FILE goes on. Then no other flag is given:
// FILE.cursor says what to export. -o FILE begins anew, and removes what an earlier export left. One program at a time may
// write to a file; if another one begins anew, the first fails.
//
// Nothing can be added to a Parquet file, so an export of more than 1,000,000 events, and one that ended early, has parts:
// events-00001.parquet, events-00002.parquet and so on. Each is whole when it has its name. A single part becomes FILE in
// the end; several stay, FILE is removed, and tools read events-*.parquet. After kill -9 the part under way is read again.
//
// What went to stdout cannot be taken back and cannot go on; it ends with a whole row. Package table says how values are
// written.
//
// If events are missing in the end, because they were recorded too late for this export or are gone, the program fails
// with both numbers, and what was written stays in FILE.partial or the parts.
//
// Exit codes: 0 done, 1 failed, 2 used wrongly.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
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
	service, err := program.Connect(s.Err, nil, []webdeliverytest.Option{webdeliverytest.WithEvents(1, 1, time.Time{})}, nil)
	if err != nil {
		return err
	}
	defer service.Close()
	return export(ctx, service.Client, set, s)
}

// export asks for one event, to learn what the head of a file and a progress bar need before the first: the columns, and
// how many events there are. Then it reads all of them (service-interface section 4.3).
func export(ctx context.Context, client *webdelivery.Client, set settings, s program.Streams) error {
	if set.saved != nil && set.saved.Done {
		return tellOfParts(set, set.saved.Parts, s, set.saved.complete(set.file))
	}
	query := set.query
	query.Limit = 1
	first, err := client.Stats.Events.Query(ctx, query)
	if err != nil {
		return howToGoOn(set, set.saved != nil, err)
	}
	columns, err := table.Pick(query.Dimensions, first.Columns)
	if err != nil {
		return howToGoOn(set, set.saved != nil, err)
	}
	c := copying{received: first.Columns, total: first.TotalResults}
	if set.query.Limit > 0 {
		c.total, c.limit = min(c.total, int64(set.query.Limit)), int64(set.query.Limit)
	}
	var from webdelivery.Cursor
	if set.saved != nil {
		from = set.saved.Cursor
	}
	c.rows = from.Rows()
	c.bar = progressbar.NewOptions64(c.total,
		progressbar.OptionSetWriter(s.Err),
		progressbar.OptionSetVisibility(s.ErrTerminal && (set.file != "" || !s.OutTerminal)), // not between lines on a terminal
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond))
	defer func() { _ = c.bar.Clear() }()

	events := client.Stats.NewExport(set.query, from)
	if set.file == "" {
		w, err := table.Formats[set.format](s.Out, columns, false)
		if err != nil {
			return err
		}
		return c.copy(&stream{Writer: w}, events.Rows(ctx))
	}
	out, err := newPartial(set, columns, events.Cursor)
	if err != nil {
		return err
	}
	defer out.Close()
	err = c.copy(out, events.Rows(ctx))
	return tellOfParts(set, out.Parts, s, howToGoOn(set, true, err))
}

// howToGoOn adds to an error what to do about it, if there is something to go on with.
func howToGoOn(set settings, begun bool, err error) error {
	var incomplete *webdelivery.IncompleteError
	switch {
	case err == nil || !begun || set.file == "":
		return err
	case errors.As(err, &incomplete):
		return fmt.Errorf("%w; the missing ones were recorded too late for this export, or are gone: begin anew with -o %s, or ask for what came since: events -resume %s",
			err, set.file, set.file)
	case errors.Is(err, webdelivery.ErrInvalid): // -resume would end in the same way
		return fmt.Errorf("%w; use the service and the customer that the export began with, or export anew with -o %s", err, set.file)
	default:
		return fmt.Errorf("%w; go on with: events -resume %s", err, set.file)
	}
}

// tellOfParts tells where the rows are, if not in the file.
func tellOfParts(set settings, parts int, s program.Streams, err error) error {
	if err == nil && parts > 1 {
		fmt.Fprintf(s.Err, "events: %s has %d parts, %s to %s\n", set.file, parts, partOf(set.file, 1), partOf(set.file, parts))
	}
	return err
}
