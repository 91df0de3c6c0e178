package main

import (
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// followFlags adds the flags of -follow. The check is for when all flags are parsed.
func (s *settings) followFlags(flags *flag.FlagSet, stderr io.Writer) (check func() error) {
	follow := flags.Bool("follow", false, "continue with events as they happen, until ^C")
	delay := program.Duration(5 * time.Minute)
	flags.Var(&delay, "delay", "with -follow: write events this `duration` after they happened")
	var lookback program.Duration
	flags.Var(&lookback, "lookback", "also write, out of order, events that are recorded up to this `duration` after they happened (default 20m with -follow)")
	flags.BoolVar(&s.acceptGap, "accept-gap", false, "continue an export although the service has deleted events since")
	flags.StringVar(&s.metrics, "metrics", "", "with -follow: `address` on which to serve metrics for Prometheus, such as localhost:9755")
	hecURL := flags.String("hec", "", "with -follow: send the events to the Splunk HTTP Event Collector at this `URL`")
	otlpURL := flags.String("otlp", "", "with -follow: send the events as OTLP logs to this `URL`")
	flags.StringVar(&s.cursor, "cursor", "", "`file` that holds how far -hec or -otlp has come")
	return func() error {
		s.lookback = time.Duration(lookback)
		if *follow {
			s.follow, s.query.End = time.Duration(delay), time.Time{}
			if !program.IsSet(flags, "lookback") {
				s.lookback = 20 * time.Minute
			}
			if err := s.checkFollow(flags); err != nil {
				return err
			}
		}
		return s.checkDelivery(flags, *hecURL, *otlpURL, stderr)
	}
}

// checkFollow refuses what -follow cannot do. A file that exists is not a new one: -resume continues it.
func (s *settings) checkFollow(flags *flag.FlagSet) error {
	switch {
	case program.IsSet(flags, "end") || s.query.Limit > 0:
		return program.Misused("-follow has no end: leave out -end and -limit")
	case s.follow < time.Second:
		return program.Misused("-delay must be 1s or more")
	case s.format == formatParquet:
		return program.Misused("-follow cannot write parquet, which is complete only at its end; use csv, ecs or ndjson")
	case s.file == "":
		return nil
	}
	if _, err := os.Lstat(s.file); !errors.Is(err, fs.ErrNotExist) {
		return program.Misused("%s exists: continue it with -resume %s, or name another file", s.file, s.file)
	}
	return nil
}

// checkDelivery sets the collector.
func (s *settings) checkDelivery(flags *flag.FlagSet, hecURL, otlpURL string, stderr io.Writer) (err error) {
	to, address := hec, hecURL
	if program.IsSet(flags, "otlp") {
		to, address = otlp, otlpURL
	}
	delivers := program.IsSet(flags, "hec") || program.IsSet(flags, "otlp")
	switch {
	case s.lookback > 3*24*time.Hour:
		return program.Misused("-lookback must be at most 3d: the service has no older events")
	case s.follow == 0 && (delivers || s.metrics != ""):
		return program.Misused("-hec, -otlp and -metrics need -follow")
	case !delivers && s.cursor != "":
		return program.Misused("-cursor belongs to -hec or -otlp; without them, FILE.cursor of -o holds the cursor")
	case !delivers:
		return nil
	case program.IsSet(flags, "hec") && program.IsSet(flags, "otlp"):
		return program.Misused("-hec and -otlp: give only one; two programs, each with a -cursor, send to both")
	case s.file != "" || program.IsSet(flags, "format"):
		return program.Misused("-%s takes neither -o nor -format", to.flag)
	case !slices.Contains(s.query.Dimensions, webdelivery.DimEventTimestamp):
		return program.Misused("-%s needs %s in -columns", to.flag, webdelivery.DimEventTimestamp)
	case s.cursor == "" || program.Special(s.cursor) || program.Special(rejectedOf(s.cursor)):
		return program.Misused("-%s needs a regular file for the cursor; name it with -cursor", to.flag)
	}
	s.to, err = newCollector(to, address, stderr)
	return err
}
