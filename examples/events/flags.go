package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/events/table"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/filters"
)

// settings are what the flags say.
type settings struct {
	query        webdelivery.EventsQuery // its Limit is 0 for all
	format, file string                  // no file is stdout
}

// all are the dimensions that the service document names.
const all = "event_timestamp_ms,event_type,event_action,event_severity,rule_id,waf_action,client_ip," +
	"client_connection_remote_ip,client_country_code,client_asn,client_browser,domain,property"

const usage = `Events exports raw security events to CSV, NDJSON or Parquet:

  events > events.csv                                     # the last 24 hours
  events -since 1h -filter 'event_action==BLOCK' -format ndjson | jq .client_ip
  events -start 2026-11-20T00:00:00Z -end 2026-11-21T00:00:00Z -o events.parquet

` + program.Settings + `

Exit codes: 0 done, 1 failed, 2 used wrongly. Flags:

`

func parse(args []string, stderr io.Writer, now time.Time) (set settings, err error) {
	query := &set.query
	var dimensions string
	flags := flag.NewFlagSet("events", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.Func("since", "begin this `duration` ago, like 90m, in place of -start", func(text string) error {
		ago, err := time.ParseDuration(text)
		query.Start = now.Add(-ago)
		return err
	})
	flags.TextVar(&query.Start, "start", now.Add(-24*time.Hour), "begin at this `time`, in RFC 3339")
	flags.TextVar(&query.End, "end", now, "end before this `time`")
	flags.StringVar(&dimensions, "dimensions", all, "comma-separated `names`")
	flags.Func("filter", "`expression` like domain==a,domain==b (or), event_action==BLOCK;rule_id!=c (and)", func(text string) (err error) {
		query.Filter, err = filters.Parse(text)
		return err
	})
	flags.IntVar(&query.Limit, "limit", 0, "at most this `number` of events; 0 is all")
	flags.StringVar(&set.format, "format", "", "`name`: csv, ndjson or parquet (default the extension of -o, or csv)")
	flags.StringVar(&set.file, "o", "", "`file` to write (default stdout)")
	if err := program.Parse(flags, args); err != nil {
		return set, err
	}
	query.Dimensions = strings.Split(dimensions, ",")
	set.format = cmp.Or(set.format, strings.TrimPrefix(filepath.Ext(set.file), "."), "csv")
	there, err := os.Stat(set.file)
	switch {
	case flags.NArg() > 0:
		return set, program.Misused("unexpected argument %q", flags.Arg(0))
	case query.Limit < 0:
		return set, program.Misused("-limit %d is below 0", query.Limit)
	case table.Formats[set.format] == nil:
		return set, program.Misused("format %q is none of csv, ndjson and parquet; -format says which", set.format)
	case set.format == "parquet" && set.file == "":
		return set, program.Misused("parquet goes to a file: -o says which")
	case err == nil && !there.Mode().IsRegular(): // a new file would take the place of a device
		return set, program.Misused("-o: %s is there and is no regular file", set.file)
	}
	if from := webdelivery.EventsRetention(now); query.Start.Before(from) {
		fmt.Fprintf(stderr, "events: the service keeps events from %s on; what was before is missing\n", from.Format(time.RFC3339))
	}
	return set, nil
}
