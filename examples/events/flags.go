package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/events/table"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/filters"
)

// settings are the values of the flags.
type settings struct {
	query        webdelivery.EventsQuery // a Limit of 0 means all
	format, file string                  // a file of "" means stdout
	saved        *state                  // of the export to continue; nil for a new one
	follow       time.Duration           // between an event and its export; 0 if the export ends
	pace         pace

	lookback  time.Duration
	acceptGap bool
	metrics   string     // address to serve on; "" for none
	to        *collector // nil if the events go to file or stdout
	cursor    string     // file with the cursor of a delivery
}

// all are the dimensions that the service document names.
const all = "event_timestamp_ms,event_type,event_action,event_severity,rule_id,waf_action,client_ip," +
	"client_connection_remote_ip,client_country_code,client_asn,client_browser,domain,property"

func parse(args []string, s program.Streams, now time.Time) (set settings, err error) {
	set.pace = usual
	query := &set.query
	flags := program.Flags("events", source, s)
	query.Start, query.End = now.Add(-24*time.Hour), now
	flags.Func("since", "begin this `duration` ago, such as 90m, 12h or 3d; not together with -start", func(text string) error {
		ago, err := program.ParseDuration(text)
		if err == nil && ago == 0 {
			err = errors.New("must be above 0")
		}
		query.Start = now.Add(-ago)
		return err
	})
	flags.Func("start", "begin at this `time`, in RFC 3339 (default: 24 hours ago)", timeFlag(&query.Start))
	flags.Func("end", "end before this `time`, in RFC 3339 (default: now)", timeFlag(&query.End))
	columns := flags.String("columns", all, "comma-separated `names` of dimensions, in the order of the header")
	flags.Func("filter", "`expression` such as domain==a,domain==b (or), or event_action==BLOCK;rule_id!=c (and)", func(text string) (err error) {
		if query.Filter = nil; text != "" { // from a variable that is not set
			query.Filter, err = filters.Parse(text)
		}
		return err
	})
	flags.IntVar(&query.Limit, "limit", 0, "at most this `number` of events; 0 is all")
	flags.StringVar(&set.format, "format", "", "`name` of the format: csv, ecs, ndjson or parquet (default the extension of -o, or csv)")
	flags.StringVar(&set.file, "o", "", "`file` to write; - is stdout (default stdout)")
	checkFollow := set.followFlags(flags, s.Err)
	resume := flags.String("resume", "", "continue the export to this `file` of -o, which ended early; takes only -accept-gap and -metrics beside it")
	if err := program.ParseAlone(flags, args); err != nil {
		return set, err
	}
	if set.file == "-" {
		set.file = ""
	}
	if program.IsSet(flags, "resume") {
		return parseResume(flags, set, *resume, s, now)
	}
	if query.Dimensions, err = names(*columns); err != nil {
		return set, err
	}
	if err := checkRange(flags, query.Start, query.End); err != nil {
		return set, err
	}
	set.format = cmp.Or(set.format, strings.TrimPrefix(filepath.Ext(set.file), "."), "csv")
	switch {
	case query.Limit < 0:
		return set, program.Misused("-limit %d is below 0; use 0 for all events", query.Limit)
	case table.Formats[set.format] == nil:
		return set, program.Misused("format %q is unknown; use -format csv, ecs, ndjson or parquet", set.format)
	case set.format == table.ECS && !slices.Contains(query.Dimensions, webdelivery.DimEventTimestamp):
		return set, program.Misused("ecs needs %s in -columns", webdelivery.DimEventTimestamp)
	case set.format == formatParquet && set.file == "":
		return set, program.Misused("parquet needs a file; name it with -o")
	}
	if err := regular("-o", set.file); err != nil {
		return set, err
	}
	if set.format == formatParquet {
		if part := foreignPart(set.file); part != "" {
			return set, program.Misused("%s is part of an earlier export; move its parts away (%s), or name another file", part, patternOf(set.file))
		}
	}
	if err := checkFollow(); err != nil {
		return set, err
	}
	tellOfGap(s, query.Start, now)
	return set, nil
}

