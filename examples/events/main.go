// Events exports raw security events to CSV, NDJSON or Parquet, as they arrive and in constant memory.
//
//	events > events.csv                                     # the last 24 hours
//	events -since 1h -filter 'event_action==BLOCK' -format ndjson | jq .client_ip
//	events -start 2026-11-20T00:00:00Z -end 2026-11-21T00:00:00Z -o events.parquet
//
// The file of -o, which its owner alone can read, is there when it is whole; else what was there before stays, on ^C too.
// What went to stdout cannot be taken back; it ends with a whole row. Package table says how values are written.
//
// Exit codes: 0 done, 1 failed, 2 used wrongly.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
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
// how many events there are. Then it asks for all of them (service-interface section 4.3).
func export(ctx context.Context, client *webdelivery.Client, set settings, s program.Streams) error {
	query := set.query
	query.Limit = 1
	first, err := client.Stats.Events.Query(ctx, query)
	if err != nil {
		return err
	}
	if len(first.Columns) == 0 { // no format has a place for its rows
		return errors.New("the reply has no columns")
	}
	total := first.TotalResults
	if set.query.Limit > 0 {
		total = min(total, int64(set.query.Limit))
	}
	query.Limit = int(total)

	bar := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(s.Err),
		progressbar.OptionSetVisibility(s.ErrTerminal && (set.file != "" || !s.OutTerminal)), // not between lines on a terminal
		progressbar.OptionShowCount(), progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionThrottle(100*time.Millisecond))
	defer func() { _ = bar.Clear() }()

	write := func(out io.Writer) error {
		w, err := table.Formats[set.format](out, first.Columns)
		if err != nil {
			return err
		}
		written, err := copyRows(w, client.Stats.Events.Rows(ctx, query), first.Columns, bar)
		if err == nil && written < total { // some of those that were counted are gone
			err = &webdelivery.IncompleteError{Got: written, Total: total}
		}
		if err == nil {
			return w.Close()
		}
		if w.Flush() == nil { // else the output is what is broken, and nobody knows how many of them it has
			err = fmt.Errorf("after %d of %d events: %w", written, total, err)
		}
		return err
	}
	if set.file == "" {
		return write(s.Out)
	}
	return program.Replace(set.file, write)
}

// copyRows writes rows as long as they have the columns that the head of the file says. It returns how many were written.
func copyRows(w table.Writer, rows iter.Seq2[webdelivery.Row, error], columns []string, bar *progressbar.ProgressBar) (written int64, err error) {
	for row, err := range rows {
		if err == nil && written == 0 && !slices.Equal(row.Columns(), columns) {
			err = fmt.Errorf("the columns are %q now, and were %q", row.Columns(), columns)
		}
		if err == nil {
			err = w.Write(row)
		}
		if err != nil {
			return written, err
		}
		written++
		_ = bar.Set64(written)
	}
	return written, nil
}
