package main

import (
	"cmp"
	"fmt"
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

func parse(args []string, s program.Streams, now time.Time) (set settings, err error) {
	query := &set.query
	flags := program.Flags("events", source, s)
	flags.Func("since", "begin this `duration` ago, like 90m, in place of -start", func(text string) error {
		ago, err := time.ParseDuration(text)
		query.Start = now.Add(-ago)
		return err
	})
	flags.TextVar(&query.Start, "start", now.Add(-24*time.Hour), "begin at this `time`, in RFC 3339")
	flags.TextVar(&query.End, "end", now, "end before this `time`")
	dimensions := flags.String("dimensions", all, "comma-separated `names`")
	flags.Func("filter", "`expression` like domain==a,domain==b (or), event_action==BLOCK;rule_id!=c (and)", func(text string) (err error) {
		if query.Filter = nil; text != "" { // of a variable that is not set
			query.Filter, err = filters.Parse(text)
		}
		return err
	})
	flags.IntVar(&query.Limit, "limit", 0, "at most this `number` of events; 0 is all")
	flags.StringVar(&set.format, "format", "", "`name`: csv, ndjson or parquet (default the extension of -o, or csv)")
	flags.StringVar(&set.file, "o", "", "`file` to write; - is stdout (default stdout)")
	if err := program.Parse(flags, args); err != nil {
		return set, err
	}
	if set.file == "-" {
		set.file = ""
	}
	query.Dimensions = strings.Split(*dimensions, ",")
	set.format = cmp.Or(set.format, strings.TrimPrefix(filepath.Ext(set.file), "."), "csv")
	switch {
	case flags.NArg() > 0:
		return set, program.Misused("unexpected argument %q", flags.Arg(0))
	case query.Limit < 0:
		return set, program.Misused("-limit %d is below 0", query.Limit)
	case table.Formats[set.format] == nil:
		return set, program.Misused("format %q is none of csv, ndjson and parquet; -format says which", set.format)
	case set.format == "parquet" && set.file == "":
		return set, program.Misused("parquet goes to a file: -o says which")
	case program.Special(set.file): // a new file would take the place of a device, or of a link alone
		return set, program.Misused("-o: %s is there and is no regular file; if it is a link, name what it leads to", set.file)
	}
	if from := webdelivery.EventsRetention(now); query.Start.Before(from) {
		fmt.Fprintf(s.Err, "events: the service keeps events from %s on; what was before is missing\n", from.Format(time.RFC3339))
	}
	return set, nil
}
