package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// areas are the operations of the SDK that can be profiled. Each is the subject of a measurement, without its reference.
var areas = []struct {
	name, what string
	make       func(*bench) (subject, error)
}{
	{"rows", "Scan of short rows from memory", func(b *bench) (subject, error) { return b.scanning(shapes[0]) }},
	{"rows-mixed", "Scan of mixed rows", func(b *bench) (subject, error) { return b.scanning(shapes[1]) }},
	{"rows-long", "Scan of long rows", func(b *bench) (subject, error) { return b.scanning(shapes[2]) }},
	{"query", "Query of short rows", func(b *bench) (subject, error) { return querying(b.sizes.rows / 10) }},
	{"get", "Tasks.Get over loopback", func(b *bench) (subject, error) { return sdkGet(b.url) }},
	{"purge", "Submit of one large purge", func(b *bench) (subject, error) { return submitting(purgeOf(b.sizes.uris)) }},
	{"queue", "many callers of a purge queue", func(b *bench) (subject, error) { return queueing(b.sizes.callers) }},
	{"plan", "Plan of a full list", func(b *bench) (subject, error) {
		plan, _, err := planning(b.sizes.entries)
		return plan, err
	}},
	{"entries", "AllEntries of a full list", func(b *bench) (subject, error) { return readingList(b.sizes.entries, 0) }},
	{"ahead", "the same with ReadAhead(8)", func(b *bench) (subject, error) {
		return readingList(b.sizes.entries, 0, webdelivery.ReadAhead(8))
	}},
	{"tasks", "Tasks.All", func(b *bench) (subject, error) { return readingTasks(b.sizes.entries) }},
}

func (b *bench) scanning(s *shape) (subject, error) { return scanning(s, s.rows(b.sizes.rows/10)) }

func areaNames() string {
	var text strings.Builder
	for _, a := range areas {
		fmt.Fprintf(&text, "  make profile AREA=%-10s # %s\n", a.name, a.what)
	}
	return text.String()
}

var errNoArea = errors.New("no such area")

// profile writes the CPU profile of an area to a file in dir, and prints how to open it. Without a name it prints the
// areas.
func profile(out io.Writer, dir, name string, o options) error {
	if name == "" {
		_, err := io.WriteString(out, areaNames())
		return err
	}
	for _, a := range areas {
		if a.name != name {
			continue
		}
		url, stop, err := startServer()
		if err != nil {
			return err
		}
		defer stop()
		s, err := a.make(&bench{options: o, url: url})
		if err != nil {
			return err
		}
		file, err := filepath.Abs(filepath.Join(dir, name+".prof"))
		if err != nil {
			return err
		}
		if err := o.writeProfile(file, s); err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s for %v. To open the profile:\n\tgo tool pprof -http=: %s\n", a.what, o.profiled, file)
		return err
	}
	return fmt.Errorf("%w: %q. The areas are:\n%s", errNoArea, name, areaNames())
}

// writeProfile repeats a subject for a while. The profile has neither its set-up nor its first run.
func (o options) writeProfile(path string, s subject) (err error) {
	if err := s(); err != nil {
		return err
	}
	file, err := os.Create(path) //nolint:gosec // the name of an area
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	runtime.GC()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	for began := time.Now(); time.Since(began) < o.profiled; {
		if err := s(); err != nil {
			return err
		}
	}
	return nil
}
