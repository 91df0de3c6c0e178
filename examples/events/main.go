// Events exports raw security events to CSV, NDJSON or Parquet. They are written as they arrive, in constant memory,
// however many there are.
//
//	events > events.csv                                     # the last 24 hours
//	events -since 1h -filter 'event_action==BLOCK' -format ndjson | jq .client_ip
//	events -start 2026-11-20T00:00:00Z -end 2026-11-21T00:00:00Z -o events.parquet
//
// A file of -o is there when it is whole, and readable by its owner alone, as it tells who asked for what. When anything
// fails, or on ^C, the file that was there before is left as it was. What goes to stdout cannot be taken back: look at the
// exit code.
//
// CSV is that of RFC 4180 with a header line; null is nothing and a text without characters is "". The cells are data for
// machines and stand as they came: one that begins with = + - or @ is not defused, so do not open such a file in a
// spreadsheet. NDJSON has an object a line with the values as they came. Parquet has a timestamp in milliseconds of UTC,
// client_asn as a number of 64 bits and all else as text, each with its nulls.
//
// Exit codes: 0 done, 1 failed, 2 used wrongly.
package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func main() { program.Main("events", term.IsTerminal, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	set, err := parse(args, s.Err, time.Now())
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

// export asks for one event to learn the columns and how many events there are, which the head of a file and a progress
// bar need before the first of them, and then for all (service-interface section 4.3).
func export(ctx context.Context, client *webdelivery.Client, set settings, s program.Streams) error {
	query := set.query
	query.Limit = 1
	first, err := client.Stats.Events.Query(ctx, query)
	if err != nil {
		return err
	}
	total := first.TotalResults
	if set.query.Limit > 0 {
		total = min(total, int64(set.query.Limit))
	}
	query.Limit = int(total)
	var rows iter.Seq2[webdelivery.Row, error] = func(func(webdelivery.Row, error) bool) {}
	if total > 0 { // a limit of 0 would be the default one
		rows = client.Stats.Events.Rows(ctx, query)
	}

	// A bar between lines of a terminal would be in their way.
	bar := progressbar.NewOptions64(total, progressbar.OptionSetWriter(s.Err), progressbar.OptionSetDescription("events"),
		progressbar.OptionSetVisibility(s.ErrTerminal && (set.file != "" || !s.OutTerminal)),
		progressbar.OptionShowCount(), progressbar.OptionSetRenderBlankState(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	defer func() { _ = bar.Clear() }()

	write := func(out io.Writer) error {
		w, err := formats[set.format](out, first.Columns)
		if err != nil {
			return err
		}
		return copyRows(rows, first.Columns, total, w, bar.Set64)
	}
	if set.file == "" {
		return write(s.Out)
	}
	return replace(set.file, write)
}

// copyRows writes total rows. Some of those that were counted may be gone by the time they are asked for.
func copyRows(rows iter.Seq2[webdelivery.Row, error], columns []string, total int64, w writer, progress func(int64) error) error {
	written := int64(0)
	for row, err := range rows {
		if err == nil && written == 0 && !slices.Equal(row.Columns(), columns) {
			err = fmt.Errorf("the columns are %q now, and were %q", row.Columns(), columns)
		}
		if err == nil {
			err = w.write(row)
		}
		if err != nil {
			return fmt.Errorf("after %d of %d events: %w", written, total, err)
		}
		if written++; written%1000 == 0 {
			_ = progress(written)
		}
	}
	if written < total {
		return &webdelivery.IncompleteError{Got: written, Total: total}
	}
	return w.close()
}