// timeFlag reads a time of a flag.
func timeFlag(at *time.Time) func(text string) error {
	return func(text string) (err error) {
		if *at, err = time.Parse(time.RFC3339, text); err != nil {
			return errors.New("want a time in RFC 3339, such as 2026-11-20T00:00:00Z")
		}
		return nil
	}
}

// names splits the names of -columns.
func names(columns string) ([]string, error) {
	all := strings.Split(columns, ",")
	for i, name := range all {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			return nil, program.Misused("-columns: name %d is empty; remove a comma", i+1)
		case slices.Contains(all[:i], name):
			return nil, program.Misused("-columns: name %d, %q, appears twice; remove one", i+1, name)
		}
		all[i] = name
	}
	return all, nil
}

// checkRange refuses flags that do not make a time range.
func checkRange(flags *flag.FlagSet, start, end time.Time) error {
	begin, until := "-start "+start.Format(time.RFC3339), "-end "+end.Format(time.RFC3339)
	next := "give an earlier begin or a later end"
	switch {
	case program.IsSet(flags, "since") && program.IsSet(flags, "start"):
		return program.Misused("-since and -start both say where to begin: give only one")
	case start.Before(end):
		return nil
	case program.IsSet(flags, "since"):
		begin = "-since, which is " + start.Format(time.RFC3339) + ","
	case !program.IsSet(flags, "start"):
		begin = "the default begin, " + start.Format(time.RFC3339) + ","
		next = "give -start too"
	}
	if !program.IsSet(flags, "end") {
		until = "now, " + end.Format(time.RFC3339)
	}
	return program.Misused("%s is not before %s: %s", begin, until, next)
}

// parseResume reads the settings from FILE.cursor instead of the other flags.
func parseResume(flags *flag.FlagSet, given settings, file string, s program.Streams, now time.Time) (set settings, err error) {
	var others []string
	flags.Visit(func(f *flag.Flag) {
		if !slices.Contains([]string{"resume", "accept-gap", "metrics"}, f.Name) {
			others = append(others, "-"+f.Name)
		}
	})
	switch {
	case len(others) > 0:
		return set, program.Misused("-resume continues the export with its own settings: leave out %s", strings.Join(others, ", "))
	case file == "" || file == "-":
		return set, program.Misused("-resume takes the file that -o named; an export to stdout cannot be resumed")
	}
	if err := regular("-resume", file); err != nil {
		return set, err
	}
	if set, err = resumed(file); err != nil {
		return set, err
	}
	if set.follow == 0 && given.metrics != "" {
		return set, program.Misused("-metrics needs an export that -follow began")
	}
	set.pace, set.acceptGap, set.metrics = usual, given.acceptGap, given.metrics
	from := set.query.Start
	if at := set.saved.Cursor.Time(); at.After(from) {
		from = at
	}
	if !set.saved.Done {
		tellOfGap(s, from, now)
	}
	return set, nil
}

// regular refuses the name of anything but a regular file: a new file would replace a device, or a link rather than its
// target.
func regular(flag, file string) error {
	if file == "" {
		return nil
	}
	for _, name := range []string{file, partialOf(file), cursorOf(file), newCursorOf(file)} {
		if program.Special(name) {
			return program.Misused("%s: %s is not a regular file; if it is a link, name its target", flag, name)
		}
	}
	return nil
}

// tellOfGap prints a warning if the service no longer has some of the events.
func tellOfGap(s program.Streams, from, now time.Time) {
	if kept := webdelivery.EventsRetention(now); from.Before(kept) {
		fmt.Fprintf(s.Err, "events: warning: the service keeps events only from %s on; earlier ones are missing\n", kept.Format(time.RFC3339))
	}
}
