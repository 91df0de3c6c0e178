package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/filters"
)

// settings are what the flags say.
type settings struct {
	query        webdelivery.EventsQuery // its Limit is 0 for all
	format, file string                  // of the file "" is stdout
}

// known are all dimensions that the service document names.
var known = []string{
	webdelivery.DimEventTimestamp, webdelivery.DimEventType, webdelivery.DimEventAction, webdelivery.DimEventSeverity,
	webdelivery.DimRuleID, webdelivery.DimWAFAction, webdelivery.DimClientIP, webdelivery.DimClientConnectionRemoteIP,
	webdelivery.DimClientCountryCode, webdelivery.DimClientASN, webdelivery.DimClientBrowser, webdelivery.DimDomain, webdelivery.DimProperty,
}

const usage = `Events exports raw security events to CSV, NDJSON or Parquet.

  events > events.csv                                     # the last 24 hours
  events -since 1h -filter 'event_action==BLOCK' -format ndjson | jq .client_ip
  events -start 2026-11-20T00:00:00Z -end 2026-11-21T00:00:00Z -o events.parquet

A file of -o is there when it is whole; when anything fails, what was there before is left as it was.
Cells of a CSV stand as they came: do not open it in a spreadsheet, which would run a cell like =cmd.

` + program.Settings + `

Exit codes: 0 done, 1 failed, 2 used wrongly. Flags:

`

func parse(args []string, stderr io.Writer, now time.Time) (settings, error) {
	var set settings
	var since time.Duration
	var dimensions string
	flags := flag.NewFlagSet("events", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.DurationVar(&since, "since", 24*time.Hour, "how long before the end to begin")
	flags.Func("start", "`time` to begin at in RFC 3339, like 2026-11-20T00:00:00Z, in place of -since; times are taken in whole seconds", timeFlag(&set.query.Start))
	flags.Func("end", "`time` to end before, in RFC 3339 (default now)", timeFlag(&set.query.End))
	flags.StringVar(&dimensions, "dimensions", strings.Join(known, ","), "comma-separated `names`; event_timestamp_ms is always there")
	flags.Func("filter", "`expression` of the service: dimension==value or dimension!=value, joined by , (or) or ; (and)", func(text string) (err error) {
		set.query.Filter, err = filters.Parse(text)
		return err
	})
	flags.IntVar(&set.query.Limit, "limit", 0, "export the first `number` of events, in the order of the service; 0 is all")
	flags.StringVar(&set.format, "format", "", "`name` of the format: csv, ndjson or parquet (default by the extension of -o; of stdout csv)")
	flags.StringVar(&set.file, "o", "", "`file` to write (default stdout)")
	if err := program.Parse(flags, args); err != nil {
		return set, err
	}
	set.query.Dimensions = strings.Split(dimensions, ",")
	if set.query.End.IsZero() {
		set.query.End = now
	}
	if set.query.Start.IsZero() {
		set.query.Start = set.query.End.Add(-since)
	} else if isSet(flags, "since") {
		return set, program.Misused("-start and -since: one of them says where to begin")
	}
	if from := webdelivery.EventsRetention(now); set.query.Start.Before(from) {
		fmt.Fprintf(stderr, "events: the service keeps events from %s on; what was before is missing\n", from.Format(time.RFC3339))
	}
	if flags.NArg() > 0 {
		return set, program.Misused("unexpected argument %q", flags.Arg(0))
	}
	return set, set.checkOutput()
}

// timeFlag reads a time.
func timeFlag(into *time.Time) func(string) error {
	return func(text string) (err error) {
		if *into, err = time.Parse(time.RFC3339, text); err != nil {
			return errors.New("not like 2026-11-20T00:00:00Z")
		}
		return nil
	}
}

func isSet(flags *flag.FlagSet, name string) (found bool) {
	flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// checkOutput finds the format, and refuses what cannot be written in it.
func (set *settings) checkOutput() error {
	switch {
	case set.format != "":
	case set.file == "":
		set.format = "csv"
	default:
		set.format = strings.ToLower(strings.TrimPrefix(filepath.Ext(set.file), "."))
	}
	info, err := os.Stat(set.file)
	switch {
	case formats[set.format] == nil:
		return program.Misused("format %q is none of csv, ndjson and parquet; -format says which", set.format)
	case set.format == "parquet" && set.file == "":
		return program.Misused("parquet goes to a file: -o says which")
	case err == nil && !info.Mode().IsRegular(): // renaming would put a file in place of a device
		return program.Misused("-o: %s is there and is no regular file", set.file)
	case set.query.Limit < 0:
		return program.Misused("-limit %d is below 0", set.query.Limit)
	default:
		return nil
	}
}
